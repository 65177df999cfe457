//! Reassembly of the stream from data in order, out of order, and duplicated.
//!
//! `tcp_data_queue`, `tcp_data_queue_ofo` and `tcp_ofo_queue` in `net/ipv4/tcp_input.c`; SACK blocks after RFC 2018
//! (`tcp_sack_new_ofo_skb`, `tcp_sack_remove`), D-SACK after RFC 2883.

use crate::segment::{MAX_SACKS, Range, Sacks, Seq};

/// `TCP_NUM_SACKS`: blocks that are remembered. A range in no block is not reported again.
const MAX_BLOCKS: usize = 4;
/// `TCP_SACK_BLOCKS_EXPECTED`: blocks that are repeated in enough acknowledgments, should some be lost.
const EXPECTED_BLOCKS: usize = 2;

/// The received data.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// RCV.NXT.
    next: Seq,
    /// Ranges above it in order, with the buffer memory that each occupies.
    waiting: Vec<(Range, u64)>,
    /// Their SACK blocks, the most recently changed first (RFC 2018, section 4).
    blocks: Vec<Range>,
    duplicate: Option<Range>,
}

/// The data of a segment, compared with what had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next bytes.
    InOrder {
        /// Whether it filled the last gap.
        fills: bool,
    },
    /// Bytes behind a gap.
    Ahead {
        /// Whether they had not arrived before.
        is_new: bool,
    },
    /// Nothing new.
    Duplicate,
}

impl Reassembly {
    /// RCV.NXT: the acknowledgment to send.
    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    /// Begins a stream whose first bytes are here.
    pub(crate) fn start(&mut self, next: Seq) {
        self.next = next;
    }

    /// Whether data waits behind a gap.
    pub(crate) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Buffer memory that the waiting ranges occupy.
    pub(crate) fn occupied(&self) -> u64 {
        self.waiting.iter().map(|(_, memory)| memory).sum()
    }

    /// Distance from RCV.NXT to the end of the waiting data.
    pub(crate) fn reach(&self) -> u64 {
        self.waiting.last().map_or(0, |((_, end), _)| end - self.next)
    }

    /// Whether a range displaces a block that was hardly repeated yet, or makes it the first.
    pub(crate) fn displaces(&self, range: Range) -> bool {
        range.0 > self.next && self.block_at(range).unwrap_or(self.blocks.len()) >= EXPECTED_BLOCKS
    }

    /// A range arrived again, and was discarded.
    pub(crate) fn note_duplicate(&mut self, range: Range) {
        self.duplicate = Some(range);
    }

    /// Stores a segment's range, which occupies `memory` of the buffer.
    pub(crate) fn take(&mut self, range: Range, memory: u64) -> Arrival {
        self.duplicate = None;
        if range.1 <= self.next {
            self.duplicate = Some(range);
            return Arrival::Duplicate;
        }
        if range.0 > self.next {
            let is_new = self.wait(range, memory);
            self.report(range);
            return Arrival::Ahead { is_new };
        }
        if range.0 < self.next {
            self.duplicate = Some((range.0, self.next));
        }
        self.next = range.1;
        let joined = self.waiting.iter().take_while(|((from, _), _)| *from <= range.1);
        let joined = joined.count();
        for ((from, end), _) in self.waiting.drain(..joined) {
            if from < range.1 {
                let again = self.duplicate.map_or(from, |(first, _)| first.min(from));
                self.duplicate = Some((again, end.min(range.1)));
            }
            self.next = self.next.max(end);
        }
        if self.waiting.is_empty() {
            self.blocks.clear();
        } else {
            self.blocks.retain(|block| block.0 > self.next);
        }
        Arrival::InOrder {
            fills: joined > 0 && self.waiting.is_empty(),
        }
    }

    /// Stores a range behind a gap. Returns whether it is new.
    fn wait(&mut self, range: Range, memory: u64) -> bool {
        let covers = |(other, _): &(Range, u64)| other.0 <= range.0 && range.1 <= other.1;
        if self.waiting.iter().any(covers) {
            self.duplicate = Some(range);
            return false;
        }
        let first = self
            .waiting
            .iter()
            .take_while(|(other, _)| other.1 < range.0)
            .count();
        let touched = self.waiting[first..]
            .iter()
            .take_while(|(other, _)| other.0 <= range.1);
        let touched = first + touched.count();
        let mut merged = (range, memory);
        for (other, memory) in self.waiting.drain(first..touched) {
            merged.0 = (merged.0.0.min(other.0), merged.0.1.max(other.1));
            merged.1 += memory;
        }
        self.waiting.insert(first, merged);
        true
    }

    /// The first block that a range extends.
    fn block_at(&self, range: Range) -> Option<usize> {
        self.blocks.iter().position(|block| touches(*block, range))
    }

    /// Puts the block of a range first.
    fn report(&mut self, range: Range) {
        let mut first = range;
        if let Some(at) = self.block_at(range) {
            let block = self.blocks.remove(at);
            first = (first.0.min(block.0), first.1.max(block.1));
            self.blocks.retain(|block| {
                let is_apart = !touches(*block, first);
                if !is_apart {
                    first = (first.0.min(block.0), first.1.max(block.1));
                }
                is_apart
            });
        }
        self.blocks.insert(0, first);
        self.blocks.truncate(MAX_BLOCKS);
    }

