//! The server's side of a connection: HTTP/1.1 as the lab's servers serve it.
//!
//! A request that has arrived whole is answered after its server time, with one write of header and body. Without
//! keep-alive the server then closes the connection. It answers requests on one connection one by one.

use std::collections::VecDeque;

use firstflight_path::Nanos;

use crate::channel::Channel;
use crate::client::TOO_EARLY_BYTES;
use crate::page::Context;

/// The server's side of one connection.
#[derive(Debug, Default)]
pub(crate) struct Server {
    /// Requests that are arriving or being answered: the resource, and the bytes still to come.
    requests: VecDeque<(usize, u64)>,
    /// Whether the first of them is early data that the server answers with 425.
    is_refused: bool,
    /// When the answer to the first of them is due.
    due: Option<Nanos>,
    has_closed: bool,
}

impl Server {
    /// The client has begun to send a request. `is_refused`: whether the server answers it with 425.
    pub(crate) fn expect(&mut self, resource: usize, bytes: u64, is_refused: bool) {
        self.is_refused |= is_refused;
        self.requests.push_back((resource, bytes));
    }

    /// When [`Self::answer`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        self.due
    }

    /// Bytes have arrived.
    pub(crate) fn read(&mut self, context: Context<'_>, channel: &mut Channel<'_>) {
        let now = context.now;
        let mut bytes = channel.read(now).data;
        for (_, left) in &mut self.requests {
            let taken = bytes.min(*left);
            *left -= taken;
            bytes -= taken;
        }
        self.begin(context, channel);
        // The server closes after the client has closed.
        if channel.socket.is_at_end() && self.requests.is_empty() && !self.has_closed {
            self.has_closed = true;
            channel.socket.close(now);
        }
    }

    fn begin(&mut self, context: Context<'_>, channel: &mut Channel<'_>) {
        if self.due.is_none()
            && let Some(&(resource, 0)) = self.requests.front()
        {
            let wait = if self.is_refused {
                0
            } else {
                context.exchange(resource).wait
            };
            self.due = Some(context.now + wait);
            self.answer(context, channel);
        }
    }

    /// Writes the answer that is due.
    pub(crate) fn answer(&mut self, context: Context<'_>, channel: &mut Channel<'_>) {
        let now = context.now;
        if self.due.is_none_or(|due| due > now) || self.has_closed {
            return;
        }
        self.due = None;
        let Some((resource, _)) = self.requests.pop_front() else {
            return;
        };
        let exchange = context.exchange(resource);
        let bytes = if std::mem::take(&mut self.is_refused) {
            TOO_EARLY_BYTES
        } else {
            context.header_bytes(exchange) + exchange.body_bytes
        };
        channel.write(now, bytes);
        if !context.job.load.keep_alive {
            self.has_closed = true;
            return channel.close(now);
        }
        self.begin(context, channel);
    }
}
