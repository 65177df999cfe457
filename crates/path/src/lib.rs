//! What packets cross between a client and its origins: rate, queue, propagation delay, loss, interference,
//! middleboxes.
//!
//! The model is sans-I/O: time is an argument, in nanoseconds since an epoch of the caller's, and a
//! packet is a size with a payload that is handed back when it is due. The lab pushes real packets
//! through it, the simulator imagined ones. Every time is computed from the time a packet was sent and
//! from the state of the path, never from when the caller happened to look, so a late caller does not
//! make the next packet late.
//!
//! Not modelled: link-layer framing and its overhead (a packet is charged its own bytes, no more),
//! half-duplex media, cross traffic.
//!
//! ```
//! use firstflight_path::{Direction, Network, PathConfig};
//!
//! let config = PathConfig { rtt_ms: 20.0, up_bps: Some(8_000_000), ..PathConfig::default() };
//! let mut network = Network::new(&config)?;
//! network.send(0, Direction::Up, 0, 1_000, "hello");
//! assert_eq!(network.next_event(), Some(11_000_000)); // 1 ms to serialise, 10 ms to arrive
//! assert_eq!(network.deliver(11_000_000), Some((11_000_000, Direction::Up, "hello")));
//! # Ok::<(), firstflight_path::PathError>(())
//! ```
#![forbid(unsafe_code)]

mod burst;
mod capacity;
mod config;
mod ecn;
mod flow;
mod interference;
mod ip;
mod jitter;
mod link;
mod managed;
mod middlebox;
mod network;
mod queue;
mod random;
mod trace;

pub use burst::Burst;
pub use config::{PathConfig, PathError, Queue, Topology};
pub use ecn::Ecn;
pub use flow::{Flow, Protocol};
pub use interference::{Action, Header, Hello, Kind, Rule, TcpFlags};
pub use ip::IpVersion;
pub use link::Link;
pub use middlebox::{Middlebox, MiddleboxKind};
pub use network::{Arrival, Direction, Dropped, DroppedPacket, Drops, Network, Packet};
pub use random::{Purpose, Stream};
pub use trace::{Trace, TraceError};

/// Nanoseconds since the caller's epoch.
pub type Nanos = u64;
