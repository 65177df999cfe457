//! The stage of client rows: this kernel's client, and a script in place of all its servers.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder, icmpv4, icmpv6};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, connect, sendto, socket,
};

use super::packet::{Kind, Packet};
use super::wire::{SILENCE, SOON, Wire};
use crate::LabError;
use crate::net::{Block, Side};
use crate::packet;
use crate::witness::TcpInfo;
use firstflight_path::IpVersion;

/// The server that most rows connect to, and another one.
pub(super) const SERVER: Peer = Peer::numbered(1);
pub(super) const OTHER: Peer = Peer::numbered(2);
/// The segment size that the script's servers announce.
pub(super) const MSS: u16 = 1_460;
/// A cookie of the length that Linux uses, and another one.
pub(super) const COOKIE: [u8; 8] = [0xf1, 0x52, 0x73, 0x14, 0x95, 0xa6, 0x37, 0x58];
pub(super) const NEW_COOKIE: [u8; 8] = [0x0d, 0x4e, 0x1f, 0x60, 0x21, 0xb2, 0x43, 0xc4];
/// A request.
pub(super) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n";

/// A SYN is sent again after 1 s (RFC 6298, section 2.1), and once more 2 s later.
const RETRANSMISSION: Duration = Duration::from_secs(4);
/// Bytes of the packet that an ICMP error quotes behind the IP header, at least.
const QUOTED: usize = 8;
const SERVER_ISN: u32 = 700_000;

/// A server of the script, with an address in both IP versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    number: u16,
    port: u16,
}

impl Peer {
    /// The server with this number.
    pub(super) const fn numbered(number: u16) -> Self {
        Self { number, port: 80 }
    }

    /// The same at another port.
    pub(super) const fn at_port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Its address.
    pub(super) fn address(self, ip: IpVersion) -> SocketAddr {
        SocketAddr::new(Block::of(ip).origin(self.number), self.port)
    }
}

/// This kernel's client, and its wire.
pub(super) struct ClientStage {
    pub(super) wire: Wire,
}

/// A connection that the kernel has started.
pub(super) struct Call {
    pub(super) socket: TcpStream,
    pub(super) syn: Packet,
    /// Bytes of its data that the kernel accepted with the call.
    pub(super) accepted: usize,
}

/// A retransmitted SYN.
pub(super) struct Again {
    pub(super) syn: Packet,
    /// Time since the first SYN.
    pub(super) after_ms: f64,
}

/// An ICMP error in answer to a SYN (RFC 792, RFC 4443).
#[derive(Debug, Clone, Copy)]
pub(super) enum Unreachable {
    /// Administratively prohibited (RFC 1812, section 5.2.7.1).
    Prohibited,
    /// Too long for the path, whose limit is given in bytes.
    TooLong(u16),
}

impl Unreachable {
    const fn over_ipv4(self) -> Icmpv4Type {
        Icmpv4Type::DestinationUnreachable(match self {
            Self::Prohibited => icmpv4::DestUnreachableHeader::FilterProhibited,
            Self::TooLong(next_hop_mtu) => {
                icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu }
            }
        })
    }

    fn over_ipv6(self) -> Icmpv6Type {
        match self {
            Self::Prohibited => Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Prohibited),
            Self::TooLong(mtu) => Icmpv6Type::PacketTooBig { mtu: mtu.into() },
        }
    }
}

/// How a server of the script answers a SYN.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    /// Bytes of the SYN's data that it acknowledges.
    pub(super) taken: u32,
    pub(super) options: Vec<u8>,
    pub(super) data: Vec<u8>,
    pub(super) fin: bool,
}

impl Answer {
    /// The answer of a server without Fast Open.
    pub(super) fn plain() -> Self {
        Self {
            options: packet::mss(MSS),
            ..Self::default()
        }
    }

    /// An answer that acknowledges none of the data, and has `cookie` as the new one.
    pub(super) fn refusing(cookie: &[u8]) -> Self {
        Self {
            options: granted(cookie),
            ..Self::default()
        }
    }
}

impl ClientStage {
    /// Sets up this network namespace, with the kernel's default for Fast Open.
    pub(super) fn build(ip: IpVersion) -> Result<Self, LabError> {
        Ok(Self {
            wire: Wire::open(Side::Client, ip)?,
        })
    }

    /// Makes the kernel connect with Fast Open and `data` (`MSG_FASTOPEN`). Returns when its SYN has come.
    pub(super) fn call(&mut self, server: Peer, data: &[u8]) -> Result<Call, LabError> {
        let (socket, accepted) = send_in_syn(server.address(self.wire.ip()), data)?;
        self.begun(socket, accepted)
    }

