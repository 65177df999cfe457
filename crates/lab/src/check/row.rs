//! What a row of the list is, and what comes of it.

use firstflight_path::Habit;
use serde::Serialize;

use super::client::ClientStage;
use super::server::{ServerStage, Settings};
use crate::LabError;

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
    pub(super) trial: Trial,
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
    /// Not the RFC's: what packetdrill's tests hold Linux to.
    #[serde(rename = "Linux")]
    Linux,
}

/// Who is examined, and how.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "side", rename_all = "lowercase")]
pub(super) enum Trial {
    /// This kernel's client; the script is its server.
    Client {
        #[serde(skip)]
        run: fn(&mut ClientStage) -> Result<Finding, Stop>,
    },
    /// This kernel's client and its server, with a middlebox between them or without.
    #[serde(rename = "both")]
    Pair {
        #[serde(skip)]
        habit: Option<Habit>,
    },
    /// A server; the script is its client.
    Server {
        #[serde(skip)]
        settings: Settings,
        #[serde(skip)]
        run: fn(&mut ServerStage) -> Result<Finding, Stop>,
    },
}

/// What came of a row.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Whether the behaviour was seen.
    pub verdict: Verdict,
    /// What was seen instead, or as well, in words.
    pub seen: String,
}

/// Whether the behaviour was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was.
    Holds,
    /// Something else was.
    Deviates,
    /// It does not concern whoever was examined; what was seen says why.
    #[serde(rename = "not applicable")]
    NotApplicable,
}

impl Finding {
    /// It holds if everything that was looked for was seen.
    pub(super) fn judged(holds: bool, seen: impl Into<String>) -> Self {
        let verdict = if holds { Verdict::Holds } else { Verdict::Deviates };
        Self {
            verdict,
            seen: seen.into(),
        }
    }

    /// It is nobody's here.
    pub(super) fn not_applicable(why: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::NotApplicable,
            seen: why.into(),
        }
    }
}

/// Why a row has no finding of its own.
#[derive(Debug)]
pub(super) enum Stop {
    /// There is nothing to be seen here, and why.
    NotApplicable(String),
    /// The lab could not do it, or a witness is missing.
    Failed(LabError),
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Self {
        Self::Failed(error)
    }
}

/// For findings.
pub(super) fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}
