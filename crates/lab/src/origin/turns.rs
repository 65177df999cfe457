//! The order in which an HTTP/2 connection sends bodies: the most urgent first (RFC 9218, section 10).
//!
//! hyper passes all bodies to the h2 crate, which sends a frame of each in turn. So a body hands out a part only
//! when it is its turn, and while the connection has few parts that are not written yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use firstflight_load::Priority;

/// Parts that h2 holds at a time: one that it writes, and the next.
const MOST: usize = 2;

/// The bodies of a connection.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<Line>);

/// The order of sending: priority, then place in the line.
type Rank = (Priority, u64);

#[derive(Debug, Default)]
struct Line {
    /// Bodies that have a part to send.
    waiting: BTreeMap<Rank, Waker>,
    /// Number of places given out so far.
    places: u64,
    /// Parts that are not written yet.
    unwritten: usize,
}

/// The place of a body in the line.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    rank: Rank,
}

/// Counts a part that is not written yet.
#[derive(Debug)]
pub(super) struct Unwritten(Arc<Turns>);

impl Turns {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    /// Wakes the body whose turn it is.
    fn call(&self) {
        if self.unwritten < MOST
            && let Some(first) = self.waiting.values().next()
        {
            first.wake_by_ref();
        }
    }
}

impl Turn {
    /// A place at the end of the line.
    pub(super) fn new(turns: &Arc<Turns>, priority: Priority) -> Self {
        let place = turns.line().place();
        Self {
            turns: Arc::clone(turns),
            rank: (priority, place),
        }
    }

    /// Ready when the body may hand out a part. An incremental body then moves to the end of the line.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Unwritten> {
        let mut line = self.turns.line();
        let is_first = line
            .waiting
            .first_key_value()
            .is_none_or(|(first, _)| self.rank <= *first);
        if !is_first || line.unwritten >= MOST {
            line.waiting.insert(self.rank, context.waker().clone());
            return Poll::Pending;
        }
        line.waiting.remove(&self.rank);
        if self.rank.0.is_incremental() {
            self.rank.1 = line.place();
        }
        line.unwritten += 1;
        line.call();
        Poll::Ready(Unwritten(Arc::clone(&self.turns)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut line = self.turns.line();
        line.waiting.remove(&self.rank);
        line.call();
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        let mut line = self.0.line();
        line.unwritten -= 1;
        line.call();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body, and the number of parts left.
    type Left = (Turn, usize);

    /// Polls all bodies until none may hand out more.
    fn ask(bodies: &mut [Option<Left>], order: &mut Vec<usize>) -> Vec<Unwritten> {
        let context = Context::from_waker(Waker::noop());
        let mut given = Vec::new();
        loop {
            let before = given.len();
            for (number, body) in bodies.iter_mut().enumerate() {
                if let Some((turn, left)) = body
                    && *left > 0
                    && let Poll::Ready(part) = turn.poll(&context)
                {
                    order.push(number);
                    given.push(part);
                    *left -= 1;
                }
            }
            if given.len() == before {
                return given;
            }
        }
    }

    /// The order in which the parts of bodies are sent. Each body has a priority, a number of parts, and the number
    /// of parts sent before it joins the line.
    fn order(asked: &[(&str, usize, usize)]) -> Vec<usize> {
        let turns = Arc::new(Turns::default());
        let mut bodies: Vec<Option<Left>> = asked.iter().map(|_| None).collect();
        let (mut order, mut unwritten) = (Vec::new(), Vec::new());
        while order.len() < asked.iter().map(|(_, parts, _)| parts).sum::<usize>() {
            unwritten.extend(ask(&mut bodies, &mut order));
            for (body, &(field, parts, after)) in bodies.iter_mut().zip(asked) {
                if after <= order.len() && body.is_none() {
                    *body = Some((Turn::new(&turns, Priority::parse(field)), parts));
                }
            }
            unwritten.extend(ask(&mut bodies, &mut order));
            assert!(unwritten.len() <= MOST);
            unwritten.pop();
        }
        order
    }

    #[test]
    fn the_most_urgent_goes_first_and_others_wait_for_its_end() {
        // Parts that h2 already holds are sent first.
        assert_eq!(order(&[("u=3", 5, 0), ("u=1", 2, 1)]), [0, 0, 0, 1, 1, 0, 0]);
    }

    #[test]
    fn equals_go_one_after_another_or_in_turn() {
        assert_eq!(order(&[("u=1", 3, 0), ("u=1", 3, 1)]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(order(&[("i", 3, 0), ("i", 3, 0)]), [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_body_that_is_given_up_leaves_the_line() {
        let turns = Arc::new(Turns::default());
        let context = Context::from_waker(Waker::noop());
        let (mut one, mut two) = (
            Turn::new(&turns, Priority::parse("u=0")),
            Turn::new(&turns, Priority::parse("u=5")),
        );
        let parts = [one.poll(&context), one.poll(&context)];
        assert!(parts.iter().all(Poll::is_ready));
        assert!(one.poll(&context).is_pending() && two.poll(&context).is_pending());
        drop(parts);
        assert!(two.poll(&context).is_pending());
        drop(one);
        assert!(two.poll(&context).is_ready());
    }
}
