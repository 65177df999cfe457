//! What both clocks' jobs say of a load in the same words.

use serde::Deserialize;

/// How far each origin is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OriginRtt {
    /// All are as far as the path is long.
    #[default]
    Path,
    /// The nearest one is; the others are farther by as much as in the recording.
    Recorded,
}

/// The transport treatment under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Plain TCP.
    Tcp,
    /// TCP Fast Open.
    Tfo,
}

/// Which cookies the client has when the load begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cookies {
    /// A good one for every host.
    Warm,
    /// None.
    Cold,
    /// One for every host, made with a key that the server no longer has.
    Stale,
}
