//! The rows of a load's record: the columns of `docs/results.md`. Times are ms since navigation start.

use firstflight_loader::{Nanos, RequestRecord};
use serde::Serialize;

/// One resource of the page.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "the columns of docs/results.md")]
pub struct Request {
    pub index: usize,
    pub url: String,
    pub origin: String,
    pub connection: Option<u32>,
    pub queued_ms: Option<f64>,
    pub connect_start_ms: Option<f64>,
    pub connect_end_ms: Option<f64>,
    pub sent_ms: Option<f64>,
    pub first_byte_ms: Option<f64>,
    pub end_ms: Option<f64>,
    pub status: Option<u16>,
    pub mime: String,
    pub body_bytes: u64,
    pub wire_bytes: u64,
    pub initiator: Option<usize>,
    pub error: Option<String>,
}

impl Request {
    /// The row of what the loader noted of a request.
    #[must_use]
    pub fn new(noted: &RequestRecord, url: &str, origin: &str, mime: &str, wire_bytes: u64) -> Self {
        Self {
            index: noted.resource,
            url: url.to_owned(),
            origin: origin.to_owned(),
            connection: noted.conn.map(|conn| conn.0),
            queued_ms: noted.queued.map(ms),
            connect_start_ms: noted.connect_start.map(ms),
            connect_end_ms: noted.connect_end.map(ms),
            sent_ms: noted.sent.map(ms),
            first_byte_ms: noted.first_byte.map(ms),
            end_ms: noted.end.map(ms),
            status: noted.status,
            mime: mime.to_owned(),
            body_bytes: noted.body_bytes,
            wire_bytes,
            initiator: noted.initiator,
            error: noted.error.clone(),
        }
    }
}

/// Why a load is no result: what the loader says, else that the proof failed.
pub fn failure(failed: Option<&str>, disagreements: &[String]) -> Option<String> {
    match failed {
        Some(failed) => Some(failed.to_owned()),
        None if disagreements.is_empty() => None,
        None => Some(format!("no proof: {}", disagreements.join("; "))),
    }
}

/// What a record says of a load that has failed for this reason, or for none.
pub fn status(error: Option<&String>) -> &'static str {
    if error.is_none() { "ok" } else { "failed" }
}

/// A span of time in ms.
pub fn ms(span: Nanos) -> f64 {
    span as f64 / 1e6
}

/// From `started` to `at`, ms; negative for what was before.
pub fn since(started: Nanos, at: Nanos) -> f64 {
    at.cast_signed().wrapping_sub(started.cast_signed()) as f64 / 1e6
}
