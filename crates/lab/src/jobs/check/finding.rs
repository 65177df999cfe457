//! What comes of a row: a verdict, or why there is none.

use serde::Serialize;

use crate::LabError;

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
    /// It does not concern the side that was examined; what was seen says why.
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

    /// What is to be said of a row that ended like this.
    ///
    /// # Errors
    /// [`LabError`] where nothing can be said.
    pub(super) fn of(found: Result<Self, Stop>) -> Result<Self, LabError> {
        match found {
            Ok(finding) => Ok(finding),
            Err(Stop::NotApplicable(why)) => Ok(Self::not_applicable(why)),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// It does not concern the side that was examined.
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
