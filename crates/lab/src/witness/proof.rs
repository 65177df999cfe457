//! Three witnesses, one verdict: a `tfo` load used Fast Open and a `tcp` load did not.

use serde::Serialize;

use super::promise::{Given, Promise};
use super::{Counters, tally};
use crate::ledger::{Cookie, Entry};

/// What the witnesses said of one connection.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The connection's number in the load.
    pub connection: u32,
    /// What the relay saw.
    pub ledger: Option<Entry>,
    /// `TCP_INFO`'s "SYN data acknowledged"; `None` if the socket could not be asked.
    pub tcp_info: Option<bool>,
}

/// What the treatment promises of every connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expectation {
    /// `tcp`: no SYN carries the option or data.
    Never,
    /// `tfo` on a path that loses and changes nothing: what follows from the cookies.
    Cookies(Promise),
    /// `tfo` otherwise: the witnesses must agree, whatever they saw.
    Agreement,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// Whether all witnesses agree with each other and with what was promised.
    pub ok: bool,
    /// What the relay counted.
    pub ledger: LedgerCount,
    /// Whose sockets were asked.
    pub sockets: Sockets,
    /// What the sockets said.
    pub tcp_info: TcpInfoCount,
    /// What the kernel counted.
    pub counters: Counters,
    /// Every contradiction, in words.
    pub disagreements: Vec<String>,
}

/// Whose sockets testify by `TCP_INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sockets {
    /// The client's own.
    Client,
    /// The servers': those of a foreign client cannot be asked.
    Servers,
}

/// The ledger's part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LedgerCount {
    /// Connections.
    pub connections: u64,
    /// SYNs that asked for a cookie.
    pub asked: u64,
    /// SYNs with data, with a cookie or where none is needed.
    pub offered: u64,
    /// ... whose data was acknowledged.
    pub accepted: u64,
    /// Connections that were given a cookie.
    pub given: u64,
    /// Connections to whose segments the path did something on purpose.
    pub interfered: u64,
}

/// `TCP_INFO`'s part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TcpInfoCount {
    /// Sockets that say their SYN data was acknowledged.
    pub syn_data: u64,
}

/// Compares what the witnesses say. `counters` holds the growth during the load, the client's and the servers'.
pub fn examine(expectation: Expectation, statements: &[Statement], counters: Counters) -> Proof {
    let entries = || {
        statements
            .iter()
            .filter_map(|statement| statement.ledger.as_ref())
    };
    let count = |test: fn(&Entry) -> bool| entries().filter(|entry| test(entry)).count() as u64;
    let ledger = LedgerCount {
        connections: entries().count() as u64,
        asked: count(|entry| entry.cookie == Cookie::Requested),
        offered: count(Entry::offered),
        accepted: count(Entry::accepted),
        given: count(|entry| entry.new_cookie != 0),
        interfered: count(|entry| entry.interfered.is_some()),
    };
    let confirmed = statements
        .iter()
        .filter(|statement| statement.tcp_info == Some(true))
        .count() as u64;
    let given = Given::by(entries());
    let mut disagreements: Vec<_> = statements
        .iter()
        .filter_map(|statement| contradiction(expectation, statement, &given))
        .collect();
    if let Expectation::Cookies(promise) = expectation {
        disagreements.extend(promise.crowded(entries()));
    }
    let entries: Vec<_> = entries().collect();
    disagreements.extend(tally::contradictions(&entries, counters));
    Proof {
        ok: disagreements.is_empty(),
        ledger,
        sockets: Sockets::Client,
        tcp_info: TcpInfoCount { syn_data: confirmed },
        counters,
        disagreements,
    }
}

fn contradiction(expectation: Expectation, statement: &Statement, given: &Given) -> Option<String> {
    let connection = statement.connection;
    let say = |text: String| Some(format!("connection {connection}: {text}"));
    let Some(entry) = &statement.ledger else {
        return say("the relay never saw its SYN".to_owned());
    };
    match statement.tcp_info {
        None => return say("its socket could not be asked".to_owned()),
        Some(info) if info != entry.accepted() => {
            let relay = if entry.accepted() {
                "acknowledged"
            } else {
                "not acknowledged"
            };
            let socket = if info { "it was" } else { "it was not" };
            return say(format!("the relay saw SYN data {relay}, TCP_INFO says {socket}"));
        }
        Some(_) => {}
    }
    match expectation {
        Expectation::Never if entry.cookie != Cookie::None || entry.syn_payload_bytes > 0 => {
            say("its SYN used Fast Open in a tcp load".to_owned())
        }
        Expectation::Cookies(promise) => say(promise.broken_by(entry, given)?.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
