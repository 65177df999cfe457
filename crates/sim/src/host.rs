//! One host: what the client caches of it during a load, and how its servers make and check cookies.
//!
//! A cookie is represented by the key that made it.

use firstflight_load::Cookies;
use firstflight_tcp::{FastOpen, Key, Segment};

use crate::tls::Sessions;
use crate::what_if::WhatIf;

/// One host.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Host {
    /// The client's cookie for it.
    pub(crate) cookie: Option<Key>,
    /// What-if one-time cookies: how many spare ones the client has.
    pub(crate) spare_cookies: u32,
    /// What-if negative cache: whether Fast Open has failed here.
    pub(crate) is_avoided: bool,
    /// TLS sessions over TCP that the client can resume.
    pub(crate) sessions: Sessions,
    /// TLS sessions over QUIC that the client can resume.
    pub(crate) quic_sessions: Sessions,
    /// Connections that the client has opened to it.
    pub(crate) connections: u64,
    /// Fast Open requests pending at its servers.
    pub(crate) pending: u32,
}

impl Host {
    /// The option of the next SYN.
    pub(crate) fn option(&mut self, what_if: &WhatIf) -> FastOpen {
        if self.is_avoided {
            return FastOpen::Absent;
        }
        if what_if.one_time_cookies.is_some() {
            let Some(left) = self.spare_cookies.checked_sub(1) else {
                return FastOpen::Request;
            };
            self.spare_cookies = left;
        }
        self.cookie.map_or(FastOpen::Request, FastOpen::Cookie)
    }

    /// A cookie came with a SYN-ACK. It replaces earlier ones.
    pub(crate) fn gain_cookie(&mut self, cookie: Key, what_if: &WhatIf) {
        if self.cookie != Some(cookie) {
            self.spare_cookies = 0;
        }
        self.cookie = Some(cookie);
        if let Some(most) = what_if.one_time_cookies {
            self.spare_cookies = most.min(self.spare_cookies + 1);
        }
    }
}

/// The key of the cookies from priming, if there is one server behind an address.
const FIRST: Key = 0;
/// The key of a server that has changed its key, or that sees the client at another address.
const NEXT: Key = 1;

/// The keys with which one server makes and accepts cookies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    /// The key for new cookies.
    primary: Key,
    /// A further key whose cookies it accepts.
    backup: Option<Key>,
    /// Whether it accepts data without a cookie.
    cookieless: bool,
}

/// A server's answer to the Fast Open option of a SYN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    /// Whether it may accept the SYN's data.
    pub(crate) takes: bool,
    /// The cookie in the SYN-ACK.
    pub(crate) gives: Option<Key>,
}

impl Keys {
    /// The keys of one of the servers behind an address.
    pub(crate) fn of(cookies: Cookies, server: u32) -> Self {
        let primary = match cookies {
            Cookies::Stale | Cookies::Nat | Cookies::Backup => NEXT,
            Cookies::Pool(_) => server,
            _ => FIRST,
        };
        Self {
            primary,
            backup: (cookies == Cookies::Backup).then_some(FIRST),
            cookieless: cookies == Cookies::Cookieless,
        }
    }

    /// The server's answer to a SYN (`tcp_try_fastopen`).
    pub(crate) fn judge(self, syn: &Segment) -> Verdict {
        let new = Some(self.primary);
        let (takes, gives) = match syn.fast_open {
            FastOpen::Absent => (self.cookieless && syn.len > 0, None),
            FastOpen::Request => (false, new),
            FastOpen::Cookie(key) if key == self.primary => (true, None),
            FastOpen::Cookie(key) => (self.backup == Some(key), new),
        };
        Verdict { takes, gives }
    }
}

/// The client's cookie for `host` at the start of a load, if `server` primed it.
pub(crate) fn primed(cookies: Cookies, seed: u64, host: usize, server: u32) -> Option<Key> {
    match cookies.of_host(host, seed) {
        Cookies::Cold | Cookies::Moved | Cookies::Cookieless => None,
        Cookies::Pool(_) => Some(server),
        _ => Some(FIRST),
    }
}
