//! Whether a load used Fast Open as its mode and its cookies promise.

use firstflight_load::{Cookies, Mode};
use firstflight_path::Purpose;
use firstflight_tcp::FastOpen;
use serde::Serialize;

use crate::host::FIRST;
use crate::job::Job;
use crate::ledger::Entry;
use crate::load::Loaded;
use crate::page::SimPage;

/// What the ledger says of the treatment. There is no kernel to ask: the simulated wire is the only witness.
#[derive(Debug, Clone, Serialize)]
pub struct Proof {
    /// Whether the ledger shows what the mode promises.
    pub ok: bool,
    /// Who testifies.
    pub witnesses: [&'static str; 1],
    /// What was counted.
    pub ledger: Counts,
    /// Every contradiction, in words.
    pub disagreements: Vec<String>,
}

/// What the ledger counted.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[expect(missing_docs, reason = "named as in the lab's answer")]
pub struct Counts {
    pub connections: u64,
    pub asked: u64,
    pub offered: u64,
    pub accepted: u64,
    pub given: u64,
    pub interfered: u64,
}

/// Holds the ledger against what the mode promises, as the lab does.
pub(crate) fn proof(page: &SimPage, job: &Job, loaded: &Loaded) -> Proof {
    let mut disagreements = Vec::new();
    let mut ledger = Counts::default();
    let connections = loaded.record.connections.iter().zip(&loaded.ledger);
    for (connection, entry) in connections.filter(|(_, entry)| entry.opened.is_some()) {
        ledger.add(entry);
        let host = page.hosts[connection.origin];
        if let Some(problem) = contradiction(job, entry, host) {
            disagreements.push(format!("connection {}: {problem}", connection.conn.0));
        }
    }
    Proof {
        ok: disagreements.is_empty(),
        witnesses: ["ledger"],
        ledger,
        disagreements,
    }
}

impl Counts {
    fn add(&mut self, entry: &Entry) {
        self.connections += 1;
        self.asked += u64::from(entry.cookie == FastOpen::Request);
        self.offered += u64::from(entry.offered());
        self.accepted += u64::from(entry.accepted());
        self.given += u64::from(entry.new_cookie.is_some());
        self.interfered += u64::from(entry.interfered.is_some());
    }
}

fn contradiction(job: &Job, entry: &Entry, host: usize) -> Option<&'static str> {
    match job.load.mode {
        Mode::Tcp if entry.cookie != FastOpen::Absent || entry.syn_payload_bytes > 0 => {
            Some("plain TCP, but its SYN has Fast Open's option or data")
        }
        Mode::Tfo if !job.load.path.may_lose() && job.what_if.leaves_cookies() => {
            let is_drawn = |share| Purpose::Cookie.falls_on(host, share, job.load.path.seed);
            against(job.what_if.cookies(job.load.cookies).at(is_drawn), entry)
        }
        _ => None,
    }
}

/// What a connection of a host in this state has come to in spite of it. A full queue may drop a SYN, which is sent
/// again bare, or a SYN-ACK, which is sent again without a cookie.
fn against(state: Cookies, entry: &Entry) -> Option<&'static str> {
    let Some((takes, gives)) = promised(state, entry) else {
        return Some("its SYN is not one of its cookie state");
    };
    if entry.syn_retransmits > 0 || !entry.is_answered {
        return None;
    }
    let is_given = entry.new_cookie.is_some() || (gives && entry.retransmits > 0);
    match (entry.accepted() == takes, is_given == gives) {
        (false, _) if takes => Some("its SYN's data was not acknowledged"),
        (false, _) => Some("its SYN's data was acknowledged, though its cookie was not good"),
        (_, false) if gives => Some("it was given no cookie"),
        (_, false) => Some("it was given a cookie, though it had a good one"),
        _ => None,
    }
}

/// Whether data is taken and a cookie given; `None` if the SYN is none that the client sends in this state.
fn promised(state: Cookies, entry: &Entry) -> Option<(bool, bool)> {
    if entry.cookie == FastOpen::Request {
        return matches!(state, Cookies::Cold | Cookies::Moved).then_some((false, true));
    }
    if !entry.offered() || (entry.cookie == FastOpen::Absent) != (state == Cookies::Cookieless) {
        return None;
    }
    let is_first = entry.cookie == FastOpen::Cookie(FIRST);
    Some(match state {
        Cookies::Stale | Cookies::Nat if is_first => (false, true),
        Cookies::Backup if is_first => (true, true),
        Cookies::Pool(_) => (entry.accepted(), !entry.accepted()),
        _ => (true, false),
    })
}
