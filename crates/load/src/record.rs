//! The rows of a load's record: the columns in `docs/results.md`. Times are ms since navigation start.

use firstflight_loader::{Nanos, RequestRecord};
use firstflight_path::{Action, Drops, Protocol};
use serde::Serialize;

use crate::TlsVersion;
use crate::ledger::{Cookie, Entry};
use crate::promise::{EarlyData, Secured};

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
    /// The row for a request of the loader's record.
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

/// One connection.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "the columns of docs/results.md")]
pub struct Connection {
    pub connection: u32,
    pub origin: String,
    pub protocol: Protocol,
    pub opened_ms: f64,
    pub syn_payload_bytes: u32,
    pub cookie: Cookie,
    pub syn_data_acked: bool,
    pub new_cookie: bool,
    pub syn_retransmits: u32,
    pub retransmits: u32,
    pub bytes_down: u64,
    pub bytes_up: u64,
    pub closed_ms: Option<f64>,
    pub interfered: Option<Action>,
    pub first_flight_bytes: u32,
    pub tls: Option<TlsVersion>,
    pub resumed: Option<bool>,
    pub early_data: EarlyData,
    pub early_data_bytes: u32,
}

impl Connection {
    /// The row for a ledger entry and the TLS that the server's end reports. `started`: the time that is 0 in the
    /// row.
    #[must_use]
    pub fn new(connection: u32, origin: String, seen: &Entry, tls: Option<Secured>, started: Nanos) -> Self {
        let early_data_bytes = seen.hello.map_or(0, |hello| hello.early_data_bytes);
        Self {
            connection,
            origin,
            protocol: seen.protocol,
            opened_ms: since(started, seen.opened),
            syn_payload_bytes: seen.syn_payload_bytes,
            cookie: seen.cookie,
            syn_data_acked: seen.accepted(),
            new_cookie: seen.new_cookie != 0,
            syn_retransmits: seen.syn_retransmits,
            retransmits: seen.retransmits,
            bytes_down: seen.bytes_down,
            bytes_up: seen.bytes_up,
            closed_ms: seen.closed.map(|at| since(started, at)),
            interfered: seen.interfered,
            first_flight_bytes: seen.opening_bytes,
            tls: tls.map(|tls| tls.version),
            resumed: tls.map(|tls| tls.is_resumed),
            early_data: match tls {
                Some(tls) => tls.early_data,
                None if early_data_bytes > 0 => EarlyData::Sent,
                None => EarlyData::None,
            },
            early_data_bytes,
        }
    }
}

/// Sums over all connections.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Totals {
    /// Connections whose SYN carried data.
    pub tfo_offered: u64,
    /// Connections whose SYN carried data that the SYN-ACK acknowledged.
    pub tfo_accepted: u64,
    /// Bytes of IP packets that reached the client.
    pub bytes_down: u64,
    /// Bytes of IP packets the client sent.
    pub bytes_up: u64,
    /// Retransmitted segments, SYNs included.
    pub retransmits: u64,
}

impl<'a> FromIterator<&'a Entry> for Totals {
    fn from_iter<T: IntoIterator<Item = &'a Entry>>(entries: T) -> Self {
        let mut totals = Self::default();
        for entry in entries {
            totals.tfo_offered += u64::from(entry.offered());
            totals.tfo_accepted += u64::from(entry.accepted());
            totals.bytes_down += entry.bytes_down;
            totals.bytes_up += entry.bytes_up;
            totals.retransmits += u64::from(entry.retransmits + entry.syn_retransmits);
        }
        totals
    }
}

/// Counts of the path.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Carried {
    /// Packets that entered it (the simulator), or were delivered (the lab).
    pub packets: u64,
    /// Packets dropped by full queues.
    pub dropped: u64,
    /// Packets dropped by the loss model.
    pub lost: u64,
    /// Segments dropped by a rule or a middlebox.
    pub taken: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Packets marked instead of dropped (RFC 3168).
    pub marked: u64,
}

impl Carried {
    /// The counts of a network.
    #[must_use]
    pub fn new(packets: u64, drops: Drops, duplicated: u64, marked: u64) -> Self {
        Self {
            packets,
            dropped: drops.full,
            lost: drops.lost,
            taken: drops.taken,
            duplicated,
            marked,
        }
    }
}

/// Why a load is not a result: the loader's reason, else that the proof failed.
pub fn failure(failed: Option<&str>, disagreements: &[String]) -> Option<String> {
    match failed {
        Some(failed) => Some(failed.to_owned()),
        None if disagreements.is_empty() => None,
        None => Some(format!("no proof: {}", disagreements.join("; "))),
    }
}

/// The `status` of a load's record, with this error or none.
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
