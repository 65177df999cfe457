//! The error for a page that is refused.

/// A page that cannot be used: which key is wrong, why, and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct PageError {
    /// The key that is wrong, e.g. `resources[3].url`; `.` for the whole document.
    pub at: String,
    /// What is wrong with it.
    pub problem: String,
    /// What the user can do.
    pub hint: String,
}

impl PageError {
    /// An error at key `at`.
    pub fn new(at: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            problem: problem.into(),
            hint: hint.into(),
        }
    }
}
