//! Is the path what was asked for? Measured with the lab's own services before anything is believed.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use firstflight_page::{FORMAT, Kind, Page, Resource};
use firstflight_path::PathConfig;
use serde::{Deserialize, Serialize};

use crate::job::RelaySummary;
use crate::lab::{Lab, LabConfig};
use crate::net::{CLIENT, SERVICES};
use crate::origin::{ECHO_PORT, SINK_PORT, SOURCE_PORT};
use crate::{LabError, clock};

/// What is to be measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The path asked for.
    pub path: PathConfig,
    /// UDP probes for the round-trip time.
    #[serde(default = "hundred")]
    pub probes: usize,
    /// Payload of a probe, bytes.
    #[serde(default = "small")]
    pub probe_bytes: usize,
    /// Time between two probes, ms.
    #[serde(default = "gap")]
    pub probe_gap_ms: f64,
    /// How long each direction's rate is measured, ms; 0 leaves it out.
    #[serde(default)]
    pub rate_ms: u64,
    /// How late a packet may be delivered, ms.
    #[serde(default = "bound")]
    pub late_bound_ms: f64,
}

fn hundred() -> usize {
    100
}
fn small() -> usize {
    64
}
fn gap() -> f64 {
    1.0
}
fn bound() -> f64 {
    2.0
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Round-trip times of the probes.
    pub rtt_ms: RoundTrips,
    /// Towards the client.
    pub down_mbps: Rate,
    /// Towards the origins.
    pub up_mbps: Rate,
    /// How the relay did.
    pub relay: RelaySummary,
    /// Building the lab.
    pub setup_ms: f64,
}

/// Round-trip times, ms.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RoundTrips {
    /// Propagation asked for, with the probe's own serialisation.
    pub expected: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Probes that came back.
    pub received: usize,
}

/// TCP goodput, Mbit/s.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Rate {
    /// The link's rate; `None`: unlimited.
    pub asked: Option<f64>,
    /// Goodput to expect of it: less headers.
    pub expected: Option<f64>,
    /// Goodput measured; `None` when it was not.
    pub measured: Option<f64>,
}

/// Bytes of IP and UDP headers.
const UDP_HEADERS: usize = 28;
/// TCP payload per packet of 1,500 bytes: IPv4, TCP and timestamps take 52.
const GOODPUT_SHARE: f64 = 1448.0 / 1500.0;
/// Slow start and the queue fill before the rate counts.
const WARM_UP_SHARE: f64 = 0.3;

impl Calibration {
    /// Reads what is to be measured.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text)
            .map_err(|error| LabError::new(format!("the calibration: {error}"), "send one line of JSON"))
    }

    /// Builds a lab without a page and measures.
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be built or its services do not answer.
    pub fn run(&self, realtime: bool) -> Result<Measured, LabError> {
        let page = nobody();
        let lab = Lab::build(&LabConfig {
            page: &page,
            bodies: &std::collections::HashMap::new(),
            path: &self.path,
            tfo: false,
            keep_alive: true,
            capture: false,
            realtime,
        })?;
        lab.shape();
        let failed = |error: io::Error| LabError::system("measuring the path", error);
        let rtt_ms = self.round_trips().map_err(failed)?;
        let (down, up) = (self.path.down_bps, self.path.up_bps);
        let down_mbps = self.rate(down, SOURCE_PORT, receive).map_err(failed)?;
        let up_mbps = self.rate(up, SINK_PORT, transmit).map_err(failed)?;
        let setup_ms = lab.setup.as_secs_f64() * 1e3;
        let relay = RelaySummary::new(&lab.finish()?, self.late_bound_ms);
        Ok(Measured { rtt_ms, down_mbps, up_mbps, relay, setup_ms })
    }

    fn round_trips(&self) -> io::Result<RoundTrips> {
        let mut samples = probe((CLIENT, 0), (SERVICES, ECHO_PORT), self)?;
        let packet_bits = ((self.probe_bytes + UDP_HEADERS) * 8) as f64;
        let serialisation = [self.path.down_bps, self.path.up_bps].into_iter().flatten();
        let expected = self.path.rtt_ms + serialisation.map(|rate| packet_bits / rate as f64 * 1e3).sum::<f64>();
        Ok(RoundTrips { expected, ..RoundTrips::of(&mut samples) })
    }

    fn rate(&self, asked: Option<u64>, port: u16, flow: Flow) -> io::Result<Rate> {
        let mbps = |bps: u64| bps as f64 / 1e6;
        let mut rate = Rate {
            asked: asked.map(mbps),
            expected: asked.map(|bps| mbps(bps) * GOODPUT_SHARE),
            measured: None,
        };
        if self.rate_ms > 0 {
            let stream = TcpStream::connect((SERVICES, port))?;
            rate.measured = Some(flow(stream, Duration::from_millis(self.rate_ms))?);
        }
        Ok(rate)
    }
}

