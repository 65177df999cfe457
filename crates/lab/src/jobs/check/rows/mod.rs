//! The definition of a row, and the list of rows: one module for each group.

mod answer;
mod blackhole;
mod cache;
mod fallback;
mod format;
mod handshake;
mod keys;
mod limits;
pub(super) mod paths;
mod request;

use firstflight_path::MiddleboxKind;
use serde::Serialize;

use super::client::ClientStage;
use super::finding::{Finding, Stop};
use super::server::{ServerStage, Settings};

/// Every row, group by group.
pub(super) const GROUPS: &[&[Row]] = &[
    format::ROWS,
    request::ROWS,
    cache::ROWS,
    fallback::ROWS,
    blackhole::ROWS,
    handshake::ROWS,
    answer::ROWS,
    keys::ROWS,
    limits::ROWS,
    paths::ROWS,
];

/// A behaviour to check.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Row {
    /// Its name: the number of the rule, if it has one, and a word.
    pub id: &'static str,
    /// How strongly the RFC or Linux asks for it.
    pub level: Level,
    /// Section of RFC 7413; empty if the RFC does not mention it.
    pub section: &'static str,
    /// The expected behaviour.
    pub behaviour: &'static str,
    /// How the row provokes it.
    pub done: &'static str,
    /// The code of the row, and the side that it examines.
    #[serde(flatten)]
    pub(in crate::jobs::check) trial: Trial,
}

/// How strongly a behaviour is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Level {
    /// The RFC requires it.
    #[serde(rename = "MUST")]
    Must,
    /// The RFC forbids the opposite.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// The RFC asks for it, unless there are reasons.
    #[serde(rename = "SHOULD")]
    Should,
    /// The RFC allows it.
    #[serde(rename = "MAY")]
    May,
    /// The RFC describes it without a keyword in capitals.
    #[serde(rename = "described")]
    Described,
    /// Advice to applications or operators.
    #[serde(rename = "advice")]
    Advice,
    /// Not in the RFC: packetdrill's tests, or the kernel's documentation, expect it of Linux.
    #[serde(rename = "Linux")]
    Linux,
}

/// The side that a row examines, and its code.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "side", rename_all = "lowercase")]
pub(in crate::jobs::check) enum Trial {
    /// This kernel's client; the script is its server.
    Client {
        #[serde(skip)]
        run: fn(&mut ClientStage) -> Result<Finding, Stop>,
    },
    /// This kernel's client and server, with or without a middlebox between them.
    #[serde(rename = "both")]
    Pair {
        #[serde(skip)]
        middlebox: Option<MiddleboxKind>,
    },
    /// A server; the script is its client.
    Server {
        #[serde(skip)]
        settings: Settings,
        #[serde(skip)]
        run: fn(&mut ServerStage) -> Result<Finding, Stop>,
    },
}
