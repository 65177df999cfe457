//! What each cookie state promises of a connection, on a path that loses and changes nothing: what its SYN carries,
//! whether the server takes the data, and whether it gives out a new cookie (RFC 7413, section 4.2; in Linux
//! `tcp_try_fastopen` and `tcp_rcv_fastopen_synack`).
//!
//! Cookies are told apart by their bytes: one that nobody was given during the load is one of priming.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;

use firstflight_load::Cookies;
use firstflight_path::Purpose;

use crate::ledger::{Cookie, Entry};
use crate::net::AddressPlan;

/// How late the relay may read a SYN that was sent before the client had a cookie, ns.
const GRACE: u64 = 50_000_000;

/// What was promised of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    /// The cookie state.
    pub cookies: Cookies,
    /// Hosts of the page, to tell them from the lab's services.
    pub hosts: usize,
    /// Seed of the share of hosts that have a cookie.
    pub seed: u64,
}

/// Every cookie that the client was given, and when.
#[derive(Debug, Default)]
pub(super) struct Given {
    cookies: HashMap<(Ipv4Addr, u128), u64>,
    first: HashMap<Ipv4Addr, u64>,
}

impl Given {
    pub(super) fn by<'a>(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let mut given = Self::default();
        for entry in entries {
            let (Some(at), address) = (entry.answered, entry.key.1) else {
                continue;
            };
            if entry.new_cookie != 0 {
                let cookie = given.cookies.entry((address, entry.new_cookie)).or_insert(at);
                *cookie = at.min(*cookie);
                let first = given.first.entry(address).or_insert(at);
                *first = at.min(*first);
            }
        }
        given
    }

    fn has(&self, entry: &Entry) -> bool {
        self.cookies.contains_key(&(entry.key.1, entry.sent_cookie))
    }

    /// Whether the client had been given one of this server's cookies, some time before it opened the connection.
    fn long_before(&self, entry: &Entry) -> bool {
        let first = self.first.get(&entry.key.1);
        first.is_some_and(|at| at + GRACE < entry.opened)
    }
}

impl Promise {
    /// How a connection breaks the promise.
    pub(super) fn broken_by(&self, entry: &Entry, given: &Given) -> Option<&'static str> {
        let host = AddressPlan::index(self.hosts, entry.key.1);
        let is_drawn = |share| Purpose::Cookie.falls_on(host, share, self.seed);
        let state = self.cookies.at(is_drawn);
        match (state, entry.cookie) {
            (Cookies::Cookieless, Cookie::None) if entry.offered() => outcome(entry, true, false),
            (Cookies::Cookieless, _) => Some("its SYN carried no data without a cookie"),
            (Cookies::Cold | Cookies::Moved, Cookie::Requested) if given.long_before(entry) => {
                Some("its SYN asked for a cookie, which the client had been given before")
            }
            (Cookies::Cold | Cookies::Moved, Cookie::Requested) => outcome(entry, false, true),
            (_, Cookie::Sent) if entry.offered() => sent(state, entry, given),
            _ => Some("its SYN carried no data in a warm tfo load"),
        }
    }

    /// Which address has given and taken more cookies than it has servers.
    pub(super) fn crowded<'a>(&self, entries: impl Iterator<Item = &'a Entry>) -> Option<String> {
        let Cookies::Pool(servers) = self.cookies else {
            return None;
        };
        let mut seen: BTreeMap<Ipv4Addr, BTreeSet<u128>> = BTreeMap::new();
        for entry in entries {
            let cookies = [entry.sent_cookie, entry.new_cookie].into_iter();
            let of_address = seen.entry(entry.key.1).or_default();
            of_address.extend(cookies.filter(|cookie| *cookie != 0));
        }
        let (address, cookies) = seen
            .into_iter()
            .find(|(_, cookies)| cookies.len() > servers as usize)?;
        let count = cookies.len();
        Some(format!(
            "{address}: {count} different cookies of {servers} servers"
        ))
    }
}

/// What is wrong with a connection whose SYN carried data and a cookie.
fn sent(state: Cookies, entry: &Entry, given: &Given) -> Option<&'static str> {
    let is_new = given.has(entry);
    match state {
        _ if !is_new && given.long_before(entry) => {
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
