//! `prove`: what a program's own connections carry in their first flights, and how it asked for that.
//!
//! The program runs twice in one lab, so that the second visit has the cookies and tickets of the first. The relay
//! reports what crossed the wire, the servers report TLS, and a [watch](crate::watch) on its system calls how the
//! program asked. Nothing is preloaded. This job only gives facts; `analysis/first_flight.py` derives the reasons.

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

/// A job for `prove`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProveJob {
    /// The settings of the load.
    #[serde(flatten)]
    pub load: Load,
    /// The lab's settings.
    #[serde(flatten)]
    pub lab: LabConfig,
    /// The pages that the servers answer for.
    pub pages: Vec<ServedPage>,
    /// The host of those pages that also answers DNS.
    pub dns_host: String,
    /// The program.
    pub program: Program,
    /// `net.ipv4.tcp_fastopen` in the program's namespace.
    pub sysctl: u32,
    /// Whether the servers forget their keys between the visits.
    pub forgets_keys: bool,
    /// Time limit of a visit, ms.
    pub limit_ms: u64,
    /// How long processes that the program left running may take to end by themselves, ms.
    pub grace_ms: u64,
}

/// The result. Times are ms since the first visit began.
#[derive(Debug, Clone, Serialize)]
pub struct ProveRecord {
    /// Both visits.
    pub visits: Vec<Visit>,
    /// Every connection, in the order of opening.
    pub flights: Vec<Flight>,
    /// Whether the ledger, the servers' sockets and the kernel's counters agree.
    pub proof: Proof,
    /// The relay's summary.
    pub relay: RelaySummary,
}

/// One run of the program.
#[derive(Debug, Clone, Serialize)]
pub struct Visit {
    /// Its exit code; 127 if there is no such program, 126 if it cannot be run.
    pub exit_code: i32,
    /// Why it could not be started.
    pub error: Option<String>,
    /// How long it ran.
    pub elapsed_ms: f64,
    /// Whether it was killed at its time limit.
    pub timed_out: bool,
    /// Names of the programs that it left running, which were killed.
    pub left_running: Vec<String>,
    /// Beginning and end of its output.
    pub output: String,
    /// Its calls that concern first flights.
    pub watched: Watched,
}

/// One connection's first flight.
#[derive(Debug, Clone, Serialize)]
pub struct Flight {
    /// The visit, from 1.
    pub visit: usize,
    /// The server's address.
    pub server: SocketAddr,
    /// The client's port.
    pub client_port: u16,
    /// What crossed the wire, and what the server's end reports of TLS.
    #[serde(flatten)]
    pub connection: Connection,
    /// Whether the server's SYN-ACK, or its first datagram, reached the client.
    pub is_answered: bool,
    /// Whether data, or a datagram, from the server reached the client.
    pub has_heard: bool,
    /// Whether a server accepted it.
    pub is_accepted: bool,
    /// The client's `ClientHello`, over TCP.
    pub client_hello: Option<Hello>,
    /// Types and bytes of the QUIC packets before the server's first.
    pub quic_packets: Vec<(PacketType, u32)>,
    /// Statuses of its responses.
    pub statuses: Vec<u16>,
    /// The index of its socket in its visit; `None` if none fits.
    pub socket: Option<usize>,
}

/// The contents of a `ClientHello`.
#[derive(Debug, Clone, Copy, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an extension that is there or not"
)]
pub struct Hello {
    /// Its size without record headers, bytes.
    pub bytes: u32,
    /// Whether it has a key share for X25519MLKEM768.
    pub is_post_quantum: bool,
    /// Whether it offers TLS 1.3.
    pub offers_tls13: bool,
    /// Whether it can resume sessions of TLS 1.3.
    pub can_resume: bool,
    /// Whether it offers a session.
    pub offers_session: bool,
    /// Whether it announces early data.
    pub offers_early_data: bool,
}

/// How often the program runs.
const VISITS: usize = 2;

impl ProveJob {
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        let mut job: Self =
            serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))?;
        ServedPage::prepare(&mut job.pages, job.load.scheme)?;
        Ok(job)
    }

    /// Builds the lab, runs the program twice, and collects what the witnesses saw. `sockets` are the host's, see
    /// [`crate::namespace::host_sockets`].
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be set up; a program that fails is a record that says so.
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

/// Finds each connection's socket by its port. If the port is unknown, it takes the sockets to that server in
/// order.
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
