//! The stage of client rows: this kernel's client, and a script that is all its servers.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use etherparse::{Icmpv4Type, PacketBuilder, icmpv4};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, connect, sendto, socket};

use super::packet::{Kind, Packet};
use super::wire::{SILENCE, SOON, Wire};
use crate::LabError;
use crate::net::{Side, bring_loopback_up};
use crate::packet;
use crate::witness::TcpInfo;
use firstflight_path::IpVersion;

/// The server that most rows talk to, and another one.
pub(super) const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 19, 0, 1), 80);
pub(super) const OTHER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 19, 0, 2), 80);
/// What servers of the script announce.
pub(super) const MSS: u16 = 1_460;
/// A cookie as Linux makes them, and another one.
pub(super) const COOKIE: [u8; 8] = [0xf1, 0x52, 0x73, 0x14, 0x95, 0xa6, 0x37, 0x58];
pub(super) const NEW_COOKIE: [u8; 8] = [0x0d, 0x4e, 0x1f, 0x60, 0x21, 0xb2, 0x43, 0xc4];
/// A request.
pub(super) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n";

/// A SYN goes again after 1 s (RFC 6298, section 2.1), and 2 s more.
const RETRANSMISSION: Duration = Duration::from_secs(4);
/// What an ICMP error quotes: an IP header and eight bytes of what is in it, at least.
const QUOTED: usize = 28;
const SERVER_ISN: u32 = 700_000;

/// This kernel's client with its one wire.
pub(super) struct ClientStage {
    pub(super) wire: Wire,
}

/// A connection that the kernel has begun.
pub(super) struct Call {
    pub(super) socket: TcpStream,
    pub(super) syn: Packet,
    /// How much of its data the kernel took with it.
    pub(super) accepted: usize,
}

/// A SYN that went again.
pub(super) struct Again {
    pub(super) syn: Packet,
    /// How long after the first it was.
    pub(super) after_ms: f64,
}

/// Why a SYN did not arrive, as routers say it (RFC 792).
#[derive(Debug, Clone, Copy)]
pub(super) enum Unreachable {
    /// Administratively prohibited (RFC 1812, section 5.2.7.1).
    Prohibited,
    /// Longer than the path takes, bytes.
    TooLong(u16),
}

/// How a server of the script answers a SYN.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    /// Bytes of the SYN's data that are acknowledged.
    pub(super) taken: u32,
    pub(super) options: Vec<u8>,
    pub(super) data: Vec<u8>,
    pub(super) fin: bool,
}

impl Answer {
    /// None of the data is taken, and `cookie` is the new one.
    pub(super) fn refusing(cookie: &[u8]) -> Self {
        Self {
            options: granted(cookie),
            ..Self::default()
        }
    }
}

impl ClientStage {
    /// Sets up this network namespace. Fast Open is as the kernel has it by default.
    pub(super) fn build() -> Result<Self, LabError> {
        bring_loopback_up(Side::Client, IpVersion::V4)?;
        Ok(Self {
            wire: Wire::open(Side::Client)?,
        })
    }