    /// The blocks for the next acknowledgment.
    pub(crate) fn sacks(&mut self) -> Sacks {
        let mut sacks = Sacks::default();
        if let Some(range) = self.duplicate.take() {
            sacks.push(range);
            sacks.duplicate = true;
        }
        for range in self.blocks.iter().take(MAX_SACKS) {
            sacks.push(*range);
        }
        sacks
    }
}

/// Whether two ranges overlap or follow each other: `tcp_sack_extend`.
fn touches(one: Range, other: Range) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Fault;
    use crate::pair::script::*;
    use crate::time::MS;

    #[test]
    fn a_gap_is_reported_and_filled() {
        let mut stream = Reassembly::default();
        stream.start(1);
        assert_eq!(stream.take((1, 11), 1), Arrival::InOrder { fills: false });
        assert_eq!(stream.take((21, 31), 1), Arrival::Ahead { is_new: true });
        assert_eq!(stream.take((41, 51), 1), Arrival::Ahead { is_new: true });
        assert_eq!(stream.sacks().blocks(), [(41, 51), (21, 31)]);
        assert_eq!(stream.take((31, 41), 1), Arrival::Ahead { is_new: true });
        assert_eq!(stream.sacks().blocks(), [(21, 51)]);
        assert_eq!(stream.take((11, 21), 1), Arrival::InOrder { fills: true });
        assert_eq!(stream.next(), 51);
        assert!(stream.sacks().blocks().is_empty());
    }

    #[test]
    fn what_comes_twice_is_reported_once() {
        let mut stream = Reassembly::default();
        stream.start(1);
        stream.take((1, 11), 1);
        assert_eq!(stream.take((1, 11), 1), Arrival::Duplicate);
        assert_eq!(stream.sacks().duplicated(), Some((1, 11)));
        assert_eq!(stream.sacks().duplicated(), None);
    }

    #[test]
    fn of_more_gaps_than_four_the_oldest_is_forgotten_until_it_changes() {
        let mut stream = Reassembly::default();
        stream.start(1);
        for from in [11, 31, 51, 71, 91] {
            stream.take((from, from + 10), 1);
        }
        assert_eq!(stream.blocks, [(91, 101), (71, 81), (51, 61), (31, 41)]);
        // The block reports the changed range, not all that has arrived.
        stream.take((21, 26), 1);
        assert_eq!(stream.blocks, [(21, 26), (91, 101), (71, 81), (51, 61)]);
        assert_eq!(stream.take((1, 11), 1), Arrival::InOrder { fills: false });
        assert_eq!((stream.next(), stream.blocks.len()), (26, 3));
    }

    #[test]
    fn a_block_that_comes_twice_is_the_first_again() {
        let mut stream = Reassembly::default();
        stream.start(1);
        stream.take((11, 21), 1);
        stream.take((31, 41), 1);
        assert_eq!(stream.take((11, 21), 1), Arrival::Ahead { is_new: false });
        let sacks = stream.sacks();
        assert_eq!(sacks.all(), [(11, 21), (11, 21), (31, 41)]);
        assert!(sacks.duplicate);
    }

    #[test]
    fn what_waits_occupies_the_buffer_until_it_is_joined() {
        let mut stream = Reassembly::default();
        stream.start(1);
        stream.take((21, 31), 5);
        stream.take((11, 21), 7);
        assert_eq!((stream.occupied(), stream.reach()), (12, 30));
        stream.take((1, 11), 9);
        assert_eq!((stream.occupied(), stream.reach()), (0, 0));
    }

    #[test]
    fn a_duplicate_is_reported_to_its_sender() {
        let mut pair = pair(response(3 * FULL), &[(Down, 4, Fault::Duplicated(5 * MS))]);
        pair.run();
        assert_sent(
            pair.trace(),
            200..,
            "
            200 up . 301:301(0) ack 1449
            200 up . 301:301(0) ack 2897
            200 up . 301:301(0) ack 4345
            205 up . 301:301(0) ack 4345 dsack 1449:2897
        ",
        );
    }

    #[test]
    fn blocks_come_with_the_latest_first() {
        let mut pair = pair(
            response(10 * FULL),
            &[(Down, 4, Fault::Lost), (Down, 7, Fault::Lost)],
        );
        pair.run_until(200 * MS);
        assert_sent(
            pair.sent(Up),
            200..,
            "
            200 up . 301:301(0) ack 1449
            200 up . 301:301(0) ack 1449 sack 2897:4345
            200 up . 301:301(0) ack 1449 sack 2897:5793
            200 up . 301:301(0) ack 1449 sack 7241:8689 2897:5793
            200 up . 301:301(0) ack 1449 sack 7241:10137 2897:5793
            200 up . 301:301(0) ack 1449 sack 7241:11585 2897:5793
            200 up . 301:301(0) ack 1449 sack 7241:13033 2897:5793
            200 up . 301:301(0) ack 1449 sack 7241:14481 2897:5793
        ",
        );
    }
}
