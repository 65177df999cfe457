//! The built-in client: the sans-I/O [loader](firstflight_loader) on kernel sockets.

mod connection;
mod driver;
mod http;

pub use connection::connect;
pub use driver::{Loaded, SocketFacts, load};
