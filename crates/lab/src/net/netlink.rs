//! The one setting that no ioctl gives the owner of a namespace: a device's queue length (`rtnetlink(7)`).

use std::io;
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

/// Sets how many packets `device` may hold, in the calling thread's network namespace.
///
/// # Errors
/// The kernel's.
pub(super) fn set_queue_length(device: &str, packets: u32) -> io::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    send(socket.as_raw_fd(), &request(nix::net::if_::if_nametoindex(device)?, packets), MsgFlags::empty())?;
    let mut answer = [0_u8; 1_024];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    // nlmsghdr (16 bytes), then nlmsgerr with the negated errno; 0 acknowledges.
    let code = answer[..length].get(16..20).map_or(0, |bytes| i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
}

/// `RTM_NEWLINK` for one device with one attribute.
fn request(index: u32, packets: u32) -> Vec<u8> {
    let mut message = Vec::with_capacity(40);
    message.extend(40_u32.to_ne_bytes());
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend(((libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
    message.extend([0; 8]); // sequence, port
    message.extend([0; 4]); // ifinfomsg: family, padding, type
    message.extend(index.to_ne_bytes());
    message.extend([0; 8]); // flags, change
    message.extend(8_u16.to_ne_bytes());
    message.extend(libc::IFLA_TXQLEN.to_ne_bytes());
    message.extend(packets.to_ne_bytes());
    message
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_message_is_as_long_as_it_says() {
        assert_eq!(super::request(1, 2).len(), 40);
    }
}
