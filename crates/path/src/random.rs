//! Random numbers by purpose: every use draws from its own stream.
//!
//! A stream is derived by a hash from a seed, a [`Purpose`] and indices (which link, which connection, which
//! direction). No two uses share a stream, so how many numbers one use draws changes nothing for another. The
//! generator is PCG XSL 128/64 (MCG) by O'Neill (2014); the `rand_pcg` crate guarantees its output across versions
//! and platforms. Neither hash nor generator is cryptographic.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The purpose of a random stream. The number is part of the hash: never change or reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Purpose {
    /// Whether a packet is lost independently; by flow and direction.
    Loss = 1,
    /// The Gilbert-Elliott chain; by link and direction.
    LossBursts = 2,
    /// A packet's additional delay; by flow and direction.
    Jitter = 3,
    /// Whether a packet arrives twice; by flow and direction.
    Duplicate = 4,
    /// PIE's early drops; by link and direction.
    Pie = 5,
    /// Whether a middlebox stands on the path to an origin; by origin.
    Middlebox = 6,
    /// Whether the client has a cookie for an origin; by origin.
    Cookie = 7,
    /// The phase of the kernel's tick and timer wheel when a load begins.
    TimerWheel = 8,
    /// Which of the servers behind an address gave the client its cookie; by host.
    PrimingServer = 9,
    /// Which of the servers behind an address a connection reaches; by host and connection.
    Server = 10,
    /// A server's Fast Open key; by its number and its address.
    FastOpenKey = 11,
    /// The SYNs of a flood.
    Flood = 12,
    /// Flows that are replayed on a kernel, and the fates of their packets.
    Replay = 13,
}

impl Purpose {
    /// Whether `index`, such as an origin, belongs to a share of `share`. The answer depends on the seed and the
    /// index alone, not on time or order. An index in a small share is also in any larger share.
    pub fn falls_on(self, index: usize, share: f64, seed: u64) -> bool {
        Stream::new(seed, self, &[index as u64]).is_below(share)
    }
}

/// The increment of `SplitMix64` (Steele, Lea and Flood 2014), the fractional part of the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Initial values of the two halves of a generator's seed: the first 128 bits of the fractional part of pi.
const HALVES: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// A stream of random numbers.
///
/// ```
/// use firstflight_path::{Purpose, Stream};
///
/// let first = |seed, link| Stream::new(seed, Purpose::Pie, &[link]).next_u64();
/// assert_eq!(first(7, 0), first(7, 0));
/// assert_ne!(first(7, 0), first(7, 1));
/// ```
#[derive(Debug, Clone)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of `seed` for `purpose`; `indices` tell several streams of one purpose apart.
    pub fn new(seed: u64, purpose: Purpose, indices: &[u64]) -> Self {
        let half = |start| {
            let words = [seed, purpose as u64].into_iter().chain(indices.iter().copied());
            words.fold(start, absorb)
        };
        let [low, high] = HALVES.map(half);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        Self(Pcg64Mcg::from_seed(bytes))
    }

    /// The next number: 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next number, in `0.0..1.0` and in steps of 2^-53.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// The next number in 0..`bound`; 0 if `bound` is 0. It takes one word, so the k-th number comes from the k-th
    /// word (Lemire 2019, without the rejection: the bias is at most `bound` / 2^64).
    pub fn next_below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether the next number in `0.0..1.0` is below `share`.
    pub fn is_below(&mut self, share: f64) -> bool {
        self.next_f64() < share
    }
}

