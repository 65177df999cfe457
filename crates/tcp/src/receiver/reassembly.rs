//! Putting the stream together: what arrives in order, out of order, twice.
//!
//! `tcp_data_queue` and `tcp_data_queue_ofo` in `net/ipv4/tcp_input.c`; SACK blocks after RFC 2018, D-SACK
//! after RFC 2883.

use crate::segment::{MAX_SACKS, Range, Sacks, Seq};

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// RCV.NXT.
    next: Seq,
    /// Ranges above it, most recently changed first (RFC 2018, section 4).
    waiting: Vec<Range>,
    duplicate: Option<Range>,
}

/// What a segment brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next bytes.
    InOrder {
        /// It filled the last gap.
        fills: bool,
    },
    /// Bytes beyond a gap.
    Ahead,
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

    /// Whether something waits beyond a gap.
    pub(crate) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Bytes that wait, and the distance to the last of them.
    pub(crate) fn waiting(&self) -> (u64, u64) {
        let bytes = self.waiting.iter().map(|range| range.1 - range.0).sum();
        let end = self.waiting.iter().map(|range| range.1).max();
        (bytes, end.map_or(0, |end| end - self.next))
    }

    /// Takes a segment's range in.
    pub(crate) fn take(&mut self, range: Range) -> Arrival {
        if range.1 <= self.next {
            self.duplicate = Some(range);
            return Arrival::Duplicate;
        }
        if range.0 > self.next {
            return self.wait(range);
        }
        if range.0 < self.next {
            self.duplicate = Some((range.0, self.next));
        }
        self.next = range.1;
        let had_gap = self.has_gap();
        while let Some(at) = self.waiting.iter().position(|range| range.0 <= self.next) {
            self.next = self.next.max(self.waiting.remove(at).1);
        }
        Arrival::InOrder {
            fills: had_gap && !self.has_gap(),
        }
    }

    fn wait(&mut self, range: Range) -> Arrival {
        let covered = |other: &Range| other.0 <= range.0 && range.1 <= other.1;
        if self.waiting.iter().any(covered) {
            self.duplicate = Some(range);
            return Arrival::Ahead;
        }
        let mut merged = range;
        self.waiting.retain(|other| {
            let apart = other.1 < merged.0 || merged.1 < other.0;
            if !apart {
                merged = (merged.0.min(other.0), merged.1.max(other.1));
            }
            apart
        });
        self.waiting.insert(0, merged);
        Arrival::Ahead
    }

    /// The blocks for the next acknowledgment.
    pub(crate) fn sacks(&mut self) -> Sacks {
        let mut sacks = Sacks::default();
        if let Some(range) = self.duplicate.take() {
            sacks.push(range);
            sacks.duplicate = true;
        }
        for range in self.waiting.iter().take(MAX_SACKS) {
            sacks.push(*range);
        }
        sacks
    }
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
        assert_eq!(stream.take((1, 11)), Arrival::InOrder { fills: false });
        assert_eq!(stream.take((21, 31)), Arrival::Ahead);
        assert_eq!(stream.take((41, 51)), Arrival::Ahead);
        assert_eq!(stream.sacks().blocks(), [(41, 51), (21, 31)]);
        assert_eq!(stream.take((31, 41)), Arrival::Ahead);
        assert_eq!(stream.sacks().blocks(), [(21, 51)]);
        assert_eq!(stream.take((11, 21)), Arrival::InOrder { fills: true });
        assert_eq!(stream.next(), 51);
        assert!(stream.sacks().blocks().is_empty());
    }

    #[test]
    fn what_comes_twice_is_reported_once() {
        let mut stream = Reassembly::default();
        stream.start(1);
        stream.take((1, 11));
        assert_eq!(stream.take((1, 11)), Arrival::Duplicate);
        assert_eq!(stream.sacks().duplicated(), Some((1, 11)));
        assert_eq!(stream.sacks().duplicated(), None);
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
