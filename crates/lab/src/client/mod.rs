//! The built-in client: the sans-I/O [loader](firstflight_loader) on kernel sockets.

mod chunked;
mod connection;
mod driver;
mod http;
mod http2;
mod tls;

pub use connection::connect;
pub use driver::{Loaded, SocketFacts, load};
pub use tls::config as tls_config;
