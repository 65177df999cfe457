//! The settings that experiments compare most: transport mode, cookie state, and TLS options.

use std::fmt;

use firstflight_path::Purpose;
use serde::{Deserialize, Serialize};

/// The transport mode: what a connection's first flight carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing: plain TCP, and TLS 1.3 if the origin uses TLS.
    Tcp,
    /// The request, or the `ClientHello`, in the SYN (RFC 7413).
    Tfo,
    /// Nothing; TLS 1.2, which takes two round trips (RFC 5246).
    Tls12,
    /// Nothing; TLS 1.3 resumes a session, which the client has for every host.
    Resumption,
    /// Nothing in the SYN; the request is sent with the `ClientHello` (RFC 8446, section 2.3).
    EarlyData,
    /// The `ClientHello` and the request in the SYN.
    #[serde(rename = "tfo+early-data")]
    TfoEarlyData,
    /// Nothing; QUIC and HTTP/3, without a session (RFC 9000).
    Quic,
    /// The request, in 0-RTT packets behind QUIC's first packet (RFC 9001, section 4.6).
    #[serde(rename = "quic-0rtt")]
    Quic0Rtt,
}

impl Mode {
    /// Whether clients use Fast Open.
    #[must_use]
    pub fn is_fast_open(self) -> bool {
        matches!(self, Self::Tfo | Self::TfoEarlyData)
    }

    /// Whether the mode itself chooses the TLS handshake.
    #[must_use]
    pub fn is_secure(self) -> bool {
        !matches!(self, Self::Tcp | Self::Tfo)
    }

    /// Whether the client has TLS sessions to resume when the load begins.
    #[must_use]
    pub fn has_sessions(self) -> bool {
        matches!(
            self,
            Self::Resumption | Self::EarlyData | Self::TfoEarlyData | Self::Quic0Rtt
        )
    }

    /// Whether safe requests are sent as early data.
    #[must_use]
    pub fn sends_early_data(self) -> bool {
        matches!(self, Self::EarlyData | Self::TfoEarlyData | Self::Quic0Rtt)
    }

    /// Whether https origins use QUIC.
    #[must_use]
    pub fn is_quic(self) -> bool {
        matches!(self, Self::Quic | Self::Quic0Rtt)
    }
}

/// What a client offers in TLS, and the certificates that servers send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsOptions {
    /// Whether the `ClientHello` of TLS 1.3 has a key share for X25519MLKEM768, as in browsers since 2024. Its
    /// 1,216 bytes make the `ClientHello` longer than a SYN can carry.
    pub post_quantum: bool,
    /// The newest version that it offers.
    pub version: TlsVersion,
    /// The HTTP version that it offers; the server may lack it.
    pub http: HttpVersion,
    /// Size of the certificates that a server sends, like the chains of public authorities; about 450 bytes if
    /// `None`.
    pub certificate_bytes: Option<u32>,
    /// Whether safe requests are sent with the `ClientHello` of a resumed session. Set by the mode, not by the
    /// user.
    #[serde(skip)]
    pub early_data: bool,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            post_quantum: true,
            version: TlsVersion::default(),
            http: HttpVersion::default(),
            certificate_bytes: None,
            early_data: false,
        }
    }
}

/// A TLS version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 8446.
    #[default]
    #[serde(rename = "1.3")]
    V1_3,
}

/// How servers treat requests in early data (RFC 8470).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyRequests {
    /// Their tickets allow no early data.
    None,
    /// They answer them at once.
    Answered,
    /// They answer 425, and the client sends the request again after the handshake (section 5.2).
    AskedAgain,
}

/// Bytes of early data that a server accepts on a connection (RFC 8446, section 4.2.10).
pub const MAX_EARLY_DATA: u64 = 16_384;

/// An HTTP version, negotiated by TLS (RFC 7301).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum HttpVersion {
    /// RFC 9112.
    #[default]
    #[serde(rename = "1.1")]
    V1_1,
    /// RFC 9113.
    #[serde(rename = "2")]
    V2,
    /// The version that each host used in the recording. The recording also gives the number of TLS round trips.
    #[serde(rename = "recorded")]
    Recorded,
}

