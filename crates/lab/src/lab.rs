//! Building a lab around one page.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firstflight_load::{Cookies, TlsOptions};
use firstflight_path::PathConfig;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use crate::client::{connect, tls_config};
use crate::net::{self, AddressPlan, CLIENT, FORMER, SERVICES, Side, Transport};
use crate::origin::{
    Answers, Authority, ECHO_PORT, Log, Matching, SINK_PORT, Served, Servers, ServersConfig, Waiting,
};
use crate::relay::{Keep, Relay, RelayReport, Timing, Wire};
use crate::tun::{Offload, Tun};
use crate::witness::Counters;
use crate::{LabError, descriptors, scheduling};

/// What a lab is built for.
pub struct LabConfig<'a> {
    /// What the servers serve.
    pub pages: &'a [Served<'a>],
    /// What the packets cross.
    pub path: &'a PathConfig,
    /// Whether the client may use Fast Open.
    pub tfo: bool,
    /// Which cookies it has, and what the servers think of them.
    pub cookies: Cookies,
    /// Whether connections outlive a response.
    pub keep_alive: bool,
    /// How connections begin and share the path.
    pub transport: Transport,
    /// Where the certificate (PEM) is written that clients have to trust.
    pub ca_file: Option<&'a Path>,
    /// What the relay keeps.
    pub keep: Keep,
    /// What is done for the relay to be in time.
    pub timing: Timing,
    /// Whether the calling thread has real-time priority for the relay to inherit.
    pub realtime: bool,
}

/// A lab. The calling thread is in the client's network namespace.
pub struct Lab {
    /// Where the hosts are.
    pub addresses: AddressPlan,
    answers: Arc<Answers>,
    log: Arc<Log>,
    authority: Option<Arc<Authority>>,
    servers: Servers,
    relay: Relay,
    cookies: Cookies,
    seed: u64,
    transport: Transport,
    keep: Keep,
    /// How long building took.
    pub setup: Duration,
}

/// How long priming may take: there is no delay yet, so this is a thousand times what it needs.
const PRIMING_TIMEOUT: Duration = Duration::from_secs(10);

/// How long packets under way may take to arrive once the program has ended.
pub const SETTLING: Duration = Duration::from_secs(3);

impl Lab {
    /// Builds it. Call once per process, on the thread that will be the client's.
    ///
    /// # Errors
    /// [`LabError`] naming what the kernel refused.
    pub fn build(config: &LabConfig<'_>) -> Result<Self, LabError> {
        let started = Instant::now();
        let offload = match (config.keep.packets, config.path.is_pure_delay()) {
            (true, _) => Offload::None,
            (false, true) => Offload::Segments,
            (false, false) => Offload::Checksums,
        };
        let addresses = AddressPlan::new(config.pages.iter().map(|served| served.page));
        net::install_names(&addresses)?;
        let cookieless = config.cookies == Cookies::Cookieless;
        net::set_client_sysctls(config.tfo, cookieless)?;
        net::bring_loopback_up(Side::Client)?;
        let client = Tun::open(Side::Client, offload, &config.transport)?;
        let answers = Arc::new(Answers::new(config.pages, config.keep_alive)?);
        let log = Arc::new(Log::default());
        let listeners = answers.origins().count() as u64 * u64::from(config.cookies.servers());
        descriptors::reserve(listeners)?;
        let authority = authority(config)?;
        let (servers, servers_tun) = Servers::start(ServersConfig {
            answers: Arc::clone(&answers),
            log: Arc::clone(&log),
            addresses: addresses.clone(),
            authority: authority.clone(),
            cookies: config.cookies,
            keep_alive: config.keep_alive,
            transport: config.transport.clone(),
            offload,
            waiting: Waiting::default(),
        })?;
        if config.path.ecn {
            net::use_ecn()?;
            servers.inside(net::use_ecn)?;
        }
        let wire = Wire {
            client,
            servers: servers_tun,
            hosts: addresses.len(),
            largest_packet: offload.largest_packet(),
            changes_nat: config.cookies == Cookies::Nat,
        };
        let relay = Relay::start(wire, config.path, config.keep, config.timing, config.realtime)?;
        // The relay has inherited it; the client must not compete.
        scheduling::step_back();
        Ok(Self {
            addresses,
            answers,
            log,
            authority,
            servers,
            relay,
            cookies: config.cookies,
            seed: config.path.seed,
            transport: config.transport.clone(),
            keep: config.keep,
            setup: started.elapsed(),
        })
    }

