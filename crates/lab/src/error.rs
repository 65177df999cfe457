//! Why a laboratory could not be built or a job not be done.

use std::fmt::Display;

/// An error with the mend.
#[derive(Debug, Clone, thiserror::Error, serde::Serialize)]
#[error("{message}")]
pub struct LabError {
    /// What failed.
    pub message: String,
    /// What the user can do about it; may be empty.
    pub hint: String,
}

impl LabError {
    /// An error with a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// The error of a system call: what was tried, and how the kernel answered.
    pub fn system(tried: &str, answer: impl Display) -> Self {
        Self::new(
            format!("{tried}: {answer}"),
            "run `firstflight doctor`: it names what the lab lacks",
        )
    }
}