/// The cookie state: which cookies the client has when the load begins, and whether servers accept them. In JSON it
/// is a string: `"stale"`, `"warm:0.5"`, `"pool:3"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Cookies {
    /// A valid one for every host.
    Warm,
    /// None.
    Cold,
    /// A valid one for this share of the hosts, above 0 and below 1; none for the others.
    Share(f64),
    /// One for every host, made with a key that the server no longer has.
    Stale,
    /// One for every host, made with a key that the server has replaced and still accepts.
    Backup,
    /// One for every host, made for an address that the client no longer has.
    Moved,
    /// One for every host, made for an earlier address of the client's NAT.
    Nat,
    /// One for every host, made by one of several servers behind its address, each with its own key. The value is
    /// the number of servers, 2 to 16.
    Pool(u32),
    /// None, and none is needed: client and servers use Fast Open without cookies (`tcp_fastopen` bits 0x4 and
    /// 0x200 in Linux).
    Cookieless,
    /// Valid ones; the TLS tickets have expired (RFC 8446, section 4.6.1).
    Expired,
    /// Valid ones; the TLS tickets allow no early data.
    NoEarlyData,
    /// Valid ones; servers answer requests in early data with 425 (RFC 8470).
    TooEarly,
}

/// The error for a text that is not a cookie state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCookies(String);

const POOL: std::ops::RangeInclusive<u32> = 2..=16;

impl Cookies {
    /// The state of one host, by its number. For a share it is `Warm` or `Cold`, drawn with `seed`.
    #[must_use]
    pub fn of_host(self, host: usize, seed: u64) -> Self {
        match self {
            Self::Share(share) if Purpose::Cookie.falls_on(host, share, seed) => Self::Warm,
            Self::Share(_) => Self::Cold,
            whole => whole,
        }
    }

    /// Number of servers behind an address.
    pub fn servers(self) -> u32 {
        match self {
            Self::Pool(servers) => servers,
            _ => 1,
        }
    }
}

impl TryFrom<String> for Cookies {
    type Error = NoCookies;

    fn try_from(text: String) -> Result<Self, NoCookies> {
        let parsed = match text.as_str() {
            "warm" => Some(Self::Warm),
            "cold" => Some(Self::Cold),
            "stale" => Some(Self::Stale),
            "backup" => Some(Self::Backup),
            "moved" => Some(Self::Moved),
            "nat" => Some(Self::Nat),
            "cookieless" => Some(Self::Cookieless),
            "expired" => Some(Self::Expired),
            "no-early-data" => Some(Self::NoEarlyData),
            "too-early" => Some(Self::TooEarly),
            other => share(other).or_else(|| pool(other)),
        };
        parsed.ok_or(NoCookies(text))
    }
}

fn share(text: &str) -> Option<Cookies> {
    let share: f64 = text.strip_prefix("warm:")?.parse().ok()?;
    (share > 0.0 && share < 1.0).then_some(Cookies::Share(share))
}

fn pool(text: &str) -> Option<Cookies> {
    let servers = text.strip_prefix("pool:")?.parse().ok()?;
    POOL.contains(&servers).then_some(Cookies::Pool(servers))
}

impl fmt::Display for NoCookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cookies: {:?} is not warm, warm:SHARE (above 0, below 1), cold, stale, backup, moved, nat, \
             pool:SERVERS ({} to {}), cookieless, expired, no-early-data or too-early",
            self.0,
            POOL.start(),
            POOL.end()
        )
    }
}

impl std::error::Error for NoCookies {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_from_its_text_and_nothing_else_is_one() {
        let read = |text: &str| Cookies::try_from(text.to_owned()).ok();
        assert_eq!(read("warm"), Some(Cookies::Warm));
        assert_eq!(read("warm:0.25"), Some(Cookies::Share(0.25)));
        assert_eq!(read("pool:3"), Some(Cookies::Pool(3)));
        for text in [
            "", "hot", "Warm", "warm:", "warm:0", "warm:1", "warm:NaN", "pool", "pool:1", "pool:17",
            "pool:2.5",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn of_a_share_each_host_is_warm_or_cold_and_stays_so_at_a_larger_share() {
        let warm =
            |share| (0..1_000).filter(move |&host| Cookies::Share(share).of_host(host, 7) == Cookies::Warm);
        let half: Vec<_> = warm(0.5).collect();
        assert!((450..550).contains(&half.len()), "{}", half.len());
        assert!(half.iter().all(|host| warm(0.8).any(|other| other == *host)));
        assert_eq!(Cookies::Stale.of_host(0, 7), Cookies::Stale);
    }
}