/// Mixes a word into a hash with `SplitMix64`'s step and finaliser: one-to-one in the word and in the hash.
fn absorb(hash: u64, word: u64) -> u64 {
    let mut mixed = (hash ^ word).wrapping_add(GOLDEN);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    /// Every purpose. The match makes the compiler ask for a new one here.
    fn purposes() -> Vec<Purpose> {
        use Purpose::{
            Cookie, Duplicate, FastOpenKey, Flood, Jitter, Loss, LossBursts, Middlebox, Pie, PrimingServer,
            Replay, Server, TimerWheel,
        };
        let next = |purpose| match purpose {
            Loss => Some(LossBursts),
            LossBursts => Some(Jitter),
            Jitter => Some(Duplicate),
            Duplicate => Some(Pie),
            Pie => Some(Middlebox),
            Middlebox => Some(Cookie),
            Cookie => Some(TimerWheel),
            TimerWheel => Some(PrimingServer),
            PrimingServer => Some(Server),
            Server => Some(FastOpenKey),
            FastOpenKey => Some(Flood),
            Flood => Some(Replay),
            Replay => None,
        };
        std::iter::successors(Some(Loss), |purpose| next(*purpose)).collect()
    }

    /// Seeds and indices that might collide: small, neighbouring, complements of each other, single bits.
    fn awkward() -> Vec<u64> {
        let small = 0..20;
        let bits = (5..64).step_by(7).map(|bit| 1 << bit);
        let words = small
            .chain(bits)
            .chain(purposes().into_iter().map(|purpose| purpose as u64));
        let words: HashSet<u64> = words.flat_map(|word| [word, !word]).collect();
        words.into_iter().collect()
    }

    #[test]
    fn no_two_seeds_purposes_or_indices_share_a_stream() {
        let mut seen = HashMap::new();
        for seed in awkward() {
            for purpose in purposes() {
                let one = awkward().into_iter().map(|index| vec![index]);
                let two = (0..8).flat_map(|a| (0..8).map(move |b| vec![a, b]));
                let four = (0..8).map(|bits| vec![6, bits & 1, bits >> 1 & 1, bits >> 2]);
                for indices in one.chain(two).chain(four).chain([vec![]]) {
                    let mut stream = Stream::new(seed, purpose, &indices);
                    // Two numbers of each: this also finds a stream that begins one number into another.
                    for word in [stream.next_u64(), stream.next_u64()] {
                        let other = seen.insert(word, (seed, purpose, indices.clone()));
                        assert_eq!(other, None, "{seed} {purpose:?} {indices:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn streams_of_neighbouring_seeds_purposes_and_indices_are_not_correlated() {
        let first = |seed, purpose, index| Stream::new(seed, purpose, &[index]).next_f64() - 0.5;
        let count = 20_000;
        for other in [
            |seed: u64| (seed + 1, Purpose::Loss, 0_u64),
            |seed: u64| (!seed, Purpose::Loss, 0_u64),
            |seed: u64| (seed, Purpose::Jitter, 0_u64),
            |seed: u64| (seed, Purpose::TimerWheel, 0_u64),
            |seed: u64| (seed, Purpose::Loss, 1_u64),
        ] {
            let covariance = (0..count)
                .map(|seed| {
                    let (other_seed, purpose, index) = other(seed);
                    first(seed, Purpose::Loss, 0) * first(other_seed, purpose, index)
                })
                .sum::<f64>()
                / count as f64;
            // A uniform number has variance 1/12; the tolerance is five standard errors.
            assert!((12.0 * covariance).abs() < 5.0 / f64::from(count as u32).sqrt());
        }
    }

    #[test]
    fn the_first_words_are_those_that_they_have_always_been() {
        let words = |seed, purpose, indices: &[u64]| {
            let mut stream = Stream::new(seed, purpose, indices);
            [stream.next_u64(), stream.next_u64()]
        };
        assert_eq!(
            words(1, Purpose::Loss, &[6, 0, 0, 0]),
            [9_242_059_390_410_846_504, 12_441_809_604_321_677_837]
        );
        assert_eq!(
            words(1, Purpose::TimerWheel, &[]),
            [813_961_078_326_211_943, 5_912_941_428_042_560_668]
        );
        assert_eq!(
            words(u64::MAX, Purpose::Flood, &[9]),
            [9_140_131_486_658_924_189, 8_315_336_178_394_414_504]
        );
    }

    #[test]
    fn a_share_is_drawn_and_a_larger_one_holds_it() {
        let drawn = |purpose: Purpose, share| -> HashSet<usize> {
            (0..1_000)
                .filter(|origin| purpose.falls_on(*origin, share, 7))
                .collect()
        };
        for purpose in [Purpose::Middlebox, Purpose::Cookie] {
            let (few, many) = (drawn(purpose, 0.1), drawn(purpose, 0.5));
            assert!(few.is_subset(&many));
            assert!((50..150).contains(&few.len()) && (420..580).contains(&many.len()));
            assert_eq!(drawn(purpose, 1.0).len(), 1_000);
        }
        let (middleboxes, cookies) = (drawn(Purpose::Middlebox, 0.5), drawn(Purpose::Cookie, 0.5));
        let both = middleboxes.intersection(&cookies).count();
        assert!((200..300).contains(&both), "{both}");
    }

    #[test]
    fn bounded_numbers_are_uniform_and_below_their_bound() {
        let mut stream = Stream::new(3, Purpose::Server, &[]);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[stream.next_below(7) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (9_500..10_500).contains(count)),
            "{counts:?}"
        );
        assert_eq!((stream.next_below(0), stream.next_below(1)), (0, 0));
    }
}
