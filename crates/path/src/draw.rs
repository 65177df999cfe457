//! Which origins something happens to.

/// What is drawn: each has dice of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// Whether a middlebox stands on the path to an origin.
    Middlebox,
    /// Whether the client has a cookie for it.
    Cookie,
}

impl Draw {
    /// Whether `origin` is one of a `share`. The answer depends on the seed and the origin's number alone: whoever
    /// asks, and in whatever order, gets the same; one of a small share is one of any larger share.
    pub fn falls_on(self, origin: usize, share: f64, seed: u64) -> bool {
        let number = match self {
            Self::Middlebox => origin as u64 + 1,
            Self::Cookie => !(origin as u64),
        };
        let dice = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        fastrand::Rng::with_seed(seed ^ dice).f64() < share
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn drawn(draw: Draw, share: f64) -> HashSet<usize> {
        (0..1_000)
            .filter(|origin| draw.falls_on(*origin, share, 7))
            .collect()
    }

    #[test]
    fn a_share_is_drawn_and_a_larger_one_holds_it() {
        for draw in [Draw::Middlebox, Draw::Cookie] {
            let (few, many) = (drawn(draw, 0.1), drawn(draw, 0.5));
            assert!(few.is_subset(&many));
            assert!((50..150).contains(&few.len()) && (420..580).contains(&many.len()));
            assert_eq!(drawn(draw, 1.0).len(), 1_000);
        }
    }

    #[test]
    fn one_draw_says_nothing_about_the_other() {
        let both = drawn(Draw::Middlebox, 0.5)
            .intersection(&drawn(Draw::Cookie, 0.5))
            .count();
        assert!((200..300).contains(&both), "{both}");
    }
}
