//! What a load leaves behind. Times are [`Nanos`] since navigation start.

use serde::Serialize;

use crate::{ConnId, Nanos, OriginId};

/// One page loaded once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoadRecord {
    /// Page load time: navigation start to load event. `None` if the load event never came.
    pub plt: Option<Nanos>,
    /// First byte of the document's response, the redirects before it not counted.
    pub first_byte: Option<Nanos>,
    /// When the last request ended, or the load was cut off.
    pub end: Nanos,
    /// Why the load failed: its document did, or it ran out of time before the load event.
    pub failed: Option<String>,
    /// One per resource of the page, in the page's order.
    pub requests: Vec<RequestRecord>,
    /// One per connection, in order of opening.
    pub connections: Vec<ConnectionRecord>,
}

/// One resource's way through the load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// Index of the resource in the page.
    pub resource: usize,
    /// The connection that carried the request, or whose opening failed for it.
    pub conn: Option<ConnId>,
    /// When it joined its origin's queue: discovery and its own delay are over. `None` if never discovered.
    pub queued: Option<Nanos>,
    /// When the connection it used was opened, but not before `queued`; `None` on a reused connection.
    pub connect_start: Option<Nanos>,
    /// When that connection became writable, but not before `queued`; `None` on a reused connection.
    pub connect_end: Option<Nanos>,
    /// When its last byte was handed to the kernel.
    pub sent: Option<Nanos>,
    /// When the first of the response was seen.
    pub first_byte: Option<Nanos>,
    /// When the response was complete; `None` if it never was.
    pub end: Option<Nanos>,
    /// HTTP status of the response.
    pub status: Option<u16>,
    /// Body bytes that arrived.
    pub body_bytes: u64,
    /// How often it was sent again because a reused connection turned out to be dead.
    pub retries: u32,
    /// Why it failed: no response, or not the response that the page has. `None` if it succeeded.
    pub error: Option<String>,
    /// Index of the resource that discovers it.
    pub initiator: Option<usize>,
}

/// One connection's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionRecord {
    /// Its name.
    pub conn: ConnId,
    /// Index into [`Loader::origins`](crate::Loader::origins).
    pub origin: OriginId,
    /// When the loader asked for it.
    pub opened: Nanos,
    /// When it could take a request.
    pub writable: Option<Nanos>,
    /// When it failed or was closed; `None` if it outlived the load.
    pub closed: Option<Nanos>,
    /// Requests it was given.
    pub requests: u32,
}
