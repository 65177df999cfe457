//! A server under load: clients that arrive at a constant rate, what each costs the server, and floods of SYNs.
//!
//! There are two namespaces and real sockets, and every packet crosses this process, as in a
//! [`Lab`](crate::lab::Lab). The difference is that processor time is measured. So the `wire::Wire` is a
//! thread per direction, and the one towards the server runs on the server's processor, as its network card's
//! interrupts would. The path is a delay without rate, queue or loss.

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
