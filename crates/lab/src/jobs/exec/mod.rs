//! `exec`: runs any program inside a lab, with the lab's path, pages and services.
//!
//! Job and record are one JSON document each.

mod terminal;

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use firstflight_load::Load;
use firstflight_load::promise::{FastOpen, Promise};
use firstflight_page::{Page, Scheme};
use serde::{Deserialize, Serialize};

use crate::lab::{Lab, LabConfig};
use crate::namespace::Containment;
use crate::origin::{self, Bodies, Headers, Matching, Served};
use crate::program::{Program, Streams};
use crate::relay::RelaySummary;
use crate::traffic::{Traffic, lines};
use crate::{LabError, clock};

pub use terminal::Terminal;

/// A job for `exec`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecJob {
    /// The settings of the load. The program itself decides how it loads and when it gives up.
    #[serde(flatten)]
    pub load: Load,
    /// The lab's settings.
    #[serde(flatten)]
    pub lab: LabConfig,
    /// The pages that the servers serve.
    pub pages: Vec<ServedPage>,
    /// The program.
    pub program: Program,
}

/// A page, with the files of its bodies.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedPage {
    /// The page, as a profile.
    pub page: Page,
    /// Files with recorded bodies, by resource index.
    #[serde(default)]
    pub bodies: Bodies,
    /// Recorded header fields of responses, by resource index.
    #[serde(default)]
    pub headers: Headers,
}

/// The result. Times are ms since the program was started.
#[derive(Debug, Clone, Serialize)]
pub struct ExecRecord {
    /// The exit code for the caller: the program's own, 128 + n if signal n killed it, 127 if there is no such
    /// program, 126 if it cannot be run; as in shells.
    pub exit_code: i32,
    /// Why the program could not be started.
    pub error: Option<String>,
    /// How long it ran.
    pub elapsed_ms: f64,
    /// How long it took to build the lab.
    pub setup_ms: f64,
    /// Requests answered as recorded.
    pub requests: usize,
    /// How many requests found a recorded response, and how.
    #[serde(flatten)]
    pub matching: Matching,
    /// What crossed the wire.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// The relay's summary.
    pub relay: RelaySummary,
}

impl ExecJob {
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        let mut job: Self =
            serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))?;
        ServedPage::prepare(&mut job.pages, job.load.scheme)?;
        Ok(job)
    }

    /// Builds the lab, primes it, runs the program, and collects what the witnesses saw. `sockets` are the host's,
    /// see [`crate::namespace::host_sockets`].
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be built; a program that fails is a record that says so.
    pub fn run(&self, realtime: bool, sockets: Vec<PathBuf>) -> Result<ExecRecord, LabError> {
        let pages: Vec<_> = self.pages.iter().map(ServedPage::served).collect();
        let lab = Lab::build(&self.load, &self.lab, &pages, false, realtime)?;
        let started = clock::now();
        let ran = self.run_program(&Containment::Program(sockets), lab.addresses.block.services())?;
        let seen = lab.conclude(&pages)?;
        let all = lines(&seen.report.ledger, seen.conversations);
        let (visits, lines): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|line| self.load.mode.has_sessions() && line.is_visit());
        let exchanges = || lines.iter().flat_map(|line| &line.exchanges);
        Ok(ExecRecord {
            exit_code: ran.exit_code,
            error: ran.error,
            elapsed_ms: ran.elapsed.as_secs_f64() * 1e3,
            setup_ms: seen.setup.as_secs_f64() * 1e3,
            requests: exchanges().filter(|exchange| exchange.resource.is_some()).count(),
            matching: seen.matching,
            traffic: Traffic::new(
                &lines,
                &visits,
                &seen.directory,
                started,
                &self.promise(),
                seen.counters,
            ),
            relay: RelaySummary::new(&seen.report, self.lab.late_bound_ms),
        })
    }

    /// Runs the program on the caller's own streams.
    fn run_program(&self, containment: &Containment, services: IpAddr) -> Result<Ran, LabError> {
        let program = Program {
            env: origin::service_variables(services)
                .chain(self.program.env.clone())
                .collect(),
            ..self.program.clone()
        };
        match program.start(containment, Streams::Inherited) {
            Ok(running) => running.wait(None).map(|ending| Ran {
                exit_code: ending.code,
                error: None,
                elapsed: ending.elapsed,
            }),
            Err(error @ LabError::NotStarted { .. }) => Ok(Ran {
                exit_code: match &error {
                    LabError::NotStarted { problem, .. } if problem.kind() == ErrorKind::NotFound => 127,
                    _ => 126,
                },
                error: Some(error.to_string()),
                elapsed: Duration::ZERO,
            }),
            Err(error) => Err(error),
        }
    }

    /// A program may connect and send nothing, or load no page. So with Fast Open the witnesses must only agree;
    /// without it no SYN may use it. TLS and QUIC are promised if the mode chooses them.
    fn promise(&self) -> Promise {
        let of_load = self.load.promise();
        let is_secure = self.load.mode.is_secure();
        Promise {
            tls: of_load.tls.filter(|_| is_secure),
            quic: of_load.quic.filter(|_| is_secure),
            ..Promise::from(if self.load.mode.is_fast_open() {
                FastOpen::Agreement
            } else {
                FastOpen::Never
            })
        }
    }
}

/// The result of the program.
struct Ran {
    exit_code: i32,
    error: Option<String>,
    elapsed: Duration,
}

impl ServedPage {
    /// Prepares a job's pages for loads under `scheme`.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with a page.
    pub(super) fn prepare(pages: &mut [Self], scheme: Scheme) -> Result<(), LabError> {
        for served in pages {
            served.page.validate()?;
            scheme.apply(&mut served.page);
        }
        Ok(())
    }

    /// The page, as the servers take it.
    pub(super) fn served(&self) -> Served<'_> {
        Served {
            page: &self.page,
            bodies: &self.bodies,
            headers: &self.headers,
        }
    }
}
