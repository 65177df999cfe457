//! What the kernel may leave to us: checksums, and cutting TCP into segments.

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::libc;

use crate::LabError;

/// Bytes of the `virtio_net_hdr` in front of each packet.
pub const VNET_HEADER_BYTES: usize = 10;

/// What crosses the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// Whole packets with their checksums, as on a wire; for captures.
    None,
    /// Packets of at most one MTU whose checksums nobody computes: nothing on this wire flips bits.
    Checksums,
    /// TCP segments in bundles of up to 64 KiB. Only where a path has no rate to cut them by: there all
    /// segments of a bundle would arrive at the same instant anyway.
    Segments,
}

const TUN_F_CSUM: u64 = 0x01;
const TUN_F_TSO4: u64 = 0x02;
const TUN_F_TSO6: u64 = 0x04;

impl Offload {
    /// Largest packet the kernel hands over, bytes.
    pub fn largest_packet(self) -> usize {
        if self == Self::Segments { 65_536 } else { 1_500 }
    }

    pub(super) fn apply(self, tun: &File) -> Result<(), LabError> {
        let flags = match self {
            Self::None => 0,
            Self::Checksums => TUN_F_CSUM,
            Self::Segments => TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6,
        };
        // SAFETY: TUNSETOFFLOAD takes a number.
        if unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETOFFLOAD, flags) } < 0 {
            return Err(LabError::system(
                "setting TUN offloads",
                std::io::Error::last_os_error(),
            ));
        }
        Ok(())
    }
}
