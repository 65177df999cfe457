//! The record of a load, as `docs/results.md` describes its columns.

use std::time::Duration;

use firstflight_loader::RequestRecord;
use serde::Serialize;

use super::{Job, RelaySummary};
use crate::client::Loaded;
use crate::ledger::{Cookie, Entry};
use crate::origin::Matching;
use crate::relay::RelayReport;
use crate::witness::{Counters, Proof, Statement, examine};

/// One load.
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
    /// Building the lab.
    pub setup_ms: f64,
    /// Every resource of the page.
    pub requests: Vec<Request>,
    /// Every connection, in the order of opening.
    pub connections: Vec<Connection>,
    /// How requests found their answers.
    #[serde(flatten)]
    pub matching: Matching,
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
    /// How the relay did.
    pub relay: RelaySummary,
    /// What the witnesses say.
    pub proof: Proof,
}

/// One resource of the page. Times are ms since navigation start.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    index: usize,
    url: String,
    origin: String,
    connection: Option<u32>,
    queued_ms: Option<f64>,
    connect_start_ms: Option<f64>,
    connect_end_ms: Option<f64>,
    sent_ms: Option<f64>,
    first_byte_ms: Option<f64>,
    end_ms: Option<f64>,
    status: Option<u16>,
    mime: String,
    body_bytes: u64,
    wire_bytes: u64,
    initiator: Option<usize>,
    /// Why it failed.
    error: Option<String>,
}

/// One connection. Times are ms since navigation start.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_field_names, reason = "the results' column is called so")]
pub struct Connection {
    connection: u32,
    origin: String,
    opened_ms: f64,
    syn_payload_bytes: u32,
    cookie: Cookie,
    syn_data_acked: bool,
    syn_retransmits: u32,
    retransmits: u32,
    bytes_down: u64,
    bytes_up: u64,
    closed_ms: Option<f64>,
}

impl Record {
    pub(super) fn new(
        job: &Job,
        loaded: &Loaded,
        report: &RelayReport,
        counters: Counters,
        matching: Matching,
        setup: Duration,
    ) -> Self {
        let statements = statements(loaded, report);
        let proof = examine(job.expectation(), &statements, counters);
        let entries = || {
            statements
                .iter()
                .filter_map(|statement| statement.ledger.as_ref())
        };
        let error = loaded.record.failed.clone().or_else(|| {
            let text = proof.disagreements.join("; ");
            (!proof.ok).then(|| format!("no proof: {text}"))
        });
        let retransmits = |entry: &Entry| u64::from(entry.retransmits + entry.syn_retransmits);
        Self {
            plt_ms: loaded.record.plt.map(ms),
            first_byte_ms: loaded.record.first_byte.map(ms),
            status: if error.is_none() { "ok" } else { "failed" },
            error,
            setup_ms: setup.as_secs_f64() * 1e3,
            requests: loaded
                .record
                .requests
                .iter()
                .map(|request| Request::new(job, loaded, request))
                .collect(),
            connections: connections(job, loaded, &statements),
            matching,
            tfo_offered: proof.ledger.offered,
            tfo_accepted: proof.ledger.accepted,
            bytes_down: entries().map(|entry| entry.bytes_down).sum(),
            bytes_up: entries().map(|entry| entry.bytes_up).sum(),
            retransmits: entries().map(retransmits).sum(),
            relay: RelaySummary::new(report, job.late_bound_ms),
            proof,
        }
    }
}

impl Request {
    fn new(job: &Job, loaded: &Loaded, request: &RequestRecord) -> Self {
        let resource = &job.page.resources[request.resource];
        Self {
            index: request.resource,
            url: resource.url.clone(),
            origin: resource
                .origin()
                .map(|origin| origin.to_string())
                .unwrap_or_default(),
            connection: request.conn.map(|conn| conn.0),
            queued_ms: request.queued.map(ms),
            connect_start_ms: request.connect_start.map(ms),
            connect_end_ms: request.connect_end.map(ms),
            sent_ms: request.sent.map(ms),
            first_byte_ms: request.first_byte.map(ms),
            end_ms: request.end.map(ms),
            status: request.status,
            mime: resource.mime.clone(),
            body_bytes: request.body_bytes,
            wire_bytes: loaded.wire_bytes[request.resource],
            initiator: request.initiator,
            error: request.error.clone(),
        }
    }
}

/// What the relay and each connection's socket say.
fn statements(loaded: &Loaded, report: &RelayReport) -> Vec<Statement> {
    let connections = loaded.record.connections.iter();
    let used = connections.filter_map(|connection| {
        let facts = loaded.sockets.get(&connection.conn.0)?;
        let ledger = facts.key.and_then(|key| report.ledger.get(key)).cloned();
        let tcp_info = facts.info.map(|info| info.syn_data);
        // A connection with a deferred SYN that never got a request was never on the wire.
        let silent = ledger.is_none() && connection.requests == 0;
        (!silent).then_some(Statement {
            connection: connection.conn.0,
            ledger,
            tcp_info,
        })
    });
    used.collect()
}

fn connections(job: &Job, loaded: &Loaded, statements: &[Statement]) -> Vec<Connection> {
    let origins = job.page.origins();
    let of = |id: u32| {
        loaded
            .record
            .connections
            .iter()
            .find(|connection| connection.conn.0 == id)
    };
    let rows = statements.iter().filter_map(|statement| {
        let entry = statement.ledger.as_ref()?;
        let origin = of(statement.connection).and_then(|connection| origins.get(connection.origin));
        let since = |at: u64| ms(at.saturating_sub(loaded.started));
        Some(Connection {
            connection: statement.connection,
            origin: origin.map(ToString::to_string).unwrap_or_default(),
            opened_ms: since(entry.opened),
            syn_payload_bytes: entry.syn_payload_bytes,
            cookie: entry.cookie,
            syn_data_acked: entry.accepted(),
            syn_retransmits: entry.syn_retransmits,
            retransmits: entry.retransmits,
            bytes_down: entry.bytes_down,
            bytes_up: entry.bytes_up,
            closed_ms: entry.closed.map(since),
        })
    });
    rows.collect()
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
