//! The wire of a check: the kernel at one end, the script at the other. It keeps every packet.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;

use super::packet::Packet;
use crate::net::{Side, Transport, bring_loopback_up, is_origin, use_ipv6};
use crate::packet::{endpoints, is_tcp_or_icmp_error};
use crate::relay::Capture;
use crate::tun::{Frame, Offload, Tun};
use crate::{LabError, clock};
use firstflight_path::IpVersion;

/// How long a kernel may take for what it does at once.
pub(super) const SOON: Duration = Duration::from_secs(5);
/// After this time without a packet a row assumes that none comes.
pub(super) const SILENCE: Duration = Duration::from_millis(250);

/// A TUN device of the kernel, whose other end the script holds.
#[derive(Debug)]
pub(super) struct Wire {
    ip: IpVersion,
    tun: Tun,
    /// The packet that was read last.
    frame: Frame,
    capture: Capture,
    sent: Vec<Packet>,
    started: u64,
}

/// A packet on the wire, for people to read.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Time since the check began, ms.
    pub at_ms: f64,
    /// `client` or `server`.
    pub from: &'static str,
    /// The packet as text. Sequence numbers count from each side's first.
    pub text: String,
}

impl Wire {
    /// Opens the device in this network namespace. The kernel is the `kernel` side.
    pub(super) fn open(kernel: Side, ip: IpVersion) -> Result<Self, LabError> {
        Ok(Self {
            ip,
            tun: open_network(kernel, ip)?,
            frame: Frame::with_room(Offload::None.largest_packet()),
            capture: Capture::default(),
            sent: Vec::new(),
            started: clock::now(),
        })
    }

    /// The IP version on the wire.
    pub(super) const fn ip(&self) -> IpVersion {
        self.ip
    }

    /// The kernel's segments so far.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &Packet> {
        self.sent.iter()
    }

    /// Sends the kernel a segment.
    pub(super) fn send(&mut self, packet: &Packet) -> Result<(), LabError> {
        let bytes = packet.bytes();
        let bytes = bytes.ok_or_else(|| LabError::bug("the segment's options do not fit"))?;
        self.send_raw(&bytes)
    }

    /// Sends the kernel an IP packet.
    pub(super) fn send_raw(&mut self, bytes: &[u8]) -> Result<(), LabError> {
        self.capture.keep(clock::now(), bytes);
        self.tun
            .write(&Frame::new(bytes))
            .map_err(|error| LabError::system("writing to the TUN device", error))
    }

    /// The kernel's next segment that `fits`, skipping others; `None` if none comes in time.
    pub(super) fn wait(&mut self, timeout: Duration, fits: impl Fn(&Packet) -> bool) -> Option<Packet> {
        let deadline = Instant::now() + timeout;
        loop {
            while self.tun.read(&mut self.frame) {
                if let Some(packet) = self.keep().filter(&fits) {
                    return Some(packet);
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            // Rounded up, because a timeout of 0 would spin.
            let rounded = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            // After an interrupted wait the loop looks again.
            let _ = poll(&mut [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)], rounded);
        }
    }

    /// The same; the error names the missing packet.
    pub(super) fn expect(
        &mut self,
        what: &str,
        timeout: Duration,
        fits: impl Fn(&Packet) -> bool,
    ) -> Result<Packet, LabError> {
        self.wait(timeout, fits).ok_or_else(|| missing(what, timeout))
    }

    /// All packets until none has come for `silence`.
    pub(super) fn drain(&mut self, silence: Duration) -> Vec<Packet> {
        let mut packets = Vec::new();
        while let Some(packet) = self.wait(silence, |_| true) {
            packets.push(packet);
        }
        packets
    }

    /// Writes all packets to a file.
    pub(super) fn write(&self, file: &Path) -> Result<(), LabError> {
        self.capture.write(file)
    }

    /// All packets, for people to read.
    pub(super) fn lines(&self) -> Vec<Line> {
        lines(self.capture.packets(), self.started)
    }

    /// Keeps the packet that was read last; `None` if it is not TCP.
    fn keep(&mut self) -> Option<Packet> {
        let bytes = self.frame.packet();
        // A kernel with IPv6 sends messages to neighbours and routers.
        if !is_tcp_or_icmp_error(bytes) {
            return None;
        }
        self.capture.keep(clock::now(), bytes);
        let packet = Packet::parse(bytes);
        self.sent.extend(packet.clone());
        packet
    }
}

/// Brings up loopback and device of this network namespace. The kernel is the `kernel` side.
pub(super) fn open_network(kernel: Side, ip: IpVersion) -> Result<Tun, LabError> {
    if ip == IpVersion::V6 {
        use_ipv6(kernel)?;
    }
    bring_loopback_up(kernel, ip)?;
    Tun::open(kernel, ip, Offload::None, &Transport::default())
}

/// The error for a packet that did not come.
pub(super) fn missing(what: &str, timeout: Duration) -> LabError {
    LabError::Missing {
        what: what.to_owned(),
        seconds: timeout.as_secs_f64(),
    }
}

type Flow = (SocketAddr, SocketAddr);

/// Packets for people to read. Times count from `started`, ns.
pub(super) fn lines<'a>(packets: impl Iterator<Item = (u64, &'a [u8])>, started: u64) -> Vec<Line> {
    let mut first = HashMap::new();
    packets
        .map(|(at, bytes)| line(at.saturating_sub(started), bytes, &mut first))
        .collect()
}

fn line(at: u64, bytes: &[u8], first: &mut HashMap<Flow, u32>) -> Line {
    let is_servers = endpoints(bytes).is_some_and(|(source, _)| is_origin(source));
    Line {
        at_ms: at as f64 / 1e6,
        from: if is_servers { "server" } else { "client" },
        text: Packet::parse(bytes).map_or_else(|| "ICMP".to_owned(), |packet| describe(&packet, first)),
    }
}

fn describe(packet: &Packet, first: &mut HashMap<Flow, u32>) -> String {
    let (source, destination) = (packet.source, packet.destination);
    if packet.flags.syn {
        first.insert((source, destination), packet.sequence);
    }
    let mut text = packet.kind().to_string();
    for (name, cookie) in [
        ("cookie", packet.cookie()),
        ("experimental cookie", packet.experimental_cookie()),
    ] {
        match cookie {
            Some([]) => drop(write!(text, ", asks for a {name}")),
            Some(cookie) => drop(write!(text, ", {name} of {} B", cookie.len())),
            None => {}
        }
    }
    if !packet.payload.is_empty() {
        let _ = write!(text, ", {} B of data", packet.payload.len());
    }
    let begun = first.get(&(destination, source)).filter(|_| packet.flags.ack);
    if let Some(begun) = begun {
        let _ = write!(text, ", ack {}", packet.acknowledgment.wrapping_sub(*begun));
    }
    text + &format!(" ({source} > {destination})")
}