impl RoundTrips {
    fn of(samples: &mut [f64]) -> Self {
        samples.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let rank = (samples.len() as f64 * share).ceil() as usize;
            samples.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { expected: 0.0, p50: quantile(0.5), p99: quantile(0.99), received: samples.len() }
    }
}

/// Sends `probes` datagrams one after another and times their echoes, ms.
///
/// # Errors
/// The kernel's. A probe that does not come back in a second is left out.
pub fn probe(from: (Ipv4Addr, u16), echo: (Ipv4Addr, u16), config: &Calibration) -> io::Result<Vec<f64>> {
    let socket = UdpSocket::bind(from)?;
    socket.connect(echo)?;
    let patience = Duration::from_secs_f64(1.0 + config.path.rtt_ms / 1e3);
    socket.set_read_timeout(Some(patience))?;
    let mut datagram = vec![0; config.probe_bytes.max(8)];
    let mut samples = Vec::with_capacity(config.probes);
    for number in 0..config.probes as u64 {
        datagram[..8].copy_from_slice(&number.to_be_bytes());
        let sent = clock::now();
        socket.send(&datagram)?;
        while let Ok(length) = socket.recv(&mut datagram) {
            if length >= 8 && datagram[..8] == number.to_be_bytes() {
                samples.push((clock::now() - sent) as f64 / 1e6);
                break;
            }
        }
        std::thread::sleep(Duration::from_secs_f64(config.probe_gap_ms / 1e3));
    }
    Ok(samples)
}

/// Measures goodput over a stream for a while, Mbit/s.
type Flow = fn(TcpStream, Duration) -> io::Result<f64>;

/// Goodput at the receiver, the first part not counted.
fn receive(mut stream: TcpStream, time: Duration) -> io::Result<f64> {
    let mut buffer = vec![0; 1 << 20];
    let (start, mut counted_from, mut bytes) = (Instant::now(), None, 0);
    while start.elapsed() < time {
        let length = stream.read(&mut buffer)?;
        let now = Instant::now();
        match counted_from {
            None if start.elapsed() >= time.mul_f64(WARM_UP_SHARE) => counted_from = Some(now),
            None => {}
            Some(_) => bytes += length,
        }
    }
    let counted = counted_from.map_or(time, |from| from.elapsed());
    Ok(bytes as f64 * 8.0 / 1e6 / counted.as_secs_f64())
}

/// Goodput at the sender: what the far end has acknowledged.
fn transmit(mut stream: TcpStream, time: Duration) -> io::Result<f64> {
    stream.set_write_timeout(Some(Duration::from_millis(5)))?;
    let buffer = vec![0; 1 << 16];
    let (start, mut counted_from, mut written) = (Instant::now(), None, 0_u64);
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

/// Bytes written and not yet acknowledged (`SIOCOUTQ`, `tcp(7)`).
fn unacknowledged(stream: &TcpStream) -> u64 {
    use std::os::fd::AsRawFd;
    let mut bytes: nix::libc::c_int = 0;
    // SAFETY: SIOCOUTQ (TIOCOUTQ) writes one int, which outlives the call.
    unsafe { nix::libc::ioctl(stream.as_raw_fd(), nix::libc::TIOCOUTQ, &raw mut bytes) };
    bytes as u64
}

/// A page nobody loads: the lab wants one.
fn nobody() -> Page {
    let document = Resource {
        url: "http://calibration.invalid/".to_owned(),
        method: "GET".to_owned(),
        kind: Kind::Document,
        mime: "text/html".to_owned(),
        status: 200,
        request_bytes: 100,
        header_bytes: 100,
        body_bytes: 100,
        server_ms: 0.0,
        cpu_ms: 0.0,
        blocks_load: true,
        initiator: None,
    };
    Page {
        format: FORMAT.to_owned(),
        name: "calibration".to_owned(),
        source: String::new(),
        resources: vec![document],
        missing: Vec::new(),
    }
}
