//! What is remembered of a host while a page loads: by the client, and by the host itself.

use crate::segment::FastOpen;
use crate::tls::Sessions;
use crate::what_if::WhatIf;

/// One host.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Host {
    /// The cookie that the client has.
    pub(crate) cookie: Option<FastOpen>,
    /// What if cookies are good for one connection each: how many the client has.
    pub(crate) spare_cookies: u32,
    /// What if failures are remembered: Fast Open has failed here.
    pub(crate) is_avoided: bool,
    /// Sessions of TLS that the client can resume.
    pub(crate) sessions: Sessions,
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
        self.cookie.unwrap_or(FastOpen::Request)
    }

    /// A cookie came with a SYN-ACK; stale ones are worth nothing beside it.
    pub(crate) fn gain_cookie(&mut self, what_if: &WhatIf) {
        if self.cookie != Some(FastOpen::Cookie) {
            self.spare_cookies = 0;
        }
        self.cookie = Some(FastOpen::Cookie);
        if let Some(most) = what_if.one_time_cookies {
            self.spare_cookies = most.min(self.spare_cookies + 1);
        }
    }
}
