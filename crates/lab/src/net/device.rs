//! TUN devices, configured through the kernel's interface ioctls (`netdevice(7)`, `tuntap.rst`).
//!
//! Half a dozen ioctls on a fresh namespace; a netlink library would bring an async runtime for them.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::libc;

use super::addresses::{CLIENT, ORIGINS, SERVERS_TUN};
use super::netlink::{self, Connected};
use super::transport::Transport;
use crate::LabError;

/// Which end of the wire a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In the client's namespace.
    Client,
    /// In the servers' namespace.
    Servers,
}

/// Packets the kernel may hold for a relay that has not looked yet; beyond that it drops.
const TUN_QUEUE_PACKETS: u32 = 20_000;
/// What the one device is called in each namespace.
pub const DEVICE: &str = "firstflight0";
/// The origins' network lies behind the client's wire.
const CLIENT_MASK: Ipv4Addr = Ipv4Addr::new(255, 254, 0, 0);

/// Brings up the device of `side` in the calling thread's network namespace; connections across it are as
/// `transport` says.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn set_up_wire(side: Side, transport: &Transport) -> Result<(), LabError> {
    let socket = control_socket()?;
    let (address, mask) = match side {
        Side::Client => (CLIENT, CLIENT_MASK),
        Side::Servers => (SERVERS_TUN, Ipv4Addr::new(255, 255, 0, 0)),
    };
    netlink::set_queue_length(DEVICE, TUN_QUEUE_PACKETS)
        .map_err(|error| LabError::system("setting the TUN queue length", error))?;
    set_address(&socket, DEVICE, address, mask)?;
    bring_up(&socket, DEVICE)?;
    set_route(address, mask, transport)
}

/// Gives the client's device in the calling thread's network namespace `address` in place of the one it has.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn move_client(address: Ipv4Addr, transport: &Transport) -> Result<(), LabError> {
    set_address(&control_socket()?, DEVICE, address, CLIENT_MASK)?;
    set_route(address, CLIENT_MASK, transport)
}

/// What the route of a network says of connections.
fn set_route(address: Ipv4Addr, mask: Ipv4Addr, transport: &Transport) -> Result<(), LabError> {
    let network = Connected {
        device: DEVICE,
        address,
        mask,
    };
    netlink::set_route_metrics(network, transport.initial_window, &transport.congestion_control)
        .map_err(|error| transport.refused(error))
}

/// Brings the loopback device of the calling thread's namespace up; among the servers, every address of the
/// origins' network becomes local by it (`fib_add_ifaddr` makes a loopback prefix a local route).
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn bring_loopback_up(side: Side) -> Result<(), LabError> {
    let socket = control_socket()?;
    bring_up(&socket, "lo")?;
    if side == Side::Servers {
        let first = Ipv4Addr::from_bits(ORIGINS.to_bits() + 1);
        set_address(&socket, "lo:1", first, Ipv4Addr::new(255, 255, 0, 0))?;
    }
    Ok(())
}

/// Makes a veth pair between the calling thread's network namespace and `namespace`.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn make_veth_pair(namespace: BorrowedFd<'_>) -> Result<(), LabError> {
    netlink::make_veth_pair(DEVICE, namespace).map_err(|error| LabError::system("making a veth pair", error))
}

/// Gives this namespace's end of a veth pair an address and brings it up.
///
/// # Errors
/// [`LabError`] when the kernel refuses.
pub fn bring_veth_up(address: Ipv4Addr) -> Result<(), LabError> {
    let socket = control_socket()?;
    set_address(&socket, DEVICE, address, Ipv4Addr::new(255, 255, 0, 0))?;
    bring_up(&socket, DEVICE)
}

fn bring_up(socket: &OwnedFd, device: &str) -> Result<(), LabError> {
    let mut request = request(device);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    ioctl(socket, libc::SIOCSIFFLAGS, &mut request, "bringing a device up")
}

fn set_address(socket: &OwnedFd, device: &str, address: Ipv4Addr, mask: Ipv4Addr) -> Result<(), LabError> {
    let mut request = request(device);
    request.ifr_ifru.ifru_addr = socket_address(address);
    ioctl(socket, libc::SIOCSIFADDR, &mut request, "setting an address")?;
    request.ifr_ifru.ifru_netmask = socket_address(mask);
    ioctl(socket, libc::SIOCSIFNETMASK, &mut request, "setting a netmask")
}

fn control_socket() -> Result<OwnedFd, LabError> {
    // SAFETY: `socket` takes plain numbers; its answer is checked before it is owned.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(LabError::system("socket", io::Error::last_os_error()));
    }
    // SAFETY: `fd` was just opened and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn request(device: &str) -> libc::ifreq {
    // SAFETY: an `ifreq` is plain data; all zeros is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from.cast_signed();
    }
    request
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, from) in data[2..6].iter_mut().zip(address.octets()) {
        *to = from.cast_signed();
    }
    libc::sockaddr {
        sa_family: libc::AF_INET as libc::sa_family_t,
        sa_data: data,
    }
}

fn ioctl(fd: &impl AsRawFd, code: u64, request: &mut libc::ifreq, tried: &str) -> Result<(), LabError> {
    // SAFETY: every code used here takes a pointer to an `ifreq`, which outlives the call.
    if unsafe { libc::ioctl(fd.as_raw_fd(), code, std::ptr::from_mut(request)) } < 0 {
        return Err(LabError::system(tried, io::Error::last_os_error()));
    }
    Ok(())
}
