//! The settings that no ioctl gives the owner of a namespace: a device's queue length, a veth pair, and what a
//! route says of TCP (`rtnetlink(7)`). Three messages; a netlink library would bring an async runtime for them.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

/// `IFLA_INFO_KIND`, `IFLA_INFO_DATA` (`linux/if_link.h`) and `VETH_INFO_PEER` (`linux/veth.h`).
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
/// `RTAX_INITCWND` and `RTAX_CC_ALGO` (`linux/rtnetlink.h`).
const INITIAL_WINDOW: u16 = 11;
const CONGESTION_CONTROL: u16 = 16;
/// Bytes of an `nlmsghdr` and of an `ifinfomsg`.
const HEADER_BYTES: usize = 16;
const INFO_BYTES: usize = 16;

/// Sets how many packets `device` may hold, in the calling thread's network namespace.
///
/// # Errors
/// The kernel's.
pub(super) fn set_queue_length(device: &str, packets: u32) -> io::Result<()> {
    let index = if_nametoindex(device)?;
    exchange(&link_message(
        index,
        0,
        &attribute(libc::IFLA_TXQLEN, &packets.to_ne_bytes()),
    ))
}

/// Makes a veth pair: one end here, the other in `namespace`, both called `name`.
///
/// # Errors
/// The kernel's.
pub(super) fn make_veth_pair(name: &str, namespace: BorrowedFd<'_>) -> io::Result<()> {
    let name = attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    let there = attribute(libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
    let peer = attribute(VETH_PEER, &[vec![0; INFO_BYTES], name.clone(), there].concat());
    let info = [attribute(INFO_KIND, b"veth"), attribute(INFO_DATA, &peer)].concat();
    let attributes = [name, attribute(libc::IFLA_LINKINFO, &info)].concat();
    exchange(&link_message(
        0,
        (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16,
        &attributes,
    ))
}

/// The network behind a device, as the kernel routes to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connected<'a> {
    pub(super) device: &'a str,
    pub(super) address: Ipv4Addr,
    pub(super) mask: Ipv4Addr,
}

/// Puts an initial window and a congestion control on the route to a connected network: every connection across
/// it takes them, whoever opened it (`tcp_init_cwnd`, `tcp_ca_dst_init`).
///
/// # Errors
/// The kernel's: `EINVAL` when it has no such congestion control.
pub(super) fn set_route_metrics(
    network: Connected<'_>,
    initial_window: u32,
    congestion_control: &str,
) -> io::Result<()> {
    let index = if_nametoindex(network.device)?;
    let metrics = [
        attribute(INITIAL_WINDOW, &initial_window.to_ne_bytes()),
        attribute(
            CONGESTION_CONTROL,
            &[congestion_control.as_bytes(), &[0]].concat(),
        ),
    ];
    let body = [
        vec![
            libc::AF_INET as u8,
            network.mask.to_bits().count_ones() as u8,
            0, // source prefix
            0, // type of service
            libc::RT_TABLE_MAIN,
            libc::RTPROT_KERNEL,
            libc::RT_SCOPE_LINK,
            libc::RTN_UNICAST,
        ],
        vec![0; 4], // flags
        attribute(libc::RTA_DST, &(network.address & network.mask).octets()),
        attribute(libc::RTA_OIF, &index.to_ne_bytes()),
        attribute(libc::RTA_PREFSRC, &network.address.octets()),
        attribute(libc::RTA_METRICS, &metrics.concat()),
    ];
    let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
    exchange(&message(libc::RTM_NEWROUTE, flags, &body.concat()))
}

/// `RTM_NEWLINK` for device `index`.
fn link_message(index: u32, flags: u16, attributes: &[u8]) -> Vec<u8> {
    let mut body = vec![0; 4]; // family, padding, type
    body.extend(index.to_ne_bytes());
    body.extend([0; 8]); // flags, change
    body.extend(attributes);
    message(libc::RTM_NEWLINK, flags, &body)
}

/// A request that is to be acknowledged.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = (HEADER_BYTES + body.len()) as u32;
    let mut message = Vec::with_capacity(length as usize);
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((flags | (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
    message.extend([0; 8]); // sequence, port
    message.extend(body);
    message
}

/// A `rtattr`, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len() + 8);
    bytes.extend((value.len() as u16 + 4).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn exchange(message: &[u8]) -> io::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        flags,
        SockProtocol::NetlinkRoute,
    )?;
    send(socket.as_raw_fd(), message, MsgFlags::empty())?;
    let mut answer = [0_u8; 1_024];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    // nlmsghdr, then nlmsgerr with the negated errno; 0 acknowledges.
    let code = answer[..length]
        .get(HEADER_BYTES..HEADER_BYTES + 4)
        .and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::Error::other("the kernel's answer is too short")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_long_as_it_says_and_attributes_are_aligned() {
        let message = link_message(1, 0, &attribute(libc::IFLA_IFNAME, b"ab\0"));
        assert_eq!(
            message.len() as u32,
            u32::from_ne_bytes(message[..4].try_into().unwrap())
        );
        assert_eq!(message.len() % 4, 0);
    }
}
