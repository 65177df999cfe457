//! Sets up devices, addresses and routes of the lab's namespaces, by netlink (`rtnetlink(7)`).
//!
//! All functions act on the network namespace of the calling thread. [`crate::tun`] makes the TUN devices.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use firstflight_path::IpVersion;
use netlink_packet_core::{
    ErrorBuffer, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily as Family, RouteNetlinkMessage};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use super::addresses::Block;
use super::transport::Transport;
use crate::LabError;

/// The end of the wire that a device is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In the client's namespace.
    Client,
    /// In the servers' namespace.
    Servers,
}

impl Side {
    /// Address and prefix length of the device.
    fn address(self, ip: IpVersion) -> (IpAddr, u8) {
        let block = Block::of(ip);
        match self {
            Self::Client => (block.client, client_prefix(block)),
            Self::Servers => (block.servers_tun, block.prefix),
        }
    }
}

/// The name of the device in each namespace.
pub const DEVICE: &str = "firstflight0";
/// Packets that the kernel holds until the relay reads them; it drops further ones.
const TUN_QUEUE_PACKETS: u32 = 20_000;
/// Prefix length of an end of a veth pair.
const PREFIX: u8 = 16;

/// Prefix length for the client: one bit shorter, to cover the origins' network, which is next to the wire's own.
fn client_prefix(block: Block) -> u8 {
    block.prefix - 1
}

/// Brings up the TUN device of `side`, with the `transport` settings for connections across it.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn set_up_wire(side: Side, ip: IpVersion, transport: &Transport) -> Result<(), LabError> {
    let (address, prefix) = side.address(ip);
    let netlink = Netlink::open()?;
    let device = index(DEVICE)?;
    let mut link = LinkMessage::default();
    link.header.index = device;
    link.attributes = vec![LinkAttribute::TxQueueLen(TUN_QUEUE_PACKETS)];
    netlink
        .request(RouteNetlinkMessage::SetLink(link), 0)
        .map_err(|error| LabError::system("setting the TUN queue length", error))?;
    netlink.bring_up(device)?;
    netlink.add_address(device, address, prefix)?;
    netlink.set_route(device, address, prefix, transport)
}

/// Changes the transport settings for IPv4 connections across the wire of `side`.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn change_transport(side: Side, transport: &Transport) -> Result<(), LabError> {
    let (address, prefix) = side.address(IpVersion::V4);
    Netlink::open()?.set_route(index(DEVICE)?, address, prefix, transport)
}

/// Replaces the address `from` of the client's device by `to`, of `block`.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn move_client(block: Block, from: IpAddr, to: IpAddr, transport: &Transport) -> Result<(), LabError> {
    let netlink = Netlink::open()?;
    let (device, prefix) = (index(DEVICE)?, client_prefix(block));
    let old = RouteNetlinkMessage::DelAddress(address_message(device, from, prefix));
    netlink
        .request(old, 0)
        .map_err(|error| LabError::system("taking an address away", error))?;
    netlink.add_address(device, to, prefix)?;
    netlink.set_route(device, to, prefix, transport)
}

/// Brings the loopback device up. In the servers' namespace it makes every address of the origins' network local.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn bring_loopback_up(side: Side, ip: IpVersion) -> Result<(), LabError> {
    let netlink = Netlink::open()?;
    let device = index("lo")?;
    netlink.bring_up(device)?;
    if side == Side::Servers {
        let block = Block::of(ip);
        match ip {
            // The prefix of a loopback address becomes a local route (`fib_add_ifaddr`).
            IpVersion::V4 => netlink.add_address(device, block.origin(1), block.prefix)?,
            IpVersion::V6 => netlink.make_local(device, block.origins, block.prefix)?,
        }
    }
    Ok(())
}

/// Makes a veth pair between the calling thread's network namespace and `namespace`; both ends are called
/// [`DEVICE`].
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn make_veth_pair(namespace: BorrowedFd<'_>) -> Result<(), LabError> {
    let name = LinkAttribute::IfName(DEVICE.to_owned());
    let mut peer = LinkMessage::default();
    peer.attributes = vec![name.clone(), LinkAttribute::NetNsFd(namespace.as_raw_fd())];
    let mut link = LinkMessage::default();
    link.attributes = vec![
        name,
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]),
    ];
    Netlink::open()?
        .request(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
        .map_err(no_veth)
}

fn no_veth(error: io::Error) -> LabError {
    if error.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) {
        LabError::NoVeth
    } else {
        LabError::system("making a veth pair", error)
    }
}

/// Gives this namespace's end of a veth pair an address and brings it up.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn bring_veth_up(address: Ipv4Addr) -> Result<(), LabError> {
    let netlink = Netlink::open()?;
    let device = index(DEVICE)?;
    netlink.add_address(device, address.into(), PREFIX)?;
    netlink.bring_up(device)
}

