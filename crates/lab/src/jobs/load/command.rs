//! A page loaded by a program other than the built-in client, and the record of its load.
//!
//! The program need not report times. So the record takes its requests from the servers, and their times from the
//! packets at the client's end. The page load time runs from the first SYN to the last byte of data, unless the
//! program measures itself and leaves a result.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use firstflight_load::record::{Request, since, status};
use firstflight_path::Protocol;
use nix::libc;
use serde::{Deserialize, Serialize};

use super::{Job, Record};
use crate::LabError;
use crate::lab::Seen;
use crate::ledger::Progress;
use crate::namespace::Containment;
use crate::origin::{self, Exchange};
use crate::program::{Ending, Program, Streams};
use crate::relay::RelaySummary;
use crate::traffic::{Line, Traffic, lines};

/// A program that loads the page.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Name or path of the program, then its arguments.
    argv: Vec<String>,
    /// Variables to add to the lab's own environment.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The text of its standard input.
    #[serde(default)]
    input: String,
    /// Exit codes that mean success.
    #[serde(default = "zero")]
    accepts: Vec<i32>,
    /// The file in which it leaves its own result, a JSON object.
    #[serde(default)]
    result: Option<PathBuf>,
    /// Files and folders of the host that it may read besides the system's.
    #[serde(default)]
    reads: Vec<PathBuf>,
    /// Files that it leaves in the lab's shared memory, and where to copy each.
    #[serde(default)]
    keeps: BTreeMap<PathBuf, PathBuf>,
}

fn zero() -> Vec<i32> {
    vec![0]
}

/// The result of the program.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Its exit code; 128 + n when signal n killed it.
    pub exit_code: i32,
    /// Beginning and end of its standard output and error, together.
    pub said: String,
    /// How long it ran.
    pub elapsed_ms: f64,
    /// The time from which all times count, ns of `CLOCK_MONOTONIC`.
    pub started_ns: u64,
}

/// The program's own result; only the keys that the lab reads.
#[derive(Debug, Clone, Default, Deserialize)]
struct OwnResult {
    /// Navigation start, ns of `CLOCK_MONOTONIC`. All times of the record count from it.
    started_ns: Option<u64>,
    plt_ms: Option<f64>,
    first_byte_ms: Option<f64>,
    /// Why the load failed.
    error: Option<String>,
}

/// A program that has ended, with its result.
#[derive(Debug)]
pub(super) struct Ran {
    ending: Ending,
    result: Option<serde_json::Value>,
    own: OwnResult,
    /// Why its result cannot be used.
    problem: Option<BadResult>,
}

