//! `prove --server`: whether a server program accepts data in the SYN, and early data of TLS 1.3.
//!
//! The lab's own client connects twice. The first connection asks for a cookie and, if the port uses TLS, for
//! tickets; the second uses both. Certificates are not checked, because they are not examined.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firstflight_load::promise::{EarlyData, Secured};
use firstflight_load::record::Connection;
use firstflight_path::{IpVersion, Middlebox, PathConfig, Protocol};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, NamedGroup, SignatureScheme};
use serde::{Deserialize, Serialize};

use crate::client::{connect, reset_when_closed};
use crate::jobs::check::NamedServer;
use crate::net::{self, Side, Transport, bring_loopback_up};
use crate::relay::{Keep, Relay, Timing, Wire};
use crate::tun::{Offload, Tun};
use crate::watch::Watched;
use crate::{LabError, clock, namespace, scheduling, witness};

/// A job for `prove --server`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerJob {
    /// The server.
    pub server: NamedServer,
    /// The server's name.
    pub host: String,
    /// Round-trip time, ms.
    pub rtt_ms: f64,
    /// The middlebox between client and server.
    #[serde(default)]
    pub middlebox: Option<Middlebox>,
    /// `net.ipv4.tcp_fastopen` in the server's namespace.
    pub sysctl: u32,
    /// Whether the port uses TLS; `None` to try.
    #[serde(default)]
    pub speaks_tls: Option<bool>,
}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct ServerRecord {
    /// Whether the port uses TLS.
    pub speaks_tls: bool,
    /// Every connection, in order. Those before the last had no cookie and no ticket.
    pub openings: Vec<Opening>,
    /// What the program asked the kernel for.
    pub watched: Watched,
    /// Beginning and end of its output.
    pub output: String,
}

/// One connection of the lab's client.
#[derive(Debug, Clone, Serialize)]
pub struct Opening {
    /// What crossed the wire.
    #[serde(flatten)]
    pub connection: Connection,
    /// Whether a SYN-ACK came.
    pub is_answered: bool,
    /// Whether data from the server came.
    pub has_heard: bool,
    /// When its first byte came, ms since the connection was opened.
    pub first_byte_ms: Option<f64>,
    /// Number of TLS 1.3 tickets that came.
    pub tickets: u32,
    /// Whether the ticket that it offered allows early data; `None` if it had no ticket.
    pub ticket_allows_early_data: Option<bool>,
    /// What went wrong.
    pub error: Option<String>,
}

/// What the client reports of a connection.
#[derive(Debug, Default)]
struct Told {
    port: u16,
    begun: u64,
    first_byte_ms: Option<f64>,
    tickets: u32,
    ticket_allows_early_data: Option<bool>,
    secured: Option<Secured>,
    error: Option<String>,
}

/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(3);

