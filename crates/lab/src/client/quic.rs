//! One QUIC connection of the built-in client, on a UDP socket.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use firstflight_load::Load;
use firstflight_load::promise;
use firstflight_path::Ecn;
use firstflight_quic::crypto::WitnessedClient;
use firstflight_quic::{Client, ClientEvent, seed};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, EndpointConfig, TransportConfig};
use rustls::RootCertStore;

use super::tls::{self, GIVEN, TIMEOUT};
use crate::ledger::ConnectionKey;
use crate::net::{Transport, receive_datagram, receive_ecn, send_datagram};
use crate::{LabError, clock};

/// What all QUIC connections of a load share. They resume each other's sessions.
#[derive(Clone)]
pub struct QuicConfig {
    endpoint: Arc<EndpointConfig>,
    tls: rustls::ClientConfig,
    transport: Arc<TransportConfig>,
    client: ClientConfig,
    uses_ecn: bool,
    seed: u64,
}

impl QuicConfig {
    /// The configuration for a load whose servers have certificates by `roots`.
    ///
    /// # Errors
    /// [`LabError`] when the library has no TLS to speak, or QUIC has no such congestion control.
    pub fn new(load: &Load, transport: &Transport, roots: RootCertStore) -> Result<Self, LabError> {
        let tls = tls::config_for_quic(load.offer(), roots)?;
        Self::with(tls, transport.quic()?.transport(), load.path.ecn, load.path.seed)
    }

    fn with(
        tls: rustls::ClientConfig,
        transport: Arc<TransportConfig>,
        uses_ecn: bool,
        seed: u64,
    ) -> Result<Self, LabError> {
        let crypto = QuicClientConfig::try_from(tls.clone())
            .map_err(|error| LabError::system("setting up QUIC", error))?;
        let mut client = ClientConfig::new(Arc::new(WitnessedClient(Arc::new(crypto))));
        client.transport_config(Arc::clone(&transport));
        Ok(Self {
            endpoint: Arc::new(endpoint()),
            tls,
            transport,
            client,
            uses_ecn,
            seed,
        })
    }

    /// The same client at a time when its sessions have expired.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn later(&self) -> Result<Self, LabError> {
        let tls = tls::later(&self.tls);
        Self::with(tls, Arc::clone(&self.transport), self.uses_ecn, self.seed)
    }

    fn connect(&self, conn: u32, server: SocketAddr, host: &str) -> io::Result<Client> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        Client::connect(
            clock::now(),
            Arc::clone(&self.endpoint),
            self.client.clone(),
            server,
            bare,
            seed(self.seed, conn, true),
        )
        .map_err(io::Error::other)
    }
}

/// The endpoint defaults of quinn, except that the QUIC bit is not greased: it always identifies QUIC.
pub fn endpoint() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.grease_quic_bit(false);
    config
}

/// A connection.
#[derive(Debug)]
pub(super) struct Quic {
    socket: UdpSocket,
    server: SocketAddr,
    client: Client,
    uses_ecn: bool,
    datagram: Vec<u8>,
}

impl Quic {
    /// Opens connection number `conn` of the load, to `host` at `server`.
    pub(super) fn open(config: &QuicConfig, conn: u32, server: SocketAddr, host: &str) -> io::Result<Self> {
        let socket = unbound_socket(server)?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        receive_ecn(&socket, server.is_ipv6())?;
        Ok(Self {
            socket,
            server,
            client: config.connect(conn, server, host)?,
            uses_ecn: config.uses_ecn,
            datagram: Vec::new(),
        })
    }

    /// Whether it holds its first datagram back for a request.
    pub(super) fn awaits_request(&self) -> bool {
        self.client.awaits_request()
    }

    /// Sends `request`, whose header fields are in `block`.
    pub(super) fn ask(&mut self, request: usize, block: bytes::Bytes, is_safe: bool) {
        self.client.ask(request, block, is_safe);
    }

    /// Reads all datagrams that have come.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            match receive_datagram(&self.socket, buffer) {
                Ok((bytes, _, ecn)) => {
                    let datagram = BytesMut::from(&buffer[..bytes]);
                    self.client.handle(clock::now(), datagram, ecn);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends all datagrams that are ready.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.awaits_request() {
            return Ok(());
        }
        while let Some(ecn) = self.client.poll_transmit(clock::now(), &mut self.datagram) {
            let ecn = if self.uses_ecn { ecn } else { Ecn::NotCapable };
            match send_datagram(&self.socket, &self.datagram, self.server.is_ipv6(), None, ecn) {
                Ok(()) => {}
                // A full socket buffer drops what it does not accept, like any full queue.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// When to call [`Self::handle_timeout`], ns.
    pub(super) fn next_timeout(&mut self) -> Option<u64> {
        if self.awaits_request() {
            return None;
        }
        self.client.next_timeout()
    }

    /// Handles the timeouts that are due.
    pub(super) fn handle_timeout(&mut self) {
        self.client.handle_timeout(clock::now());
    }

    /// The next event.
    pub(super) fn poll(&mut self) -> Option<ClientEvent> {
        self.client.poll()
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        self.client.close(clock::now());
        // The load has ended, so it does not matter whether the server gets the close.
        let _ = self.flush();
    }

    /// The ledger's key of this connection.
    pub(super) fn key(&self) -> Option<ConnectionKey> {
        let port = self.socket.local_addr().ok()?.port();
        Some((port, self.server.ip(), self.server.port()))
    }

    /// What this end reports.
    pub(super) fn told(&self) -> promise::Client {
        self.client.told()
    }
}

impl AsFd for Quic {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A UDP socket for `server`, at any local port.
///
/// # Errors
/// The kernel's.
pub fn unbound_socket(server: SocketAddr) -> io::Result<UdpSocket> {
    match server {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// Connects to a server until the client has received its sessions.
///
/// # Errors
/// [`LabError`] naming the server.
pub fn gain_quic_sessions(config: &QuicConfig, host: &str, server: SocketAddr) -> Result<(), LabError> {
    visit(config, host, server)
        .map_err(|error| LabError::system(format!("visiting {host} in the lab over QUIC"), error))
}

fn visit(config: &QuicConfig, host: &str, server: SocketAddr) -> io::Result<()> {
    let mut quic = Quic::open(config, u32::MAX, server, host)?;
    quic.socket.set_nonblocking(false)?;
    let ends = clock::now() + TIMEOUT.as_nanos() as u64;
    let mut buffer = vec![0; 2_048];
    while quic
        .client
        .seen()
        .map_or(0, firstflight_quic::crypto::Seen::tickets)
        < u64::from(GIVEN)
    {
        quic.flush()?;
        let due = quic.client.next_timeout().unwrap_or(ends).min(ends);
        let left = due.saturating_sub(clock::now()).max(1_000_000);
        quic.socket.set_read_timeout(Some(Duration::from_nanos(left)))?;
        match receive_datagram(&quic.socket, &mut buffer) {
            Ok((bytes, _, ecn)) => quic
                .client
                .handle(clock::now(), BytesMut::from(&buffer[..bytes]), ecn),
            Err(error) if error.kind() == ErrorKind::WouldBlock => quic.client.handle_timeout(clock::now()),
            Err(error) => return Err(error),
        }
        while let Some(event) = quic.client.poll() {
            if let ClientEvent::Failed { error } = event {
                return Err(io::Error::other(error));
            }
        }
        if clock::now() >= ends {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    quic.close();
    Ok(())
}
