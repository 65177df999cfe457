//! Versions of IP. A version adds nothing to a packet but the bytes of its header.

use serde::Deserialize;

/// A version of IP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    #[default]
    #[serde(rename = "4")]
    V4,
    /// IPv6 (RFC 8200).
    #[serde(rename = "6")]
    V6,
}

impl IpVersion {
    /// Bytes of a header without options or extension headers.
    #[must_use]
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}
