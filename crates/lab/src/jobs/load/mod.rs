//! One load. Job and record are one JSON document each.

mod command;
mod record;

use std::time::Duration;

use firstflight_load::Load;
use firstflight_load::promise::Promise;
use firstflight_page::Page;
use serde::Deserialize;

use crate::LabError;
use crate::client;
use crate::lab::{Lab, LabConfig};
use crate::net::AddressPlan;
use crate::origin::{Bodies, Headers, Served};

pub use command::{Command, Report};
pub use record::Record;

/// A job for one load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The settings of the load.
    #[serde(flatten)]
    pub load: Load,
    /// The lab's settings.
    #[serde(flatten)]
    pub lab: LabConfig,
    /// The page, as a profile.
    pub page: Page,
    /// Files with recorded bodies, by resource index.
    #[serde(default)]
    pub bodies: Bodies,
    /// Recorded header fields of responses, by resource index.
    #[serde(default)]
    pub headers: Headers,
    /// The client that loads the page.
    #[serde(default)]
    pub client: Client,
}

/// The client that loads a page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Client {
    /// The built-in loader.
    #[default]
    Loader,
    /// A program other than the built-in client.
    Command(Command),
}

impl Job {
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        let mut job: Self =
            serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))?;
        job.page.validate()?;
        job.load.scheme.apply(&mut job.page);
        let hosts = AddressPlan::new(job.load.ip, [&job.page]);
        let farther_ms = hosts.hosts().map(|(host, _)| job.page.farther_ms(host));
        job.load.path = job.load.path_to_hosts(farther_ms).into_owned();
        Ok(job)
    }

    /// What the load promises of every connection.
    fn promise(&self) -> Promise {
        let promise = self.load.promise();
        let hosts = AddressPlan::new(self.load.ip, [&self.page]);
        let is_loader = matches!(self.client, Client::Loader);
        Promise {
            initial_window: Some(self.lab.transport.initial_window),
            congestion_control: Some(self.lab.transport.over_tcp().to_owned()),
            // Another program may offer that key share on request, but not all versions can.
            post_quantum: promise.post_quantum.filter(|asked| !asked || is_loader),
            // A foreign program chooses its own TLS, unless the mode chooses it.
            tls: promise.tls.filter(|_| is_loader || self.load.mode.is_secure()),
            quic: promise.quic.filter(|is_quic| is_loader || *is_quic),
            tls12_hosts: self
                .load
                .tls12_hosts(hosts.hosts().map(|(host, _)| self.page.host(host))),
            ..promise
        }
    }

    /// Builds the lab, primes it, loads the page once, and collects what the witnesses saw.
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be built; a load that fails is a record that says so.
    pub fn run(&self, realtime: bool) -> Result<Record, LabError> {
        let pages = [Served {
            page: &self.page,
            bodies: &self.bodies,
            headers: &self.headers,
        }];
        let keeps_times = matches!(self.client, Client::Command(_));
        let lab = Lab::build(&self.load, &self.lab, &pages, keeps_times, realtime)?;
        match &self.client {
            Client::Loader => self.fetch(lab),
            Client::Command(command) => {
                let limit = Duration::from_millis(self.load.timeout_ms);
                let ran = command.run(limit, lab.addresses.block.services())?;
                Ok(command::record(self, command, ran, lab.conclude(&pages)?))
            }
        }
    }

    /// Loads the page with the built-in client.
    fn fetch(&self, lab: Lab) -> Result<Record, LabError> {
        let setup = lab.setup;
        let (config, priorities) = (self.load.config(), self.load.priorities);
        let loaded = client::load(&self.page, config, priorities, lab.tls(), lab.quic(), |host| {
            lab.addresses.address(host)
        })?;
        let counters = lab.counters()?;
        let (matching, conversations) = (lab.matching(), lab.conversations());
        let report = lab.finish()?;
        Ok(Record::new(
            self,
            &loaded,
            &report,
            counters,
            matching,
            setup,
            &conversations,
        ))
    }
}
