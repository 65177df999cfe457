//! `prove`: what rides in the first flights of a program's own connections, and how it asked.
//!
//! The program runs twice in one lab, so that the second visit has the cookies and tickets of the first. What crossed the
//! wire comes from the relay, what became of TLS from the servers, and how the program asked from a [watch](crate::watch) on
//! its system calls. Nothing is preloaded. This job gives facts; the reasons are told from them by `analysis/first_flight.py`.

mod server;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use firstflight_load::Load;
use firstflight_load::promise::{FastOpen, Promise};
use firstflight_load::quic::PacketType;
use firstflight_load::record::Connection;
use firstflight_path::Protocol;
use serde::{Deserialize, Serialize};

use super::exec::ServedPage;
use crate::lab::{Lab, LabConfig};
use crate::namespace::Containment;
use crate::program::{Program, Streams};
use crate::relay::RelaySummary;
use crate::traffic::{Line, Traffic, lines};
use crate::watch::{Watch, Watched};
use crate::witness::Proof;
use crate::{LabError, clock, net};

pub use server::{ServerJob, ServerRecord};

/// What is to be run, and what around it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProveJob {
    /// What both clocks agree on.
    #[serde(flatten)]
    pub load: Load,
    /// The lab.
    #[serde(flatten)]
    pub lab: LabConfig,
    /// What the servers serve.
    pub pages: Vec<ServedPage>,
    /// The host of those pages that answers DNS too.
    pub dns_host: String,
    /// The program.
    pub program: Program,
    /// `net.ipv4.tcp_fastopen` where it runs.
    pub sysctl: u32,
    /// Whether the servers forget their keys between the visits.
    pub forgets_keys: bool,
    /// When a visit is ended, ms.
    pub limit_ms: u64,
    /// How long what the program left running may take to end by itself, ms.
    pub grace_ms: u64,
}

/// What came of it. Times are ms since the first visit began.
#[derive(Debug, Clone, Serialize)]
pub struct ProveRecord {
    /// Both visits.
    pub visits: Vec<Visit>,
    /// Every connection, in the order of opening.
    pub flights: Vec<Flight>,
    /// Whether the ledger, the servers' sockets and the kernel's counters agree.
    pub proof: Proof,
    /// How the relay did.
    pub relay: RelaySummary,
}

/// The program's one run.
#[derive(Debug, Clone, Serialize)]
pub struct Visit {
    /// Its exit code; 127 when there is no such program, 126 when it cannot be run.
    pub exit_code: i32,
    /// Why it could not be started.
    pub error: Option<String>,
    /// How long it ran.
    pub elapsed_ms: f64,
    /// Whether it was killed because its time was up.
    pub timed_out: bool,
    /// Programs that it left running, and that were killed.
    pub left_running: Vec<String>,
    /// The beginning and the end of what it printed.
    pub output: String,
    /// How it asked.
    pub watched: Watched,
}

/// One connection's first flight.
#[derive(Debug, Clone, Serialize)]
pub struct Flight {
    /// In which visit, from 1.
    pub visit: usize,
    /// Where it went.
    pub server: SocketAddr,
    /// The client's port.
    pub client_port: u16,
    /// What crossed the wire, and what the server's end tells of TLS.
    #[serde(flatten)]
    pub connection: Connection,
    /// Whether the server's SYN-ACK, or its first datagram, reached the client.
    pub is_answered: bool,
    /// Whether data, or a datagram, of the server's reached the client.
    pub has_heard: bool,
    /// Whether a server accepted it.
    pub is_accepted: bool,
    /// The client's `ClientHello`, over TCP.
    pub client_hello: Option<Hello>,
    /// Types and bytes of the packets of QUIC before the server's first.
    pub quic_packets: Vec<(PacketType, u32)>,
    /// Statuses of its responses.
    pub statuses: Vec<u16>,
    /// Which of its visit's sockets it is; `None` where none fits.
    pub socket: Option<usize>,
}

/// What a `ClientHello` says.
#[derive(Debug, Clone, Copy, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an extension that is there or not"
)]
pub struct Hello {
    /// Its bytes, without the headers of records.
    pub bytes: u32,
    /// It has a key share X25519MLKEM768.
    pub is_post_quantum: bool,
    /// It offers TLS 1.3.
    pub offers_tls13: bool,
    /// It says that it can resume sessions of TLS 1.3.
    pub can_resume: bool,
    /// It offers a session.
    pub offers_session: bool,
    /// It announces early data.
    pub offers_early_data: bool,
}

/// How often the program runs.
const VISITS: usize = 2;

