//! A simple network and its servers: fixed RTT, fixed rate per connection, no shared link, no loss.

use std::collections::{HashMap, HashSet};

use firstflight_loader::{Command, Config, LoadRecord, NANOS_PER_MS, Nanos, OriginId};
use firstflight_page::Page;

use crate::run::Run;

pub(crate) const MS: Nanos = NANOS_PER_MS;
pub(crate) const RTT: Nanos = 100 * MS;

/// A server's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    NeverAnswers,
    /// Resets before the response.
    Resets,
    /// Resets after this many body bytes.
    ResetsAfter(u64),
    /// Answers with this status.
    Status(u16),
    /// Sends this many body bytes, and ends the response.
    Ends(u64),
    NoLocation,
}

#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) rtt: Nanos,
    /// The connection is writable at once, and the request goes with the SYN.
    pub(crate) tfo: bool,
    /// Transfer time of a body byte.
    pub(crate) per_byte: Nanos,
    /// Body bytes per event.
    pub(crate) chunk: u64,
    pub(crate) faults: HashMap<usize, Fault>,
    /// Origins that refuse connections, and those that never answer a SYN.
    pub(crate) refusing: HashSet<OriginId>,
    pub(crate) silent: HashSet<OriginId>,
    /// The server closes silently after this many responses: the next request gets a reset.
    pub(crate) dies_after: Option<u32>,
    /// The server closes after each response, whatever the client asked for.
    pub(crate) closes: bool,
    /// How late the driver handles the loader's timers.
    pub(crate) late: Nanos,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            rtt: RTT,
            tfo: false,
            per_byte: 0,
            chunk: 1_000,
            faults: HashMap::new(),
            refusing: HashSet::new(),
            silent: HashSet::new(),
            dies_after: None,
            closes: false,
            late: 0,
        }
    }
}

/// The result of a load.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) record: LoadRecord,
    /// The loader's commands, with the time since navigation start.
    pub(crate) commands: Vec<(Nanos, Command)>,
    /// Most open connections at a time, to one origin and in all.
    pub(crate) peak_per_origin: usize,
    pub(crate) peak: usize,
}

impl Outcome {
    /// Resources in the order in which their requests were sent.
    pub(crate) fn sent(&self) -> Vec<usize> {
        let request = |(_, command): &(Nanos, Command)| match command {
            Command::Send { request, .. } => Some(*request),
            _ => None,
        };
        self.commands.iter().filter_map(request).collect()
    }

    pub(crate) fn error(&self, resource: usize) -> &str {
        self.record.requests[resource]
            .error
            .as_deref()
            .unwrap_or_default()
    }
}

impl Network {
    pub(crate) fn load(&self, page: &Page) -> Outcome {
        self.load_with(page, Config::default())
    }

    pub(crate) fn load_with(&self, page: &Page, config: Config) -> Outcome {
        Run::new(self, page, config).outcome()
    }
}
