//! One host: what the client remembers of it while a page loads, and how its servers make and judge cookies.
//!
//! A cookie is told by the key that made it.

use firstflight_load::Cookies;
use firstflight_tcp::{FastOpen, Key, Segment};

use crate::tls::Sessions;
use crate::what_if::WhatIf;

/// One host.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Host {
    /// The cookie that the client has.
    pub(crate) cookie: Option<Key>,
    /// What if cookies are good for one connection each: how many the client has.
    pub(crate) spare_cookies: u32,
    /// What if failures are remembered: Fast Open has failed here.
    pub(crate) is_avoided: bool,
    /// Sessions of TLS that the client can resume.
    pub(crate) sessions: Sessions,
    /// The same over QUIC.
    pub(crate) quic_sessions: Sessions,
    /// Connections that the client has opened to it.
    pub(crate) connections: u64,
    /// Fast Open requests that are pending there.
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

    /// A cookie came with a SYN-ACK; others are worth nothing beside it.
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

/// What cookies of priming were made with, where there is one server behind an address.
const FIRST: Key = 0;
/// What a server makes cookies with that has changed its key, or that sees the client at another address.
const NEXT: Key = 1;

/// What one server makes and takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    /// It makes cookies with this one.
    primary: Key,
    /// Cookies made with this one are good as well.
    backup: Option<Key>,
    /// Whether it takes data without a cookie.
    cookieless: bool,
}

/// What a server makes of the Fast Open option of a SYN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    /// Whether data may be taken.
    pub(crate) takes: bool,
    /// The cookie that the SYN-ACK brings.
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

    /// What the server makes of a SYN (`tcp_try_fastopen`).
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

/// The cookie that the client has for `host` when the load begins, where `server` primed it.
pub(crate) fn primed(cookies: Cookies, seed: u64, host: usize, server: u32) -> Option<Key> {
    match cookies.of_host(host, seed) {
        Cookies::Cold | Cookies::Moved | Cookies::Cookieless => None,
        Cookies::Pool(_) => Some(server),
        _ => Some(FIRST),
    }
}
