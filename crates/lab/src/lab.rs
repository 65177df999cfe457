//! Builds a lab for pages, and collects what its parts saw.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firstflight_load::{Cookies, Load};
use firstflight_path::IpVersion;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Deserialize;

use crate::client::{self, QuicConfig, Tls, connect, reset_when_closed, unbound_socket};
use crate::net::{self, AddressPlan, Block, Side, Transport};
use crate::origin::{
    Answers, Authority, Conversation, ECHO_PORT, Log, Matching, SINK_PORT, Served, Servers, ServersConfig,
    Waiting, dns,
};
use crate::relay::{Keep, Relay, RelayReport, Timing, Wire};
use crate::traffic::Directory;
use crate::tun::{Offload, Tun};
use crate::witness::Counters;
use crate::{LabError, descriptors, scheduling};

/// The lab's settings in a job, besides those of the load.
#[derive(Debug, Clone, Deserialize)]
pub struct LabConfig {
    /// Where to write the certificate (PEM) of the authority that clients must trust.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Transport settings of the connections.
    #[serde(default)]
    pub transport: Transport,
    /// Largest lateness of a packet, ms.
    #[serde(default = "late_bound")]
    pub late_bound_ms: f64,
    /// Settings that keep the relay in time.
    #[serde(default)]
    pub timing: Timing,
    /// Where to write the capture of all packets.
    #[serde(default)]
    pub capture: Option<PathBuf>,
    /// Whether https origins also accept QUIC in modes without it.
    #[serde(default)]
    pub offers_quic: bool,
}

fn late_bound() -> f64 {
    2.0
}

/// A lab. The calling thread is in the client's network namespace.
pub struct Lab {
    /// The addresses of the hosts.
    pub addresses: AddressPlan,
    answers: Arc<Answers>,
    log: Arc<Log>,
    /// TLS of the built-in client, with its sessions; `None` if no origin uses TLS.
    tls: Option<Tls>,
    /// QUIC of the built-in client; `None` if it does not use QUIC.
    quic: Option<QuicConfig>,
    servers: Servers,
    relay: Relay,
    cookies: Cookies,
    seed: u64,
    transport: Transport,
    keep: Keep,
    capture: Option<PathBuf>,
    before: Counters,
    /// How long it took to build the lab.
    pub setup: Duration,
}

/// What the relay, the servers and the kernel saw of a program in the lab.
pub struct Seen {
    /// The relay's report.
    pub report: RelayReport,
    /// What the servers received, for [`crate::traffic::lines`].
    pub conversations: Vec<Arc<Conversation>>,
    /// The origins' addresses.
    pub directory: Directory,
    /// The Fast Open counters of the client and the servers.
    pub counters: Counters,
    /// How many requests found a recorded response, and how.
    pub matching: Matching,
    /// How long building the lab took.
    pub setup: Duration,
}

/// Timeout of priming. There is no path delay yet, so this is a thousand times what it needs.
const PRIMING_TIMEOUT: Duration = Duration::from_secs(10);

/// How long packets under way may take to arrive after the program has ended.
const SETTLING: Duration = Duration::from_secs(3);

