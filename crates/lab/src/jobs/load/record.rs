//! The record of a load. `docs/results.md` describes its columns.

use std::collections::HashMap;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use firstflight_load::record::{Connection, Request, failure, ms, status};
use firstflight_loader::RequestRecord;
use serde::Serialize;

use super::Job;
use super::command::Report;
use crate::client::Loaded;
use crate::origin::{Conversation, Matching};
use crate::relay::{RelayReport, RelaySummary};
use crate::traffic::Traffic;
use crate::witness::{Counters, Statement, examine};

/// The record of one load.
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
    /// How long it took to build the lab.
    pub setup_ms: f64,
    /// Every resource of the page.
    pub requests: Vec<Request>,
    /// How many requests found a recorded response, and how.
    #[serde(flatten)]
    pub matching: Matching,
    /// What crossed the wire, with its proof.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// The relay's summary.
    pub relay: RelaySummary,
    /// The exit code, output and times of a foreign client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Report>,
    /// The foreign client's own result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
}

impl Record {
    pub(super) fn new(
        job: &Job,
        loaded: &Loaded,
        report: &RelayReport,
        counters: Counters,
        matching: Matching,
        setup: Duration,
        conversations: &[Arc<Conversation>],
    ) -> Self {
        let statements = statements(loaded, report, conversations);
        let proof = examine(&job.promise(), &statements, iter::empty(), counters);
        let error = failure(loaded.record.failed.as_deref(), &proof.disagreements);
        let entries = statements
            .iter()
            .filter_map(|statement| Some(&statement.ledger.as_ref()?.seen));
        Self {
            plt_ms: loaded.record.plt.map(ms),
            first_byte_ms: loaded.record.first_byte.map(ms),
            status: status(error.as_ref()),
            error,
            setup_ms: setup.as_secs_f64() * 1e3,
            requests: loaded
                .record
                .requests
                .iter()
                .map(|noted| request(job, loaded, noted))
                .collect(),
            matching,
            traffic: Traffic {
                connections: connections(job, loaded, &statements),
                totals: entries.collect(),
                proof,
            },
            relay: RelaySummary::new(report, job.lab.late_bound_ms),
            client: None,
            result: None,
        }
    }
}

fn request(job: &Job, loaded: &Loaded, noted: &RequestRecord) -> Request {
    let resource = &job.page.resources[noted.resource];
    let origin = resource.origin().map(|origin| origin.to_string());
    let wire_bytes = loaded.wire_bytes[noted.resource];
    Request::new(
        noted,
        &resource.url,
        &origin.unwrap_or_default(),
        &resource.mime,
        wire_bytes,
    )
}

/// What the relay, each connection's socket and its server report.
fn statements(loaded: &Loaded, report: &RelayReport, conversations: &[Arc<Conversation>]) -> Vec<Statement> {
    // Of connections with the same addresses and ports the last belongs to the load: priming came before.
    let accepted: HashMap<_, _> = conversations
        .iter()
        .map(|one| ((one.protocol(), one.key), one))
        .collect();
    let connections = loaded.record.connections.iter();
    let used = connections.filter_map(|connection| {
        let facts = loaded.sockets.get(&connection.conn.0)?;
        let ledger = facts
            .key
            .and_then(|key| report.ledger.get(facts.protocol, key))
            .cloned();
        let tcp_info = facts.info.map(|info| info.syn_data);
        // A connection whose deferred SYN never got a request was never on the wire.
        let silent = ledger.is_none() && connection.requests == 0;
        (!silent).then_some(Statement {
            connection: connection.conn.0,
            ledger,
            tcp_info,
            server: facts
                .key
                .and_then(|key| accepted.get(&(facts.protocol, key)))
                .map(|one| one.server()),
            client: facts.client,
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
        let origin = origin.map(ToString::to_string).unwrap_or_default();
        Some(Connection::new(
            statement.connection,
            origin,
            &entry.seen,
            statement.server.as_ref().and_then(|server| server.tls),
            loaded.started,
        ))
    });
    rows.collect()
}
