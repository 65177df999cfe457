//! What a treatment promises of every connection, and what breaks it.
//!
//! On a path that loses and changes nothing each cookie state decides what a connection's SYN carries, whether the server
//! takes the data, and whether it gives out a new cookie (RFC 7413, section 4.2; in Linux `tcp_try_fastopen` and
//! `tcp_rcv_fastopen_synack`). Cookies are told apart by their bytes: one that the client was not given during the load is
//! one of priming.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use firstflight_path::Nanos;

use crate::ledger::{Cookie, Entry};
use crate::{Cookies, Load, Mode};

/// How late the lab's relay may read a SYN that was sent before the client had a cookie, ns.
const GRACE: Nanos = 50_000_000;

/// A connection: its host's number, and what crossed the wire.
pub type Connection<'a> = (usize, &'a Entry);

/// What the treatment promises of every connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Promise {
    /// `tcp`: no SYN carries the option or data.
    Never,
    /// `tfo` on a path that loses and changes nothing: what follows from the cookies.
    Cookies {
        /// The cookie state.
        cookies: Cookies,
        /// Seed of the share of hosts that have a cookie.
        seed: u64,
    },
    /// `tfo` otherwise: the witnesses must agree, whatever they saw.
    Agreement,
}

/// Every cookie that the client was given, and when.
#[derive(Debug, Default)]
pub struct Given {
    cookies: HashMap<(usize, u128), Nanos>,
    first: HashMap<usize, Nanos>,
}

impl<'a> FromIterator<Connection<'a>> for Given {
    fn from_iter<T: IntoIterator<Item = Connection<'a>>>(connections: T) -> Self {
        let mut given = Self::default();
        for (host, entry) in connections {
            let Some(at) = entry.answered.filter(|_| entry.new_cookie != 0) else {
                continue;
            };
            let cookie = given.cookies.entry((host, entry.new_cookie)).or_insert(at);
            *cookie = at.min(*cookie);
            let first = given.first.entry(host).or_insert(at);
            *first = at.min(*first);
        }
        given
    }
}

impl Given {
    fn has(&self, (host, entry): Connection<'_>) -> bool {
        self.cookies.contains_key(&(host, entry.sent_cookie))
    }

    /// Whether the client had been given one of this host's cookies, some time before it opened the connection.
    fn long_before(&self, (host, entry): Connection<'_>) -> bool {
        let first = self.first.get(&host);
        first.is_some_and(|at| at + GRACE < entry.opened)
    }
}

impl Load {
    /// What its treatment promises.
    #[must_use]
    pub fn promise(&self) -> Promise {
        match self.mode {
            Mode::Tcp => Promise::Never,
            Mode::Tfo if self.path.may_lose() => Promise::Agreement,
            Mode::Tfo => Promise::Cookies {
                cookies: self.cookies,
                seed: self.path.seed,
            },
        }
    }
}

impl Promise {
    /// How a connection breaks it.
    pub fn broken_by(self, connection: Connection<'_>, given: &Given) -> Option<&'static str> {
        let (host, entry) = connection;
        match self {
            Self::Agreement => None,
            Self::Never => (entry.cookie != Cookie::None || entry.syn_payload_bytes > 0)
                .then_some("its SYN used Fast Open in a tcp load"),
            Self::Cookies { cookies, seed } => against(cookies.of_host(host, seed), connection, given),
        }
    }

    /// Which host has given and taken more cookies than it has servers.
    pub fn crowded<'a>(self, connections: impl IntoIterator<Item = Connection<'a>>) -> Option<String> {
        let Self::Cookies {
            cookies: Cookies::Pool(servers),
            ..
        } = self
        else {
            return None;
        };
        let mut seen: BTreeMap<usize, BTreeSet<u128>> = BTreeMap::new();
        for (host, entry) in connections {
            let cookies = [entry.sent_cookie, entry.new_cookie].into_iter();
            seen.entry(host)
                .or_default()
                .extend(cookies.filter(|cookie| *cookie != 0));
        }
        let mut counts = seen.into_iter().map(|(host, cookies)| (host, cookies.len()));
        let (host, count) = counts.find(|(_, count)| *count > servers as usize)?;
        Some(format!(
            "host {host}: {count} different cookies of {servers} servers"
        ))
    }
}

/// What is wrong with a connection to a host in this state.
fn against(state: Cookies, connection: Connection<'_>, given: &Given) -> Option<&'static str> {
    let (_, entry) = connection;
    match (state, entry.cookie) {
        (Cookies::Cookieless, Cookie::None) if entry.offered() => outcome(entry, true, false),
        (Cookies::Cookieless, _) => Some("its SYN carried no data without a cookie"),
        (Cookies::Cold | Cookies::Moved, Cookie::Requested) if given.long_before(connection) => {
            Some("its SYN asked for a cookie, which the client had been given before")
        }
        (Cookies::Cold | Cookies::Moved, Cookie::Requested) => outcome(entry, false, true),
        (_, Cookie::Sent) if entry.offered() => sent(state, connection, given),
        _ => Some("its SYN carried no data in a warm tfo load"),
    }
}

/// What is wrong with a connection whose SYN carried data and a cookie.
fn sent(state: Cookies, connection: Connection<'_>, given: &Given) -> Option<&'static str> {
    let (is_new, (_, entry)) = (given.has(connection), connection);
    match state {
        _ if !is_new && given.long_before(connection) => {
            Some("its SYN carried an old cookie, though the client had been given a new one")
        }
        Cookies::Cold | Cookies::Moved if !is_new => {
            Some("its SYN carried a cookie that the client had not been given")
        }
        Cookies::Pool(_) if entry.new_cookie == entry.sent_cookie => {
            Some("it was given the cookie that it had sent")
        }
        Cookies::Pool(_) => outcome(entry, entry.accepted(), !entry.accepted()),
        Cookies::Stale | Cookies::Nat if !is_new => outcome(entry, false, true),
        Cookies::Backup if !is_new => outcome(entry, true, true),
        _ => outcome(entry, true, false),
    }
}

/// What is wrong with what came of a connection. A full queue may drop a SYN, which is sent again bare, or a SYN-ACK,
/// which is sent again without a cookie (`tcp_retransmit_timer`, `tcp_rtx_synack`).
fn outcome(entry: &Entry, is_accepted: bool, is_given: bool) -> Option<&'static str> {
    if entry.syn_retransmits > 0 || entry.answered.is_none() {
        return None;
    }
    match (entry.accepted(), entry.new_cookie != 0) {
        (false, _) if is_accepted => Some("its SYN's data was not acknowledged"),
        (true, _) if !is_accepted => Some("its SYN's data was acknowledged, though its cookie was not good"),
        (_, false) if is_given && entry.retransmits == 0 => Some("it was given no cookie"),
        (_, true) if !is_given => Some("it was given a cookie, though it had a good one"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
