//! What was sent and is not acknowledged: the retransmission queue with its marks (RFC 6675's scoreboard).
//!
//! The counters are Linux's `packets_out`, `sacked_out`, `lost_out` and `retrans_out`.

use std::collections::VecDeque;

use firstflight_path::Nanos;

use crate::segment::{Range, Seq};

/// A segment in flight.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's marks of a segment")]
pub(crate) struct Flight {
    pub(crate) seq: Seq,
    pub(crate) end: Seq,
    /// When it was last sent.
    pub(crate) sent_at: Nanos,
    pub(crate) fin: bool,
    pub(crate) psh: bool,
    /// Selectively acknowledged.
    pub(crate) sacked: bool,
    /// Taken for lost.
    pub(crate) lost: bool,
    /// Sent again since it was taken for lost, and that not lost too.
    pub(crate) resent: bool,
    /// Ever sent again.
    pub(crate) ever_resent: bool,
}

impl Flight {
    /// Of data, sent for the first time.
    pub(crate) fn new(seq: Seq, end: Seq, now: Nanos) -> Self {
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
pub(crate) struct Scoreboard {
    flights: VecDeque<Flight>,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Segments ever taken for lost, a retransmission once more (`tp->lost`).
    losses: u32,
    /// The end of the highest range that was selectively acknowledged.
    highest_sacked: Seq,
}

impl Scoreboard {
    /// Segments not cumulatively acknowledged.
    pub(crate) fn out(&self) -> u32 {
        self.flights.len() as u32
    }

    /// `tcp_packets_in_flight`: those believed to be on the path.
    pub(crate) fn in_flight(&self) -> u32 {
        (self.out() + self.resent).saturating_sub(self.sacked + self.lost)
    }

    /// Segments selectively acknowledged.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments taken for lost.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments ever taken for lost.
    pub(crate) fn losses(&self) -> u32 {
        self.losses
    }

    /// Segments sent again, and that not taken for lost.
    pub(crate) fn resent(&self) -> u32 {
        self.resent
    }

    /// The end of the highest range that was selectively acknowledged.
    pub(crate) fn highest_sacked(&self) -> Seq {
        self.highest_sacked
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    pub(crate) fn push(&mut self, flight: Flight) {
        self.flights.push_back(flight);
    }

    pub(crate) fn first(&self) -> Option<&Flight> {
        self.flights.front()
    }

    pub(crate) fn last_index(&self) -> Option<usize> {
        self.flights.len().checked_sub(1)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Flight> {
        self.flights.get(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Takes out the first segment if `acked` covers it.
    pub(crate) fn pop_acked(&mut self, acked: Seq) -> Option<Flight> {
        let flight = *self.flights.front().filter(|flight| flight.end <= acked)?;
        self.flights.pop_front();
        self.sacked -= u32::from(flight.sacked);
        self.lost -= u32::from(flight.lost);
        self.resent -= u32::from(flight.resent);
        Some(flight)
    }

    /// Indices of the segments that `block` covers and that are not marked yet.
    pub(crate) fn covered(&self, block: Range) -> std::ops::Range<usize> {
        let first = self.flights.partition_point(|flight| flight.seq < block.0);
        let end = self.flights.partition_point(|flight| flight.end <= block.1);
        first..end.max(first)
    }

    /// Marks a segment as selectively acknowledged (`tcp_sacktag_one`).
    pub(crate) fn mark_sacked(&mut self, index: usize) {
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
    pub(crate) fn mark_lost(&mut self, index: usize) -> bool {
        let flight = &mut self.flights[index];
        if flight.sacked || (flight.lost && !flight.resent) {
            return false;
        }
        self.resent -= u32::from(flight.resent);
        flight.resent = false;
        self.lost += u32::from(!flight.lost);
        self.losses += 1;
        flight.lost = true;
        true
    }

    /// Notes that a segment is sent again.
    pub(crate) fn mark_resent(&mut self, index: usize, now: Nanos) -> Flight {
        let flight = &mut self.flights[index];
        self.resent += u32::from(!flight.resent);
        flight.resent = true;
        flight.ever_resent = true;
        flight.sent_at = now;
        *flight
    }

    /// Notes that a segment is sent again to probe, which is no retransmission (`__tcp_retransmit_skb`).
    pub(crate) fn mark_probe(&mut self, index: usize, now: Nanos) -> Flight {
        let flight = &mut self.flights[index];
        flight.ever_resent = true;
        flight.sent_at = now;
        *flight
    }

    /// Takes all marks of loss back: the retransmissions were not needed.
    pub(crate) fn forget_losses(&mut self) {
        for flight in &mut self.flights {
            flight.lost = false;
        }
        self.lost = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Fault;
    use crate::pair::script::*;

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for index in 0..segments {
            board.push(Flight::new(1 + index * 10, 11 + index * 10, index));
        }
        board
    }

    #[test]
    fn a_segment_leaves_the_path_when_it_is_acknowledged_or_lost_and_is_there_again_when_resent() {
        let mut board = board(5);
        for index in board.covered((31, 51)) {
            board.mark_sacked(index);
        }
        assert_eq!(
            (board.in_flight(), board.sacked(), board.highest_sacked()),
            (3, 2, 51)
        );
        assert!(board.mark_lost(0) && !board.mark_lost(0) && !board.mark_lost(3));
        assert_eq!((board.in_flight(), board.lost()), (2, 1));
        board.mark_resent(0, 100);
        assert_eq!((board.in_flight(), board.resent()), (3, 1));
        assert!(board.mark_lost(0), "a retransmission may be lost, too");
        assert_eq!((board.in_flight(), board.lost(), board.resent()), (2, 1, 0));
        let acked = std::iter::from_fn(|| board.pop_acked(51)).count();
        assert_eq!(
            (acked, board.in_flight(), board.sacked(), board.lost()),
            (5, 0, 0, 0)
        );
    }

    #[test]
    fn a_block_covers_whole_segments_only() {
        assert_eq!(board(5).covered((15, 41)), 2..4);
        assert_eq!(board(5).covered((12, 20)), 2..2);
    }

    #[test]
    fn what_was_selectively_acknowledged_never_goes_again() {
        let mut pair = pair(
            response(10 * FULL),
            &[(Down, 4, Fault::Lost), (Down, 7, Fault::Lost)],
        );
        pair.run();
        assert_sent(
            pair.sent(Down),
            151..,
            "
            250 down . 1449:2897(1448) ack 301
            250 down . 5793:7241(1448) ack 301
        ",
        );
    }

    #[test]
    fn blocks_that_arrive_together_are_no_sign_of_reordering() {
        let lost = [(Down, 4), (Down, 7), (Up, 5), (Up, 6), (Up, 7)];
        let mut pair = pair(
            response(10 * FULL),
            &lost.map(|(way, number)| (way, number, Fault::Lost)),
        );
        pair.run();
        // The acknowledgment lists the range that arrived last first, and the one before it is as new to the sender.
        assert_sent(
            pair.sent(Down),
            151..,
            "
            250 down . 1449:2897(1448) ack 301
            250 down . 5793:7241(1448) ack 301
        ",
        );
    }
}
