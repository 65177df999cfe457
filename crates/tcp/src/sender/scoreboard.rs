//! The retransmission queue: data that was sent and is not acknowledged, with its marks (RFC 6675's scoreboard).
//!
//! As in Linux its entries are skbs. Segments that left as one bundle are marked and retransmitted as one, until a
//! selective acknowledgment, a retransmission or a probe splits it (`tcp_fragment`). The counters are
//! `packets_out`, `sacked_out`, `lost_out` and `retrans_out`, in segments.

use std::collections::VecDeque;

use firstflight_path::Nanos;

use crate::segment::{Range, Seq};

/// One or more segments that left together.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's marks of an skb")]
pub(crate) struct Flight {
    pub(crate) seq: Seq,
    pub(crate) end: Seq,
    /// When it was last sent.
    pub(crate) sent_at: Nanos,
    /// Segments that had been delivered by then (`tx.delivered`).
    pub(crate) delivered: u32,
    /// Bytes of data in a full segment (`tcp_skb_mss`).
    pub(crate) mss: u32,
    pub(crate) fin: bool,
    pub(crate) psh: bool,
    /// Whether it is selectively acknowledged.
    pub(crate) sacked: bool,
    /// Whether it counts as lost.
    pub(crate) lost: bool,
    /// Whether it was retransmitted after that, and the retransmission does not count as lost.
    pub(crate) resent: bool,
    /// Whether it was ever retransmitted.
    pub(crate) ever_resent: bool,
    /// Whether RACK watches it (`tcp_tsorted_anchor`). RACK does not watch data that it marked as lost until that
    /// is retransmitted, even if the mark is undone.
    pub(crate) is_watched: bool,
}

impl Flight {
    /// New data, sent for the first time.
    pub(crate) fn new(seq: Seq, end: Seq, mss: u32, now: Nanos) -> Self {
        Self {
            seq,
            end,
            sent_at: now,
            delivered: 0,
            mss,
            fin: false,
            psh: false,
            sacked: false,
            lost: false,
            resent: false,
            ever_resent: false,
            is_watched: true,
        }
    }

    /// Bytes of data.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.seq - Seq::from(self.fin)
    }

    /// `tcp_skb_pcount`.
    pub(crate) fn segments(&self) -> u32 {
        (self.len().div_ceil(self.mss.into()) as u32).max(1)
    }
}

/// Data that an acknowledgment removed from the head of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acked {
    /// The flight before the acknowledgment.
    pub(crate) flight: Flight,
    /// The number of its segments that are acknowledged.
    pub(crate) segments: u32,
}

/// Flights in order.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    flights: VecDeque<Flight>,
    out: u32,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Segments ever marked as lost; a lost retransmission counts again (`tp->lost`).
    losses: u32,
    /// The end of the highest selectively acknowledged range.
    highest_sacked: Seq,
}

impl Scoreboard {
    /// Segments not cumulatively acknowledged.
    pub(crate) fn out(&self) -> u32 {
        self.out
    }

    /// `tcp_packets_in_flight`: segments assumed to be on the path.
    pub(crate) fn in_flight(&self) -> u32 {
        (self.out + self.resent).saturating_sub(self.sacked + self.lost)
    }

    /// Segments selectively acknowledged.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments marked as lost.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments ever marked as lost.
    pub(crate) fn losses(&self) -> u32 {
        self.losses
    }

    /// Segments retransmitted whose retransmission does not count as lost.
    pub(crate) fn resent(&self) -> u32 {
        self.resent
    }

    /// The end of the highest selectively acknowledged range, or SND.UNA, which is `acked`, if there is none
    /// (`tcp_highest_sack_seq`).
    pub(crate) fn highest_sacked(&self, acked: Seq) -> Seq {
        if self.sacked == 0 {
            acked
        } else {
            self.highest_sacked
        }
    }

