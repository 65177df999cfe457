//! `check`: RFC 7413 as a list of experiments, each with its own verdict and capture.
//!
//! Each row has a lab of its own with one wire: at one end this kernel, as client or as server, at the other
//! a script that writes and reads single packets, as packetdrill does. So a row decides what the peer says, to
//! the last option, and nothing is on the wire that it did not ask for. There is no path: packets cross at
//! once, and only the kernel's own timers take time. Rows for two have both kernels, and a relay between them.

mod app;
mod client;
mod finding;
mod packet;
mod pair;
mod program;
mod rows;
mod server;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use firstflight_path::MiddleboxKind;
use serde::{Deserialize, Serialize};

pub use finding::{Finding, Verdict};
pub use program::NamedServer;
pub use rows::{Level, Row};
pub use wire::Line;

use crate::witness::Counters;
use crate::{LabError, clock, namespace};
use client::ClientStage;
use finding::Stop;
use rows::Trial;
use server::ServerStage;
use wire::Wire;

/// How long a server may take to answer an ordinary client.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// One row to be done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckJob {
    /// Which one.
    pub row: String,
    /// The user's server; our own without.
    #[serde(default)]
    pub server: Option<NamedServer>,
    /// Where the packets are kept.
    #[serde(default)]
    pub capture: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct RowRecord {
    /// What was seen, and the verdict.
    #[serde(flatten)]
    pub finding: Finding,
    /// Every packet.
    pub packets: Vec<Line>,
    /// What the kernel counted.
    pub counters: Counters,
    /// How long it took.
    pub elapsed_ms: f64,
}

/// Every row, in the order of the list.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    rows::GROUPS.iter().flat_map(|group| group.iter())
}

impl CheckJob {
    /// Reads a job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))
    }

    /// Does the row. Call inside a lab, once; `realtime` says whether this thread has priority for a relay.
    ///
    /// # Errors
    /// [`LabError`] when the lab or the server cannot be had, or a packet is missing without which there is
    /// nothing to be said.
    pub fn run(&self, realtime: bool) -> Result<RowRecord, LabError> {
        let row = rows().find(|row| row.id == self.row);
        let row = row.ok_or_else(|| LabError::UnknownRow(self.row.clone()))?;
        if self.server.is_some() {
            let _ = namespace::mount_proc();
        }
        self.run_row(row, realtime)
    }

    fn run_row(&self, row: &Row, realtime: bool) -> Result<RowRecord, LabError> {
        match row.trial {
            Trial::Client { run } => {
                let mut stage = ClientStage::build()?;
                let begun = Begun::now()?;
                let found = run(&mut stage);
                self.record(found, &stage.wire, begun)
            }
            Trial::Pair { middlebox } => self.run_pair(middlebox, realtime),
            Trial::Server { settings, .. } if settings.own && self.server.is_some() => Ok(RowRecord {
                finding: Finding::not_applicable("It takes a hand in the server, which only ours offers."),
                packets: Vec::new(),
                counters: Counters::default(),
                elapsed_ms: 0.0,
            }),
            Trial::Server { settings, run } => {
                let mut stage = ServerStage::build(&settings, self.server.as_ref())?;
                let begun = Begun::now()?;
                let found = run(&mut stage);
                self.record(found, &stage.wire, begun)
            }
        }
    }

    fn run_pair(&self, middlebox: Option<MiddleboxKind>, realtime: bool) -> Result<RowRecord, LabError> {
        let begun = Begun::now()?;
        let (finding, report) = rows::paths::run(middlebox, realtime)?;
        let capture = report.capture.unwrap_or_default();
        if let Some(file) = &self.capture {
            capture.write(file)?;
        }
        Ok(RowRecord {
            finding,
            packets: wire::lines(capture.packets(), begun.at),
            counters: Counters::read()?.since(begun.counters),
            elapsed_ms: begun.elapsed_ms(),
        })
    }

    fn record(&self, found: Result<Finding, Stop>, wire: &Wire, begun: Begun) -> Result<RowRecord, LabError> {
        if let Some(file) = &self.capture {
            wire.write(file)?;
        }
        let finding = match found {
            Ok(finding) => finding,
            Err(Stop::NotApplicable(why)) => Finding::not_applicable(why),
            Err(Stop::Failed(error)) => return Err(error),
        };
        Ok(RowRecord {
            finding,
            packets: wire.lines(),
            counters: Counters::read()?.since(begun.counters),
            elapsed_ms: begun.elapsed_ms(),
        })
    }
}

/// Has a server of the user's answer an ordinary client. Call inside a lab, once.
///
/// # Errors
/// [`LabError`] when it cannot be started, does not listen, or does not answer.
pub fn try_server(named: &NamedServer) -> Result<(), LabError> {
    let _ = namespace::mount_proc();
    let mut stage = ServerStage::build(&server::OPEN, Some(named))?;
    let (syn, syn_ack) = stage.open(&[], &[])?;
    stage.ack(&syn, &syn_ack, server::REQUEST)?;
    if stage.data_to(&syn, ANSWER_PATIENCE).is_some() {
        return Ok(());
    }
    Err(LabError::CheckedServer {
        problem: format!(
            "it listens on port {} and does not answer GET / in HTTP{}",
            named.port,
            stage.said()
        ),
        as_root: true,
    })
}

/// How things stood when a row began.
#[derive(Debug, Clone, Copy)]
struct Begun {
    at: u64,
    counters: Counters,
}

impl Begun {
    fn now() -> Result<Self, LabError> {
        Ok(Self {
            at: clock::now(),
            counters: Counters::read()?,
        })
    }

    fn elapsed_ms(self) -> f64 {
        (clock::now() - self.at) as f64 / 1e6
    }
}
