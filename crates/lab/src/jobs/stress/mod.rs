//! A server under load: clients that arrive at a constant rate, what each costs the server, and floods of SYNs.
//!
//! Two namespaces, real sockets, and every packet through this process, as in a [`Lab`](crate::lab::Lab). What
//! differs is that processor time is measured: the [wire](wire::Wire) is a thread per direction, and the one
//! towards the server runs on the server's processor, as its network card's interrupts would. The path is a
//! delay; it has no rate, no queue and no loss.

mod clients;
mod flood;
mod flood_packet;
mod job;
mod kernel;
mod latency;
mod meter;
mod proof;
mod server;
mod wire;

pub use job::{StressJob, StressRecord};
