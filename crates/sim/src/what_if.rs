//! What if: TCP Fast Open and TLS as they might be, and as no kernel and no stack of the lab has them.
//!
//! Each answers one question about a page load. Not modelled is what they cost elsewhere: a server's memory of the
//! cookies that were used, its guard against replayed early data, and what an attacker gains.

use firstflight_load::Cookies;
use firstflight_loader::NANOS_PER_MS;
use firstflight_path::Nanos;
use firstflight_tcp::{Answer, Early, FastOpen, Segment, Seq};
use serde::Deserialize;

use crate::host::Keys;

/// The differences; by default there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WhatIf {
    /// The client remembers where Fast Open failed, and does plain TCP there (RFC 7413, section 4.1.3.1).
    pub negative_cache: Option<Since>,
    /// A cookie is good for one connection; the next comes with the SYN-ACK. The client keeps so many of a host.
    pub one_time_cookies: Option<u32>,
    /// A cookie is bound to a secret of the client's, not to its address: it is good wherever the client goes.
    pub client_cookies: bool,
    /// The server takes data from SYNs that prove nothing, and answers within limits.
    pub unproven: Option<Unproven>,
    /// Segments of data that may leave with the SYN, more than its own.
    pub more_syn_segments: u32,
    /// The client resumes sessions of an earlier visit, and sends so many bytes with its `ClientHello` at most
    /// (RFC 8446, section 2.3); 0, or with HTTP/2: it only resumes.
    pub early_data: Option<u64>,
}

/// What the client remembers of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Since {
    /// Those of this load.
    Load,
    /// Those of an earlier visit too.
    Visit,
}

/// What a server says to a client whose address is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unproven {
    /// So many bytes of data at most before the handshake ends.
    pub bytes: u64,
    /// So long after the SYN at most, ms.
    #[serde(default)]
    pub ms: Option<u64>,
}

impl Unproven {
    /// How far a server goes whose SYN arrived at `now`.
    fn early(self, now: Nanos) -> Early {
        Early {
            end: 1 + Seq::from(self.bytes),
            until: self.ms.map_or(Nanos::MAX, |ms| now + ms * NANOS_PER_MS),
        }
    }
}

impl WhatIf {
    /// What the cookies of a load amount to.
    pub(crate) fn cookies(&self, cookies: Cookies) -> Cookies {
        match cookies {
            Cookies::Moved | Cookies::Nat if self.client_cookies => Cookies::Warm,
            others => others,
        }
    }

    /// How a server with `keys`, and with room for one more request, answers `syn`.
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

    /// Whether cookies are asked for, used and judged as Linux does it.
    pub(crate) fn leaves_cookies(&self) -> bool {
        self.negative_cache.is_none() && self.one_time_cookies.is_none() && self.unproven.is_none()
    }
}
