//! What the relay, the servers and the kernel saw: connections, their requests, and sums.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use firstflight_load::head;
use firstflight_load::promise::{Client, Promise};
use firstflight_load::record::{Connection, Totals};
use firstflight_page::{Origin, Page};
use firstflight_path::Protocol;
use serde::Serialize;

use crate::ledger::{ConnectionKey, Entry, Ledger};
use crate::net::AddressPlan;
use crate::origin::{Conversation, Exchange};
use crate::witness::{Counters, Proof, Sockets, Statement, examine};

/// One connection: its ledger entry, and what the server that accepted it saw, if one did.
#[derive(Debug)]
pub struct Line<'a> {
    /// What the relay saw.
    pub entry: &'a Entry,
    /// What the server saw.
    pub conversation: Option<Arc<Conversation>>,
    /// Its requests.
    pub exchanges: Vec<Exchange>,
}

/// The origins by address and port.
#[derive(Debug)]
pub struct Directory(HashMap<(IpAddr, u16), Origin>);

/// The sums of all connections, with their proof.
#[derive(Debug, Clone, Serialize)]
pub struct Traffic {
    /// Every connection, in the order of opening.
    pub connections: Vec<Connection>,
    /// Their sums.
    #[serde(flatten)]
    pub totals: Totals,
    /// The verdict of the witnesses.
    pub proof: Proof,
}

/// Joins what the relay and the servers saw of each connection, in the order of opening.
pub fn lines<'a>(ledger: &'a Ledger, conversations: Vec<Arc<Conversation>>) -> Vec<Line<'a>> {
    let mut accepted: HashMap<(Protocol, ConnectionKey), VecDeque<Arc<Conversation>>> = HashMap::new();
    for conversation in conversations {
        accepted
            .entry((conversation.protocol(), conversation.key))
            .or_default()
            .push_back(conversation);
    }
    let line = |entry: &'a Entry| {
        let of_entry = accepted.get_mut(&(entry.seen.protocol, entry.key));
        Line::new(entry, of_entry.and_then(VecDeque::pop_front))
    };
    ledger.entries().iter().map(line).collect()
}

impl<'a> Line<'a> {
    fn new(entry: &'a Entry, conversation: Option<Arc<Conversation>>) -> Self {
        let exchanges = conversation.as_ref().map(|seen| seen.exchanges());
        Self {
            entry,
            exchanges: exchanges.unwrap_or_default(),
            conversation,
        }
    }

    /// Whether the client only got a ticket on it.
    pub fn is_visit(&self) -> bool {
        !self.exchanges.is_empty() && self.exchanges.iter().all(Exchange::is_visit)
    }

    /// Whether the measured load used a connection of a visit.
    pub fn is_reused(&self) -> bool {
        self.exchanges.iter().any(Exchange::is_visit) && !self.is_visit()
    }
}

impl Directory {
    /// The origins of `pages` by their addresses.
    pub fn new<'a>(pages: impl Iterator<Item = &'a Page>, addresses: &AddressPlan) -> Self {
        let origins = pages.flat_map(Page::origins);
        Self(
            origins
                .filter_map(|origin| Some(((addresses.address(&origin.host)?, origin.port), origin)))
                .collect(),
        )
    }

    /// The origin at the server's end of a connection; otherwise the address and port.
    fn name(&self, key: ConnectionKey) -> String {
        let (_, address, port) = key;
        let origin = self.0.get(&(address, port));
        origin.map_or_else(|| SocketAddr::new(address, port).to_string(), ToString::to_string)
    }
}

impl Traffic {
    /// Sums connections up. `started`: the monotonic time that is 0 in the rows, ns. The kernel's counters include
    /// the connections of `visits`, which are no part of the load.
    pub fn new(
        lines: &[Line<'_>],
        visits: &[Line<'_>],
        directory: &Directory,
        started: u64,
        promise: &Promise,
        counters: Counters,
    ) -> Self {
        let statements: Vec<_> = lines.iter().enumerate().map(statement).collect();
        let proof = Proof {
            sockets: Sockets::Servers,
            ..examine(
                promise,
                &statements,
                visits.iter().map(|line| line.entry),
                counters,
            )
        };
        let connections = lines.iter().enumerate().map(|(number, line)| {
            Connection::new(
                number as u32,
                directory.name(line.entry.key),
                &line.entry.seen,
                line.conversation
                    .as_ref()
                    .and_then(|conversation| conversation.server().tls),
                started,
            )
        });
        Self {
            connections: connections.collect(),
            totals: lines.iter().map(|line| &line.entry.seen).collect(),
            proof,
        }
    }
}

/// What the witnesses say of a foreign program's connection. Its sockets cannot be asked, but the servers' can:
/// `TCP_INFO` reports SYN data at either end. If no server accepted the connection (none listens, or the client
/// closed before), no data was accepted from a SYN, whatever the relay saw.
fn statement((number, line): (usize, &Line<'_>)) -> Statement {
    let asked = line.conversation.as_ref().map(|conversation| conversation.info);
    Statement {
        connection: number as u32,
        ledger: Some(line.entry.clone()),
        tcp_info: match asked {
            Some(info) => info.map(|info| info.syn_data),
            None => Some(false),
        },
        server: line
            .conversation
            .as_ref()
            .map(|conversation| conversation.server()),
        client: Client {
            tls: None,
            // The request in early data need not be the first one that the server read.
            may_be_early: line
                .exchanges
                .first()
                .and_then(|first| head::is_safe(&first.method).then_some(true)),
        },
    }
}
