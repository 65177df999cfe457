//! Who makes cookies and who takes them. A cookie is told by the key that made it.

use firstflight_loader::Cookies;
use firstflight_path::{PathConfig, Purpose};

use crate::segment::{FastOpen, Segment};

/// A key of a server.
pub(crate) type Key = u32;

/// What cookies of priming were made with, where there is one server behind an address.
pub(crate) const FIRST: Key = 0;
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
pub(crate) fn primed(cookies: Cookies, path: &PathConfig, host: usize, server: u32) -> Option<Key> {
    let is_drawn = |share| Purpose::Cookie.falls_on(host, share, path.seed);
    match cookies.at(is_drawn) {
        Cookies::Cold | Cookies::Moved | Cookies::Cookieless => None,
        Cookies::Pool(_) => Some(server),
        _ => Some(FIRST),
    }
}