impl Lab {
    /// Builds a lab, brings the cookies into the state that the job asks for, and shapes the path: from now on
    /// packets cross it as described, and are recorded. Call it once per process, on the thread that will be the
    /// client's.
    ///
    /// `keeps_times`: whether the relay keeps when each byte crossed. `realtime`: whether the calling thread has
    /// real-time priority for the relay to inherit.
    ///
    /// # Errors
    /// [`LabError`] naming what the kernel refused, or the server that does not answer.
    pub fn build(
        load: &Load,
        config: &LabConfig,
        pages: &[Served<'_>],
        keeps_times: bool,
        realtime: bool,
    ) -> Result<Self, LabError> {
        let started = Instant::now();
        let keep = Keep {
            packets: config.capture.is_some(),
            times: keeps_times,
        };
        let offload = match (keep.packets, load.path.is_pure_delay()) {
            (true, _) => Offload::None,
            (false, true) => Offload::Segments,
            (false, false) => Offload::Checksums,
        };
        let addresses = AddressPlan::new(load.ip, pages.iter().map(|served| served.page));
        net::install_names(&addresses)?;
        let cookieless = load.cookies == Cookies::Cookieless;
        net::set_client_sysctls(load.mode.is_fast_open(), cookieless)?;
        if load.ip == IpVersion::V6 {
            net::use_ipv6(Side::Client)?;
        }
        net::bring_loopback_up(Side::Client, load.ip)?;
        let client = Tun::open(Side::Client, load.ip, offload, &config.transport)?;
        let answers = Arc::new(Answers::new(pages, load.keep_alive)?);
        let log = Arc::new(Log::default());
        let listeners = answers.origins().count() as u64 * u64::from(load.cookies.servers());
        descriptors::reserve(listeners)?;
        let authority = authority(config, load.tls.certificate_bytes, pages)?;
        let offer = |host| load.offer_to(pages.iter().find_map(|served| served.page.host(host)));
        let offers = || addresses.hosts().map(|(host, _)| (host, offer(host)));
        let trusting = |authority: &Arc<Authority>| Tls::new(offers(), &authority.roots());
        let tls = authority.as_ref().map(trusting).transpose()?;
        let quic = authority
            .as_ref()
            .filter(|_| load.mode.is_quic())
            .map(|authority| QuicConfig::new(load, &config.transport, authority.roots()))
            .transpose()?;
        let (servers, servers_tun) = Servers::start(ServersConfig {
            answers: Arc::clone(&answers),
            log: Arc::clone(&log),
            addresses: addresses.clone(),
            authority,
            cookies: load.cookies,
            speaks_quic: quic.is_some() || config.offers_quic,
            early_data: load.early_requests(),
            keep_alive: load.keep_alive,
            priorities: load.priorities,
            transport: config.transport.clone(),
            ecn: load.path.ecn,
            offload,
            waiting: Waiting::default(),
        })?;
        if load.path.ecn {
            net::use_ecn()?;
            servers.inside(net::use_ecn)?;
        }
        let wire = Wire {
            client,
            servers: servers_tun,
            hosts: addresses.len(),
            block: addresses.block,
            largest_packet: offload.largest_packet(),
            changes_nat: load.cookies == Cookies::Nat,
        };
        let relay = Relay::start(wire, &load.path, keep, config.timing, realtime)?;
        // The relay has inherited the priority. The client must not compete with it.
        scheduling::step_back();
        let mut lab = Self {
            addresses,
            answers,
            log,
            tls,
            quic,
            servers,
            relay,
            cookies: load.cookies,
            seed: load.path.seed,
            transport: config.transport.clone(),
            keep,
            capture: config.capture.clone(),
            before: Counters::default(),
            setup: started.elapsed(),
        };
        lab.prepare(pages, load.mode.has_sessions())?;
        if load.cookies == Cookies::Expired {
            lab.expire_sessions()?;
        }
        lab.before = lab.counters()?;
        lab.relay.shape();
        Ok(lab)
    }

    /// Brings the cookies, and TLS sessions if the mode has them (`has_sessions`), into the state that the job asks
    /// for. Call it before the path is shaped.
    fn prepare(&self, pages: &[Served<'_>], has_sessions: bool) -> Result<(), LabError> {
        if has_sessions {
            self.gain_sessions(pages)?;
        }
        match self.cookies {
            // Without a cookie request the SYN would wait for data.
            Cookies::Cold | Cookies::Cookieless => Ok(()),
            Cookies::Warm
            | Cookies::Share(_)
            | Cookies::Nat
            | Cookies::Pool(_)
            | Cookies::Expired
            | Cookies::NoEarlyData
            | Cookies::TooEarly => self.prime(pages),
            Cookies::Stale | Cookies::Backup => {
                self.prime(pages)?;
                self.servers.change_keys(self.cookies == Cookies::Backup)
            }
            Cookies::Moved => {
                let block = self.addresses.block;
                let Block { client, former, .. } = block;
                net::move_client(block, client, former, &self.transport)?;
                self.prime(pages)?;
                net::move_client(block, former, client, &self.transport)
            }
        }
    }

    /// Connects once to every host for which the client has a cookie in this state, and to the lab's services. A
    /// Fast Open client gets its cookies, and no server sees its first connection during the load. No request is
    /// sent.
    fn prime(&self, pages: &[Served<'_>]) -> Result<(), LabError> {
        let mut seen = HashSet::new();
        for origin in pages.iter().flat_map(|served| served.page.origins()) {
            let Some(address) = self.addresses.address(&origin.host) else {
                continue;
            };
            if self.is_primed(address) && seen.insert(address) {
                prime_one(SocketAddr::new(address, origin.port))?;
            }
        }
        let services = self.addresses.block.services();
        prime_one(SocketAddr::new(services, SINK_PORT))?;
        cross_once(services)
    }

    /// Connects to every https origin for which the client has sessions in this state, until the client has as many
    /// as it keeps.
    fn gain_sessions(&self, pages: &[Served<'_>]) -> Result<(), LabError> {
        let Some(tls) = &self.tls else {
            return Ok(());
        };
        let mut seen = HashSet::new();
        for origin in pages.iter().flat_map(|served| served.page.origins()) {
            if let Some(address) = self.addresses.address(&origin.host)
                && origin.secure
                && self.is_primed(address)
                && seen.insert((address, origin.port))
            {
                let server = SocketAddr::new(address, origin.port);
                match &self.quic {
                    Some(quic) => client::gain_quic_sessions(quic, &origin.host, server)?,
                    None => {
                        if let Some(config) = tls.of(&origin.host) {
                            client::gain_sessions(&config, &origin.host, server)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts the client's TLS clock ahead, so that its sessions have expired.
    fn expire_sessions(&mut self) -> Result<(), LabError> {
        self.tls = self.tls.as_ref().map(Tls::later);
        self.quic = self.quic.as_ref().map(QuicConfig::later).transpose()?;
        Ok(())
    }

    fn is_primed(&self, address: IpAddr) -> bool {
        let host = AddressPlan::index(self.addresses.len(), address);
        self.cookies.of_host(host, self.seed) != Cookies::Cold
    }

    /// Collects what every part of the lab saw of a program that has ended. Packets under way arrive at once,
    /// unless the relay keeps times.
    ///
    /// # Errors
    /// [`LabError`] as of [`Self::counters`] and [`Self::finish`].
    pub fn conclude(self, pages: &[Served<'_>]) -> Result<Seen, LabError> {
        if !self.keep.packets && !self.keep.times {
            self.relay.hasten();
        }
        // An echo on the same links arrives behind everything sent so far. If none comes, the path is slower or
        // lossier than the timeout allows.
        let _ = ask_echo(self.addresses.block.services(), SETTLING);
        Ok(Seen {
            counters: self.counters()?,
            matching: self.matching(),
            conversations: self.log.conversations(),
            directory: Directory::new(pages.iter().map(|served| served.page), &self.addresses),
            setup: self.setup,
            report: self.finish()?,
        })
    }

    /// The Fast Open counters of the client and the servers since the path was shaped.
    ///
    /// # Errors
    /// [`LabError`] when they cannot be read, or the servers had no descriptor left for a connection.
    pub fn counters(&self) -> Result<Counters, LabError> {
        // First, because without descriptors the counters cannot be read either.
        accepted(&self.log)?;
        Ok(Counters::joined(Counters::read()?, self.servers.counters()?).since(self.before))
    }

    /// Makes the servers forget their keys. Their cookies and tickets are not valid any more.
    ///
    /// # Errors
    /// [`LabError`] when the kernel refuses another key.
    pub fn forget_keys(&self) -> Result<(), LabError> {
        self.servers.change_keys(false)
    }

    /// Answers DNS at `address`, port 53.
    ///
    /// # Errors
    /// [`LabError`] when it cannot listen there.
    pub fn answer_dns(&self, address: IpAddr) -> Result<(), LabError> {
        let log = Arc::clone(&self.log);
        self.servers.inside(move || dns::start(address, &log))
    }

    /// TLS for the built-in client; `None` if no origin uses it.
    pub fn tls(&self) -> Option<Tls> {
        self.tls.clone()
    }

    /// QUIC for the built-in client; `None` if it does not use it.
    pub fn quic(&self) -> Option<QuicConfig> {
        self.quic.clone()
    }

    /// How many requests found a recorded response so far, and how.
    pub fn matching(&self) -> Matching {
        self.answers.matching()
    }

    /// Every connection that a server has accepted so far, in order.
    pub fn conversations(&self) -> Vec<Arc<Conversation>> {
        self.log.conversations()
    }

    /// Ends the relay, returns its report, and writes the capture if the job asked for one.
    ///
    /// # Errors
    /// [`LabError`] when the relay has died, the servers had no descriptor left for a connection, or the capture
    /// cannot be written.
    pub fn finish(self) -> Result<RelayReport, LabError> {
        let refused = accepted(&self.log);
        let report = self.relay.finish()?;
        refused?;
        if let (Some(file), Some(capture)) = (&self.capture, &report.capture) {
            capture.write(file)?;
        }
        Ok(report)
    }
}

/// Whether the servers accepted every connection so far.
fn accepted(log: &Log) -> Result<(), LabError> {
    match log.refused() {
        None => Ok(()),
        Some(error) => Err(LabError::NotAccepted(error.to_string())),
    }
}

/// A certificate authority, if any origin needs one. Writes its certificate where the job asks for it.
fn authority(
    config: &LabConfig,
    certificate_bytes: Option<u32>,
    pages: &[Served<'_>],
) -> Result<Option<Arc<Authority>>, LabError> {
    let mut origins = pages.iter().flat_map(|served| served.page.origins());
    if config.ca_file.is_none() && !origins.any(|origin| origin.secure) {
        return Ok(None);
    }
    let authority = Authority::new()?.with_certificates_of(certificate_bytes);
    let file = config.ca_file.as_ref();
    file.map_or(Ok(()), |file| authority.write(file))?;
    Ok(Some(Arc::new(authority)))
}

/// Connects and closes with a reset, so that no packet of this connection is left on the wire afterwards.
fn prime_one(server: SocketAddr) -> Result<(), LabError> {
    let failed = |error: io::Error| LabError::system(format!("connecting to {server} in the lab"), error);
    let (stream, _) = connect(server).map_err(failed)?;
    wait_connected(&stream).map_err(failed)?;
    reset_when_closed(&stream).map_err(failed)
}

fn wait_connected(stream: &TcpStream) -> io::Result<()> {
    let timeout = PollTimeout::try_from(PRIMING_TIMEOUT).unwrap_or(PollTimeout::MAX);
    poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)], timeout)?;
    stream.take_error()?.map_or(Ok(()), Err)?;
    stream.peer_addr().map(drop)
}

/// Returns once everything sent so far has crossed the relay.
fn cross_once(services: IpAddr) -> Result<(), LabError> {
    ask_echo(services, PRIMING_TIMEOUT)
        .map_err(|error| LabError::system("trying the lab's echo service", error))
}

fn ask_echo(services: IpAddr, timeout: Duration) -> io::Result<()> {
    let echo = SocketAddr::new(services, ECHO_PORT);
    let socket = unbound_socket(echo)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.send_to(b"?", echo)?;
    socket.recv(&mut [0; 8]).map(drop)
}
