//! What crosses the simulated wire: a segment's header fields and the range of bytes it carries.
//!
//! Bytes themselves are never made. Sequence numbers count from the sender's SYN, which is 0; they do not wrap.
//! Left out: checksums, urgent data, options that no Linux of today sends by default.

use firstflight_path::{Direction, Ecn, Header, Nanos, TcpFlags};

use crate::cookies::Key;

/// A sequence number: 0 is the sender's SYN, 1 its first byte of data.
pub(crate) type Seq = u64;

/// IPv4 and TCP headers without options.
const HEADER_BYTES: u32 = 40;
/// Timestamps with their padding, on every segment after the SYNs (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u32 = 12;
/// MSS, SACK permitted, timestamps, window scale: `tcp_syn_options` in `net/ipv4/tcp_output.c`.
const SYN_OPTION_BYTES: u32 = 20;
/// A Fast Open option with a cookie of eight bytes, and one without a cookie, padded (RFC 7413, section 4.1.1).
const COOKIE_BYTES: u32 = 12;
const COOKIE_REQUEST_BYTES: u32 = 4;
/// SACK blocks that fit beside timestamps (RFC 2018, section 3).
pub(crate) const MAX_SACKS: usize = 3;

/// The Fast Open option of a SYN or SYN-ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FastOpen {
    /// None.
    #[default]
    Absent,
    /// An empty one: a cookie, please.
    Request,
    /// A cookie, made with this key: sent back, or given out.
    Cookie(Key),
}

/// A range of sequence numbers, the end not included.
pub(crate) type Range = (Seq, Seq);

/// SACK blocks of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sacks {
    blocks: [Range; MAX_SACKS],
    count: u8,
    /// Whether the first block reports a duplicate (RFC 2883).
    pub(crate) duplicate: bool,
}

impl Sacks {
    /// Adds a block, if there is room.
    pub(crate) fn push(&mut self, block: Range) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }

    /// The blocks that acknowledge, without a report of a duplicate.
    pub(crate) fn blocks(&self) -> &[Range] {
        &self.blocks[usize::from(self.duplicate)..usize::from(self.count)]
    }

    /// The range of a duplicate that the receiver got.
    pub(crate) fn duplicated(&self) -> Option<Range> {
        self.duplicate.then_some(self.blocks[0])
    }

    fn bytes(&self) -> u32 {
        if self.count == 0 {
            0
        } else {
            4 + 8 * u32::from(self.count)
        }
    }
}

/// One segment.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are the flags of TCP's header"
)]
pub(crate) struct Segment {
    /// Which connection.
    pub(crate) conn: u32,
    /// Whether the client sent it.
    pub(crate) up: bool,
    /// Flags.
    pub(crate) syn: bool,
    /// See `syn`.
    pub(crate) ack: bool,
    /// See `syn`.
    pub(crate) fin: bool,
    /// See `syn`.
    pub(crate) rst: bool,
    /// See `syn`.
    pub(crate) psh: bool,
    /// ECE: a mark came (RFC 3168).
    pub(crate) echo: bool,
    /// CWR: the window came down for one.
    pub(crate) answer: bool,
    /// What the IP header says.
    pub(crate) ecn: Ecn,
    /// First sequence number.
    pub(crate) seq: Seq,
    /// Bytes of data.
    pub(crate) len: u32,
    /// Acknowledgment.
    pub(crate) ack_no: Seq,
    /// Advertised window, bytes.
    pub(crate) window: u64,
    /// The sender's timestamp, ms, and the one it echoes.
    pub(crate) ts: Nanos,
    /// See `ts`.
    pub(crate) ts_echo: Nanos,
    /// Selective acknowledgments.
    pub(crate) sacks: Sacks,
    /// Fast Open.
    pub(crate) fast_open: FastOpen,
}

impl Segment {
    /// The sequence number after its last.
    pub(crate) fn end(&self) -> Seq {
        self.seq + u64::from(self.len) + u64::from(self.syn) + u64::from(self.fin)
    }

    /// Which way it goes.
    pub(crate) fn direction(&self) -> Direction {
        if self.up { Direction::Up } else { Direction::Down }
    }

    /// What the path looks at. `origin` is the far end's index, `connection` counts first SYNs.
    pub(crate) fn header(&self, origin: usize, connection: u32, takes_syn_data: bool) -> Header {
        Header {
            direction: self.direction(),
            origin,
            connection,
            flags: TcpFlags {
                syn: self.syn,
                ack: self.ack,
                fin: self.fin,
                rst: self.rst,
            },
            payload_bytes: self.len,
            fast_open: self.fast_open != FastOpen::Absent,
            takes_syn_data,
        }
    }

    /// What a middlebox that resets answers it with.
    pub(crate) fn reset(&self) -> Self {
        Self {
            conn: self.conn,
            up: !self.up,
            rst: true,
            ..Self::default()
        }
    }

    /// Bytes of the IP packet.
    pub(crate) fn packet_bytes(&self) -> u32 {
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
        HEADER_BYTES + options + self.len
    }
}