    /// Makes the kernel connect without Fast Open.
    pub(super) fn connect(&mut self, server: Peer) -> Result<Call, LabError> {
        let address = server.address(self.wire.ip());
        let socket = tcp_socket(address.ip())?;
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(address)) {
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

    /// Answers a SYN. Returns the SYN-ACK.
    pub(super) fn answer(&mut self, syn: &Packet, answer: &Answer) -> Result<Packet, LabError> {
        let mut packet = syn.reply(SERVER_ISN, syn.sequence.wrapping_add(1 + answer.taken));
        packet.flags.syn = true;
        packet.flags.fin = answer.fin;
        packet.options.clone_from(&answer.options);
        packet.payload.clone_from(&answer.data);
        self.wire.send(&packet)?;
        Ok(packet)
    }

    /// All data that `call` sends after its SYN until it is silent, in order, and the number of segments that
    /// carried it.
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

    /// Sends the ICMP error with which a router answers a SYN.
    pub(super) fn unreachable(&mut self, syn: &Packet, why: Unreachable) -> Result<(), LabError> {
        let mut quoted = syn.bytes().unwrap_or_default();
        quoted.truncate(self.wire.ip().header_bytes() as usize + QUOTED);
        let mut packet = Vec::new();
        let written = match (syn.destination.ip(), syn.source.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 64)
                .icmpv4(why.over_ipv4())
                .write(&mut packet, &quoted),
            (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 64)
                .icmpv6(why.over_ipv6())
                .write(&mut packet, &quoted),
            _ => return Err(LabError::bug("a SYN from one version of IP to the other")),
        };
        written.map_err(|error| LabError::system("writing an ICMP message", error))?;
        self.wire.send_raw(&packet)
    }

    /// Resets a connection.
    pub(super) fn reset(&mut self, call: Call, answered: &Packet) -> Result<(), LabError> {
        let mut reset = call.syn.reply(answered.end(), call.syn.end());
        reset.flags.rst = true;
        self.wire.send(&reset)?;
        drop(call);
        self.wire.drain(Duration::from_millis(20));
        Ok(())
    }

    /// Opens a connection with data for its SYN, answers with `answer`, and resets it. Returns the SYN.
    pub(super) fn open_and_reset(&mut self, server: Peer, answer: &Answer) -> Result<Packet, LabError> {
        let call = self.call(server, REQUEST)?;
        let syn = call.syn.clone();
        let answered = self.answer(&syn, answer)?;
        self.first_of(&call)?;
        self.reset(call, &answered)?;
        Ok(syn)
    }

    /// Makes the kernel ask `server` for a cookie, and answers with `options`. Fails if the kernel did not ask.
    pub(super) fn grant(&mut self, server: Peer, options: &[u8]) -> Result<(), LabError> {
        let granting = Answer {
            options: options.to_vec(),
            ..Answer::default()
        };
        self.open_and_reset(server, &granting)?;
        Ok(())
    }

    /// The same with the usual cookie and segment size: afterwards the client has a cookie.
    pub(super) fn warm(&mut self, server: Peer) -> Result<(), LabError> {
        self.grant(server, &granted(&COOKIE))
    }
}

impl ClientStage {
    /// The retransmitted SYN of `call`.
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
    /// `TCP_INFO` of the socket.
    pub(super) fn info(&self) -> Result<TcpInfo, LabError> {
        TcpInfo::of(&self.socket).map_err(|error: io::Error| LabError::system("TCP_INFO", error))
    }
}

/// The options of a SYN-ACK with a cookie.
pub(super) fn granted(cookie: &[u8]) -> Vec<u8> {
    [packet::mss(MSS), packet::fast_open(cookie)].concat()
}

/// A non-blocking socket.
pub(super) fn tcp_socket(to: IpAddr) -> Result<OwnedFd, LabError> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let family = match to {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    socket(family, SockType::Stream, flags, None).map_err(|errno| LabError::system("socket", errno))
}

/// Starts a connection with `data` in its SYN, if the kernel has a cookie (`MSG_FASTOPEN`). Returns the socket, and
/// how many bytes the kernel accepted. Without a cookie that is 0, and the SYN asks for one.
pub(super) fn send_in_syn(to: SocketAddr, data: &[u8]) -> Result<(OwnedFd, usize), LabError> {
    let socket = tcp_socket(to.ip())?;
    let accepted = begin_in_syn(&socket, to, data)?;
    Ok((socket, accepted))
}

/// The same on an existing socket.
pub(super) fn begin_in_syn(socket: &OwnedFd, to: SocketAddr, data: &[u8]) -> Result<usize, LabError> {
    let flags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);
    match sendto(socket.as_raw_fd(), data, &SockaddrStorage::from(to), flags) {
        Err(Errno::EINPROGRESS) => Ok(0),
        Ok(accepted) => Ok(accepted),
        Err(errno) => Err(LabError::system("sending with MSG_FASTOPEN", errno)),
    }
}
