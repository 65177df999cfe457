//! TLS of the built-in client, between the requests and the socket.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use firstflight_load::promise::{EarlyData, Secured};
use firstflight_load::{HttpVersion, TlsOptions, TlsVersion};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore, SupportedProtocolVersion};

use super::connection::{reset_when_closed, went_out};
use crate::{LabError, witness};

/// HTTP versions in ALPN (RFC 7301, section 6).
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";
const HTTP3: &[u8] = b"h3";

/// The TLS configuration of a load's connections.
#[derive(Debug, Clone)]
pub struct Tls {
    by_host: HashMap<String, Arc<ClientConfig>>,
}

impl Tls {
    /// The configuration for `hosts`, each with its offer. Connections with the same offer share one configuration.
    /// Connections to one host resume each other's sessions, as a browser's do.
    ///
    /// # Errors
    /// [`LabError`] when the library has no version of TLS to speak.
    pub fn new<'a>(
        hosts: impl IntoIterator<Item = (&'a str, TlsOptions)>,
        roots: &RootCertStore,
    ) -> Result<Self, LabError> {
        let mut made: Vec<(TlsOptions, Arc<ClientConfig>)> = Vec::new();
        let mut by_host = HashMap::new();
        for (host, offer) in hosts {
            let known = made.iter().find(|(made_for, _)| *made_for == offer);
            let config = if let Some((_, config)) = known {
                Arc::clone(config)
            } else {
                let config = config(offer, roots.clone())?;
                made.push((offer, Arc::clone(&config)));
                config
            };
            by_host.insert(host.to_owned(), config);
        }
        Ok(Self { by_host })
    }

    /// The configuration for `host`.
    pub fn of(&self, host: &str) -> Option<Arc<ClientConfig>> {
        self.by_host.get(host).cloned()
    }

    /// The same client at a time when its sessions have expired.
    #[must_use]
    pub fn later(&self) -> Self {
        let aged = self.by_host.iter().map(|(host, config)| {
            let config: &ClientConfig = config;
            (host.clone(), Arc::new(later(config)))
        });
        Self {
            by_host: aged.collect(),
        }
    }
}

/// A configuration whose connections resume each other's sessions.
///
/// # Errors
/// [`LabError`] when the library has no version of TLS to speak.
pub fn config(options: TlsOptions, roots: RootCertStore) -> Result<Arc<ClientConfig>, LabError> {
    let versions = match options.version {
        TlsVersion::V1_2 => &[&TLS12][..],
        TlsVersion::V1_3 => rustls::DEFAULT_VERSIONS,
    };
    let protocols = match options.http {
        HttpVersion::V1_1 => &[HTTP1][..],
        HttpVersion::V2 | HttpVersion::Recorded => &[HTTP2, HTTP1],
    };
    configured(options, roots, versions, protocols).map(Arc::new)
}

/// The same for QUIC.
///
/// # Errors
/// [`LabError`] when the library has no version of TLS to speak.
pub fn config_for_quic(options: TlsOptions, roots: RootCertStore) -> Result<ClientConfig, LabError> {
    configured(options, roots, &[&TLS13], &[HTTP3])
}

