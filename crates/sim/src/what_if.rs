//! What-ifs: variants of TCP Fast Open and TLS that no kernel and no TLS stack of the lab has.
//!
//! Each answers one question about page loads. Not modelled are their costs elsewhere: a server's memory of used
//! cookies, its protection against replayed early data, and what an attacker gains.

use firstflight_load::Cookies;
use firstflight_loader::NANOS_PER_MS;
use firstflight_path::Nanos;
use firstflight_tcp::{Answer, Early, FastOpen, Segment, Seq};
use serde::Deserialize;

use crate::host::Keys;

/// The deviations; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WhatIf {
    /// The client remembers where Fast Open failed, and uses plain TCP there (RFC 7413, section 4.1.3.1).
    pub negative_cache: Option<Since>,
    /// A cookie is valid for one connection, and the next comes with the SYN-ACK. The client keeps this many per
    /// host.
    pub one_time_cookies: Option<u32>,
    /// A cookie depends on a secret of the client instead of its address, so it stays valid if the address changes.
    pub client_cookies: bool,
    /// The server accepts data from SYNs without a valid cookie, and limits its answer.
    pub unproven: Option<Unproven>,
    /// Segments of data that may leave with the SYN, besides the SYN itself.
    pub more_syn_segments: u32,
    /// The client resumes sessions of an earlier visit, and sends at most this many bytes of early data (RFC 8446,
    /// section 2.3). With 0, or with HTTP/2, it only resumes.
    pub early_data: Option<u64>,
}

/// Which failures the client remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Since {
    /// Those of this load.
    Load,
    /// Those of an earlier visit too.
    Visit,
}

/// What a server may send to a client whose address is not proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unproven {
    /// Largest amount of data before the handshake ends, bytes.
    pub bytes: u64,
    /// Latest time after the SYN, ms.
    #[serde(default)]
    pub ms: Option<u64>,
}

impl Unproven {
    /// The limits of a server whose SYN arrived at `now`.
    fn early(self, now: Nanos) -> Early {
        Early {
            end: 1 + Seq::from(self.bytes),
            until: self.ms.map_or(Nanos::MAX, |ms| now + ms * NANOS_PER_MS),
        }
    }
}

impl WhatIf {
    /// The cookie state that these cookies amount to under the what-if.
    pub(crate) fn cookies(&self, cookies: Cookies) -> Cookies {
        match cookies {
            Cookies::Moved | Cookies::Nat if self.client_cookies => Cookies::Warm,
            others => others,
        }
    }

    /// The answer to `syn` of a server with `keys` and with room for one more request.
    pub(crate) fn answer(&self, now: Nanos, syn: &Segment, keys: Keys) -> Answer {
        let verdict = keys.judge(syn);
        let is_unproven = syn.len > 0 && syn.fast_open != FastOpen::Absent && !verdict.takes;
        let unproven = self.unproven.filter(|_| is_unproven);
        let early = verdict.takes.then_some(Early::WITHOUT_LIMIT);
        let next = match (self.one_time_cookies, syn.fast_open) {
            (Some(_), FastOpen::Cookie(key)) => Some(key),
            _ => None,
        };
        Answer {
            early: early.or_else(|| unproven.map(|limit| limit.early(now))),
            grants: verdict.gives.or(next),
        }
    }

    /// Whether cookies are requested, used and checked as in Linux.
    pub(crate) fn leaves_cookies(&self) -> bool {
        self.negative_cache.is_none() && self.one_time_cookies.is_none() && self.unproven.is_none()
    }
}
