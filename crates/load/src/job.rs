//! The job that the lab and the simulator share: one load.

use std::borrow::Cow;
use std::collections::BTreeSet;

use firstflight_loader::{Config, Http2, NANOS_PER_MS, Quic};
use firstflight_page::{Host, HttpSpoken, Scheme};
use firstflight_path::{IpVersion, PathConfig};
use serde::Deserialize;

use crate::{Cookies, EarlyRequests, HttpVersion, Mode, Priorities, TlsOptions, TlsVersion};

/// The settings of one load that the lab and the simulator share. Each engine's job adds settings of its own.
#[derive(Debug, Clone, Deserialize)]
pub struct Load {
    /// Which origins of the page use TLS.
    #[serde(default)]
    pub scheme: Scheme,
    /// How the built-in loader uses TLS.
    #[serde(default)]
    pub tls: TlsOptions,
    /// The IP version of the packets.
    #[serde(default)]
    pub ip: IpVersion,
    /// The path.
    pub path: PathConfig,
    /// How the origins' round-trip times differ.
    #[serde(default)]
    pub origin_rtt: OriginRtt,
    /// Whether the built-in loader waits for name lookups as long as the recording did.
    #[serde(default)]
    pub lookups: bool,
    /// Whether requests state priorities, and servers follow them.
    #[serde(default)]
    pub priorities: Priorities,
    /// The transport mode.
    pub mode: Mode,
    /// The cookie state of the client.
    pub cookies: Cookies,
    /// Whether connections stay open after a response.
    #[serde(default = "yes")]
    pub keep_alive: bool,
    /// Timeout of the load, ms.
    #[serde(default = "two_minutes")]
    pub timeout_ms: u64,
    /// Timeout of a request, ms.
    #[serde(default = "half_a_minute")]
    pub request_timeout_ms: u64,
}

/// How the origins' round-trip times differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OriginRtt {
    /// All origins have the path's round-trip time.
    #[default]
    Path,
    /// The nearest origin has the path's round-trip time. The others are farther by as much as in the recording.
    Recorded,
}

fn yes() -> bool {
    true
}
fn two_minutes() -> u64 {
    120_000
}
fn half_a_minute() -> u64 {
    30_000
}

impl Load {
    /// A load over `path`, with defaults for its other settings.
    #[must_use]
    pub fn new(path: PathConfig, mode: Mode, cookies: Cookies) -> Self {
        Self {
            scheme: Scheme::default(),
            tls: TlsOptions::default(),
            ip: IpVersion::default(),
            path,
            origin_rtt: OriginRtt::default(),
            lookups: false,
            priorities: Priorities::default(),
            mode,
            cookies,
            keep_alive: yes(),
            timeout_ms: two_minutes(),
            request_timeout_ms: half_a_minute(),
        }
    }

    /// What connections offer. Without keep-alive this is HTTP/1.1: HTTP/2 cannot close after every response.
    #[must_use]
    pub fn offer(&self) -> TlsOptions {
        let http = if self.keep_alive {
            self.tls.http
        } else {
            HttpVersion::V1_1
        };
        let version = match self.mode {
            Mode::Tls12 => TlsVersion::V1_2,
            _ => self.tls.version,
        };
        TlsOptions {
            http,
            version,
            early_data: self.mode.sends_early_data() && self.cookies != Cookies::NoEarlyData,
            ..self.tls
        }
    }

    /// How servers treat requests in early data.
    #[must_use]
    pub fn early_requests(&self) -> EarlyRequests {
        match self.cookies {
            _ if !self.offer().early_data => EarlyRequests::None,
            Cookies::TooEarly => EarlyRequests::AskedAgain,
            _ => EarlyRequests::Answered,
        }
    }

    /// What connections over TCP offer. In a QUIC mode they are fallbacks, for which the client has no sessions.
    #[must_use]
    pub fn offer_over_tcp(&self) -> TlsOptions {
        let offer = self.offer();
        TlsOptions {
            early_data: offer.early_data && !self.mode.is_quic(),
            ..offer
        }
    }

