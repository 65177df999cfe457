//! The job of the simulator.

use firstflight_load::{Load, MAX_EARLY_DATA};
use firstflight_quic as quic;
use firstflight_tcp::Algorithm;
use serde::Deserialize;

use crate::SimError;
use crate::what_if::WhatIf;

/// The job for one load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The settings shared with the lab. The page must have the URLs it was prepared with.
    #[serde(flatten)]
    pub load: Load,
    /// Congestion control at both ends.
    #[serde(default)]
    pub congestion_control: CongestionControl,
    /// Initial congestion window, segments (RFC 6928).
    #[serde(default = "ten")]
    pub initial_window: u32,
    /// Limit of pending Fast Open requests at a listener (RFC 7413, section 5.1).
    #[serde(default = "backlog")]
    pub fast_open_backlog: u32,
    /// Deviations from TCP and TLS as the lab has them.
    #[serde(default)]
    pub what_if: WhatIf,
    /// How detailed the record is.
    #[serde(default)]
    pub keep: Keep,
    /// Which packets to trace.
    #[serde(skip)]
    pub trace: Traced,
}

/// Which packets of a load to trace. Tracing all of them takes longer than the simulation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Traced {
    /// None.
    #[default]
    Nothing,
    /// The first packets that a connection sends, with their fates.
    First {
        /// The connection's number in the record.
        connection: u32,
        /// Number of packets, both directions together.
        packets: u32,
    },
    /// All.
    All,
}

/// Congestion control at both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// `NewReno` (RFC 5681, RFC 9002).
    Reno,
    /// BBR, for QUIC only.
    Bbr,
}

impl CongestionControl {
    /// The algorithm for TCP: CUBIC if TCP lacks this one.
    pub(crate) fn over_tcp(self) -> Algorithm {
        match self {
            Self::Cubic | Self::Bbr => Algorithm::Cubic,
            Self::Reno => Algorithm::Reno,
        }
    }

    /// The algorithm for QUIC.
    pub(crate) fn over_quic(self) -> quic::CongestionControl {
        match self {
            Self::Cubic => quic::CongestionControl::Cubic,
            Self::Reno => quic::CongestionControl::NewReno,
            Self::Bbr => quic::CongestionControl::Bbr,
        }
    }
}

/// How detailed a record is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// With each request and connection.
    #[default]
    All,
    /// Only with their numbers.
    Loads,
}

fn ten() -> u32 {
    10
}
fn backlog() -> u32 {
    4_096
}

impl Job {
    /// Largest amount of early data that a client may send, bytes; 0 if it sends none.
    pub(crate) fn early_data(&self) -> u64 {
        let by_mode = self.load.offer_over_tcp().early_data.then_some(MAX_EARLY_DATA);
        self.what_if.early_data.or(by_mode).unwrap_or_default()
    }

    /// Reads the job.
    ///
    /// # Errors
    /// [`SimError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, SimError> {
        Ok(serde_json::from_str(text)?)
    }
}