fn configured(
    options: TlsOptions,
    roots: RootCertStore,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&[u8]],
) -> Result<ClientConfig, LabError> {
    let mut provider = aws_lc_rs::default_provider();
    if !options.post_quantum {
        provider
            .kx_groups
            .retain(|group| group.name() != NamedGroup::X25519MLKEM768);
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .map_err(|error| LabError::system("setting up TLS", error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config.enable_early_data = options.early_data;
    config.resumption = Resumption::in_memory_sessions(HOSTS * SESSIONS as usize);
    Ok(config)
}

/// The same client at a time when its sessions have expired.
pub(super) fn later(config: &ClientConfig) -> ClientConfig {
    let mut config = config.clone();
    config.time_provider = Arc::new(Later);
    config
}

/// A clock that is ahead by more than the lifetime of a session (RFC 8446, section 4.6.1: seven days).
#[derive(Debug)]
struct Later;

impl TimeProvider for Later {
    fn current_time(&self) -> Option<UnixTime> {
        let since_epoch = Duration::from_secs(UnixTime::now().as_secs());
        Some(UnixTime::since_unix_epoch(
            since_epoch + Duration::from_secs(8 * 24 * 3_600),
        ))
    }
}

/// TLS 1.3 sessions that a client keeps per server; the default of rustls.
const SESSIONS: u32 = 8;
/// Largest number of servers whose sessions are kept; more than any page has.
const HOSTS: usize = 4_096;
/// Tickets that a server sends at once; the default of rustls.
pub(super) const GIVEN: u32 = 2;
/// How long a server may take to answer. There is no path delay yet.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to a server until the client has as many sessions as it keeps. All connections begin before the first
/// ends, so that none uses up the session of another. They end with a reset, so that no packet of them is left on
/// the wire.
///
/// # Errors
/// [`LabError`] naming the server.
pub fn gain_sessions(config: &Arc<ClientConfig>, host: &str, server: SocketAddr) -> Result<(), LabError> {
    let failed = |error: io::Error| LabError::system(format!("visiting {host} in the lab"), error);
    let visits = (0..SESSIONS / GIVEN).map(|_| Session::new(Arc::clone(config), host));
    for session in visits.collect::<Vec<_>>() {
        session
            .and_then(|session| visit(session, server))
            .map_err(failed)?;
    }
    Ok(())
}

fn visit(mut session: Session, server: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    while session.tls.tls13_tickets_received() < GIVEN {
        if session.tls.complete_io(&mut stream)? == (0, 0) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    reset_when_closed(&stream)
}

/// The state of a connection's TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Data may be sent with the `ClientHello`.
    Early,
    /// Data waits for the handshake.
    Waiting,
    /// The handshake is done, and the caller knows.
    Ready,
}

/// The TLS state of one connection.
#[derive(Debug)]
pub(super) struct Session {
    tls: ClientConnection,
    phase: Phase,
    /// Whether the handshake accepts early data.
    offers_early_data: bool,
    /// Whether the session to be resumed used HTTP/2, so that early data must use it too.
    resumes_http2: bool,
    /// The early data. It is sent again if the server rejects it.
    early: Vec<u8>,
    /// Data that waits for the handshake, to be sent after `early`.
    late: Vec<u8>,
}

/// The result of one read.
pub(super) enum Incoming {
    /// Nothing came.
    Nothing,
    /// The handshake is done, so the connection can carry requests.
    Ready,
    /// This many bytes of the response; 0 is its proper end.
    Bytes(usize),
}

impl Session {
    /// A new session with `host`. The `ClientHello` waits to be written.
    pub(super) fn new(config: Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(io::Error::other)?;
        let offers_http2 = config.alpn_protocols.iter().any(|protocol| protocol == HTTP2);
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        // A request is passed in one piece, so there is no need to limit the buffer.
        tls.set_buffer_limit(None);
        let offers_early_data = tls.early_data().is_some();
        Ok(Self {
            tls,
            phase: Phase::Early,
            offers_early_data,
            resumes_http2: offers_early_data && offers_http2,
            early: Vec::new(),
            late: Vec::new(),
        })
    }

    /// Whether it accepts a request before its handshake has begun.
    pub(super) fn offers_early_data(&self) -> bool {
        self.offers_early_data
    }

    /// What this end reports of its TLS, once the handshake is done.
    pub(super) fn secured(&self) -> Option<Secured> {
        if self.tls.is_handshaking() {
            return None;
        }
        let (version, is_resumed) = witness::agreed(&self.tls)?;
        Some(Secured {
            version,
            is_resumed,
            early_data: match (self.offers_early_data, self.tls.is_early_data_accepted()) {
                (true, false) => EarlyData::Rejected,
                (true, true) if !self.early.is_empty() => EarlyData::Accepted,
                _ => EarlyData::None,
            },
        })
    }

    /// Whether both ends have agreed on HTTP/2, or early data must use it.
    pub(super) fn speaks_http2(&self) -> bool {
        if self.tls.is_handshaking() {
            self.resumes_http2
        } else {
            self.tls.alpn_protocol() == Some(HTTP2)
        }
    }

    /// Data from now on waits for the handshake.
    pub(super) fn defer(&mut self) {
        if self.phase == Phase::Early {
            self.phase = Phase::Waiting;
        }
    }

    /// Accepts bytes to be encrypted; `false` if they must wait for the handshake. They become early data if all of
    /// them fit, and no earlier bytes wait.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if self.phase == Phase::Ready {
            self.tls.writer().write_all(bytes)?;
            return Ok(true);
        }
        if self.phase == Phase::Early
            && let Some(mut early) = self.tls.early_data()
            && early.bytes_left() >= bytes.len()
        {
            early.write_all(bytes)?;
            self.early.extend_from_slice(bytes);
            return Ok(true);
        }
        self.phase = Phase::Waiting;
        self.late.extend_from_slice(bytes);
        Ok(false)
    }

    /// Whether the handshake has just ended, so that the data waiting for it can be written.
    fn becomes_ready(&mut self) -> io::Result<bool> {
        if self.phase == Phase::Ready || self.tls.is_handshaking() {
            return Ok(false);
        }
        self.phase = Phase::Ready;
        if !self.early.is_empty() && !self.tls.is_early_data_accepted() {
            self.tls.writer().write_all(&self.early)?;
        }
        self.tls.writer().write_all(&std::mem::take(&mut self.late))?;
        Ok(true)
    }

    /// Whether anything is left to write.
    pub(super) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// Writes what is left; `true` if nothing remains. The first write is the `ClientHello`, which Fast Open puts
    /// into the SYN. It is a single write, so that the SYN carries as much of it as it has room for.
    pub(super) fn flush(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        while self.has_unsent() {
            if !went_out(self.tls.write_tls(stream))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads until there is an event.
    pub(super) fn read(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<Incoming> {
        loop {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                outcome => return outcome.map(Incoming::Bytes),
            }
            match self.tls.read_tls(stream) {
                Ok(0) => return Ok(Incoming::Bytes(0)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Incoming::Nothing),
                Err(error) => return Err(error),
            }
            let processed = self.tls.process_new_packets();
            // The end of the handshake, or an alert that tells the server why it failed.
            let written = self.flush(stream);
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("TLS: {error}")))?;
            written?;
            if self.becomes_ready()? {
                self.flush(stream)?;
                return Ok(Incoming::Ready);
            }
        }
    }
}
