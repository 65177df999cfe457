//! How the loader speaks TLS, on either clock.

use serde::Deserialize;

/// What a client offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsOptions {
    /// Whether a key share of X25519MLKEM768 goes with the `ClientHello` of TLS 1.3, as in browsers since 2024:
    /// 1,216 bytes that make it longer than what a SYN carries.
    pub post_quantum: bool,
    /// The newest version.
    pub version: TlsVersion,
    /// What the client speaks on top of it, if the server does.
    pub http: HttpVersion,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            post_quantum: true,
            version: TlsVersion::default(),
            http: HttpVersion::default(),
        }
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 8446.
    #[default]
    #[serde(rename = "1.3")]
    V1_3,
}

/// A version of HTTP, negotiated by TLS (RFC 7301).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum HttpVersion {
    /// RFC 9112.
    #[default]
    #[serde(rename = "1.1")]
    V1_1,
    /// RFC 9113.
    #[serde(rename = "2")]
    V2,
}
