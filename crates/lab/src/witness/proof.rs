//! The proof of a load: the relay, the sockets and the kernel's counters must agree that it used Fast Open, or did
//! not.

use firstflight_load::ledger::Count;
use firstflight_load::promise::{Client, Given, Promise, Server};
use firstflight_path::Protocol;
use serde::Serialize;

use super::{Counters, tally};
use crate::ledger::Entry;

/// What the witnesses report of one connection.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The connection's number in the load.
    pub connection: u32,
    /// What the relay saw.
    pub ledger: Option<Entry>,
    /// `TCP_INFO`'s "SYN data acknowledged"; `None` if the socket could not be asked.
    pub tcp_info: Option<bool>,
    /// What its server's end reports; `None` if no server accepted it.
    pub server: Option<Server>,
    /// What its client's end reports.
    pub client: Client,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// Whether all witnesses agree with each other and with the promise.
    pub ok: bool,
    /// What the relay counted.
    pub ledger: Count,
    /// Whose sockets were asked.
    pub sockets: Sockets,
    /// What the sockets said.
    pub tcp_info: TcpInfoCount,
    /// What the kernel counted.
    pub counters: Counters,
    /// Every contradiction, as text.
    pub disagreements: Vec<String>,
}

/// Which sockets give `TCP_INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sockets {
    /// The client's own.
    Client,
    /// The servers', because a foreign client's cannot be asked.
    Servers,
}

/// The sum over `TCP_INFO`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TcpInfoCount {
    /// Sockets that say their SYN data was acknowledged.
    pub syn_data: u64,
}

/// Compares the witnesses. `counters`: the increase during the load, at the client and the servers. It includes the
/// connections of `visits`, of which nothing is promised.
pub fn examine<'a>(
    promise: &Promise,
    statements: &'a [Statement],
    visits: impl Iterator<Item = &'a Entry>,
    counters: Counters,
) -> Proof {
    let seen = || {
        statements
            .iter()
            .filter_map(|statement| Some(statement.ledger.as_ref()?.of_host()))
    };
    let entries: Vec<_> = seen().map(|(_, entry)| entry).collect();
    let confirmed = statements
        .iter()
        .filter(|statement| statement.tcp_info == Some(true))
        .count() as u64;
    let visits: Vec<_> = visits.map(Entry::of_host).collect();
    let given: Given = seen().chain(visits.iter().copied()).collect();
    let mut disagreements: Vec<_> = statements
        .iter()
        .filter_map(|statement| contradiction(promise, statement, &given))
        .collect();
    disagreements.extend(promise.fast_open.crowded(seen()));
    let counted = [
        &entries[..],
        &visits.iter().map(|(_, entry)| *entry).collect::<Vec<_>>(),
    ]
    .concat();
    disagreements.extend(tally::contradictions(&counted, counters));
    Proof {
        ok: disagreements.is_empty(),
        ledger: entries.iter().copied().collect(),
        sockets: Sockets::Client,
        tcp_info: TcpInfoCount { syn_data: confirmed },
        counters,
        disagreements,
    }
}

fn contradiction(promise: &Promise, statement: &Statement, given: &Given) -> Option<String> {
    let connection = statement.connection;
    let say = |text: String| Some(format!("connection {connection}: {text}"));
    let Some(entry) = &statement.ledger else {
        return say("the relay never saw its first packet".to_owned());
    };
    match statement.tcp_info {
        _ if entry.seen.protocol == Protocol::Udp => {}
        None => return say("its socket could not be asked".to_owned()),
        Some(info) if info != entry.seen.accepted() => {
            let relay = if entry.seen.accepted() {
                "acknowledged"
            } else {
                "not acknowledged"
            };
            let socket = if info { "it was" } else { "it was not" };
            return say(format!("the relay saw SYN data {relay}, TCP_INFO says {socket}"));
        }
        Some(_) => {}
    }
    let breach = promise.broken_by(entry.of_host(), given);
    let breach = breach
        .or_else(|| promise.broken_by_ends(entry.of_host(), statement.server.as_ref(), statement.client));
    say(breach?.to_string())
}

#[cfg(test)]
mod tests;
