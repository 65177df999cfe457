//! What a row is, and the list of them: one module for each group of rules.

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

/// One behaviour.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Row {
    /// Its name: the number of the rule, where it has one, and a word.
    pub id: &'static str,
    /// How strongly it is asked for.
    pub level: Level,
    /// Section of RFC 7413; empty where the RFC says nothing of it.
    pub section: &'static str,
    /// What should be seen.
    pub behaviour: &'static str,
    /// What is done to see it.
    pub done: &'static str,
    /// How it is done, and to whom.
    #[serde(flatten)]
    pub(in crate::jobs::check) trial: Trial,
}

/// How strongly a behaviour is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Level {
    /// The RFC requires it.
    #[serde(rename = "MUST")]
    Must,
    /// The RFC forbids the contrary.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// The RFC asks for it, unless there are reasons.
    #[serde(rename = "SHOULD")]
    Should,
    /// The RFC allows it.
    #[serde(rename = "MAY")]
    May,
    /// The RFC describes it, without a word in capitals.
    #[serde(rename = "described")]
    Described,
    /// Advice to applications or operators.
    #[serde(rename = "advice")]
    Advice,
    /// Not the RFC's: what packetdrill's tests, or the kernel's documentation, hold Linux to.
    #[serde(rename = "Linux")]
    Linux,
}

/// Who is examined, and how.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "side", rename_all = "lowercase")]
pub(in crate::jobs::check) enum Trial {
    /// This kernel's client; the script is its server.
    Client {
        #[serde(skip)]
        run: fn(&mut ClientStage) -> Result<Finding, Stop>,
    },
    /// This kernel's client and its server, with a middlebox between them or without.
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
