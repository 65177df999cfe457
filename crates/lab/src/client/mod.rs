//! The built-in client: the sans-I/O [loader](firstflight_loader) on kernel sockets.

mod chunked;
mod connection;
mod driver;
mod http;
mod http2;
mod quic;
mod tls;

use std::io;

use nix::libc;

use crate::LabError;

pub use connection::{connect, reset_when_closed};
pub use driver::{Loaded, SocketFacts, load};
pub use quic::{QuicConfig, endpoint as quic_endpoint, gain_quic_sessions, unbound_socket};
pub use tls::{Tls, config as tls_config, config_for_quic as quic_tls, gain_sessions};

/// Why a connection, or an exchange on it, failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the name does not resolve in the lab")]
    UnknownHost,
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error("closed by the server")]
    Closed,
    #[error("the server sent bytes nobody asked for")]
    Unasked,
    #[error(transparent)]
    Http(#[from] http::HttpError),
    #[error("HTTP/2 does not begin")]
    NoHttp2,
    #[error("{0}")]
    Quic(String),
    #[error(transparent)]
    Http2(#[from] h2::Error),
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
}

impl Failure {
    /// The failure as a laboratory's error, if the cause is this machine and not the page or the path: it had no
    /// descriptor or memory left.
    fn of_the_lab(&self) -> Option<LabError> {
        let Self::Socket(error) = self else { return None };
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                Some(LabError::system("a socket of the client", error))
            }
            _ => None,
        }
    }
}
