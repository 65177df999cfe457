//! `check`: RFC 7413 as a list of experiments, each with its own verdict and capture.
//!
//! Each row has its own lab with one wire. At one end is this kernel, as client or as server; at the other a script
//! writes and reads single packets, as packetdrill does. So a row decides every option that the peer sends, and no
//! other packet is on the wire. There is no path: packets cross at once, and only the kernel's own timers take
//! time. Rows of a pair have both kernels, with a relay between them. `remote` runs some of the server's rows
//! outside of a lab, with this machine's ordinary client.

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

/// A job for one row.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckJob {
    /// The name of the row.
    pub row: String,
    /// The IP version on the wire.
    #[serde(default)]
    pub ip: IpVersion,
    /// The user's server; the built-in one if `None`.
    #[serde(default)]
    pub server: Option<NamedServer>,
    /// Where to write the capture.
    #[serde(default)]
    pub capture: Option<PathBuf>,
}

/// A job that tries a server of the user with an ordinary client.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TryJob {
    /// The server.
    pub server: NamedServer,
    /// The IP version on the wire.
    #[serde(default)]
    pub ip: IpVersion,
}

/// A row in the list of rows.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Listed {
    #[serde(flatten)]
    row: &'static Row,
    /// Whether it needs no raw packets, so that it works with a server on another machine.
    remote: bool,
}

/// The result of a row.
#[derive(Debug, Clone, Serialize)]
pub struct RowRecord {
    /// What was seen, and the verdict.
    #[serde(flatten)]
    pub finding: Finding,
    /// Every packet.
    pub packets: Vec<Line>,
    /// The increase of the kernel's counters; `None` outside of a lab, where other programs count too.
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
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))
    }

    /// Runs the row. Call it once, inside a lab. `realtime`: whether this thread has real-time priority for a
    /// relay.
    ///
    /// # Errors
    /// [`LabError`] when the lab or the server cannot be set up, or a packet is missing that the verdict needs.
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
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))
    }

    /// Makes the server answer an ordinary client. Call it once, inside a lab.
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

/// Time and counters at the start of a row.
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
