//! The record of a simulated load: the keys of the lab's answer.

use firstflight_load::record::{Request, failure, ms, status};
use firstflight_loader::RequestRecord;
use firstflight_path::Action;
use firstflight_tcp::FastOpen;
use serde::Serialize;

use crate::job::{Job, Keep};
use crate::ledger::Entry;
use crate::load::{Loaded, START};
use crate::page::SimPage;
use crate::proof::{Proof, proof};

/// One load. Times are ms since navigation start.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// Page load time; `None` when the load event never came.
    pub plt_ms: Option<f64>,
    /// First byte of the document's response.
    pub first_byte_ms: Option<f64>,
    /// `ok` or `failed`.
    pub status: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// Every resource of the page; empty where the job keeps loads only.
    pub requests: Vec<Request>,
    /// Every connection that was on the wire; empty where the job keeps loads only.
    pub connections: Vec<Connection>,
    /// Resources of the page.
    pub request_count: u64,
    /// ... without a complete response.
    pub failed_requests: u64,
    /// Connections that were on the wire.
    pub connection_count: u64,
    /// Connections whose SYN carried a cookie and data.
    pub tfo_offered: u64,
    /// ... whose data the SYN-ACK acknowledged.
    pub tfo_accepted: u64,
    /// Bytes of IP packets that reached the client.
    pub bytes_down: u64,
    /// Bytes of IP packets the client sent.
    pub bytes_up: u64,
    /// Segments sent again, SYNs included.
    pub retransmits: u64,
    /// Always 0: the loader asks for nothing that the page does not have.
    pub unmatched_requests: u64,
    /// What the ledger says.
    pub proof: Proof,
    /// What the path did.
    pub relay: Relay,
}

/// One connection.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "the columns of docs/results.md")]
pub struct Connection {
    pub connection: u32,
    pub origin: String,
    pub opened_ms: f64,
    pub syn_payload_bytes: u32,
    pub cookie: &'static str,
    pub syn_data_acked: bool,
    pub new_cookie: bool,
    pub syn_retransmits: u32,
    pub retransmits: u32,
    pub bytes_down: u64,
    pub bytes_up: u64,
    pub closed_ms: Option<f64>,
    pub interfered: Option<Action>,
}

/// What the path did. It is never late.
#[derive(Debug, Clone, Copy, Serialize)]
#[expect(missing_docs, reason = "named as in the lab's answer")]
pub struct Relay {
    pub packets: u64,
    pub dropped: u64,
    pub lost: u64,
    pub taken: u64,
    pub duplicated: u64,
    pub marked: u64,
    pub late: bool,
    pub late_max_ms: f64,
    pub late_p99_ms: f64,
}

impl Record {
    pub(crate) fn new(page: &SimPage, job: &Job, loaded: &Loaded) -> Self {
        let used = || loaded.ledger.iter().filter(|entry| entry.opened.is_some());
        let count = |what: fn(&Entry) -> bool| used().filter(|entry| what(entry)).count() as u64;
        let sum = |what: fn(&Entry) -> u64| used().map(what).sum();
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
            connection_count: used().count() as u64,
            tfo_offered: count(Entry::offered),
            tfo_accepted: count(Entry::accepted),
            bytes_down: sum(|entry| entry.bytes_down),
            bytes_up: sum(|entry| entry.bytes_up),
            retransmits: sum(|entry| u64::from(entry.retransmits + entry.syn_retransmits)),
            unmatched_requests: 0,
            proof,
            relay: Relay {
                packets: loaded.packets,
                dropped: loaded.drops.full,
                lost: loaded.drops.lost,
                taken: loaded.drops.taken,
                duplicated: loaded.duplicated,
                marked: loaded.marked,
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
    let rows = loaded.record.connections.iter().zip(&loaded.ledger);
    rows.filter_map(|(connection, entry)| {
        Some(Connection {
            connection: connection.conn.0,
            origin: origins[connection.origin].to_string(),
            opened_ms: ms(entry.opened? - START),
            syn_payload_bytes: entry.syn_payload_bytes,
            cookie: match entry.cookie {
                FastOpen::Absent => "none",
                FastOpen::Request => "requested",
                FastOpen::Cookie(_) => "sent",
            },
            syn_data_acked: entry.accepted(),
            new_cookie: entry.new_cookie.is_some(),
            syn_retransmits: entry.syn_retransmits,
            retransmits: entry.retransmits,
            bytes_down: entry.bytes_down,
            bytes_up: entry.bytes_up,
            closed_ms: entry.closed.map(|at| ms(at - START)),
            interfered: entry.interfered,
        })
    })
    .collect()
}
