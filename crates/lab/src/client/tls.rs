//! TLS of the built-in client: what is written to the socket, and what is read out of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use firstflight_load::promise::{EarlyData, Secured};
use firstflight_load::{HttpVersion, TlsOptions, TlsVersion};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore, SupportedProtocolVersion};

use super::connection::reset_when_closed;
use crate::{LabError, witness};

/// Versions of HTTP as TLS names them (RFC 7301, section 6).
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";
const HTTP3: &[u8] = b"h3";

/// What all connections of a load have in common; they resume each other's sessions, as a browser's do.
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
        HttpVersion::V2 => &[HTTP2, HTTP1],
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

/// The TLS side of one connection.
#[derive(Debug)]
pub(super) struct Session {
    tls: ClientConnection,
    /// The handshake's end has been told.
    is_ready: bool,
    /// The handshake takes data with its first message.
    offers_early_data: bool,
    /// The request that went with it: sent again if the server rejects that.
    early: Vec<u8>,
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
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        // A request is handed over whole: it is here anyway.
        tls.set_buffer_limit(None);
        let offers_early_data = tls.early_data().is_some();
        Ok(Self {
            tls,
            is_ready: false,
            offers_early_data,
            early: Vec::new(),
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

    /// Whether both have agreed on HTTP/2.
    pub(super) fn speaks_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(HTTP2)
    }

    /// Takes a request to be encrypted; `false` when it has to wait for the handshake. One that `may_be_early` goes with
    /// the `ClientHello` if that takes it.
    pub(super) fn take(&mut self, request: &[u8], may_be_early: bool) -> io::Result<bool> {
        if may_be_early
            && !self.is_ready
            && let Some(mut early) = self.tls.early_data()
            && early.bytes_left() >= request.len()
        {
            early.write_all(request)?;
            self.early = request.to_vec();
            return Ok(true);
        }
        self.tls.writer().write_all(request)?;
        Ok(!self.tls.is_handshaking())
    }

    /// Whether something waits to be written.
    pub(super) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    /// Writes once. The first write is the `ClientHello`, which Fast Open puts into the SYN: one write, so
    /// that as much of it goes there as there is room for.
    pub(super) fn write(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        self.tls.write_tls(stream)
    }

    /// Reads on until there is something to tell.
    pub(super) fn read(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<Incoming> {
        loop {
            if !self.is_ready && !self.tls.is_handshaking() {
                self.is_ready = true;
                if !self.early.is_empty() && !self.tls.is_early_data_accepted() {
                    self.tls.writer().write_all(&self.early)?;
                    self.write_all(stream)?;
                }
                return Ok(Incoming::Ready);
            }
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
            let written = self.write_all(stream);
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("TLS: {error}")))?;
            written?;
        }
    }

    /// Writes what the socket takes of it.
    fn write_all(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
