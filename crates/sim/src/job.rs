//! What is to be simulated.

use firstflight_load::{Load, MAX_EARLY_DATA};
use firstflight_quic as quic;
use firstflight_tcp::Algorithm;
use serde::Deserialize;

use crate::SimError;
use crate::what_if::WhatIf;

/// One load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What both clocks agree on. The page's URLs are what it was made ready with.
    #[serde(flatten)]
    pub load: Load,
    /// Congestion control at both ends.
    #[serde(default)]
    pub congestion_control: CongestionControl,
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
    /// Which packets are noted.
    #[serde(skip)]
    pub trace: Traced,
}

/// Which packets of a load are noted: writing all of them down takes longer than to simulate them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Traced {
    /// None.
    #[default]
    Nothing,
    /// The first packets that a connection sends, and what became of each of them.
    First {
        /// The connection's number in the record.
        connection: u32,
        /// How many, in both directions together.
        packets: u32,
    },
    /// All.
    All,
}

/// What both ends of a connection decide by how much may be under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// The window of RFC 5681 and RFC 9002.
    Reno,
    /// BBR, over QUIC alone.
    Bbr,
}

impl CongestionControl {
    /// The same over TCP; CUBIC where that has none.
    pub(crate) fn over_tcp(self) -> Algorithm {
        match self {
            Self::Cubic | Self::Bbr => Algorithm::Cubic,
            Self::Reno => Algorithm::Reno,
        }
    }

    /// The same over QUIC.
    pub(crate) fn over_quic(self) -> quic::CongestionControl {
        match self {
            Self::Cubic => quic::CongestionControl::Cubic,
            Self::Reno => quic::CongestionControl::NewReno,
            Self::Bbr => quic::CongestionControl::Bbr,
        }
    }
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

fn ten() -> u32 {
    10
}
fn backlog() -> u32 {
    4_096
}

impl Job {
    /// Bytes that a client may send with its `ClientHello`; 0 where it sends none.
    pub(crate) fn early_data(&self) -> u64 {
        let by_mode = self.load.offer_over_tcp().early_data.then_some(MAX_EARLY_DATA);
        self.what_if.early_data.or(by_mode).unwrap_or_default()
    }

    /// Reads a job.
    ///
    /// # Errors
    /// [`SimError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, SimError> {
        Ok(serde_json::from_str(text)?)
    }
}
