//! A segment on the simulated wire: its header fields, and the range of bytes it carries.
//!
//! The bytes themselves do not exist. Sequence numbers count from the sender's SYN, which is 0; they do not wrap.
//! Left out: checksums, urgent data, and options that current Linux does not send by default.

use std::fmt;

use firstflight_path::{Ecn, IpVersion, Nanos};

/// A server's key for cookies. It represents a cookie, whose bytes do not exist.
pub type Key = u32;

/// A sequence number: 0 is the sender's SYN, 1 its first byte of data.
pub type Seq = u64;

/// The longest IP packet that links carry, bytes.
const MTU: u32 = 1_500;
/// A TCP header without options.
const HEADER_BYTES: u32 = 20;
/// Timestamps with their padding, on every segment after the SYNs (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u32 = 12;
/// MSS, SACK permitted, timestamps, window scale: `tcp_syn_options` in `net/ipv4/tcp_output.c`.
const SYN_OPTION_BYTES: u32 = 20;
/// A Fast Open option with a cookie of eight bytes, and one without a cookie, padded (RFC 7413, section 4.1.1).
const COOKIE_BYTES: u32 = 12;
const COOKIE_REQUEST_BYTES: u32 = 4;
/// The window scale shift with the default buffer, for all segments but SYNs (RFC 7323, section 2).
pub(crate) const WINDOW_SHIFT: u32 = 10;
/// SACK blocks that fit beside timestamps (RFC 2018, section 3).
pub(crate) const MAX_SACKS: usize = 3;

/// The MSS that SYNs announce: the room in a packet beside its headers (RFC 6691).
pub(crate) const fn announced_mss(ip: IpVersion) -> u32 {
    MTU - ip.header_bytes() - HEADER_BYTES
}

/// Bytes of data in a full segment with timestamps.
pub(crate) const fn mss(ip: IpVersion) -> u32 {
    announced_mss(ip) - TIMESTAMP_BYTES
}

/// The Fast Open option of a SYN or SYN-ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FastOpen {
    /// None.
    #[default]
    Absent,
    /// An empty one: a cookie request.
    Request,
    /// A cookie made with this key, from the client or from the server.
    Cookie(Key),
}

/// A range of sequence numbers, the end not included.
pub type Range = (Seq, Seq);

/// SACK blocks of a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sacks {
    blocks: [Range; MAX_SACKS],
    count: u8,
    /// Whether the first block reports a duplicate (RFC 2883).
    pub duplicate: bool,
}

impl Sacks {
    /// Adds a block, if there is room.
    pub fn push(&mut self, block: Range) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }

    /// The blocks that acknowledge data, without a report of a duplicate.
    #[inline]
    pub fn blocks(&self) -> &[Range] {
        &self.blocks[usize::from(self.duplicate)..usize::from(self.count)]
    }

    /// All blocks, as the option lists them.
    pub fn all(&self) -> &[Range] {
        &self.blocks[..usize::from(self.count)]
    }

    /// The range of a duplicate that the receiver reports.
    pub fn duplicated(&self) -> Option<Range> {
        self.duplicate.then_some(self.blocks[0])
    }

    #[inline]
    fn bytes(&self) -> u32 {
        if self.count == 0 {
            0
        } else {
            4 + 8 * u32::from(self.count)
        }
    }
}

/// One segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are the flags of TCP's header"
)]
pub struct Segment {
    /// The IP version of its packet.
    pub ip: IpVersion,
    /// The number of its connection.
    pub conn: u32,
    /// Whether the client sent it.
    pub up: bool,
    /// SYN: the first segment of a side.
    pub syn: bool,
    /// ACK: `ack_no` is valid.
    pub ack: bool,
    /// FIN: the end of the sender's data.
    pub fin: bool,
    /// Reset.
    pub rst: bool,
    /// PSH: the end of a write.
    pub psh: bool,
    /// ECE: a congestion mark came (RFC 3168).
    pub ece: bool,
    /// CWR: the congestion window was reduced for a mark.
    pub cwr: bool,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// First sequence number.
    pub seq: Seq,
    /// Bytes of data.
    pub len: u32,
    /// Acknowledgment number.
    pub ack_no: Seq,
    /// Advertised window, bytes.
    pub window: u64,
    /// The sender's timestamp, ms.
    pub ts: Nanos,
    /// The other end's timestamp, ms.
    pub ts_echo: Nanos,
    /// Selective acknowledgments.
    pub sacks: Sacks,
    /// The Fast Open option.
    pub fast_open: FastOpen,
}

