//! What is remembered of a host while a page loads: by the client, and by the host itself.

use crate::cookies::Key;
use crate::segment::FastOpen;
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
