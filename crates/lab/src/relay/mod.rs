//! The relay: one thread that owns every packet between the client and the servers.
//!
//! It reads packets from one TUN device, asks the [path model](firstflight_path) when each is due, and
//! writes it to the other device then. Due times follow from the packets' arrival stamps alone.
//! Not modelled: anything below IP. IPv6 does not cross.

mod capture;
mod lateness;
mod mangle;
mod pace;
mod run;

pub use capture::Capture;
pub use lateness::{Lateness, LatenessSummary};
pub use run::{Keep, Relay, RelayReport, RelaySummary, Timing, Wire};

pub(crate) use pace::{Pace, Rest};
