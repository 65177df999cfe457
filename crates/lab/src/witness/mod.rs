//! The other witnesses of Fast Open, and whether they agree with the ledger.

mod counters;
mod proof;
mod tally;
mod tcp_info;

pub use counters::Counters;
pub use proof::{Proof, Sockets, Statement, examine};
pub use tcp_info::TcpInfo;

pub(crate) use counters::tcp_ext;
pub(crate) use tcp_info::congestion_control;
