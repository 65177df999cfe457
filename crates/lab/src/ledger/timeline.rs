//! When the bytes of a stream crossed the relay. The lab times the requests of browsers and other programs by it.

/// Byte ranges of one direction's stream, one per segment. Offsets count from the first byte of data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline(Vec<Stretch>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    at: u64,
    start: u32,
    end: u32,
}

/// Times at which the stream grew without a gap: monotonic ns, and the bytes received by then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress(Vec<(u64, u64)>);

impl Timeline {
    /// Notes a segment with `bytes` bytes of data from `start`.
    pub(super) fn note(&mut self, at: u64, start: u32, bytes: u32) {
        if bytes > 0 {
            self.0.push(Stretch {
                at,
                start,
                end: start.wrapping_add(bytes),
            });
        }
    }

    /// The growth that a reader of the stream saw. Bytes behind a gap count when the gap is filled.
    ///
    /// Stops after 4 GiB, where sequence numbers repeat.
    pub fn progress(&self) -> Progress {
        let mut progress = Vec::new();
        let mut waiting: Vec<Stretch> = Vec::new();
        let mut whole = 0_u32;
        for stretch in &self.0 {
            waiting.push(*stretch);
            let before = whole;
            while let Some(next) = waiting
                .iter()
                .find(|next| next.start <= whole && next.end > whole)
            {
                whole = next.end;
            }
            if whole > before {
                waiting.retain(|stretch| stretch.end > whole);
                progress.push((stretch.at, u64::from(whole)));
            }
        }
        Progress(progress)
    }
}

impl Progress {
    /// When the first `bytes` bytes had all crossed; `None` if they have not.
    pub fn reached(&self, bytes: u64) -> Option<u64> {
        let index = self.0.partition_point(|(_, whole)| *whole < bytes);
        self.0.get(index).map(|(at, _)| *at)
    }

    /// When the last byte crossed; `None` if none did.
    pub fn last(&self) -> Option<u64> {
        self.0.last().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(stretches: &[(u64, u32, u32)]) -> Progress {
        let mut timeline = Timeline::default();
        for (at, start, bytes) in stretches {
            timeline.note(*at, *start, *bytes);
        }
        timeline.progress()
    }

    #[test]
    fn a_byte_has_passed_when_its_segment_has() {
        let progress = progress(&[(10, 0, 100), (20, 100, 50)]);
        assert_eq!(progress.reached(1), Some(10));
        assert_eq!(progress.reached(100), Some(10));
        assert_eq!(progress.reached(101), Some(20));
        assert_eq!(progress.reached(151), None);
        assert_eq!(progress.last(), Some(20));
    }

    #[test]
    fn bytes_behind_a_gap_pass_with_those_that_fill_it() {
        let progress = progress(&[(10, 0, 100), (20, 200, 100), (30, 300, 1), (40, 100, 100)]);
        assert_eq!(progress.reached(150), Some(40));
        assert_eq!(progress.reached(301), Some(40));
    }

    #[test]
    fn bytes_that_come_again_change_nothing() {
        let progress = progress(&[(10, 0, 100), (20, 0, 100), (30, 50, 60)]);
        assert_eq!(progress.reached(100), Some(10));
        assert_eq!(progress.last(), Some(30));
    }

    #[test]
    fn segments_without_data_are_no_progress() {
        assert_eq!(progress(&[(10, 0, 0)]).last(), None);
    }
}
