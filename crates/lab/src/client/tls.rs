//! TLS of the built-in client: what is written to the socket, and what is read out of it.

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

/// Versions of HTTP as TLS names them (RFC 7301, section 6).
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";
const HTTP3: &[u8] = b"h3";

/// What the connections of a load speak TLS with.
#[derive(Debug, Clone)]
pub struct Tls {
    by_host: HashMap<String, Arc<ClientConfig>>,
}

impl Tls {
    /// For `hosts`, each with what is offered to it. Connections with the same offer have all in common; those to one
    /// host resume each other's sessions, as a browser's do.
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

    /// What `host` is spoken to with.
    pub fn of(&self, host: &str) -> Option<Arc<ClientConfig>> {
        self.by_host.get(host).cloned()
    }

    /// The same client when its sessions have expired.
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

/// What connections speak TLS with; they resume each other's sessions.
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

/// The same client when its sessions have expired.
pub(super) fn later(config: &ClientConfig) -> ClientConfig {
    let mut config = config.clone();
    config.time_provider = Arc::new(Later);
    config
}

/// A clock that is ahead by more than a session lasts (RFC 8446, section 4.6.1: seven days).
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

/// Sessions of TLS 1.3 that a client keeps of a server, as rustls has it.
const SESSIONS: u32 = 8;
/// Servers whose sessions are kept: more than any page has.
const HOSTS: usize = 4_096;
/// How many of them a server gives at once, as rustls has it.
pub(super) const GIVEN: u32 = 2;
/// How long a server may take to answer; there is no delay yet.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Visits a server, so often that the client has as many sessions as it keeps. All visits begin before the first of
/// them is over: none uses up the session of another. They end with a reset, so that nothing of them is left on the wire.
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

/// How far a connection's TLS is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Data may go with the `ClientHello`.
    Early,
    /// Data waits for the handshake.
    Waiting,
    /// The handshake's end has been told.
    Ready,
}

/// The TLS side of one connection.
#[derive(Debug)]
pub(super) struct Session {
    tls: ClientConnection,
    phase: Phase,
    /// The handshake takes data with its first message.
    offers_early_data: bool,
    /// HTTP/2 was spoken where the session to be resumed comes from, and has to be again.
    resumes_http2: bool,
    /// What went with it: sent again if the server rejects that.
    early: Vec<u8>,
    /// What waits for the handshake, behind that.
    late: Vec<u8>,
}

/// What came of reading once.
pub(super) enum Incoming {
    /// Nothing there.
    Nothing,
    /// The handshake is done: the connection can carry requests.
    Ready,
    /// So many bytes of the response; 0 is its proper end.
    Bytes(usize),
}

impl Session {
    /// Begins one with `host`: the `ClientHello` waits to be written.
    pub(super) fn new(config: Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(io::Error::other)?;
        let offers_http2 = config.alpn_protocols.iter().any(|protocol| protocol == HTTP2);
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        // A request is handed over whole: it is here anyway.
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

    /// Whether it takes a request before its handshake has begun.
    pub(super) fn offers_early_data(&self) -> bool {
        self.offers_early_data
    }

    /// What this end tells of it, once the handshake is done.
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

    /// Whether both have agreed on HTTP/2, or must where they speak early.
    pub(super) fn speaks_http2(&self) -> bool {
        if self.tls.is_handshaking() {
            self.resumes_http2
        } else {
            self.tls.alpn_protocol() == Some(HTTP2)
        }
    }

    /// What is taken from now on waits for the handshake.
    pub(super) fn defer(&mut self) {
        if self.phase == Phase::Early {
            self.phase = Phase::Waiting;
        }
    }

    /// Takes bytes to be encrypted; `false` when they have to wait for the handshake. They go with the `ClientHello` if
    /// that takes them all, and nothing before them waits.
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

    /// Whether its handshake has just been done: what waited for that can be written.
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

    /// Whether something waits to be written.
    pub(super) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// Writes what waits to be written; `true` when nothing is left. The first write is the `ClientHello`, which Fast Open
    /// puts into the SYN: one write, so that as much of it goes there as there is room for.
    pub(super) fn flush(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        while self.has_unsent() {
            if !went_out(self.tls.write_tls(stream))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads on until there is something to tell.
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
            // The end of the handshake, or an alert that tells the server why not.
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
