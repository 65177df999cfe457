//! The result of a row: a verdict, or why there is none.

use serde::Serialize;

use crate::LabError;

/// The result of a row.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Whether the behaviour was seen.
    pub verdict: Verdict,
    /// What was seen, as text.
    pub seen: String,
}

/// Whether the behaviour was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was.
    Holds,
    /// Something else was seen.
    Deviates,
    /// The behaviour does not concern the side that was examined; `seen` says why.
    #[serde(rename = "not applicable")]
    NotApplicable,
}

impl Finding {
    /// The behaviour holds if `holds`: everything that the row looked for was seen.
    pub(super) fn judged(holds: bool, seen: impl Into<String>) -> Self {
        let verdict = if holds { Verdict::Holds } else { Verdict::Deviates };
        Self {
            verdict,
            seen: seen.into(),
        }
    }

    /// The result of a row that ended like this.
    ///
    /// # Errors
    /// [`LabError`] if the row has no result.
    pub(super) fn of(found: Result<Self, Stop>) -> Result<Self, LabError> {
        match found {
            Ok(finding) => Ok(finding),
            Err(Stop::NotApplicable(why)) => Ok(Self::not_applicable(why)),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// The behaviour does not concern the side that was examined.
    pub(super) fn not_applicable(why: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::NotApplicable,
            seen: why.into(),
        }
    }
}

/// Why a row stopped early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The row does not apply, and why.
    NotApplicable(String),
    /// The lab failed, or an observation is missing.
    Failed(LabError),
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Self {
        Self::Failed(error)
    }
}

/// `holds` as text, for results.
pub(super) fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}
