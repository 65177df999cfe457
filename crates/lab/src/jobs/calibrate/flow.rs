//! Measures rates by TCP flows.

use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::libc;

use super::Probes;
use crate::net::{CLIENT, SERVICES};
use crate::origin::SINK_PORT;

/// The first part of a flow does not count: slow start, and filling the queue.
const WARM_UP_SHARE: f64 = 0.3;

/// Measures goodput over a stream for a duration, Mbit/s.
pub type Flow = fn(TcpStream, Duration) -> io::Result<f64>;

/// Bytes that arrived, from the end of the warm-up to the last arrival. The measurement ends with an arrival, so
/// that a slow link's rate does not depend on where in a packet the time runs out.
#[derive(Default)]
struct Arrivals {
    first: Option<(Instant, u64)>,
    last: Option<(Instant, u64)>,
}

impl Arrivals {
    fn note(&mut self, warm: bool, total: u64) {
        if warm && self.last.is_none_or(|(_, bytes)| bytes != total) {
            self.last = Some((Instant::now(), total));
            self.first = self.first.or(self.last);
        }
    }

    fn mbps(&self) -> f64 {
        let (Some((from, before)), Some((to, after))) = (self.first, self.last) else {
            return 0.0;
        };
        (after - before) as f64 * 8.0 / 1e6 / (to - from).as_secs_f64().max(1e-9)
    }
}

/// Goodput at the receiver, without the warm-up.
///
/// # Errors
/// The kernel's.
pub fn receive(mut stream: TcpStream, time: Duration) -> io::Result<f64> {
    let mut buffer = vec![0; 1 << 20];
    let (start, mut arrivals, mut total) = (Instant::now(), Arrivals::default(), 0);
    while start.elapsed() < time {
        total += stream.read(&mut buffer)? as u64;
        arrivals.note(start.elapsed() >= time.mul_f64(WARM_UP_SHARE), total);
    }
    Ok(arrivals.mbps())
}

/// Goodput at the sender, by acknowledged bytes, without the warm-up.
///
/// # Errors
/// The kernel's.
pub fn transmit(mut stream: TcpStream, time: Duration) -> io::Result<f64> {
    stream.set_write_timeout(Some(Duration::from_millis(5)))?;
    let buffer = vec![0; 1 << 16];
    let (start, mut arrivals, mut written) = (Instant::now(), Arrivals::default(), 0);
    while start.elapsed() < time {
        match stream.write(&buffer) {
            Ok(length) => written += length as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let warm = start.elapsed() >= time.mul_f64(WARM_UP_SHARE);
        arrivals.note(warm, written - unacknowledged(&stream));
    }
    Ok(arrivals.mbps())
}

/// Sends datagrams of a probe's size to the sink, evenly spaced at `bps`, for `time`.
///
/// # Errors
/// The kernel's.
pub fn flood(bps: u64, probes: Probes, time: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind((CLIENT, 0))?;
    socket.connect((SERVICES, SINK_PORT))?;
    let datagram = vec![0; probes.probe_bytes];
    let gap = Duration::from_secs_f64(probes.packet_bytes() as f64 * 8.0 / bps as f64);
    let start = Instant::now();
    let mut due = Duration::ZERO;
    while due < time {
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        socket.send(&datagram)?;
        due += gap;
    }
    Ok(())
}

/// Bytes written and not yet acknowledged (`SIOCOUTQ`, `tcp(7)`).
fn unacknowledged(stream: &TcpStream) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (TIOCOUTQ) writes one int, which outlives the call.
    unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    u64::try_from(bytes).unwrap_or_default()
}
