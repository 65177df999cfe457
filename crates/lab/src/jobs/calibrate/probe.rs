//! Measures round-trip times with UDP probes.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LONGEST_MS;
use crate::{LabError, clock};

/// Bytes of IP and UDP headers.
const UDP_HEADERS: usize = 28;
/// Smallest payload of a probe: its number and its send time.
const STAMP_BYTES: usize = 16;
/// Largest payload of a datagram over IPv4, bytes.
const MOST_PROBE_BYTES: f64 = 65_507.0;
const MOST_PROBES: f64 = 1e6;
/// How long after its due time a probe is lost.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Probes sent at a fixed interval, or one at a time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
pub struct Probes {
    /// Number of probes.
    pub probes: usize,
    /// Payload of each, bytes.
    pub probe_bytes: usize,
    /// Time between two probes, ms.
    pub probe_gap_ms: f64,
    /// Whether the next probe waits for the answer to the last one, and then for the gap: one in flight, like a
    /// SYN.
    pub sparse: bool,
}

impl Default for Probes {
    fn default() -> Self {
        Self {
            probes: 100,
            probe_bytes: 64,
            probe_gap_ms: 2.0,
            sparse: false,
        }
    }
}

/// Round-trip times, ms.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RoundTrips {
    /// Expected round-trip time: propagation and the probe's own serialisation.
    pub expected: f64,
    /// The quickest probe.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Probes that came back.
    pub received: usize,
}

impl Probes {
    /// Refuses settings that cannot be sent.
    ///
    /// # Errors
    /// [`LabError::OutOfRange`] naming it.
    pub(super) fn check(&self) -> Result<(), LabError> {
        LabError::check_range("probes", self.probes as f64, 0.0, MOST_PROBES)?;
        LabError::check_range("probe_bytes", self.probe_bytes as f64, 0.0, MOST_PROBE_BYTES)?;
        LabError::check_range("probe_gap_ms", self.probe_gap_ms, 0.0, LONGEST_MS)
    }

    /// Bytes of a probe's IP packet.
    pub fn packet_bytes(&self) -> usize {
        self.probe_bytes.max(STAMP_BYTES) + UDP_HEADERS
    }

    /// Sends the probes from `from` to the echo service `echo`, with an expected round trip of `rtt_ms`.
    ///
    /// # Errors
    /// The kernel's. A probe that does not come back is left out.
    pub fn send(&self, from: (Ipv4Addr, u16), echo: (Ipv4Addr, u16), rtt_ms: f64) -> io::Result<RoundTrips> {
        let socket = UdpSocket::bind(from)?;
        socket.connect(echo)?;
        socket.set_read_timeout(Some(PROBE_TIMEOUT + Duration::from_secs_f64(rtt_ms / 1e3)))?;
        let mut samples = if self.sparse {
            self.take_turns(&socket)?
        } else {
            std::thread::scope(|scope| {
                let receiver = scope.spawn(|| self.receive(&socket));
                self.transmit(&socket)?;
                receiver
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("the receiving thread died")))
            })?
        };
        samples.sort_by(f64::total_cmp);
        Ok(RoundTrips::of(&samples))
    }

    fn transmit(&self, socket: &UdpSocket) -> io::Result<()> {
        let mut datagram = vec![0; self.probe_bytes.max(STAMP_BYTES)];
        for number in 0..self.probes as u64 {
            send_one(socket, number, &mut datagram)?;
            std::thread::sleep(Duration::from_secs_f64(self.probe_gap_ms / 1e3));
        }
        Ok(())
    }

    /// Sends each probe after the answer to the last one, or after its timeout.
    fn take_turns(&self, socket: &UdpSocket) -> io::Result<Vec<f64>> {
        let mut datagram = vec![0; self.probe_bytes.max(STAMP_BYTES)];
        let mut samples = Vec::with_capacity(self.probes);
        for number in 0..self.probes as u64 {
            send_one(socket, number, &mut datagram)?;
            samples.extend(answer_to(socket, number, &mut datagram)?);
            std::thread::sleep(Duration::from_secs_f64(self.probe_gap_ms / 1e3));
        }
        Ok(samples)
    }

    fn receive(&self, socket: &UdpSocket) -> io::Result<Vec<f64>> {
        let mut datagram = vec![0; self.probe_bytes.max(STAMP_BYTES)];
        let mut samples = Vec::with_capacity(self.probes);
        while samples.len() < self.probes {
            match socket.recv(&mut datagram) {
                Ok(STAMP_BYTES..) => samples.push(age_ms(&datagram)),
                Ok(_) => {}
                // The remaining probes are lost.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(samples)
    }
}

fn send_one(socket: &UdpSocket, number: u64, datagram: &mut [u8]) -> io::Result<()> {
    datagram[..8].copy_from_slice(&number.to_be_bytes());
    datagram[8..16].copy_from_slice(&clock::now().to_be_bytes());
    socket.send(datagram).map(drop)
}

/// The round trip of probe `number`, ms; `None` if it is lost. Answers to earlier probes are ignored.
fn answer_to(socket: &UdpSocket, number: u64, datagram: &mut [u8]) -> io::Result<Option<f64>> {
    loop {
        match socket.recv(datagram) {
            Ok(STAMP_BYTES..) if word(&datagram[..8]) == number => return Ok(Some(age_ms(datagram))),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// How long ago the probe in `datagram` was sent, ms.
fn age_ms(datagram: &[u8]) -> f64 {
    clock::now().saturating_sub(word(&datagram[8..16])) as f64 / 1e6
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl RoundTrips {
    /// Summarises `samples`, which must be sorted.
    fn of(samples: &[f64]) -> Self {
        let quantile = |share: f64| {
            let rank = (samples.len() as f64 * share).ceil() as usize;
            samples.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self {
            expected: 0.0,
            min: quantile(0.0),
            p50: quantile(0.5),
            p99: quantile(0.99),
            received: samples.len(),
        }
    }
}
