//! One load: what is asked, what is answered. Both are one JSON document.

mod command;
mod record;

use std::path::PathBuf;
use std::time::Duration;

use firstflight_load::{Load, Mode};
use firstflight_page::Page;
use serde::Deserialize;

use crate::LabError;
use crate::client;
use crate::lab::{Lab, LabConfig, SETTLING};
use crate::net::{AddressPlan, Transport};
use crate::origin::{Bodies, Headers, Served};
use crate::relay::{Keep, RelayReport, Timing};
use crate::traffic::{Directory, lines};
use crate::witness::Counters;

pub use command::{Command, Report};
pub use record::Record;

use command::Seen;

/// What is to be loaded, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What both clocks agree on.
    #[serde(flatten)]
    pub load: Load,
    /// The page, as a profile.
    pub page: Page,
    /// Files with recorded bodies, by resource index.
    #[serde(default)]
    pub bodies: Bodies,
    /// Recorded header fields of responses, by resource index.
    #[serde(default)]
    pub headers: Headers,
    /// Where the certificate (PEM) is written that clients have to trust.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// How connections begin and share the path.
    #[serde(default)]
    pub transport: Transport,
    /// How late a packet may be delivered, ms.
    #[serde(default = "late_bound")]
    pub late_bound_ms: f64,
    /// What is done for the relay to be in time.
    #[serde(default)]
    pub timing: Timing,
    /// Where the packets are kept.
    #[serde(default)]
    pub capture: Option<PathBuf>,
    /// What loads the page.
    #[serde(default)]
    pub client: Client,
}

/// What loads a page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Client {
    /// The built-in loader.
    #[default]
    Loader,
    /// Somebody else's program.
    Command(Command),
}

fn late_bound() -> f64 {
    2.0
}

impl Job {
    /// Reads a job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        let mut job: Self =
            serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))?;
        job.page.validate()?;
        job.load.scheme.apply(&mut job.page);
        let hosts = AddressPlan::new([&job.page]);
        let farther_ms = hosts.hosts().map(|(host, _)| job.page.farther_ms(host));
        job.load.path = job.load.path_to_hosts(farther_ms).into_owned();
        Ok(job)
    }

    /// Builds the lab, primes it, loads the page once, and hears the witnesses.
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be built; a load that fails is a record that says so.
    pub fn run(&self, realtime: bool) -> Result<Record, LabError> {
        let pages = [Served {
            page: &self.page,
            bodies: &self.bodies,
            headers: &self.headers,
        }];
        let lab = Lab::build(&LabConfig {
            pages: &pages,
            path: &self.load.path,
            tfo: self.load.mode == Mode::Tfo,
            cookies: self.load.cookies,
            keep_alive: self.load.keep_alive,
            transport: self.transport.clone(),
            ca_file: self.ca_file.as_deref(),
            keep: Keep {
                packets: self.capture.is_some(),
                times: matches!(self.client, Client::Command(_)),
            },
            timing: self.timing,
            realtime,
        })?;
        lab.prepare(&pages)?;
        let before = lab.counters()?;
        lab.shape();
        match &self.client {
            Client::Loader => self.fetch(lab, before),
            Client::Command(command) => self.watch(command, lab, before),
        }
    }

    /// Loads the page with the built-in client.
    fn fetch(&self, lab: Lab, before: Counters) -> Result<Record, LabError> {
        let setup = lab.setup;
        let loaded = client::load(
            &self.page,
            self.load.config(),
            lab.trust(self.load.offer())?,
            |host| lab.addresses.address(host),
        )?;
        let counters = lab.counters()?.since(before);
        let matching = lab.matching();
        let report = self.finish(lab)?;
        Ok(Record::new(self, &loaded, &report, counters, matching, setup))
    }

    /// Lets a foreign client load the page.
    fn watch(&self, command: &Command, lab: Lab, before: Counters) -> Result<Record, LabError> {
        let ran = command.run(Duration::from_millis(self.load.timeout_ms))?;
        lab.settle(SETTLING);
        let counters = lab.counters()?.since(before);
        let (setup, matching) = (lab.setup, lab.matching());
        let conversations = lab.log().conversations();
        let directory = Directory::new([&self.page].into_iter(), &lab.addresses);
        let report = self.finish(lab)?;
        let seen = Seen {
            lines: &lines(&report.ledger, conversations),
            directory: &directory,
            report: &report,
            counters,
            matching,
            setup,
        };
        Ok(command::record(self, command, ran, seen))
    }

    fn finish(&self, lab: Lab) -> Result<RelayReport, LabError> {
        let report = lab.finish()?;
        if let (Some(file), Some(capture)) = (&self.capture, &report.capture) {
            capture.write(file)?;
        }
        Ok(report)
    }
}
