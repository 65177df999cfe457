//! IP versions. On the path they differ only in the size of the header.

use serde::Deserialize;

/// An IP version.
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
    /// Header size without options or extension headers, bytes.
    #[must_use]
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}