/// Why the program's own result cannot be used.
#[derive(Debug, thiserror::Error)]
enum BadResult {
    #[error("the client left no result: {0}")]
    Missing(#[from] io::Error),
    #[error("the client's result is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// The largest result that is read, bytes. A page of a thousand requests has a large one.
const LONGEST_RESULT: u64 = 256 << 20;

impl Command {
    /// Runs the program until it ends, at most for `limit`, in a lab with its services at an address.
    pub(super) fn run(&self, limit: Duration, services: IpAddr) -> Result<Ran, LabError> {
        let program = Program {
            argv: self.argv.clone(),
            env: origin::service_variables(services)
                .chain(self.env.clone())
                .collect(),
            folder: None,
        };
        let containment = Containment::Client(self.reads.clone());
        let running = program.start(&containment, Streams::Kept { input: &self.input });
        let ending = running?.wait(Some(limit))?;
        for (left, kept) in &self.keeps {
            keep(left, kept)?;
        }
        let mut ran = Ran {
            ending,
            result: None,
            own: OwnResult::default(),
            problem: None,
        };
        if let Some(file) = &self.result {
            match read_result(file) {
                Ok((own, result)) => (ran.own, ran.result) = (own, Some(result)),
                Err(problem) => ran.problem = Some(problem),
            }
        }
        Ok(ran)
    }
}

/// Opens a file that the client left, which may be a link or a pipe instead.
fn open_left(file: &Path) -> io::Result<File> {
    let mut opening = File::options();
    opening
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let opened = opening.open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    Ok(opened)
}

fn read_result(file: &Path) -> Result<(OwnResult, serde_json::Value), BadResult> {
    let mut text = String::new();
    open_left(file)?.take(LONGEST_RESULT).read_to_string(&mut text)?;
    Ok((serde_json::from_str(&text)?, serde_json::from_str(&text)?))
}

/// Copies a file that the client left. Does nothing if it left none.
fn keep(left: &Path, kept: &Path) -> Result<(), LabError> {
    let Ok(mut file) = open_left(left) else {
        return Ok(());
    };
    File::create(kept)
        .and_then(|mut kept| io::copy(&mut file, &mut kept))
        .map(drop)
        .map_err(|error| LabError::unwritable(kept, error))
}

/// The record of a foreign client's load.
pub(super) fn record(job: &Job, command: &Command, ran: Ran, seen: Seen) -> Record {
    let mut lines = lines(&seen.report.ledger, seen.conversations);
    let mut visits = Vec::new();
    if job.load.mode.has_sessions() {
        // The program makes visits itself to get tickets; their connections are no part of the load. Nor are
        // connections before the start of the load, if the program reports that.
        let is_before = |line: &Line<'_>| ran.own.started_ns.is_some_and(|at| line.entry.seen.opened < at);
        (visits, lines) = lines
            .into_iter()
            .partition(|line| line.is_visit() || line.is_reused() || is_before(line));
    }
    let opened = lines.first().map_or(0, |line| line.entry.seen.opened);
    let started = ran.own.started_ns.unwrap_or(opened);
    let was_used = |line: &&Line<'_>| {
        line.is_reused()
            || line
                .exchanges
                .iter()
                .any(|exchange| exchange.arrived >= started && !exchange.is_visit())
    };
    let reused = visits.iter().find(was_used).map(|line| line.entry.key);
    let requests = requests(job, &lines, started);
    let traffic = Traffic::new(
        &lines,
        &visits,
        &seen.directory,
        started,
        &job.promise(),
        seen.counters,
    );
    let document = job.page.document();
    let document = requests.iter().find(|request| request.index == document);
    let last_byte = || {
        let last = lines.iter().filter_map(|line| {
            let received = line.entry.received_data.progress();
            let answered = line.conversation.as_ref().map(|seen| seen.answered());
            // The servers count lost datagrams too, which never arrive at the client's end.
            let at = answered.and_then(|bytes| received.reached(bytes));
            at.or_else(|| received.last())
        });
        last.max().map(|at| since(started, at))
    };
    let complaint = complaint(command, &ran, &traffic, document, job.load.timeout_ms)
        .or_else(|| reused.map(|key| format!("the load used a connection of a visit before it: {key:?}")));
    Record {
        plt_ms: if ran.result.is_some() {
            ran.own.plt_ms
        } else {
            last_byte()
        },
        first_byte_ms: ran.own.first_byte_ms.or_else(|| document?.first_byte_ms),
        status: status(complaint.as_ref()),
        error: complaint,
        setup_ms: seen.setup.as_secs_f64() * 1e3,
        matching: seen.matching,
        requests,
        traffic,
        relay: RelaySummary::new(&seen.report, job.lab.late_bound_ms),
        client: Some(Report {
            exit_code: ran.ending.code,
            said: ran.ending.output,
            elapsed_ms: ran.ending.elapsed.as_secs_f64() * 1e3,
            started_ns: started,
        }),
        result: ran.result,
    }
}

/// The first reason not to use the load.
fn complaint(
    command: &Command,
    ran: &Ran,
    traffic: &Traffic,
    document: Option<&Request>,
    timeout_ms: u64,
) -> Option<String> {
    if ran.ending.timed_out {
        return Some(format!("the client had not ended after {timeout_ms} ms"));
    }
    if let Some(error) = &ran.own.error {
        return Some(error.clone());
    }
    if !command.accepts.contains(&ran.ending.code) {
        let said = if ran.ending.output.is_empty() {
            String::new()
        } else {
            format!(": {}", ran.ending.output)
        };
        return Some(format!("the client ended with code {}{said}", ran.ending.code));
    }
    if let Some(problem) = &ran.problem {
        return Some(problem.to_string());
    }
    match document {
        _ if ran.result.is_some() => {}
        None => return Some("the client never asked for the document".to_owned()),
        // Over QUIC the end of the document is unknown; the program's exit code tells whether it arrived.
        Some(document) if document.end_ms.is_none() && document.error.is_some() => {
            return Some("the document did not reach the client whole".to_owned());
        }
        Some(_) => {}
    }
    let text = traffic.proof.disagreements.join("; ");
    (!traffic.proof.ok).then(|| format!("no proof: {text}"))
}

/// One row per request, in the order of arrival at the servers.
fn requests(job: &Job, lines: &[Line<'_>], started: u64) -> Vec<Request> {
    let mut rows = Vec::new();
    for (connection, line) in lines.iter().enumerate() {
        let sent = line.entry.sent_data.progress();
        let received = line.entry.received_data.progress();
        for (turn, exchange) in line.exchanges.iter().enumerate() {
            let connection = Carrier {
                number: connection as u32,
                line,
                first: turn == 0,
                sent: &sent,
                received: &received,
            };
            rows.push((exchange.arrived, connection.request(job, exchange, started)));
        }
    }
    rows.sort_by_key(|(arrived, _)| *arrived);
    let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    // A request that was not recorded has no index in the page. Such requests are numbered after the page's
    // resources.
    let strays = rows.iter_mut().filter(|row| row.index == usize::MAX);
    for (number, row) in strays.enumerate() {
        row.index = job.page.resources.len() + number;
    }
    rows
}

/// The connection that carried a request.
struct Carrier<'a> {
    number: u32,
    line: &'a Line<'a>,
    first: bool,
    sent: &'a Progress,
    received: &'a Progress,
}

impl Carrier<'_> {
    fn request(&self, job: &Job, exchange: &Exchange, started: u64) -> Request {
        let since = |at: u64| since(started, at);
        let entry = &self.line.entry.seen;
        // With data in the SYN the connection was ready when it was opened.
        let ready = if entry.offered() {
            Some(entry.opened)
        } else {
            entry.answered
        };
        let wire_bytes = exchange.response.end - exchange.response.start;
        let whole = wire_bytes > exchange.body_bytes;
        // The place of a response in encrypted QUIC datagrams is unknown.
        let is_placed = entry.protocol == Protocol::Tcp;
        let end = self.received.reached(exchange.response.end).filter(|_| whole);
        let first_byte = self.received.reached(exchange.response.start + 1);
        let resource = exchange.resource.map(|index| &job.page.resources[index]);
        Request {
            index: exchange.resource.unwrap_or(usize::MAX),
            url: format!("{}{}", exchange.origin, exchange.target),
            origin: exchange.origin.to_string(),
            connection: Some(self.number),
            queued_ms: None,
            connect_start_ms: self.first.then(|| since(entry.opened)),
            connect_end_ms: ready.filter(|_| self.first).map(since),
            sent_ms: self.sent.reached(exchange.read).filter(|_| is_placed).map(since),
            first_byte_ms: first_byte.filter(|_| is_placed).map(since),
            end_ms: end.filter(|_| is_placed).map(since),
            status: Some(exchange.status),
            mime: resource.map(|resource| resource.mime.clone()).unwrap_or_default(),
            body_bytes: exchange.body_bytes,
            wire_bytes,
            initiator: None,
            error: match (exchange.resource, end) {
                (None, _) => Some("no recording answers it".to_owned()),
                (_, None) if is_placed => Some("the response did not reach the client whole".to_owned()),
                _ => None,
            },
        }
    }
}