impl Segment {
    /// The sequence number after its last one.
    #[inline]
    pub fn end(&self) -> Seq {
        self.seq + u64::from(self.len) + u64::from(self.syn) + u64::from(self.fin)
    }

    /// The reset with which a host without the connection, or a middlebox, answers it.
    #[must_use]
    pub fn reset(&self) -> Self {
        Self {
            ip: self.ip,
            conn: self.conn,
            up: !self.up,
            rst: true,
            seq: if self.ack { self.ack_no } else { 0 },
            ..Self::default()
        }
    }

    /// Size of the IP packet, bytes.
    #[inline]
    pub fn packet_bytes(&self) -> u32 {
        let options = match (self.rst, self.syn) {
            (true, _) if !self.ack => 0,
            (_, false) => TIMESTAMP_BYTES + self.sacks.bytes(),
            (_, true) => {
                SYN_OPTION_BYTES
                    + match self.fast_open {
                        FastOpen::Absent => 0,
                        FastOpen::Request => COOKIE_REQUEST_BYTES,
                        FastOpen::Cookie(_) => COOKIE_BYTES,
                    }
            }
        };
        self.ip.header_bytes() + HEADER_BYTES + options + self.len
    }
}

/// tcpdump's format without addresses: flags, sequence numbers, acknowledgment, the window field, options, length.
impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flags [")?;
        let flags = [
            (self.syn, "S"),
            (self.fin, "F"),
            (self.rst, "R"),
            (self.psh, "P"),
            (self.cwr, "W"),
            (self.ece, "E"),
            (self.ack, "."),
        ];
        for (_, letter) in flags.iter().filter(|(is_set, _)| *is_set) {
            f.write_str(letter)?;
        }
        if flags.iter().all(|(is_set, _)| !is_set) {
            f.write_str("none")?;
        }
        f.write_str("]")?;
        let (seq, len) = (self.seq, self.len);
        if len > 0 {
            write!(f, ", seq {seq}:{}", seq + Seq::from(len))?;
        } else if self.syn || self.fin || self.rst {
            write!(f, ", seq {seq}")?;
        }
        if self.ack {
            write!(f, ", ack {}", self.ack_no)?;
        }
        let shift = if self.syn { 0 } else { WINDOW_SHIFT };
        write!(f, ", win {}", self.window >> shift)?;
        self.write_options(f)?;
        write!(f, ", length {len}")?;
        f.write_str(match self.ecn {
            Ecn::NotCapable => "",
            Ecn::Capable => ", ECT(0)",
            Ecn::Marked => ", CE",
        })
    }
}

impl Segment {
    fn write_options(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ts, echo) = (self.ts, self.ts_echo);
        if self.rst && !self.ack {
            return Ok(());
        }
        if self.syn {
            let mss = announced_mss(self.ip);
            write!(
                f,
                ", options [mss {mss},sackOK,TS val {ts} ecr {echo},nop,wscale {WINDOW_SHIFT}"
            )?;
            match self.fast_open {
                FastOpen::Absent => {}
                FastOpen::Request => f.write_str(",tfo cookiereq,nop,nop")?,
                FastOpen::Cookie(key) => write!(f, ",tfo cookie {key:016x},nop,nop")?,
            }
        } else {
            write!(f, ", options [nop,nop,TS val {ts} ecr {echo}")?;
            let sacks = self.sacks.all();
            if !sacks.is_empty() {
                write!(f, ",nop,nop,sack {} ", sacks.len())?;
            }
            for (from, to) in sacks {
                write!(f, "{{{from}:{to}}}")?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_printed_as_tcpdump_prints_it() {
        let syn = Segment {
            syn: true,
            len: 300,
            window: 64_240,
            ts: 7,
            fast_open: FastOpen::Cookie(0x2a),
            ..Segment::default()
        };
        assert_eq!(
            syn.to_string(),
            "Flags [S], seq 0:300, win 64240, options [mss 1460,sackOK,TS val 7 ecr 0,nop,wscale 10,\
             tfo cookie 000000000000002a,nop,nop], length 300"
        );
        let mut duplicate = Segment {
            ack: true,
            ece: true,
            ack_no: 1_449,
            window: 65_536,
            ts: 9,
            ts_echo: 7,
            ..Segment::default()
        };
        duplicate.sacks.duplicate = true;
        duplicate.sacks.push((1, 1_449));
        duplicate.sacks.push((2_897, 4_345));
        assert_eq!(
            duplicate.to_string(),
            "Flags [E.], ack 1449, win 64, options [nop,nop,TS val 9 ecr 7,nop,nop,sack 2 {1:1449}{2897:4345}], \
             length 0"
        );
    }
}
