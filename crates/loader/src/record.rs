//! The record of a load. Times are [`Nanos`] since navigation start.

use serde::Serialize;

use crate::{ConnId, Nanos, OriginId};

/// One page loaded once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoadRecord {
    /// Page load time: navigation start to load event. `None` if the load event never came.
    pub plt: Option<Nanos>,
    /// When the first byte of the document's response arrived. Responses that redirect do not count.
    pub first_byte: Option<Nanos>,
    /// When the last request ended, or the load was stopped.
    pub end: Nanos,
    /// Why the load failed: the document failed, or the load timed out before the load event.
    pub failed: Option<String>,
    /// One per resource of the page, in the page's order.
    pub requests: Vec<RequestRecord>,
    /// One per connection, in order of opening.
    pub connections: Vec<ConnectionRecord>,
}

/// The request for one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// Index of the resource in the page.
    pub resource: usize,
    /// The connection that carried the request, or whose failed opening made it fail.
    pub conn: Option<ConnId>,
    /// When it joined its origin's queue, after its own delay. `None` if it was never discovered.
    pub queued: Option<Nanos>,
    /// When the connection it used was opened, but not before `queued`; `None` on a reused connection.
    pub connect_start: Option<Nanos>,
    /// When that connection became writable, but not before `queued`; `None` on a reused connection.
    pub connect_end: Option<Nanos>,
    /// When its last byte was handed to the kernel.
    pub sent: Option<Nanos>,
    /// When the first byte of the response was seen.
    pub first_byte: Option<Nanos>,
    /// When the response was complete; `None` if it never was.
    pub end: Option<Nanos>,
    /// HTTP status of the response.
    pub status: Option<u16>,
    /// Body bytes that arrived.
    pub body_bytes: u64,
    /// How often it was sent again: after 425, after a reused connection was found closed, or after QUIC failed.
    pub retries: u32,
    /// Why it failed: no response, or not the response that the page has. `None` if it succeeded.
    pub error: Option<String>,
    /// Index of the resource that discovers it.
    pub initiator: Option<usize>,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionRecord {
    /// Its number.
    pub conn: ConnId,
    /// Index into [`Loader::origins`](crate::Loader::origins).
    pub origin: OriginId,
    /// When the loader asked for it.
    pub opened: Nanos,
    /// When it could take a request.
    pub writable: Option<Nanos>,
    /// When it failed or was closed; `None` if it was open at the end of the load.
    pub closed: Option<Nanos>,
    /// Requests it was given.
    pub requests: u32,
}
