//! The relay: one thread that owns every packet between the client and the servers.
//!
//! It reads packets from one TUN device, asks the [path model](firstflight_path) when each is due, and writes it to
//! the other device at that time. Due times follow from the packets' arrival times alone. Not modelled: anything
//! below IP. Of IPv6 the relay carries only packets to and from origins.

mod capture;
mod mangle;
mod pace;
mod report;
mod run;
mod timing;

pub use capture::Capture;
pub use report::{Lateness, LatenessSummary, RelayReport, RelaySummary};
pub use run::{Keep, Relay, Wire};
pub use timing::Timing;

pub(crate) use mangle::mark;
pub(crate) use pace::{Pace, Rest};