    /// Brings the cookies into the state that was asked for, before the path is shaped.
    ///
    /// # Errors
    /// [`LabError`] when a server does not answer, or the kernel refuses a setting.
    pub fn prepare(&self, pages: &[Served<'_>]) -> Result<(), LabError> {
        match self.cookies {
            // Without a cookie to ask for a SYN would wait for data.
            Cookies::Cold | Cookies::Cookieless => Ok(()),
            Cookies::Warm | Cookies::Share(_) | Cookies::Nat | Cookies::Pool(_) => self.prime(pages),
            Cookies::Stale | Cookies::Backup => {
                self.prime(pages)?;
                self.servers.change_keys(self.cookies == Cookies::Backup)
            }
            Cookies::Moved => {
                net::move_client(CLIENT, FORMER, &self.transport)?;
                self.prime(pages)?;
                net::move_client(FORMER, CLIENT, &self.transport)
            }
        }
    }

    /// Connects once to every host, of a share to those that are drawn, and to the lab's own services: a client that
    /// may use Fast Open gets its cookies, any client a warm server. No request is sent.
    fn prime(&self, pages: &[Served<'_>]) -> Result<(), LabError> {
        let mut seen = HashSet::new();
        for origin in pages.iter().flat_map(|served| served.page.origins()) {
            let Some(address) = self.addresses.address(&origin.host) else {
                continue;
            };
            if self.is_primed(address) && seen.insert(address) {
                prime_one(SocketAddrV4::new(address, origin.port))?;
            }
        }
        prime_one(SocketAddrV4::new(SERVICES, SINK_PORT))?;
        cross_once()
    }

    fn is_primed(&self, address: Ipv4Addr) -> bool {
        let host = AddressPlan::index(self.addresses.len(), address);
        self.cookies.of_host(host, self.seed) != Cookies::Cold
    }

    /// Waits until what was sent so far has crossed the path, or `timeout` is over: what follows on the same
    /// links arrives behind it. What is under way arrives at once, unless the relay keeps moments of packets.
    pub fn settle(&self, timeout: Duration) {
        if !self.keep.packets && !self.keep.times {
            self.relay.hasten();
        }
        // Silence means that the path is slower or lossier than that.
        let _ = ask_echo(timeout);
    }

    /// From now on packets cross the path as described, and are seen.
    pub fn shape(&self) {
        self.relay.shape();
    }

    /// The Fast Open counters so far, the client's and the servers'.
    ///
    /// # Errors
    /// [`LabError`] when they cannot be read, or the servers had no descriptor left for a connection.
    pub fn counters(&self) -> Result<Counters, LabError> {
        // First: without descriptors nothing can be read either, and this is the cause.
        accepted(&self.log)?;
        Ok(Counters::joined(Counters::read()?, self.servers.counters()?))
    }

    /// What the servers have seen.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Who vouches for the https origins; `None` where there is none.
    pub fn authority(&self) -> Option<&Authority> {
        self.authority.as_deref()
    }

    /// TLS for the built-in client; `None` where no origin speaks it.
    ///
    /// # Errors
    /// [`LabError`] when the library has no version of TLS to speak.
    pub fn trust(&self, options: TlsOptions) -> Result<Option<Arc<rustls::ClientConfig>>, LabError> {
        let config = |authority: &Arc<Authority>| tls_config(options, authority.roots());
        self.authority.as_ref().map(config).transpose()
    }

    /// How requests found their answers so far.
    pub fn matching(&self) -> Matching {
        self.answers.matching()
    }

    /// Ends the relay and takes what it saw.
    ///
    /// # Errors
    /// [`LabError`] when the relay has died, or the servers had no descriptor left for a connection.
    pub fn finish(self) -> Result<RelayReport, LabError> {
        let refused = accepted(&self.log);
        let report = self.relay.finish()?;
        refused.map(|()| report)
    }
}

/// Whether the servers accepted every connection so far.
fn accepted(log: &Log) -> Result<(), LabError> {
    match log.refused() {
        None => Ok(()),
        Some(error) => Err(LabError::NotAccepted(error.to_string())),
    }
}

/// An authority, if anybody needs one, and its certificate where it was asked for.
fn authority(config: &LabConfig<'_>) -> Result<Option<Arc<Authority>>, LabError> {
    let mut origins = config.pages.iter().flat_map(|served| served.page.origins());
    if config.ca_file.is_none() && !origins.any(|origin| origin.secure) {
        return Ok(None);
    }
    let authority = Authority::new()?;
    config.ca_file.map_or(Ok(()), |file| authority.write(file))?;
    Ok(Some(Arc::new(authority)))
}

/// Connects, and hangs up with a reset, so that nothing of this connection is left on the wire afterwards.
fn prime_one(server: SocketAddrV4) -> Result<(), LabError> {
    let failed = |error: io::Error| LabError::system(format!("connecting to {server} in the lab"), error);
    let (stream, _) = connect(server).map_err(failed)?;
    wait_connected(&stream).map_err(failed)?;
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(&stream, sockopt::Linger, &linger).map_err(|errno| failed(errno.into()))
}

fn wait_connected(stream: &TcpStream) -> io::Result<()> {
    let timeout = PollTimeout::try_from(PRIMING_TIMEOUT).unwrap_or(PollTimeout::MAX);
    poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)], timeout)?;
    stream.take_error()?.map_or(Ok(()), Err)?;
    stream.peer_addr().map(drop)
}

/// Returns once everything sent so far has crossed the relay.
fn cross_once() -> Result<(), LabError> {
    ask_echo(PRIMING_TIMEOUT).map_err(|error| LabError::system("trying the lab's echo service", error))
}

fn ask_echo(timeout: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_read_timeout(Some(timeout))?;
    socket.send_to(b"?", (SERVICES, ECHO_PORT))?;
    socket.recv(&mut [0; 8]).map(drop)
}