    /// `tcp_any_retrans_done`.
    pub(crate) fn has_resent(&self) -> bool {
        self.resent > 0 || self.first().is_some_and(|head| head.ever_resent)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    pub(crate) fn push(&mut self, flight: Flight) {
        self.out += flight.segments();
        self.flights.push_back(flight);
    }

    pub(crate) fn first(&self) -> Option<&Flight> {
        self.flights.front()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Flight> {
        self.flights.get(index)
    }

    /// Number of flights.
    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Removes from the head what `acked` covers: a flight, or whole segments of one (`tcp_tso_acked`).
    pub(crate) fn take_acked(&mut self, acked: Seq) -> Option<Acked> {
        let head = self.flights.front_mut().filter(|head| head.seq < acked)?;
        let flight = *head;
        let segments = if flight.end <= acked {
            self.flights.pop_front();
            flight.segments()
        } else if flight.segments() > 1 {
            head.seq = acked;
            flight.segments() - head.segments()
        } else {
            0
        };
        if segments == 0 {
            return None;
        }
        self.out -= segments;
        self.sacked -= segments * u32::from(flight.sacked);
        self.lost -= segments * u32::from(flight.lost);
        self.resent -= segments * u32::from(flight.resent);
        Some(Acked { flight, segments })
    }

    /// Index of the first flight that ends after `seq`.
    pub(crate) fn first_behind(&self, seq: Seq) -> usize {
        self.flights.partition_point(|flight| flight.end <= seq)
    }

    /// Splits a flight after its first `len` bytes, which are whole segments: `tcp_fragment`.
    pub(crate) fn split(&mut self, index: usize, len: u64) {
        let flight = &mut self.flights[index];
        let rest = Flight {
            seq: flight.seq + len,
            ..*flight
        };
        flight.end = rest.seq;
        flight.fin = false;
        flight.psh = false;
        self.flights.insert(index + 1, rest);
    }

    /// Splits a flight where `block` begins or ends within it. Returns whether the flight now at `index` is
    /// covered: `tcp_match_skb_to_sack`.
    pub(crate) fn cut(&mut self, index: usize, block: Range) -> bool {
        let flight = self.flights[index];
        if flight.segments() > 1 && flight.seq < block.1 && block.0 < flight.end {
            let mss = u64::from(flight.mss);
            let len = if flight.seq < block.0 {
                (block.0 - flight.seq).next_multiple_of(mss)
            } else {
                (block.1 - flight.seq) / mss * mss
            };
            if 0 < len && len < flight.len() {
                self.split(index, len);
            }
        }
        let flight = &self.flights[index];
        block.0 <= flight.seq && flight.end <= block.1
    }

    /// Joins a flight with the next one, one segment each: `tcp_collapse_retrans`.
    fn join(&mut self, index: usize) {
        let Some(next) = self.flights.remove(index + 1) else {
            return;
        };
        self.out -= 1;
        self.lost -= u32::from(next.lost);
        self.resent -= u32::from(next.resent);
        let flight = &mut self.flights[index];
        flight.end = next.end;
        flight.fin |= next.fin;
        flight.psh |= next.psh;
        flight.ever_resent |= next.ever_resent;
    }

    /// Fills a flight shorter than a segment with those behind it that fit: `tcp_retrans_try_collapse`.
    pub(crate) fn collapse(&mut self, index: usize, window_end: Seq) {
        let is_one = |flight: &Flight| flight.segments() == 1 && !flight.sacked;
        while let (Some(flight), Some(next)) = (self.get(index), self.get(index + 1)) {
            let fits = flight.len() + next.len() <= u64::from(flight.mss) && next.end <= window_end;
            if !(is_one(flight) && is_one(next) && fits) {
                break;
            }
            self.join(index);
        }
    }

    /// Marks a flight as selectively acknowledged (`tcp_sacktag_one`). If it was not marked as lost, a
    /// retransmission of it still counts as being on its way.
    pub(crate) fn mark_sacked(&mut self, index: usize) {
        let flight = &mut self.flights[index];
        let segments = flight.segments();
        if flight.lost {
            self.lost -= segments;
            self.resent -= segments * u32::from(flight.resent);
            flight.resent = false;
        }
        flight.lost = false;
        flight.sacked = true;
        flight.is_watched = false;
        self.sacked += segments;
        self.highest_sacked = self.highest_sacked.max(flight.end);
    }

    /// Notes that a retransmission has arrived as a duplicate.
    pub(crate) fn forget_resent(&mut self, index: usize) {
        let flight = &mut self.flights[index];
        self.resent -= flight.segments() * u32::from(flight.resent);
        flight.resent = false;
    }

    /// Marks a flight as lost; a retransmission of it too (`tcp_mark_skb_lost`).
    pub(crate) fn mark_lost(&mut self, index: usize) -> bool {
        let flight = &mut self.flights[index];
        if flight.sacked || (flight.lost && !flight.resent) {
            return false;
        }
        let segments = flight.segments();
        if flight.lost {
            self.resent -= segments;
            flight.resent = false;
        } else {
            self.lost += segments;
        }
        self.losses += segments;
        flight.lost = true;
        true
    }

    /// RACK stops watching a flight that it has marked as lost.
    pub(crate) fn unwatch(&mut self, index: usize) {
        self.flights[index].is_watched = false;
    }

    /// Notes that a flight is retransmitted, when `delivered` segments have been delivered.
    pub(crate) fn mark_resent(&mut self, index: usize, now: Nanos, delivered: u32) {
        self.mark_probe(index, now, delivered);
        let flight = &mut self.flights[index];
        self.resent += flight.segments() * u32::from(!flight.resent);
        flight.resent = true;
    }

    /// Notes that a flight is sent again as a probe, which is not a retransmission (`__tcp_retransmit_skb`).
    pub(crate) fn mark_probe(&mut self, index: usize, now: Nanos, delivered: u32) {
        let flight = &mut self.flights[index];
        flight.ever_resent = true;
        flight.is_watched = true;
        flight.sent_at = now;
        flight.delivered = delivered;
    }

    /// Removes all marks of loss, because the retransmissions were not needed.
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

    /// Flights of one segment each, of ten bytes.
    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for index in 0..segments {
            board.push(Flight::new(1 + index * 10, 11 + index * 10, FULL as u32, index));
        }
        board
    }

    fn mark(board: &mut Scoreboard, block: Range) {
        let mut index = board.first_behind(block.0);
        while board.get(index).is_some_and(|flight| flight.seq < block.1) {
            if board.cut(index, block) {
                board.mark_sacked(index);
            }
            index += 1;
        }
    }

    #[test]
    fn a_segment_leaves_the_path_when_it_is_acknowledged_or_lost_and_is_there_again_when_resent() {
        let mut board = board(5);
        mark(&mut board, (31, 51));
        assert_eq!(
            (board.in_flight(), board.sacked(), board.highest_sacked(1)),
            (3, 2, 51)
        );
        assert!(board.mark_lost(0) && !board.mark_lost(0) && !board.mark_lost(3));
        assert_eq!((board.in_flight(), board.lost()), (2, 1));
        board.mark_resent(0, 100, 0);
        assert_eq!((board.in_flight(), board.resent()), (3, 1));
        assert!(board.mark_lost(0), "a retransmission may be lost, too");
        assert_eq!((board.in_flight(), board.lost(), board.resent()), (2, 1, 0));
        let acked = std::iter::from_fn(|| board.take_acked(51)).count();
        assert_eq!(
            (acked, board.in_flight(), board.sacked(), board.lost()),
            (5, 0, 0, 0)
        );
    }

    #[test]
    fn a_block_cuts_a_flight_at_whole_segments() {
        let segments = |board: &Scoreboard| -> Vec<_> {
            let flight = |flight: &Flight| (flight.segments(), flight.sacked, flight.psh);
            board.flights.iter().map(flight).collect()
        };
        let mut board = Scoreboard::default();
        board.push(Flight {
            psh: true,
            ..Flight::new(1, 1 + 5 * FULL - 100, FULL as u32, 0)
        });
        mark(&mut board, (1 + FULL, 1 + 3 * FULL));
        assert_eq!(
            segments(&board),
            [(1, false, false), (2, true, false), (2, false, true)]
        );
        assert_eq!((board.out(), board.sacked(), board.in_flight()), (5, 2, 3));
        mark(&mut board, (1 + 3 * FULL, 1 + 5 * FULL - 200));
        assert_eq!(board.sacked(), 3, "of the last segment a part is missing");
    }

    #[test]
    fn an_acknowledgment_takes_whole_segments_off_a_flight() {
        let mut board = Scoreboard::default();
        board.push(Flight::new(1, 1 + 4 * FULL, FULL as u32, 0));
        let acked = board.take_acked(1 + 3 * FULL).expect("three of four");
        assert_eq!((acked.segments, acked.flight.end), (3, 1 + 4 * FULL));
        assert!(board.take_acked(1 + 3 * FULL).is_none());
        assert_eq!((board.out(), board.first().map(Flight::segments)), (1, Some(1)));
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
        // The acknowledgment lists the latest range first. The range before it is as new to the sender.
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
