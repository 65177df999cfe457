//! `check`: RFC 7413 as a list of experiments, each with its own verdict and capture.
//!
//! Each row has a lab of its own with one wire: at one end this kernel, as client or as server, at the other
//! a script that writes and reads single packets, as packetdrill does. So a row decides what the peer says, to
//! the last option, and nothing is on the wire that it did not ask for. There is no path: packets cross at
//! once, and only the kernel's own timers take time. Rows for two have both kernels, and a relay between them.
//! [`remote`] does some of the server's rows outside of a lab, with this machine's ordinary client.

mod app;
mod client;
mod finding;
mod packet;
mod pair;
mod program;
mod remote;
mod rows;
mod server;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use firstflight_path::{IpVersion, MiddleboxKind};
use serde::{Deserialize, Serialize};

pub use finding::{Finding, Verdict};
pub use program::NamedServer;
pub use remote::RemoteJob;
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
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// One row to be done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckJob {
    /// Which one.
    pub row: String,
    /// The version of IP on the wire.
    #[serde(default)]
    pub ip: IpVersion,
    /// The user's server; our own without.
    #[serde(default)]
    pub server: Option<NamedServer>,
    /// Where the packets are kept.
    #[serde(default)]
    pub capture: Option<PathBuf>,
}

/// A server of the user's, to be tried with an ordinary client.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TryJob {
    /// Which.
    pub server: NamedServer,
    /// The version of IP on the wire.
    #[serde(default)]
    pub ip: IpVersion,
}

/// A row as the list shows it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Listed {
    #[serde(flatten)]
    row: &'static Row,
    /// Whether it can be done without raw packets, with a server on another machine.
    remote: bool,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct RowRecord {
    /// What was seen, and the verdict.
    #[serde(flatten)]
    pub finding: Finding,
    /// Every packet.
    pub packets: Vec<Line>,
    /// What the kernel counted; `None` outside of a lab, where others are counted too.
    pub counters: Option<Counters>,
    /// How long it took.
    pub elapsed_ms: f64,
}

/// Every row, in the order of the list.
pub fn rows() -> impl Iterator<Item = Listed> {
    let listed = |row| Listed {
        row,
        remote: remote::does(row),
    };
    every_row().map(listed)
}

fn every_row() -> impl Iterator<Item = &'static Row> {
    rows::GROUPS.iter().flat_map(|group| group.iter())
}

/// The row of this name.
fn row(id: &str) -> Result<&'static Row, LabError> {
    let row = every_row().find(|row| row.id == id);
    row.ok_or_else(|| LabError::UnknownRow(id.to_owned()))
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
        let row = row(&self.row)?;
        if self.server.is_some() {
            let _ = namespace::mount_proc();
        }
        self.run_row(row, realtime)
    }

    fn run_row(&self, row: &Row, realtime: bool) -> Result<RowRecord, LabError> {
        match row.trial {
            Trial::Client { run } => {
                let mut stage = ClientStage::build(self.ip)?;
                let begun = Begun::now()?;
                let found = run(&mut stage);
                self.record(found, &stage.wire, begun)
            }
            Trial::Pair { middlebox } => self.run_pair(middlebox, realtime),
            Trial::Server { settings, .. } if settings.own && self.server.is_some() => Ok(RowRecord {
                finding: Finding::not_applicable("It takes a hand in the server, which only ours offers."),
                packets: Vec::new(),
                counters: Some(Counters::default()),
                elapsed_ms: 0.0,
            }),
            Trial::Server { settings, run } => {
                let mut stage = ServerStage::build(self.ip, &settings, self.server.as_ref())?;
                let begun = Begun::now()?;
                let found = run(&mut stage);
                self.record(found, &stage.wire, begun)
            }
        }
    }

    fn run_pair(&self, middlebox: Option<MiddleboxKind>, realtime: bool) -> Result<RowRecord, LabError> {
        let begun = Begun::now()?;
        let (finding, report) = rows::paths::run(self.ip, middlebox, realtime)?;
        let capture = report.capture.unwrap_or_default();
        if let Some(file) = &self.capture {
            capture.write(file)?;
        }
        Ok(RowRecord {
            finding,
            packets: wire::lines(capture.packets(), begun.at),
            counters: Some(Counters::read()?.since(begun.counters)),
            elapsed_ms: begun.elapsed_ms(),
        })
    }

    fn record(&self, found: Result<Finding, Stop>, wire: &Wire, begun: Begun) -> Result<RowRecord, LabError> {
        if let Some(file) = &self.capture {
            wire.write(file)?;
        }
        Ok(RowRecord {
            finding: Finding::of(found)?,
            packets: wire.lines(),
            counters: Some(Counters::read()?.since(begun.counters)),
            elapsed_ms: begun.elapsed_ms(),
        })
    }
}

impl TryJob {
    /// Reads a job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))
    }

    /// Has the server answer an ordinary client. Call inside a lab, once.
    ///
    /// # Errors
    /// [`LabError`] when it cannot be started, does not listen, or does not answer.
    pub fn run(&self) -> Result<(), LabError> {
        let _ = namespace::mount_proc();
        let mut stage = ServerStage::build(self.ip, &server::OPEN, Some(&self.server))?;
        let (syn, syn_ack) = stage.open(&[], &[])?;
        stage.ack(&syn, &syn_ack, server::REQUEST)?;
        if stage.data_to(&syn, ANSWER_TIMEOUT).is_some() {
            return Ok(());
        }
        Err(LabError::CheckedServer {
            problem: format!(
                "it listens on port {} and does not answer GET / in HTTP{}",
                self.server.port,
                stage.said()
            ),
            as_root: true,
        })
    }
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
