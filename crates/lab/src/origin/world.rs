//! The servers' side of the lab: a thread in a network namespace of its own.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use firstflight_load::{Cookies, EarlyRequests, Priorities};
use firstflight_page::Origin;
use firstflight_path::IpVersion;
use rustls::ServerConfig;
use rustls::server::StoresServerSessions;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::answers::Answers;
use super::authority::Authority;
use super::listen::{HTTP1, HTTP2, Waiting};
use super::log::Log;
use super::quic::{HTTP3, Listener};
use super::tls::Sessions;
use super::{listen, services};
use crate::net::{self, AddressPlan, Side, Transport};
use crate::tun::{Offload, Tun};
use crate::witness::Counters;
use crate::{LabError, namespace, scheduling};

/// Settings of the servers.
pub struct ServersConfig {
    /// Their answers.
    pub answers: Arc<Answers>,
    /// Their log.
    pub log: Arc<Log>,
    /// The addresses of the hosts.
    pub addresses: AddressPlan,
    /// The certificate authority of the https origins.
    pub authority: Option<Arc<Authority>>,
    /// The cookie state.
    pub cookies: Cookies,
    /// Whether https origins use QUIC.
    pub speaks_quic: bool,
    /// How they treat early data (RFC 8446, section 2.3).
    pub early_data: EarlyRequests,
    /// Whether a connection stays open after its first response.
    pub keep_alive: bool,
    /// Whether they send urgent responses first.
    pub priorities: Priorities,
    /// The transport settings of their connections.
    pub transport: Transport,
    /// Whether QUIC connections use ECN. TCP connections follow the namespace's sysctl.
    pub ecn: bool,
    /// What the kernel leaves to the relay.
    pub offload: Offload,
    /// How many connections may wait at each listener.
    pub waiting: Waiting,
}

/// Running servers. They end with the process.
pub struct Servers {
    ask: tokio::sync::mpsc::UnboundedSender<Ask>,
}

/// A request to the servers' thread, with the channel for the answer.
enum Ask {
    Work(Box<dyn FnOnce() + Send>),
    OtherKeys(bool, mpsc::Sender<Result<(), LabError>>),
}

