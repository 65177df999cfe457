//! The servers of a page: one address per host, HTTP/1.1, HTTP/2 and TLS. Every answer is as recorded.

mod answer;
mod answers;
mod authority;
mod body;
pub mod dns;
mod listen;
mod log;
mod quic;
mod respond;
mod services;
mod target;
mod timer;
mod tls;
mod turns;
mod world;

pub use answer::HeaderFields;
pub use answers::{Answers, Bodies, Headers, Matching, Served};
pub use authority::Authority;
pub use listen::Waiting;
pub use log::{Conversation, Exchange, Log};
pub use services::{ECHO_PORT, SINK_PORT, SOURCE_PORT, service_variables};
pub use world::{Servers, ServersConfig};
