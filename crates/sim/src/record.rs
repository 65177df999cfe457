//! The record of a simulated load, with the keys of the lab's record.

use firstflight_load::ledger::Entry;
use firstflight_load::record::{Carried, Connection, Request, Totals, failure, ms, status};
use firstflight_loader::{ConnectionRecord, RequestRecord};
use serde::Serialize;

use crate::job::{Job, Keep};
use crate::load::{Loaded, START};
use crate::page::SimPage;
use crate::proof::{Proof, proof};

/// One load. Times are ms since navigation start.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// Page load time; `None` when the load event never came.
    pub plt_ms: Option<f64>,
    /// When the first byte of the document's response arrived.
    pub first_byte_ms: Option<f64>,
    /// `ok` or `failed`.
    pub status: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// Every resource of the page; empty with [`Keep::Loads`].
    pub requests: Vec<Request>,
    /// Every connection that sent a packet; empty with [`Keep::Loads`].
    pub connections: Vec<Connection>,
    /// Resources of the page.
    pub request_count: u64,
    /// Resources without a complete response.
    pub failed_requests: u64,
    /// Connections that sent a packet.
    pub connection_count: u64,
    /// Sums over the connections.
    #[serde(flatten)]
    pub totals: Totals,
    /// Always 0: the loader requests only resources of the page.
    pub unmatched_requests: u64,
    /// The proof by the ledger.
    pub proof: Proof,
    /// The counts of the path.
    pub relay: Relay,
}

/// The counts of the path, in the form of the lab's relay. It is never late.
#[derive(Debug, Clone, Copy, Serialize)]
#[expect(missing_docs, reason = "named as in the lab's answer")]
pub struct Relay {
    #[serde(flatten)]
    pub carried: Carried,
    pub late: bool,
    pub late_max_ms: f64,
    pub late_p99_ms: f64,
}

impl Record {
    pub(crate) fn new(page: &SimPage, job: &Job, loaded: &Loaded) -> Self {
        let proof = proof(page, job, loaded);
        let error = failure(loaded.record.failed.as_deref(), &proof.disagreements);
        let requests = &loaded.record.requests;
        let has_failed = |request: &&RequestRecord| request.error.is_some() || request.status.is_none();
        let rows = if job.keep == Keep::All {
            requests.as_slice()
        } else {
            &[]
        };
        Self {
            plt_ms: loaded.record.plt.map(ms),
            first_byte_ms: loaded.record.first_byte.map(ms),
            status: status(error.as_ref()),
            error,
            requests: rows.iter().map(|noted| request(page, loaded, noted)).collect(),
            connections: if job.keep == Keep::All {
                connections(page, loaded)
            } else {
                Vec::new()
            },
            request_count: requests.len() as u64,
            failed_requests: requests.iter().filter(has_failed).count() as u64,
            connection_count: proof.ledger.connections,
            totals: loaded.used().map(|(_, entry)| entry).collect(),
            unmatched_requests: 0,
            proof,
            relay: Relay {
                carried: loaded.carried,
                late: false,
                late_max_ms: 0.0,
                late_p99_ms: 0.0,
            },
        }
    }
}

fn request(page: &SimPage, loaded: &Loaded, noted: &RequestRecord) -> Request {
    let exchange = &page.resources[noted.resource];
    let wire_bytes = loaded.wire_bytes[noted.resource];
    Request::new(noted, &exchange.url, &exchange.origin, &exchange.mime, wire_bytes)
}

fn connections(page: &SimPage, loaded: &Loaded) -> Vec<Connection> {
    let origins = page.plan.origins();
    let row = |(connection, entry): (&ConnectionRecord, &Entry)| {
        let origin = origins[connection.origin].to_string();
        let server = loaded.servers[connection.conn.0 as usize].as_ref();
        let tls = server.and_then(|server| server.tls);
        Connection::new(connection.conn.0, origin, entry, tls, START)
    };
    loaded.used().map(row).collect()
}
