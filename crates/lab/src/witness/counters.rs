//! The kernel's own counters, per network namespace (`TcpExt` in `/proc/net/netstat`).

use std::collections::HashMap;
use std::fs;

use serde::Serialize;

use crate::LabError;

/// Fast Open counters of one namespace, or their increase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// `TCPFastOpenActive`: connections whose SYN data was acknowledged, at the client.
    pub active: u64,
    /// `TCPFastOpenActiveFail`: SYN data sent and not acknowledged.
    pub active_fail: u64,
    /// `TCPFastOpenPassive`: SYN data accepted, at the server.
    pub passive: u64,
    /// `TCPFastOpenPassiveFail`: SYN data refused for an invalid cookie.
    pub passive_fail: u64,
    /// `TCPFastOpenPassiveAltKey`: SYN data accepted with a cookie of the backup key.
    pub passive_alt_key: u64,
    /// `TCPFastOpenListenOverflow`: refused because too many were pending.
    pub listen_overflow: u64,
    /// `TCPFastOpenCookieReqd`: cookie requests that reached the servers.
    pub cookie_requests: u64,
}

impl Counters {
    /// Reads the counters of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`LabError`] when `/proc` does not show them.
    pub fn read() -> Result<Self, LabError> {
        let text = fs::read_to_string("/proc/thread-self/net/netstat")
            .map_err(|error| LabError::system("reading /proc/net/netstat", error))?;
        Ok(Self::parse(&text))
    }

    /// The increase since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            active: self.active - earlier.active,
            active_fail: self.active_fail - earlier.active_fail,
            passive: self.passive - earlier.passive,
            passive_fail: self.passive_fail - earlier.passive_fail,
            passive_alt_key: self.passive_alt_key - earlier.passive_alt_key,
            listen_overflow: self.listen_overflow - earlier.listen_overflow,
            cookie_requests: self.cookie_requests - earlier.cookie_requests,
        }
    }

    /// The client's counters combined with the servers'.
    #[must_use]
    pub fn joined(client: Self, servers: Self) -> Self {
        Self {
            active: client.active,
            active_fail: client.active_fail,
            ..servers
        }
    }

    fn parse(text: &str) -> Self {
        let counts = tcp_ext(text);
        let count = |name| counts.get(name).copied().unwrap_or_default();
        Self {
            active: count("TCPFastOpenActive"),
            active_fail: count("TCPFastOpenActiveFail"),
            passive: count("TCPFastOpenPassive"),
            passive_fail: count("TCPFastOpenPassiveFail"),
            passive_alt_key: count("TCPFastOpenPassiveAltKey"),
            listen_overflow: count("TCPFastOpenListenOverflow"),
            cookie_requests: count("TCPFastOpenCookieReqd"),
        }
    }
}

/// Every counter of `TcpExt` by its name, from the text of `/proc/net/netstat`.
pub(crate) fn tcp_ext(text: &str) -> HashMap<&str, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let names = lines.next().unwrap_or_default().split_whitespace();
    let values = lines.next().unwrap_or_default().split_whitespace();
    names
        .zip(values)
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name_wherever_they_stand() {
        let text = "TcpExt: SyncookiesSent TCPFastOpenActive TCPFastOpenPassive\nTcpExt: 5 7 9\nIpExt: a\nIpExt: 1\n";
        let counters = Counters::parse(text);
        assert_eq!(
            (counters.active, counters.passive, counters.active_fail),
            (7, 9, 0)
        );
    }

    #[test]
    fn this_kernel_shows_them() {
        Counters::read().unwrap();
    }
}