impl ServerJob {
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))
    }

    /// Starts the server behind a path and connects to it. Call it once, inside a lab.
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be set up, or the server does not listen.
    pub fn run(&self, realtime: bool) -> Result<ServerRecord, LabError> {
        bring_loopback_up(Side::Client, IpVersion::V4)?;
        net::set_client_sysctls(true, false)?;
        let client = Tun::open(Side::Client, IpVersion::V4, Offload::None, &Transport::default())?;
        let (server, sysctl) = (self.server.clone(), self.sysctl);
        let start = move || {
            scheduling::step_back();
            bring_loopback_up(Side::Servers, IpVersion::V4)?;
            net::set_sysctl("tcp_fastopen", &sysctl.to_string())?;
            let tun = Tun::open(Side::Servers, IpVersion::V4, Offload::None, &Transport::default())?;
            Ok(((tun, server.start_watched(IpVersion::V4)?), ()))
        };
        let (servers, (running, watching)) = namespace::in_new_network("server", start, |()| {})?;
        let wire = Wire::of_one_host(IpVersion::V4, client, servers);
        let path = PathConfig {
            rtt_ms: self.rtt_ms,
            middlebox: self.middlebox,
            ..PathConfig::default()
        };
        let relay = Relay::start(wire, &path, Keep::default(), Timing::default(), realtime)?;
        scheduling::step_back();
        relay.shape();
        let (speaks_tls, told) = self.connect_to()?;
        let report = relay.finish()?;
        let server = self.address();
        let openings = told.into_iter().enumerate().filter_map(|(number, told)| {
            let entry = report
                .ledger
                .get(Protocol::Tcp, (told.port, server.ip(), server.port()))?;
            Some(Opening {
                is_answered: entry.seen.answered.is_some(),
                has_heard: entry.seen.has_heard(),
                connection: Connection::new(
                    number as u32,
                    self.host.clone(),
                    &entry.seen,
                    told.secured,
                    told.begun,
                ),
                first_byte_ms: told.first_byte_ms,
                tickets: told.tickets,
                ticket_allows_early_data: told.ticket_allows_early_data,
                error: told.error,
            })
        });
        Ok(ServerRecord {
            speaks_tls,
            openings: openings.collect(),
            watched: watching.finish()?,
            output: running.output(),
        })
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(198, 19, 0, 1), self.server.port))
    }

    /// Connects without a cookie, and then with one. Returns whether the port uses TLS, and both results.
    fn connect_to(&self) -> Result<(bool, Vec<Told>), LabError> {
        let config = config()?;
        let mut told = Vec::new();
        let mut speaks_tls = self.speaks_tls.unwrap_or(true);
        if speaks_tls {
            told.push(self.over_tls(&config));
            speaks_tls = self.speaks_tls.is_some() || told[0].secured.is_some();
        } else {
            told.push(self.in_the_clear());
        }
        told.push(if speaks_tls {
            self.over_tls(&config)
        } else {
            self.in_the_clear()
        });
        Ok((speaks_tls, told))
    }

    fn over_tls(&self, config: &Arc<ClientConfig>) -> Told {
        self.open(|stream, told| {
            let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
            let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
            let request = self.request();
            let mut is_early = false;
            // Without a ticket this stays unknown. The second connection has one if the first got any.
            if let Some(mut early) = tls.early_data() {
                early.write_all(&request)?;
                is_early = true;
            }
            while tls.is_handshaking() {
                if tls.complete_io(stream)? == (0, 0) {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            let (version, is_resumed) = witness::agreed(&tls).ok_or(ErrorKind::InvalidData)?;
            told.ticket_allows_early_data = (is_resumed || is_early).then_some(is_early);
            told.secured = Some(Secured {
                version,
                is_resumed,
                early_data: match (is_early, tls.is_early_data_accepted()) {
                    (false, _) => EarlyData::None,
                    (true, true) => EarlyData::Accepted,
                    (true, false) => EarlyData::Rejected,
                },
            });
            if !tls.is_early_data_accepted() {
                tls.writer().write_all(&request)?;
            }
            let read = rustls::Stream::new(&mut tls, stream).read(&mut [0; 512]);
            told.tickets = tls.tls13_tickets_received();
            read
        })
    }

    fn in_the_clear(&self) -> Told {
        self.open(|stream, _| {
            stream.write_all(&self.request())?;
            stream.read(&mut [0; 512])
        })
    }

    /// Opens a connection with Fast Open, and lets `talk` read the first bytes of an answer.
    fn open(&self, talk: impl FnOnce(&mut TcpStream, &mut Told) -> io::Result<usize>) -> Told {
        let (begun, started) = (clock::now(), Instant::now());
        let mut told = Told {
            begun,
            ..Told::default()
        };
        let talked = connect(self.address()).and_then(|(mut stream, is_writable)| {
            told.port = stream.local_addr()?.port();
            if !is_writable {
                wait_connected(&stream)?;
            }
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(SILENCE))?;
            stream.set_write_timeout(Some(SILENCE))?;
            let bytes = talk(&mut stream, &mut told)?;
            // Closing the connection is not examined.
            reset_when_closed(&stream)?;
            Ok(bytes)
        });
        match talked {
            Ok(1..) => told.first_byte_ms = Some(started.elapsed().as_secs_f64() * 1e3),
            Ok(0) => told.error = Some("it closed the connection without an answer".to_owned()),
            Err(error) => told.error = Some(error.to_string()),
        }
        told
    }

    fn request(&self) -> Vec<u8> {
        format!("GET / HTTP/1.0\r\nHost: {}\r\n\r\n", self.host).into_bytes()
    }
}

fn wait_connected(stream: &TcpStream) -> io::Result<()> {
    let timeout = PollTimeout::try_from(SILENCE).unwrap_or(PollTimeout::MAX);
    if poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)], timeout)? == 0 {
        return Err(ErrorKind::TimedOut.into());
    }
    stream.take_error()?.map_or(Ok(()), Err)
}

/// TLS with tickets and early data, and with a `ClientHello` that fits into a SYN.
fn config() -> Result<Arc<ClientConfig>, LabError> {
    let mut provider = aws_lc_rs::default_provider();
    provider
        .kx_groups
        .retain(|group| group.name() != NamedGroup::X25519MLKEM768);
    let provider = Arc::new(provider);
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| LabError::system("setting up TLS", error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.enable_early_data = true;
    Ok(Arc::new(config))
}

/// Accepts any certificate.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
