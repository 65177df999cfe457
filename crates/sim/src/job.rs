//! What is to be simulated. The keys are those of the lab's jobs, where both have them.

use firstflight_loader::{Config, Cookies, HttpVersion, Mode, NANOS_PER_MS, OriginRtt, TlsOptions};
use firstflight_page::Scheme;
use firstflight_path::PathConfig;
use firstflight_tcp::Algorithm;
use serde::Deserialize;

use crate::SimError;
use crate::what_if::WhatIf;

/// One load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Which origins of the page speak TLS. Its URLs are what the page was made ready with.
    #[serde(default)]
    pub scheme: Scheme,
    /// How the client speaks it.
    #[serde(default)]
    pub tls: TlsOptions,
    /// What the packets cross.
    pub path: PathConfig,
    /// The treatment.
    pub mode: Mode,
    /// Which cookies the client has.
    pub cookies: Cookies,
    /// Whether connections outlive a response.
    #[serde(default = "yes")]
    pub keep_alive: bool,
    /// When a load is given up, ms.
    #[serde(default = "two_minutes")]
    pub timeout_ms: u64,
    /// When a request is given up, ms.
    #[serde(default = "half_a_minute")]
    pub request_timeout_ms: u64,
    /// How far each origin is.
    #[serde(default)]
    pub origin_rtt: OriginRtt,
    /// Whether the loader waits for names as long as the recording did.
    #[serde(default)]
    pub lookups: bool,
    /// Congestion control at both ends.
    #[serde(default)]
    pub congestion_control: Algorithm,
    /// Initial congestion window, segments (RFC 6928).
    #[serde(default = "ten")]
    pub initial_window: u32,
    /// Fast Open requests that may be pending at a listener (RFC 7413, section 5.1).
    #[serde(default = "backlog")]
    pub fast_open_backlog: u32,
    /// What is otherwise than in the lab.
    #[serde(default)]
    pub what_if: WhatIf,
    /// What the record tells.
    #[serde(default)]
    pub keep: Keep,
    /// Whether every segment is noted.
    #[serde(skip)]
    pub trace: bool,
}

/// What a record tells of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Each request and connection too.
    #[default]
    All,
    /// How many there were.
    Loads,
}

fn yes() -> bool {
    true
}
fn two_minutes() -> u64 {
    120_000
}
fn half_a_minute() -> u64 {
    30_000
}
fn ten() -> u32 {
    10
}
fn backlog() -> u32 {
    4_096
}

impl Job {
    /// Reads a job.
    ///
    /// # Errors
    /// [`SimError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, SimError> {
        Ok(serde_json::from_str(text)?)
    }

    /// What connections offer: HTTP/2 cannot close after every response.
    pub(crate) fn offer(&self) -> TlsOptions {
        let http = if self.keep_alive {
            self.tls.http
        } else {
            HttpVersion::V1_1
        };
        TlsOptions { http, ..self.tls }
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            keep_alive: self.keep_alive,
            http2: self.offer().http == HttpVersion::V2,
            lookups: self.lookups,
            request_timeout: self.request_timeout_ms * NANOS_PER_MS,
            load_timeout: self.timeout_ms * NANOS_PER_MS,
            ..Config::default()
        }
    }
}
