//! What is on its way in one direction of a connection, piece by piece: a piece counts when it is whole.

use std::collections::VecDeque;

/// Pieces in order, and what they bring.
#[derive(Debug)]
pub(crate) struct Pieces<T> {
    /// Bytes on the wire, and what they bring.
    queue: VecDeque<(u64, T)>,
    /// Bytes that have arrived of the first.
    arrived: u64,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            arrived: 0,
        }
    }
}

impl<T: Copy> Pieces<T> {
    /// `bytes` are written that bring `content`.
    pub(crate) fn push(&mut self, bytes: u64, content: T) {
        self.queue.push_back((bytes, content));
    }

    /// `bytes` have arrived.
    pub(crate) fn arrive(&mut self, bytes: u64) {
        self.arrived += bytes;
    }

    /// The next that is whole.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let &(bytes, content) = self.queue.front()?;
        self.arrived = self.arrived.checked_sub(bytes)?;
        self.queue.pop_front();
        Some(content)
    }
}
