//! What the kernel reports of a socket (`TCP_INFO` and `TCP_CONGESTION`, `linux/tcp.h`).

use std::io;
use std::os::fd::AsFd;

use nix::libc;
use nix::sys::socket::{getsockopt, sockopt};

use crate::net::option_bytes;

/// Offset of `tcpi_options`.
const OPTIONS: usize = 5;
/// Offset of the byte with `tcpi_fastopen_client_fail` in bits 1 and 2.
const FLAGS: usize = 7;
/// `TCPI_OPT_SYN_DATA`: data in the SYN was acknowledged.
const SYN_DATA: u8 = 0x20;
/// Offsets of `tcpi_ca_state`, `tcpi_rto`, `tcpi_snd_ssthresh` and `tcpi_snd_cwnd`.
const PHASE: usize = 1;
const RTO: usize = 8;
const SSTHRESH: usize = 76;
const CWND: usize = 80;

/// The fields of `struct tcp_info` about Fast Open and the sender's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    /// Data in the SYN was acknowledged.
    pub syn_data: bool,
    /// Why not: 0 no reason, 1 no cookie, 2 data not acknowledged, 3 SYN retransmitted.
    pub client_fail: u8,
    /// State of loss recovery (`enum tcp_ca_state`).
    pub phase: u8,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
    /// Retransmission timeout, microseconds.
    pub rto_us: u32,
}

impl TcpInfo {
    /// Reads `TCP_INFO` of a connected socket.
    ///
    /// # Errors
    /// The kernel's, when `socket` is not a TCP socket.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let bytes: [u8; 256] = option_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
        let number = |at| u32::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        Ok(Self {
            syn_data: bytes[OPTIONS] & SYN_DATA != 0,
            client_fail: bytes[FLAGS] >> 1 & 3,
            phase: bytes[PHASE],
            cwnd: number(CWND),
            ssthresh: number(SSTHRESH),
            rto_us: number(RTO),
        })
    }
}

/// The congestion control of a socket, by the kernel's name.
///
/// # Errors
/// The kernel's, when `socket` is not a TCP socket.
pub(crate) fn congestion_control(socket: &impl AsFd) -> io::Result<String> {
    let name = getsockopt(socket, sockopt::TcpCongestion)?.into_encoded_bytes();
    // The kernel pads the name with zeros.
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}
