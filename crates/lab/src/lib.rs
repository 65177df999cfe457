//! The laboratory: the real clock. Namespaces, a TUN relay, origin servers, and a ledger.
//!
//! A lab is one process. It enters new user, network, mount and PID namespaces, and puts the client on one side of
//! a [relay](relay::Relay) and a [server per host](origin::Servers) on the other. It does one job and exits; the
//! kernel then removes everything in it. This is the only crate that touches the operating system.

pub mod client;
pub mod clock;
pub mod doctor;
pub mod jobs;
pub mod lab;
pub mod ledger;
pub mod namespace;
pub mod net;
pub mod origin;
pub mod packet;
pub mod program;
pub mod relay;
pub mod scheduling;
pub mod tether;
pub mod traffic;
pub mod tun;
pub mod watch;
pub mod witness;

mod descriptors;
mod error;

pub use error::{LabError, Role, ServerProblem};