impl ProveJob {
    /// Reads a job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        let mut job: Self =
            serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))?;
        ServedPage::prepare(&mut job.pages, job.load.scheme)?;
        Ok(job)
    }

    /// Builds the lab, runs the program twice, and hears the witnesses. `sockets` are the host's, see
    /// [`crate::namespace::host_sockets`].
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be had; a program that fails is a record that says so.
    pub fn run(&self, realtime: bool, sockets: Vec<PathBuf>) -> Result<ProveRecord, LabError> {
        let pages: Vec<_> = self.pages.iter().map(ServedPage::served).collect();
        let lab = Lab::build(&self.load, &self.lab, &pages, false, realtime)?;
        let dns = lab.addresses.address(&self.dns_host);
        lab.answer_dns(dns.ok_or_else(|| LabError::bug("the job: no page has dns_host"))?)?;
        net::set_sysctl("tcp_fastopen", &self.sysctl.to_string())?;
        let containment = Containment::Program(sockets);
        let mut visits = Vec::new();
        let mut begun = Vec::new();
        for number in 0..VISITS {
            if number > 0 && self.forgets_keys {
                lab.forget_keys()?;
            }
            begun.push(clock::now());
            let visit = self.visit(&containment)?;
            let is_started = visit.error.is_none();
            visits.push(visit);
            if !is_started {
                break;
            }
        }
        let seen = lab.conclude(&pages)?;
        let lines = lines(&seen.report.ledger, seen.conversations);
        let promise = Promise::from(FastOpen::Agreement);
        let traffic = Traffic::new(&lines, &[], &seen.directory, begun[0], &promise, seen.counters);
        let mut flights: Vec<_> = lines
            .iter()
            .zip(traffic.connections)
            .map(|(line, connection)| {
                let visit = begun.partition_point(|begun| *begun <= line.entry.seen.opened);
                Flight::new(visit.max(1), line, connection)
            })
            .collect();
        for (number, visit) in visits.iter().enumerate() {
            let of_visit = flights.iter_mut().filter(|flight| flight.visit == number + 1);
            assign(of_visit.collect(), &visit.watched);
        }
        Ok(ProveRecord {
            visits,
            flights,
            proof: traffic.proof,
            relay: RelaySummary::new(&seen.report, self.lab.late_bound_ms),
        })
    }

    /// Runs the program once.
    fn visit(&self, containment: &Containment) -> Result<Visit, LabError> {
        let watch = Watch::new()?;
        let streams = Streams::Kept { input: "" };
        let running = match self.program.start_watched(containment, streams, Some(&watch)) {
            Ok(running) => running,
            Err(error @ LabError::NotStarted { .. }) => return Ok(Visit::not_started(&error)),
            Err(error) => return Err(error),
        };
        let watching = watch.begin()?;
        let limit = Duration::from_millis(self.limit_ms);
        let ending = running.wait_for_all(Some(limit), Duration::from_millis(self.grace_ms))?;
        Ok(Visit {
            exit_code: ending.code,
            error: None,
            elapsed_ms: ending.elapsed.as_secs_f64() * 1e3,
            timed_out: ending.timed_out,
            left_running: ending.left_running,
            output: ending.output,
            watched: watching.finish()?,
        })
    }
}

impl Visit {
    fn not_started(error: &LabError) -> Self {
        Self {
            exit_code: match error {
                LabError::NotStarted { problem, .. } if problem.kind() == ErrorKind::NotFound => 127,
                _ => 126,
            },
            error: Some(error.to_string()),
            elapsed_ms: 0.0,
            timed_out: false,
            left_running: Vec::new(),
            output: String::new(),
            watched: Watched::default(),
        }
    }
}

impl Flight {
    fn new(visit: usize, line: &Line<'_>, connection: Connection) -> Self {
        let (client_port, address, port) = line.entry.key;
        let hello = line.entry.client_hello.as_ref();
        Self {
            visit,
            server: SocketAddr::new(address, port),
            client_port,
            connection,
            is_answered: line.entry.seen.answered.is_some(),
            has_heard: line.entry.seen.has_heard(),
            is_accepted: line.conversation.is_some(),
            client_hello: hello.map(|hello| Hello {
                bytes: hello.message_bytes,
                is_post_quantum: hello.is_post_quantum(),
                offers_tls13: hello.offers_tls13,
                can_resume: hello.can_resume,
                offers_session: hello.offers_session,
                offers_early_data: hello.offers_early_data,
            }),
            quic_packets: line.entry.first_packets.clone(),
            statuses: line.exchanges.iter().map(|exchange| exchange.status).collect(),
            socket: None,
        }
    }
}

/// Finds each connection's socket: by its port; where that could not be asked, the sockets of a server are taken in turn.
fn assign(flights: Vec<&mut Flight>, watched: &Watched) {
    let sockets = &watched.sockets;
    let mut free: Vec<usize> = (0..sockets.len()).collect();
    let mut take = |flight: &Flight, has_port: bool| {
        let fits = |index: &usize| {
            let (port, socket) = (sockets[*index].port, &sockets[*index]);
            let is_port = if has_port {
                port == Some(flight.client_port)
            } else {
                port.is_none()
            };
            is_port && socket.destination == Some(flight.server)
        };
        free.iter().position(fits).map(|at| free.remove(at))
    };
    let over_tcp = |flight: &&mut Flight| flight.connection.protocol == Protocol::Tcp;
    let mut unknown = Vec::new();
    for flight in flights.into_iter().filter(over_tcp) {
        flight.socket = take(flight, true);
        if flight.socket.is_none() {
            unknown.push(flight);
        }
    }
    for flight in unknown {
        flight.socket = take(flight, false);
    }
}
