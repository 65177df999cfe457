//! The lab's own services to measure a path: echo (UDP), source (TCP), sink (both) (RFC 862, 864, 863).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use super::listen::{Waiting, accept, listen};
use super::log::Log;
use crate::LabError;

/// Port of the UDP echo.
pub const ECHO_PORT: u16 = 7;
/// Port of the TCP and UDP sink.
pub const SINK_PORT: u16 = 9;
/// Port of the TCP source.
pub const SOURCE_PORT: u16 = 19;

/// Environment variables that tell a program where the services at `address` are, as `host:port`.
pub fn service_variables(address: IpAddr) -> impl Iterator<Item = (String, String)> {
    [
        ("FIRSTFLIGHT_ECHO", ECHO_PORT),
        ("FIRSTFLIGHT_SOURCE", SOURCE_PORT),
        ("FIRSTFLIGHT_SINK", SINK_PORT),
    ]
    .into_iter()
    .map(move |(name, port)| (name.to_owned(), SocketAddr::new(address, port).to_string()))
}

/// Bytes that a service reads or writes at once.
const CHUNK: usize = 256 * 1024;

/// Starts all three at `address` in the running runtime. Returns the listeners.
pub(super) async fn start(address: IpAddr, log: &Arc<Log>) -> Result<[Arc<TcpListener>; 2], LabError> {
    let echo = UdpSocket::bind((address, ECHO_PORT));
    let echo = echo
        .await
        .map_err(|error| LabError::system("starting the echo service", error))?;
    tokio::spawn(async move {
        let mut datagram = vec![0; 65_536];
        loop {
            if let Ok((length, from)) = echo.recv_from(&mut datagram).await {
                let _ = echo.send_to(&datagram[..length], from).await;
            }
        }
    });
    let sink = UdpSocket::bind((address, SINK_PORT));
    let sink = sink
        .await
        .map_err(|error| LabError::system("starting the sink service", error))?;
    tokio::spawn(async move {
        let mut datagram = vec![0; 65_536];
        while sink.recv(&mut datagram).await.is_ok() {}
    });
    let waiting = Waiting::default();
    let source = Arc::new(listen(address, SOURCE_PORT, 0, waiting)?);
    let sink = Arc::new(listen(address, SINK_PORT, 0, waiting)?);
    let listeners = [Arc::clone(&source), Arc::clone(&sink)];
    let (log, sinks_log) = (Arc::clone(log), Arc::clone(log));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = log.accepted(accept(&source, &log).await);
            tokio::spawn(async move {
                let chunk = vec![0; CHUNK];
                while stream.write_all(&chunk).await.is_ok() {}
            });
        }
    });
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = sinks_log.accepted(accept(&sink, &sinks_log).await);
            tokio::spawn(async move {
                let mut chunk = vec![0; CHUNK];
                while matches!(stream.read(&mut chunk).await, Ok(1..)) {}
            });
        }
    });
    Ok(listeners)
}
