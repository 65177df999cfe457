//! Finds the first difference of two traces of a flow.

use std::fmt::{self, Write as _};

use firstflight_path::{Direction, Nanos};

use crate::trace::{Millis, Sent, Trace};

/// Tolerated difference in the time of a packet, for arrivals on a real kernel. It is a tick at `CONFIG_HZ=250`, by
/// which a timer is late if one processor looks before another has counted the tick, and 1 ms for the machine to
/// react.
pub const TOLERANCE: Nanos = 5_000_000;
/// Packets of both traces to show before the first difference.
const CONTEXT: usize = 24;
/// Columns for a packet.
const WIDTH: usize = 110;

/// The first difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// When the kernel sent the packet, or would have sent it.
    pub at: Nanos,
    /// The direction of the packet.
    pub direction: Direction,
    /// Its number among those of its direction, from 1.
    pub number: usize,
    /// What differs.
    pub what: Difference,
}

/// The kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The packets differ.
    Packet,
    /// Only the kernel sent a packet.
    Missing,
    /// Only the model sent a packet.
    Extra,
    /// Both sent the packet; the model later by this time, ns (negative: earlier).
    Time(i64),
}

/// Compares two traces direction by direction, up to the earlier end: packets exactly, times within `tolerance`.
pub fn compare(kernel: &Trace, model: &Trace, tolerance: Nanos) -> Option<Divergence> {
    let directions = [Direction::Up, Direction::Down];
    let found = directions
        .into_iter()
        .filter_map(|direction| first(kernel, model, direction, tolerance));
    found.min_by_key(|divergence| divergence.at)
}

fn first(kernel: &Trace, model: &Trace, direction: Direction, tolerance: Nanos) -> Option<Divergence> {
    let (mut theirs, mut ours) = (kernel.of(direction), model.of(direction));
    for number in 1.. {
        let divergence = |at, what| {
            Some(Divergence {
                at,
                direction,
                number,
                what,
            })
        };
        let (their, our) = match (theirs.next(), ours.next()) {
            (Some(their), Some(our)) => (their, our),
            // A packet sent shortly before the end of one trace may come shortly after the end of the other.
            (Some(their), None) if their.at + tolerance < model.end.max(kernel.end) => {
                return divergence(their.at, Difference::Missing);
            }
            (None, Some(our)) if our.at + tolerance < kernel.end => {
                return divergence(our.at, Difference::Extra);
            }
            _ => return None,
        };
        if their.packet != our.packet {
            return divergence(their.at.min(our.at), Difference::Packet);
        }
        let late = our.at.cast_signed() - their.at.cast_signed();
        if late.unsigned_abs() > tolerance {
            return divergence(their.at.min(our.at), Difference::Time(late));
        }
    }
    None
}

impl Divergence {
    /// Both traces side by side, up to the difference.
    pub fn show(&self, kernel: &Trace, model: &Trace) -> String {
        let mut text = format!("{self}\n{:WIDTH$} | {}\n", "kernel", "model");
        let mut rows: Vec<(Nanos, bool, Option<&Sent>, Option<&Sent>)> = Vec::new();
        for direction in [Direction::Up, Direction::Down] {
            let (mut theirs, mut ours) = (kernel.of(direction), model.of(direction));
            for number in 1.. {
                let (their, our) = (theirs.next(), ours.next());
                let Some(either) = their.or(our) else { break };
                let is_it = direction == self.direction && number == self.number;
                rows.push((either.at, is_it, their, our));
            }
        }
        rows.sort_by_key(|(at, ..)| *at);
        let end = rows.iter().position(|(_, is_it, ..)| *is_it);
        let end = end.map_or(rows.len(), |end| end + 1);
        for (_, _, their, our) in &rows[end.saturating_sub(CONTEXT)..end] {
            let line = |sent: Option<&Sent>| sent.map_or_else(String::new, ToString::to_string);
            let _ = writeln!(text, "{:WIDTH$} | {}", line(*their), line(*our));
        }
        text
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.direction == Direction::Up {
            "up"
        } else {
            "down"
        };
        write!(
            f,
            "packet {} {direction} at {} ms: ",
            self.number,
            Millis(self.at)
        )?;
        match self.what {
            Difference::Packet => f.write_str("they differ"),
            Difference::Missing => f.write_str("the model does not send it"),
            Difference::Extra => f.write_str("the kernel does not send it"),
            Difference::Time(late) if late < 0 => {
                write!(f, "the model is {} ms early", Millis(late.unsigned_abs()))
            }
            Difference::Time(late) => write!(f, "the model is {} ms late", Millis(late.unsigned_abs())),
        }
    }
}
