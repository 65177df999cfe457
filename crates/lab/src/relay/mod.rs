//! The relay: one thread that owns every packet between the client and the servers.
//!
//! It reads packets from one TUN device, asks the [path model](firstflight_path) when each is due, and
//! writes it to the other device then. Due times follow from the packets' arrival stamps alone.
//! Not modelled: anything below IP. IPv6 does not cross.

mod capture;
mod lateness;
mod mangle;
mod pace;
mod packet;
mod run;

pub use firstflight_path::TcpFlags;

pub use capture::Capture;
pub use lateness::{Lateness, LatenessSummary};
pub use packet::Segment;
pub use run::{Keep, Relay, RelayReport, Timing, Wire};

pub(crate) use mangle::{assemble, parse};
pub(crate) use pace::{Pace, Rest};
pub(crate) use packet::{
    EXPERIMENT_FAST_OPEN, OPTION_END, OPTION_EXPERIMENT, OPTION_FAST_OPEN, OPTION_NOTHING, cookie,
};