    /// What a connection over TCP offers to a host. `host`: what the recording says of it.
    #[must_use]
    pub fn offer_to(&self, host: Option<&Host>) -> TlsOptions {
        let offer = self.offer_over_tcp();
        if offer.http != HttpVersion::Recorded {
            return offer;
        }
        TlsOptions {
            http: match host.and_then(|host| host.http) {
                Some(HttpSpoken::V2) => HttpVersion::V2,
                Some(HttpSpoken::V1_1) | None => HttpVersion::V1_1,
            },
            version: if self.speaks_tls12_with(host) {
                TlsVersion::V1_2
            } else {
                offer.version
            },
            ..offer
        }
    }

    /// Whether the load uses TLS 1.2 with a host because the recording did: only with [`HttpVersion::Recorded`],
    /// and only in modes that do not choose the TLS handshake themselves.
    fn speaks_tls12_with(&self, host: Option<&Host>) -> bool {
        self.offer().http == HttpVersion::Recorded
            && !self.mode.is_secure()
            && host.is_some_and(|host| host.tls_trips == 2)
    }

    /// The numbers of the hosts that use TLS 1.2 as recorded. `hosts`: what the recording says of each, in order of
    /// first use.
    pub fn tls12_hosts<'a>(&self, hosts: impl IntoIterator<Item = Option<&'a Host>>) -> BTreeSet<usize> {
        let numbered = hosts.into_iter().enumerate();
        numbered
            .filter_map(|(number, host)| self.speaks_tls12_with(host).then_some(number))
            .collect()
    }

    /// Configuration of the built-in loader.
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            keep_alive: self.keep_alive,
            http2: match self.offer().http {
                HttpVersion::V1_1 => Http2::Never,
                HttpVersion::V2 => Http2::Always,
                HttpVersion::Recorded => Http2::Recorded,
            },
            verifies: self.offer().http == HttpVersion::Recorded && !self.mode.has_sessions(),
            quic: match self.mode.is_quic() {
                false => Quic::Never,
                true if self.path.may_interfere() => Quic::WhereItWorks,
                true => Quic::Always,
            },
            lookups: self.lookups,
            request_timeout: self.request_timeout_ms.saturating_mul(NANOS_PER_MS),
            load_timeout: self.timeout_ms.saturating_mul(NANOS_PER_MS),
            ..Config::default()
        }
    }

    /// The path, with each host's round-trip time. `farther_ms`: how much farther than the nearest host each was
    /// when the page was recorded, in order of first use.
    pub fn path_to_hosts(&self, farther_ms: impl IntoIterator<Item = f64>) -> Cow<'_, PathConfig> {
        match self.origin_rtt {
            OriginRtt::Path => Cow::Borrowed(&self.path),
            OriginRtt::Recorded => {
                let mut path = self.path.clone();
                path.origin_rtt_ms = farther_ms
                    .into_iter()
                    .map(|farther| self.path.rtt_ms + farther)
                    .collect();
                Cow::Owned(path)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Load {
        serde_json::from_str(text).expect("a load")
    }

    #[test]
    fn http_2_is_offered_only_where_connections_outlive_a_response() {
        let with = |keep_alive| {
            let text = format!(
                r#"{{"path": {{}}, "mode": "tfo", "cookies": "warm", "tls": {{"http": "2"}}, "keep_alive": {keep_alive}}}"#
            );
            load(&text).config().http2
        };
        assert_eq!(with(true), Http2::Always);
        assert_eq!(with(false), Http2::Never);
    }

    #[test]
    fn a_timeout_of_any_length_is_one() {
        let text = format!(
            r#"{{"path": {{}}, "mode": "tcp", "cookies": "cold", "timeout_ms": {0}, "request_timeout_ms": {0}}}"#,
            u64::MAX
        );
        let config = load(&text).config();
        assert_eq!(
            (config.load_timeout, config.request_timeout),
            (u64::MAX, u64::MAX)
        );
    }

    #[test]
    fn recorded_distances_are_added_to_the_path_only_where_asked_for() {
        let with = |origin_rtt: &str| {
            let text = format!(
                r#"{{"path": {{"rtt_ms": 20}}, "mode": "tcp", "cookies": "cold", "origin_rtt": "{origin_rtt}"}}"#
            );
            load(&text).path_to_hosts([0.0, 5.5]).origin_rtt_ms.clone()
        };
        assert_eq!(with("recorded"), [20.0, 25.5]);
        assert!(with("path").is_empty());
    }
}
