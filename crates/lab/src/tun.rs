//! TUN devices, and the packets that cross them.
//!
//! A device puts a `virtio_net_hdr` in front of every packet and expects one (`IFF_VNET_HDR`, `tuntap.rst`). Only
//! this module knows that; the others read and write [`Frame`]s.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use firstflight_path::IpVersion;
use nix::libc;

use crate::LabError;
use crate::net::{self, DEVICE, Side, Transport};

/// Bytes of a `virtio_net_hdr`. All zeros means that the packet contains its checksums.
const HEADER_BYTES: usize = 10;

const TUN_F_CSUM: u64 = 0x01;
const TUN_F_TSO4: u64 = 0x02;
const TUN_F_TSO6: u64 = 0x04;

/// A TUN device. It ends with its network namespace.
#[derive(Debug)]
pub struct Tun(File);

/// What the kernel leaves to the other end of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// Nothing: whole packets with their checksums, as on a wire. Captures need this.
    None,
    /// Checksums. Neither end computes them, because this wire corrupts no bits. Packets have at most one MTU.
    Checksums,
    /// Checksums and segmentation: TCP comes in bundles of up to 64 KiB. Only for paths without a rate, where all
    /// segments of a bundle would arrive at the same instant anyway.
    Segments,
}

/// A packet as a device reads and writes it.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// The header, the packet, and unused room.
    bytes: Vec<u8>,
    length: usize,
}

impl Tun {
    /// Makes the device of `side` in the calling thread's network namespace and brings it up, with an address of
    /// `ip` and the `transport` settings for connections across it.
    ///
    /// # Errors
    /// [`LabError`] when `/dev/net/tun` cannot be opened or the kernel refuses a setting.
    pub fn open(
        side: Side,
        ip: IpVersion,
        offload: Offload,
        transport: &Transport,
    ) -> Result<Self, LabError> {
        let mut opening = OpenOptions::new();
        opening.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = opening.open("/dev/net/tun").map_err(LabError::NoTun)?;
        attach(&file)?;
        set_number(
            &file,
            libc::TUNSETOFFLOAD,
            offload.flags(),
            "setting TUN offloads",
        )?;
        // Closing the descriptor of a persistent device does not wait for its removal. The kernel removes it with
        // the namespace, when no process waits (`drivers/net/tun.c`, `tun_detach`).
        set_number(
            &file,
            libc::TUNSETPERSIST,
            1,
            "handing the TUN device to its namespace",
        )?;
        net::set_up_wire(side, ip, transport)?;
        Ok(Self(file))
    }

    /// Both ends of a channel that keeps packet borders, as a device does.
    #[cfg(test)]
    pub(crate) fn pair() -> (Self, Self) {
        use std::os::{fd::OwnedFd, unix::net::UnixDatagram};
        let (one, other) = UnixDatagram::pair().expect("a pair of sockets");
        let tun = |end: UnixDatagram| {
            end.set_nonblocking(true).expect("a mode every socket has");
            Self(OwnedFd::from(end).into())
        };
        (tun(one), tun(other))
    }

    /// Reads a packet if one waits.
    pub fn read(&self, frame: &mut Frame) -> bool {
        loop {
            match (&self.0).read(&mut frame.bytes) {
                Ok(length) if length > HEADER_BYTES => {
                    frame.length = length;
                    return true;
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Hands a packet to the kernel.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&self, frame: &Frame) -> io::Result<()> {
        (&self.0).write(&frame.bytes[..frame.length]).map(drop)
    }

    /// A second handle of the same device.
    ///
    /// # Errors
    /// [`LabError`] when there is no descriptor left.
    pub fn try_clone(&self) -> Result<Self, LabError> {
        let copy = self.0.try_clone();
        copy.map(Self)
            .map_err(|error| LabError::system("sharing a TUN device", error))
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Offload {
    /// Largest packet that the kernel hands over, bytes.
    pub fn largest_packet(self) -> usize {
        if self == Self::Segments { 65_536 } else { 1_500 }
    }

    fn flags(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Checksums => TUN_F_CSUM,
            Self::Segments => TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6,
        }
    }
}

impl Frame {
    /// An empty frame, with room for a packet of `largest_packet` bytes.
    pub fn with_room(largest_packet: usize) -> Self {
        Self {
            bytes: vec![0; HEADER_BYTES + largest_packet],
            length: 0,
        }
    }

    /// A packet that contains its checksums.
    pub fn new(packet: &[u8]) -> Self {
        let bytes = [&[0; HEADER_BYTES], packet].concat();
        Self {
            length: bytes.len(),
            bytes,
        }
    }

    /// The packet; empty if none was read.
    pub fn packet(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..self.length).unwrap_or_default()
    }

    /// The packet, mutable.
    pub fn packet_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(HEADER_BYTES..self.length).unwrap_or_default()
    }

    /// Copies another frame into this one, without a new allocation.
    pub fn copy_from(&mut self, other: &Self) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&other.bytes[..other.length]);
        self.length = other.length;
    }
}

/// Makes the device of an open `/dev/net/tun`.
fn attach(file: &File) -> Result<(), LabError> {
    // SAFETY: an `ifreq` is plain data; all zeros is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF takes a pointer to an `ifreq`, which outlives the call.
    checked(
        unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) },
        "making a TUN device",
    )
}

/// An `ioctl` that takes a number.
fn set_number(file: &File, code: libc::Ioctl, number: u64, tried: &str) -> Result<(), LabError> {
    // SAFETY: the callers' codes take numbers.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), code, number) }, tried)
}

fn checked(answer: libc::c_int, tried: &str) -> Result<(), LabError> {
    if answer < 0 {
        return Err(LabError::system(tried, io::Error::last_os_error()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_is_written_is_read_and_nothing_else_waits() {
        let (one, other) = Tun::pair();
        one.write(&Frame::new(b"packet")).expect("room for a packet");
        let mut frame = Frame::with_room(1_500);
        assert!(other.read(&mut frame));
        assert_eq!(frame.packet(), b"packet");
        assert!(!other.read(&mut frame));
    }

    #[test]
    fn a_copy_has_no_more_than_its_packet() {
        let mut long = Frame::new(&[1; 1_500]);
        long.copy_from(&Frame::new(b"short"));
        assert_eq!(long.packet(), b"short");
        assert_eq!(Frame::default().packet(), b"");
    }
}