/// A netlink socket for routes, addresses and devices.
struct Netlink(OwnedFd);

/// Room for an acknowledgment, which repeats its request.
const ANSWER_BYTES: usize = 4_096;

impl Netlink {
    fn open() -> Result<Self, LabError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        socket(
            AddressFamily::Netlink,
            SockType::Raw,
            flags,
            SockProtocol::NetlinkRoute,
        )
        .map(Self)
        .map_err(|errno| LabError::system("opening a netlink socket", errno))
    }

    fn bring_up(&self, device: u32) -> Result<(), LabError> {
        let mut link = LinkMessage::default();
        link.header.index = device;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(link), 0)
            .map_err(|error| LabError::system("bringing a device up", error))
    }

    fn add_address(&self, device: u32, address: IpAddr, prefix: u8) -> Result<(), LabError> {
        let message = address_message(device, address, prefix);
        self.request(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map_err(|error| LabError::system("setting an address", error))?;
        match address {
            IpAddr::V4(_) => Ok(()),
            // The kernel adds its own route later, from a work queue (`addrconf_dad_start` in
            // `net/ipv6/addrconf.c`).
            IpAddr::V6(_) => self.make_local(device, address, 128),
        }
    }

    /// Sets the initial window and the congestion control of the route to a connected network. Every connection
    /// across it takes them, the client's and the servers' alike (`tcp_init_cwnd`, `tcp_ca_dst_init`).
    fn set_route(
        &self,
        device: u32,
        address: IpAddr,
        prefix: u8,
        transport: &Transport,
    ) -> Result<(), LabError> {
        let mut route = RouteMessage::default();
        route.header = RouteHeader {
            address_family: family(address),
            destination_prefix_length: prefix,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Kernel,
            scope: RouteScope::Link,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        route.attributes = vec![
            RouteAttribute::Destination(network(address, prefix).into()),
            RouteAttribute::Oif(device),
            RouteAttribute::PrefSource(address.into()),
            RouteAttribute::Metrics(vec![
                RouteMetric::InitCwnd(transport.initial_window),
                RouteMetric::CcAlgo(transport.over_tcp().to_owned()),
            ]),
        ];
        self.request(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_REPLACE)
            .map_err(|error| transport.refused(error))
    }

    /// Makes every address of an IPv6 network local.
    fn make_local(&self, device: u32, network: IpAddr, prefix: u8) -> Result<(), LabError> {
        let mut route = RouteMessage::default();
        route.header = RouteHeader {
            address_family: family(network),
            destination_prefix_length: prefix,
            table: RT_TABLE_LOCAL,
            protocol: RouteProtocol::Kernel,
            scope: RouteScope::Universe,
            kind: RouteType::Local,
            ..RouteHeader::default()
        };
        route.attributes = vec![
            RouteAttribute::Destination(network.into()),
            RouteAttribute::Oif(device),
        ];
        self.request(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_REPLACE)
            .map_err(|error| LabError::system("making addresses local", error))
    }

    /// Sends one request, and waits until the kernel has carried it out.
    fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        send(self.0.as_raw_fd(), &bytes, MsgFlags::empty())?;
        let mut answer = [0; ANSWER_BYTES];
        let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        let answer = NetlinkBuffer::new_checked(&answer[..length]).map_err(io::Error::other)?;
        let answer = ErrorBuffer::new_checked(answer.payload()).map_err(io::Error::other)?;
        // An error message without a code is an acknowledgment.
        answer
            .code()
            .map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(-code.get())))
    }
}

fn index(device: &str) -> Result<u32, LabError> {
    if_nametoindex(device).map_err(|errno| LabError::system(format!("looking for device {device}"), errno))
}

/// The kernel's own table of local addresses (`rtnetlink(7)`).
const RT_TABLE_LOCAL: u8 = 255;

fn family(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::Inet,
        IpAddr::V6(_) => Family::Inet6,
    }
}

/// The first address of the network of `address`.
fn network(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << (32 - prefix))).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - prefix))).into(),
    }
}

fn address_message(device: u32, address: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = prefix;
    message.header.index = device;
    message.attributes = vec![
        AddressAttribute::Local(address),
        AddressAttribute::Address(address),
    ];
    if address.is_ipv6() {
        // The kernel would add its own route beside ours, with another metric. No other node can have the address.
        let flags = AddressFlags::Noprefixroute | AddressFlags::Nodad;
        message.attributes.push(AddressAttribute::Flags(flags));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_module_is_told_from_one_that_refuses() {
        let without = no_veth(io::Error::from_raw_os_error(Errno::EOPNOTSUPP as i32));
        assert!(without.hint().contains("modprobe veth"));
        let refused = no_veth(io::Error::from_raw_os_error(Errno::EPERM as i32));
        assert_eq!(
            refused.to_string(),
            "making a veth pair: Operation not permitted (os error 1)"
        );
    }
}
