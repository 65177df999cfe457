//! A case: a flow, and the faults of single packets.

use std::collections::BTreeMap;

use firstflight_path::{Direction, Nanos, PathConfig, Queue};
use firstflight_tcp::pair::{Closes, Fault};
use firstflight_tcp::{Algorithm, SendMemory};

use crate::Trace;

/// One connection, from its SYN to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Round-trip propagation time.
    pub rtt: Nanos,
    /// Rate towards the client, bit/s; `None` for an unlimited one.
    pub down_bps: Option<u64>,
    /// Rate towards the server, bit/s.
    pub up_bps: Option<u64>,
    /// Packets that fit into the queue before either link.
    pub queue: usize,
    /// Initial congestion window of both ends, segments.
    pub initial_window: u32,
    /// Congestion control of both ends.
    pub algorithm: Algorithm,
    /// Whether both ends use explicit congestion notification.
    pub ecn: bool,
    /// Fast Open.
    pub fast_open: FastOpen,
    /// The requests, one after the other, with their responses.
    pub exchanges: Vec<Exchange>,
    /// Which end closes the connection.
    pub close: Closes,
}

/// A request and its response. The client sends the next request as soon as it has the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the request.
    pub up: u64,
    /// Bytes of the response, written at once.
    pub down: u64,
    /// Time from the request's last byte to the response.
    pub wait: Nanos,
}

/// The client's Fast Open state when it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FastOpen {
    /// It does not use Fast Open.
    #[default]
    None,
    /// It has no cookie, and asks for one.
    Request,
    /// It has a cookie.
    Cookie,
    /// It has a cookie that the server does not accept.
    Unknown,
}

/// The faults of single packets, counted from 1 in each direction. All other packets only cross the path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// Whether the packet goes up, and its number.
    pub faults: BTreeMap<(bool, usize), Fault>,
}

/// The machine's influence on a connection: its clock and its kernel build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Machine {
    /// The kernel's monotonic time at the trace's time 0.
    pub start: Nanos,
    /// Ticks (`jiffies`) that it had counted at monotonic time 0. Ticks come at whole multiples of 4 ms.
    pub jiffies: u64,
    /// Memory that its send buffers reserve.
    pub memory: SendMemory,
}

/// What a kernel did with a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The kernel's release, from `uname -r`.
    pub kernel: String,
    /// The machine.
    pub machine: Machine,
    /// Its packets.
    pub trace: Trace,
}

/// A flow, its script, and a kernel's trace if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Lines of comment at its head, without their `#`.
    pub comment: Vec<String>,
    /// The flow.
    pub flow: Flow,
    /// The faults of its packets.
    pub script: Script,
    /// What a kernel did.
    pub recorded: Option<Recorded>,
}

impl Flow {
    /// The path of the flow, on both clocks.
    pub fn path(&self) -> PathConfig {
        PathConfig {
            rtt_ms: self.rtt as f64 / 1e6,
            down_bps: self.down_bps,
            up_bps: self.up_bps,
            queue: Queue::Packets(self.queue),
            ..PathConfig::default()
        }
    }
}

impl Script {
    /// The fault of packet `number` of `direction`, counted from 1.
    pub fn fault(&self, direction: Direction, number: usize) -> Option<Fault> {
        self.faults.get(&(direction == Direction::Up, number)).copied()
    }
}
