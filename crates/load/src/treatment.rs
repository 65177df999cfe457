//! What is compared: the transport mode, the cookies that the client has, and how it speaks TLS.

use std::fmt;

use firstflight_path::Purpose;
use serde::{Deserialize, Serialize};

/// What a connection's first flight carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing: plain TCP, and TLS 1.3 where an origin speaks TLS.
    Tcp,
    /// The request, or the `ClientHello`, in the SYN (RFC 7413).
    Tfo,
    /// Nothing, and TLS takes two round trips (RFC 5246).
    Tls12,
    /// Nothing: TLS 1.3 resumes a session that the client has of every host.
    Resumption,
    /// Nothing in the SYN; the request goes with the `ClientHello` (RFC 8446, section 2.3).
    EarlyData,
    /// The `ClientHello` and the request in the SYN.
    #[serde(rename = "tfo+early-data")]
    TfoEarlyData,
    /// Nothing: QUIC and HTTP/3, without a session (RFC 9000).
    Quic,
    /// The request, in 0-RTT packets behind QUIC's first (RFC 9001, section 4.6).
    #[serde(rename = "quic-0rtt")]
    Quic0Rtt,
}

impl Mode {
    /// Whether clients use Fast Open.
    #[must_use]
    pub fn is_fast_open(self) -> bool {
        matches!(self, Self::Tfo | Self::TfoEarlyData)
    }

    /// Whether it is a way to speak TLS, beyond what any client does.
    #[must_use]
    pub fn is_secure(self) -> bool {
        !matches!(self, Self::Tcp | Self::Tfo)
    }

    /// Whether the client has sessions of TLS to resume when the load begins.
    #[must_use]
    pub fn has_sessions(self) -> bool {
        matches!(
            self,
            Self::Resumption | Self::EarlyData | Self::TfoEarlyData | Self::Quic0Rtt
        )
    }

    /// Whether safe requests go with the `ClientHello`.
    #[must_use]
    pub fn sends_early_data(self) -> bool {
        matches!(self, Self::EarlyData | Self::TfoEarlyData | Self::Quic0Rtt)
    }

    /// Whether https origins are spoken to over QUIC.
    #[must_use]
    pub fn is_quic(self) -> bool {
        matches!(self, Self::Quic | Self::Quic0Rtt)
    }
}

/// What a client offers, and the certificates that it is shown.
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
    /// Bytes of the certificates that a server sends, as long as the chains of public authorities; about 450 without.
    pub certificate_bytes: Option<u32>,
    /// Whether safe requests go with the `ClientHello` of a resumed session; a mode's, and no setting.
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

/// A version of TLS.
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

/// What servers do with requests that come as early data (RFC 8470).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyRequests {
    /// They take none: their tickets say so.
    None,
    /// They answer them.
    Answered,
    /// They answer 425, and wait to be asked again (section 5.2).
    AskedAgain,
}

/// Bytes of early data that a server takes of a connection (RFC 8446, section 4.2.10).
pub const MAX_EARLY_DATA: u64 = 16_384;

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
    /// What each host spoke in the recording, which says, too, how many round trips TLS took with it.
    #[serde(rename = "recorded")]
    Recorded,
}

/// Which cookies the client has when the load begins, and what the servers think of them. As JSON a text:
/// `"stale"`, `"warm:0.5"`, `"pool:3"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Cookies {
    /// A good one for every host.
    Warm,
    /// None.
    Cold,
    /// A good one for this share of the hosts, above 0 and below 1; none for the others.
    Share(f64),
    /// One for every host, made with a key that the server no longer has.
    Stale,
    /// One for every host, made with a key that the server has replaced and still accepts.
    Backup,
    /// One for every host, and for an address that the client no longer has.
    Moved,
    /// One for every host, made for the address that the client's NAT had.
    Nat,
    /// One for every host, made by one of this many servers behind its address, 2 to 16; each has a key of its own.
    Pool(u32),
    /// None, and none is needed: client and servers do without (`tcp_fastopen` bits 0x4 and 0x200 in Linux).
    Cookieless,
    /// Good ones; the tickets of TLS have expired (RFC 8446, section 4.6.1).
    Expired,
    /// Good ones; the tickets of TLS allow no early data.
    NoEarlyData,
    /// Good ones; servers answer what comes as early data with 425 (RFC 8470).
    TooEarly,
}

/// A text that is not a cookie state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCookies(String);

const POOL: std::ops::RangeInclusive<u32> = 2..=16;

impl Cookies {
    /// The state of one host, by its number: of a share `Warm` or `Cold`, as `seed` draws it.
    #[must_use]
    pub fn of_host(self, host: usize, seed: u64) -> Self {
        match self {
            Self::Share(share) if Purpose::Cookie.falls_on(host, share, seed) => Self::Warm,
            Self::Share(_) => Self::Cold,
            whole => whole,
        }
    }

    /// How many servers there are behind an address.
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
