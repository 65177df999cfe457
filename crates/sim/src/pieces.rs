//! The messages on their way in one direction of a connection. A message counts once all its bytes have arrived.

use std::collections::VecDeque;

/// Messages in order.
#[derive(Debug)]
pub(crate) struct Pieces<T> {
    /// The size on the wire and the content of each.
    queue: VecDeque<(u64, T)>,
    /// Bytes of the first that have arrived.
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
    /// A message of `bytes` was written.
    pub(crate) fn push(&mut self, bytes: u64, content: T) {
        self.queue.push_back((bytes, content));
    }

    /// `bytes` have arrived.
    pub(crate) fn arrive(&mut self, bytes: u64) {
        self.arrived += bytes;
    }

    /// The next message that has arrived whole.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let &(bytes, content) = self.queue.front()?;
        self.arrived = self.arrived.checked_sub(bytes)?;
        self.queue.pop_front();
        Some(content)
    }
}
