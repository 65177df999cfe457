//! Datagrams with the ECN field of their IP headers (RFC 3168), as ancillary data.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use firstflight_path::Ecn;
use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};

/// From now on the kernel returns the ECN field of each datagram.
///
/// # Errors
/// The kernel's.
pub fn receive_ecn(socket: &impl AsFd, is_ipv6: bool) -> io::Result<()> {
    if is_ipv6 {
        setsockopt(socket, sockopt::Ipv6RecvTClass, &true)?;
    } else {
        setsockopt(socket, sockopt::IpRecvTos, &true)?;
    }
    Ok(())
}

/// Sends a datagram to `peer`, which is `None` on a connected socket.
///
/// # Errors
/// The kernel's.
pub fn send_datagram(
    socket: &impl AsRawFd,
    datagram: &[u8],
    is_ipv6: bool,
    peer: Option<SocketAddr>,
    ecn: Ecn,
) -> io::Result<()> {
    let bits: u8 = match ecn {
        Ecn::NotCapable => 0b00,
        Ecn::Capable => 0b10,
        Ecn::Marked => 0b11,
    };
    let class = i32::from(bits);
    let message = if is_ipv6 {
        ControlMessage::Ipv6TClass(&class)
    } else {
        ControlMessage::Ipv4Tos(&bits)
    };
    let messages: &[ControlMessage<'_>] = if bits == 0 { &[] } else { &[message] };
    let peer = peer.map(SockaddrStorage::from);
    let parts = [IoSlice::new(datagram)];
    sendmsg(
        socket.as_raw_fd(),
        &parts,
        messages,
        MsgFlags::empty(),
        peer.as_ref(),
    )?;
    Ok(())
}

/// Receives a datagram: its length, its sender, and its ECN field if [`receive_ecn`] was called.
///
/// # Errors
/// The kernel's.
pub fn receive_datagram(
    socket: &impl AsRawFd,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<SocketAddr>, Ecn)> {
    let mut space = cmsg_space!(i32);
    let mut parts = [IoSliceMut::new(buffer)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::empty(),
    )?;
    let said = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4Tos(bits) => Some(bits),
        ControlMessageOwned::Ipv6TClass(class) => Some(class as u8),
        _ => None,
    });
    let ecn = match said.unwrap_or_default() & 0b11 {
        0b00 => Ecn::NotCapable,
        0b11 => Ecn::Marked,
        _ => Ecn::Capable,
    };
    let sender = received.address.and_then(|address| {
        let v4 = address
            .as_sockaddr_in()
            .map(|known| SocketAddr::V4((*known).into()));
        v4.or_else(|| {
            address
                .as_sockaddr_in6()
                .map(|known| SocketAddr::V6((*known).into()))
        })
    });
    Ok((received.bytes, sender, ecn))
}
