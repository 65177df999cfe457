//! What was sent and is not acknowledged: the retransmission queue with its marks (RFC 6675's scoreboard).
//!
//! The counters are Linux's `packets_out`, `sacked_out`, `lost_out` and `retrans_out`.

use std::collections::VecDeque;

use firstflight_path::Nanos;

use crate::segment::{Range, Seq};

/// A segment in flight.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's marks of a segment")]
pub(super) struct Flight {
    pub(super) seq: Seq,
    pub(super) end: Seq,
    /// When it was last sent.
    pub(super) sent_at: Nanos,
    pub(super) fin: bool,
    pub(super) psh: bool,
    /// Selectively acknowledged.
    pub(super) sacked: bool,
    /// Taken for lost.
    pub(super) lost: bool,
    /// Sent again since it was taken for lost, and that not lost too.
    pub(super) resent: bool,
    /// Ever sent again.
    pub(super) ever_resent: bool,
}

impl Flight {
    /// Of data, sent for the first time.
    pub(super) fn new(seq: Seq, end: Seq, now: Nanos) -> Self {
        Self {
            seq,
            end,
            sent_at: now,
            fin: false,
            psh: false,
            sacked: false,
            lost: false,
            resent: false,
            ever_resent: false,
        }
    }
}

/// Segments in flight, in order.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    flights: VecDeque<Flight>,
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) resent: u32,
    /// The end of the highest range that was selectively acknowledged.
    pub(super) highest_sacked: Seq,
}

impl Scoreboard {
    /// Segments not cumulatively acknowledged.
    pub(super) fn out(&self) -> u32 {
        self.flights.len() as u32
    }

    /// `tcp_packets_in_flight`: those believed to be on the path.
    pub(super) fn in_flight(&self) -> u32 {
        (self.out() + self.resent).saturating_sub(self.sacked + self.lost)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    pub(super) fn push(&mut self, flight: Flight) {
        self.flights.push_back(flight);
    }

    pub(super) fn first(&self) -> Option<&Flight> {
        self.flights.front()
    }

    pub(super) fn last_index(&self) -> Option<usize> {
        self.flights.len().checked_sub(1)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Flight> {
        self.flights.get(index)
    }

    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Takes out the first segment if `acked` covers it.
    pub(super) fn pop_acked(&mut self, acked: Seq) -> Option<Flight> {
        let flight = *self.flights.front().filter(|flight| flight.end <= acked)?;
        self.flights.pop_front();
        self.sacked -= u32::from(flight.sacked);
        self.lost -= u32::from(flight.lost);
        self.resent -= u32::from(flight.resent);
        Some(flight)
    }

    /// Indices of the segments that `block` covers and that are not marked yet.
    pub(super) fn covered(&self, block: Range) -> std::ops::Range<usize> {
        let first = self.flights.partition_point(|flight| flight.seq < block.0);
        let end = self.flights.partition_point(|flight| flight.end <= block.1);
        first..end.max(first)
    }

    /// Marks a segment as selectively acknowledged (`tcp_sacktag_one`).
    pub(super) fn mark_sacked(&mut self, index: usize) {
        let flight = &mut self.flights[index];
        self.lost -= u32::from(flight.lost);
        self.resent -= u32::from(flight.resent);
        flight.lost = false;
        flight.resent = false;
        flight.sacked = true;
        self.sacked += 1;
        self.highest_sacked = self.highest_sacked.max(flight.end);
    }

    /// Marks a segment as lost; what was sent again is lost again (`tcp_mark_skb_lost`).
    pub(super) fn mark_lost(&mut self, index: usize) -> bool {
        let flight = &mut self.flights[index];
        if flight.sacked || (flight.lost && !flight.resent) {
            return false;
        }
        self.resent -= u32::from(flight.resent);
        flight.resent = false;
        self.lost += u32::from(!flight.lost);
        flight.lost = true;
        true
    }

    /// Notes that a segment is sent again.
    pub(super) fn mark_resent(&mut self, index: usize, now: Nanos) -> Flight {
        let flight = &mut self.flights[index];
        self.resent += u32::from(!flight.resent);
        flight.resent = true;
        flight.ever_resent = true;
        flight.sent_at = now;
        *flight
    }

    /// Takes all marks of loss back: the retransmissions were not needed.
    pub(super) fn forget_losses(&mut self) {
        for flight in &mut self.flights {
            flight.lost = false;
        }
        self.lost = 0;
    }
}