impl Servers {
    /// Starts the servers. Returns when every listener is up, with the servers' end of the wire.
    ///
    /// # Errors
    /// [`LabError`] when the namespace, a device or a listener cannot be created.
    pub fn start(config: ServersConfig) -> Result<(Self, Tun), LabError> {
        let (ask, asked) = tokio::sync::mpsc::unbounded_channel();
        let start = move || {
            scheduling::step_back();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| LabError::system("starting a runtime", error))?;
            let (tun, keyed) = runtime.block_on(set_up(config))?;
            Ok((tun, (runtime, keyed)))
        };
        let serve = |(runtime, keyed): (Runtime, Keyed)| runtime.block_on(answer(asked, &keyed));
        let tun = namespace::in_new_network("servers", start, serve)?;
        Ok((Self { ask }, tun))
    }

    /// The Fast Open counters of the servers' namespace.
    ///
    /// # Errors
    /// [`LabError`] when they cannot be read.
    pub fn counters(&self) -> Result<Counters, LabError> {
        self.inside(Counters::read)
    }

    /// Runs `work` on the servers' thread, in their namespace.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn inside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LabError> + Send + 'static,
    ) -> Result<T, LabError> {
        self.ask(|answer| Ask::Work(Box::new(move || drop(answer.send(work())))))
    }

    /// Gives every origin a new key. With the old one as a backup its cookies and its TLS sessions stay valid.
    ///
    /// # Errors
    /// [`LabError`] when the kernel refuses another key.
    pub fn change_keys(&self, keeps_old: bool) -> Result<(), LabError> {
        self.ask(|answer| Ask::OtherKeys(keeps_old, answer))
    }

    fn ask<T>(&self, what: impl FnOnce(mpsc::Sender<Result<T, LabError>>) -> Ask) -> Result<T, LabError> {
        let (answer, answered) = mpsc::channel();
        self.ask.send(what(answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }
}

fn gone() -> LabError {
    LabError::bug("the servers died")
}

type Asked = tokio::sync::mpsc::UnboundedReceiver<Ask>;

/// The servers' secrets: listeners with Fast Open keys, and TLS sessions.
#[derive(Default)]
struct Keyed {
    listeners: Vec<Arc<TcpListener>>,
    sessions: Vec<Arc<Sessions>>,
}

impl Keyed {
    /// Lets a server resume sessions until they are forgotten.
    fn remember_sessions(&mut self, tls: &mut ServerConfig) {
        let known = Arc::new(Sessions::default());
        tls.session_storage = Arc::clone(&known) as Arc<dyn StoresServerSessions>;
        self.sessions.push(known);
    }

    fn change(&self, keeps_old: bool) -> Result<(), LabError> {
        if !keeps_old {
            self.sessions.iter().for_each(|sessions| sessions.forget());
        }
        self.listeners
            .iter()
            .try_for_each(|listener| listen::change_key(listener, keeps_old))
    }
}

/// Handles requests until every sender has gone. The servers run meanwhile.
async fn answer(mut asked: Asked, keyed: &Keyed) {
    while let Some(ask) = asked.recv().await {
        match ask {
            Ask::Work(work) => work(),
            Ask::OtherKeys(keeps_old, answer) => drop(answer.send(keyed.change(keeps_old))),
        }
    }
}

async fn set_up(config: ServersConfig) -> Result<(Tun, Keyed), LabError> {
    net::set_server_sysctls(config.cookies == Cookies::Cookieless)?;
    let ip = config.addresses.block.ip;
    if ip == IpVersion::V6 {
        net::use_ipv6(Side::Servers)?;
    }
    net::bring_loopback_up(Side::Servers, ip)?;
    let tun = Tun::open(Side::Servers, ip, config.offload, &config.transport)?;
    let mut keyed = Keyed::default();
    for origin in config.answers.origins() {
        let Some(address) = config.addresses.address(&origin.host) else {
            continue;
        };
        let server = Arc::new(listen::Server {
            origin: origin.clone(),
            answers: Arc::clone(&config.answers),
            log: Arc::clone(&config.log),
            keep_alive: config.keep_alive,
            priorities: config.priorities,
            refuses_early_requests: config.early_data == EarlyRequests::AskedAgain,
            tls: tls(&config, origin, &mut keyed)?,
        });
        for number in 0..config.cookies.servers() {
            let listener = Arc::new(listen::listen(address, origin.port, number, config.waiting)?);
            keyed.listeners.push(Arc::clone(&listener));
            tokio::spawn(listen::serve(listener, Arc::clone(&server)));
        }
        if let Some(authority) = config
            .authority
            .as_ref()
            .filter(|_| origin.secure && config.speaks_quic)
        {
            let mut tls =
                authority.quic_server(&origin.host, HTTP3, config.early_data != EarlyRequests::None)?;
            keyed.remember_sessions(&mut tls);
            let address = SocketAddr::new(address, origin.port);
            let listener = Listener::bind(address, tls, &config.transport, config.ecn).await?;
            tokio::spawn(listener.serve(server));
        }
    }
    keyed
        .listeners
        .extend(services::start(config.addresses.block.services(), &config.log).await?);
    Ok((tun, keyed))
}

/// TLS for an https origin. Without keep-alive it does not offer HTTP/2, which cannot close after every response.
fn tls(
    config: &ServersConfig,
    origin: &Origin,
    keyed: &mut Keyed,
) -> Result<Option<Arc<ServerConfig>>, LabError> {
    let protocols: &[&[u8]] = if config.keep_alive {
        &[HTTP2, HTTP1]
    } else {
        &[HTTP1]
    };
    let Some(authority) = config.authority.as_ref().filter(|_| origin.secure) else {
        return Ok(None);
    };
    let mut tls = authority.server(&origin.host, protocols, config.early_data != EarlyRequests::None)?;
    keyed.remember_sessions(&mut tls);
    Ok(Some(Arc::new(tls)))
}
