//! Rates by TCP flows.

use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::libc;

use super::Probes;
use crate::net::{CLIENT, SERVICES};
use crate::origin::SINK_PORT;

/// Slow start and the queue fill before the rate counts.
const WARM_UP_SHARE: f64 = 0.3;

/// Measures goodput over a stream for a while, Mbit/s.
pub type Flow = fn(TcpStream, Duration) -> io::Result<f64>;

/// Goodput at the receiver, the first part not counted.
///
/// # Errors
/// The kernel's.
pub fn receive(mut stream: TcpStream, time: Duration) -> io::Result<f64> {
    let mut buffer = vec![0; 1 << 20];
    let (start, mut counted_from, mut bytes) = (Instant::now(), None, 0);
    while start.elapsed() < time {
        let length = stream.read(&mut buffer)?;
        match counted_from {
            None if start.elapsed() >= time.mul_f64(WARM_UP_SHARE) => counted_from = Some(Instant::now()),
            None => {}
            Some(_) => bytes += length,
        }
    }
    let counted = counted_from.map_or(time, |from| from.elapsed());
    Ok(bytes as f64 * 8.0 / 1e6 / counted.as_secs_f64())
}

/// Goodput at the sender: what the far end has acknowledged, the first part not counted.
///
/// # Errors
/// The kernel's.
pub fn transmit(mut stream: TcpStream, time: Duration) -> io::Result<f64> {
    stream.set_write_timeout(Some(Duration::from_millis(5)))?;
    let buffer = vec![0; 1 << 16];
    let (start, mut written, mut counted_from) = (Instant::now(), 0_u64, None);
    while start.elapsed() < time {
        match stream.write(&buffer) {
            Ok(length) => written += length as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if counted_from.is_none() && start.elapsed() >= time.mul_f64(WARM_UP_SHARE) {
            counted_from = Some((Instant::now(), written - unacknowledged(&stream)));
        }
    }
    let (from, before) = counted_from.unwrap_or((start, 0));
    let arrived = written - unacknowledged(&stream) - before;
    Ok(arrived as f64 * 8.0 / 1e6 / from.elapsed().as_secs_f64())
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