    /// Asks the kernel for a connection with Fast Open and `data` (`MSG_FASTOPEN`); returns with its SYN.
    pub(super) fn call(&mut self, server: SocketAddrV4, data: &[u8]) -> Result<Call, LabError> {
        let socket = tcp_socket()?;
        let flags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);
        match sendto(socket.as_raw_fd(), data, &SockaddrIn::from(server), flags) {
            // Without a cookie the data stays here, and the SYN asks for one.
            Err(Errno::EINPROGRESS) => self.begun(socket, 0),
            Ok(accepted) => self.begun(socket, accepted),
            Err(errno) => Err(LabError::system("sending with MSG_FASTOPEN", errno)),
        }
    }

    /// Asks the kernel for a connection as any program does.
    pub(super) fn connect(&mut self, server: SocketAddrV4) -> Result<Call, LabError> {
        let socket = tcp_socket()?;
        match connect(socket.as_raw_fd(), &SockaddrIn::from(server)) {
            Ok(()) | Err(Errno::EINPROGRESS) => self.begun(socket, 0),
            Err(errno) => Err(LabError::system("connecting", errno)),
        }
    }

    fn begun(&mut self, socket: OwnedFd, accepted: usize) -> Result<Call, LabError> {
        let socket = TcpStream::from(socket);
        let port = socket
            .local_addr()
            .map_err(|error| LabError::system("asking a socket for its port", error))?
            .port();
        let first = |packet: &Packet| packet.kind() == Kind::Syn && packet.source.port() == port;
        let syn = self.wire.expect("SYN", SOON, first)?;
        Ok(Call {
            socket,
            syn,
            accepted,
        })
    }

    /// Answers a SYN; returns the SYN-ACK.
    pub(super) fn answer(&mut self, syn: &Packet, answer: &Answer) -> Result<Packet, LabError> {
        let mut packet = syn.reply(SERVER_ISN, syn.sequence.wrapping_add(1 + answer.taken));
        packet.flags.syn = true;
        packet.flags.fin = answer.fin;
        packet.options.clone_from(&answer.options);
        packet.payload.clone_from(&answer.data);
        self.wire.send(&packet)?;
        Ok(packet)
    }

    /// All the data that `call` sends after its SYN until it is silent, as one run of bytes; and how many
    /// segments carried it.
    pub(super) fn data_of(&mut self, call: &Call) -> (Vec<u8>, usize) {
        let first = call.syn.sequence.wrapping_add(1);
        let source = call.syn.source;
        self.wire.drain(SILENCE);
        let mut data = Vec::new();
        let mut segments = 0;
        for packet in self
            .wire
            .kernels()
            .filter(|packet| packet.source == source && !packet.flags.syn)
        {
            let at = packet.sequence.wrapping_sub(first) as usize;
            segments += usize::from(!packet.payload.is_empty());
            if data.len() < at + packet.payload.len() {
                data.resize(at + packet.payload.len(), 0);
            }
            data[at..at + packet.payload.len()].copy_from_slice(&packet.payload);
        }
        (data, segments)
    }

    /// A router's word on a SYN.
    pub(super) fn unreachable(&mut self, syn: &Packet, why: Unreachable) -> Result<(), LabError> {
        let quoted = syn.bytes().unwrap_or_default();
        let reason = match why {
            Unreachable::Prohibited => icmpv4::DestUnreachableHeader::FilterProhibited,
            Unreachable::TooLong(next_hop_mtu) => {
                icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu }
            }
        };
        let from = syn.destination.ip().octets();
        let builder = PacketBuilder::ipv4(from, syn.source.ip().octets(), 64)
            .icmpv4(Icmpv4Type::DestinationUnreachable(reason));
        let mut packet = Vec::new();
        builder
            .write(&mut packet, &quoted[..quoted.len().min(QUOTED)])
            .map_err(|error| LabError::system("writing an ICMP message", error))?;
        self.wire.send_raw(&packet)
    }

    /// Ends a connection at once.
    pub(super) fn reset(&mut self, call: Call, answered: &Packet) -> Result<(), LabError> {
        let mut reset = call.syn.reply(answered.end(), call.syn.end());
        reset.flags.rst = true;
        self.wire.send(&reset)?;
        drop(call);
        self.wire.drain(Duration::from_millis(20));
        Ok(())
    }

    /// Has the kernel ask `server` for a cookie and grants what `options` say; fails if it did not ask.
    pub(super) fn grant(&mut self, server: SocketAddrV4, options: &[u8]) -> Result<(), LabError> {
        let call = self.call(server, REQUEST)?;
        let answered = self.answer(
            &call.syn,
            &Answer {
                options: options.to_vec(),
                ..Answer::default()
            },
        )?;
        self.first_of(&call)?;
        self.reset(call, &answered)
    }

    /// The same with the usual cookie and segment size; afterwards the client is warm.
    pub(super) fn warm(&mut self, server: SocketAddrV4) -> Result<(), LabError> {
        self.grant(server, &granted(&COOKIE))
    }
}

impl ClientStage {
    /// The SYN of `call` when it goes again.
    pub(super) fn again(&mut self, call: &Call) -> Result<Again, LabError> {
        let begun = Instant::now();
        let source = call.syn.source;
        let syn = self.wire.expect("SYN sent again", RETRANSMISSION, |packet| {
            packet.source == source && packet.kind() == Kind::Syn
        })?;
        Ok(Again {
            syn,
            after_ms: begun.elapsed().as_secs_f64() * 1e3,
        })
    }

    /// The first segment of `call` after its SYN-ACK.
    pub(super) fn first_of(&mut self, call: &Call) -> Result<Packet, LabError> {
        let source = call.syn.source;
        self.wire.expect("ACK of the SYN-ACK", SOON, |packet| {
            packet.source == source && !packet.flags.syn
        })
    }
}

impl Call {
    /// What the socket says of Fast Open.
    pub(super) fn info(&self) -> Result<TcpInfo, LabError> {
        TcpInfo::of(&self.socket).map_err(|error: io::Error| LabError::system("TCP_INFO", error))
    }
}

/// The options of a SYN-ACK that grants a cookie.
pub(super) fn granted(cookie: &[u8]) -> Vec<u8> {
    [packet::mss(MSS), packet::fast_open(cookie)].concat()
}

/// A socket that does not wait.
pub(super) fn tcp_socket() -> Result<OwnedFd, LabError> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Inet, SockType::Stream, flags, None)
        .map_err(|errno| LabError::system("socket", errno))
}
