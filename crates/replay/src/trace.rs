//! A trace: packets in the order in which they were sent, as tcpdump at both ends would show them.

use std::fmt;

use firstflight_path::{Direction, Ecn, Nanos};
use firstflight_tcp::{FastOpen, Range, Segment, Seq};

/// The compared fields of a segment. Sequence numbers count from each side's SYN, which is 0. Windows and
/// timestamps are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packet {
    /// The flags in tcpdump's notation: `S`, `F`, `R`, `P`, `.` for ACK, `E`, `W`, in this order.
    pub flags: String,
    /// First sequence number.
    pub seq: Seq,
    /// Bytes of data.
    pub len: u32,
    /// Acknowledgment number; 0 without ACK.
    pub ack: Seq,
    /// SACK blocks in their order; the first may report a duplicate (RFC 2883).
    pub sacks: Vec<Range>,
    /// The Fast Open option.
    pub fast_open: Option<TfoOption>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
}

/// A Fast Open option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TfoOption {
    /// A cookie request.
    Request,
    /// A cookie.
    Cookie,
}

/// The sender's state after it has sent a packet (`TCP_INFO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// One of [`PHASES`].
    pub phase: &'static str,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
    /// Retransmission timeout.
    pub rto: Nanos,
    /// RACK's reordering window. A kernel does not report it.
    pub reordering_window: Option<Nanos>,
}

/// Phases in the kernel's order (`enum tcp_ca_state`).
pub const PHASES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;

/// A packet on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// When it was sent, from the trace's time 0.
    pub at: Nanos,
    /// Its direction.
    pub direction: Direction,
    /// The packet.
    pub packet: Packet,
    /// The window that it offers, bytes: printed, not compared. Old traces lack it.
    pub window: Option<u64>,
    /// Its arrival times: none, one or two.
    pub arrived: Vec<Nanos>,
    /// Whether it was marked on the way.
    pub is_marked: bool,
    /// The sender's state, if it could be asked.
    pub info: Option<Info>,
}

/// All packets of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The packets in the order of sending.
    pub sent: Vec<Sent>,
    /// How long the connection was observed.
    pub end: Nanos,
}

impl Trace {
    /// The packets of one direction.
    pub fn of(&self, direction: Direction) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |sent| sent.direction == direction)
    }
}

impl From<firstflight_tcp::Info> for Info {
    fn from(info: firstflight_tcp::Info) -> Self {
        Self {
            phase: PHASES[info.phase as usize],
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            rto: info.rto,
            reordering_window: Some(info.reordering_window),
        }
    }
}

impl From<&Segment> for Packet {
    fn from(segment: &Segment) -> Self {
        let flags = [
            (segment.syn, 'S'),
            (segment.fin, 'F'),
            (segment.rst, 'R'),
            (segment.psh, 'P'),
            (segment.ack, '.'),
            (segment.ece, 'E'),
            (segment.cwr, 'W'),
        ];
        Self {
            flags: flags
                .iter()
                .filter(|(is_set, _)| *is_set)
                .map(|(_, letter)| letter)
                .collect(),
            seq: segment.seq,
            len: segment.len,
            ack: segment.ack_no,
            sacks: segment.sacks.all().to_vec(),
            fast_open: match segment.fast_open {
                FastOpen::Absent => None,
                FastOpen::Request => Some(TfoOption::Request),
                FastOpen::Cookie(_) => Some(TfoOption::Cookie),
            },
            ecn: segment.ecn,
        }
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}+{}", self.flags, self.seq, self.len)?;
        if self.flags.contains('.') {
            write!(f, " ack {}", self.ack)?;
        }
        for (index, (from, to)) in self.sacks.iter().enumerate() {
            write!(f, "{}{from}-{to}", if index == 0 { " sack " } else { "," })?;
        }
        f.write_str(match self.fast_open {
            None => "",
            Some(TfoOption::Request) => " tfo request",
            Some(TfoOption::Cookie) => " tfo cookie",
        })?;
        f.write_str(match self.ecn {
            Ecn::NotCapable => "",
            Ecn::Capable => " ect",
            Ecn::Marked => " ce",
        })
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Info {
            phase,
            cwnd,
            ssthresh,
            rto,
            reordering_window,
        } = self;
        write!(f, "{phase} cwnd {cwnd} ssthresh ")?;
        if *ssthresh >= INFINITE {
            f.write_str("inf")?;
        } else {
            write!(f, "{ssthresh}")?;
        }
        write!(f, " rto {}", rto / 1_000_000)?;
        reordering_window.map_or(Ok(()), |window| write!(f, " reordering {}", Millis(window)))
    }
}

/// Time, direction, packet and window; after `=>` the arrivals, after `;` the sender's state.
impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = if self.direction == Direction::Up { '>' } else { '<' };
        write!(f, "{:>11} {arrow} {}", Millis(self.at).to_string(), self.packet)?;
        self.window.map_or(Ok(()), |window| write!(f, " win {window}"))?;
        f.write_str(" =>")?;
        if self.arrived.is_empty() {
            f.write_str(" lost")?;
        }
        for at in &self.arrived {
            write!(f, " {}", Millis(*at))?;
        }
        if self.is_marked {
            f.write_str(" marked")?;
        }
        self.info.map_or(Ok(()), |info| write!(f, " ; {info}"))
    }
}

/// A time in ms, to the microsecond.
pub(crate) struct Millis(pub(crate) Nanos);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = (self.0 + 500) / 1_000;
        write!(f, "{}.{:03}", us / 1_000, us % 1_000)
    }
}
