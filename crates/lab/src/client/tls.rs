//! TLS of the built-in client: what is written to the socket, and what is read out of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use firstflight_load::{HttpVersion, TlsOptions, TlsVersion};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::version::TLS12;
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore};

use crate::LabError;

/// HTTP/2 as TLS names it (RFC 9113, section 3.1).
const HTTP2: &[u8] = b"h2";

/// What all connections of a load have in common; they resume each other's sessions, as a browser's do.
///
/// # Errors
/// [`LabError`] when the library has no version of TLS to speak.
pub fn config(options: TlsOptions, roots: RootCertStore) -> Result<Arc<ClientConfig>, LabError> {
    let mut provider = aws_lc_rs::default_provider();
    if !options.post_quantum {
        provider
            .kx_groups
            .retain(|group| group.name() != NamedGroup::X25519MLKEM768);
    }
    let versions = match options.version {
        TlsVersion::V1_2 => &[&TLS12][..],
        TlsVersion::V1_3 => rustls::DEFAULT_VERSIONS,
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .map_err(|error| LabError::system("setting up TLS", error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = match options.http {
        HttpVersion::V1_1 => vec![b"http/1.1".to_vec()],
        HttpVersion::V2 => vec![HTTP2.to_vec(), b"http/1.1".to_vec()],
    };
    Ok(Arc::new(config))
}

/// The TLS side of one connection.
#[derive(Debug)]
pub(super) struct Session {
    tls: ClientConnection,
    /// The handshake's end has been told.
    is_ready: bool,
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
        Ok(Self { tls, is_ready: false })
    }

    /// Whether both have agreed on HTTP/2.
    pub(super) fn speaks_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(HTTP2)
    }

    /// Takes a request to be encrypted.
    pub(super) fn take(&mut self, request: &[u8]) -> io::Result<()> {
        self.tls.writer().write_all(request)
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
