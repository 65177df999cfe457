//! The job of a stress measurement, and its record. Each is one JSON document.

use std::time::Duration;

use firstflight_load::Mode;
use firstflight_load::record::ms;
use serde::{Deserialize, Serialize};

use super::clients::{self, Failures, Outcome, Plan, Sockets};
use super::flood::{Flood, FloodJob, Kind, Sent};
use super::kernel::{Kernel, KernelCounters, growth};
use super::latency::Percentiles;
use super::meter::{self, Processors, Tasks};
use super::proof::Proof;
use super::server::{SERVER, Server, ServerJob, Settings, TARGET};
use super::wire::{Carried, CookieJar, Tally, Wire, lateness};
use crate::error::ServerProblem;
use crate::net::{self, Side, Transport};
use crate::origin::Waiting;
use crate::relay::LatenessSummary;
use crate::tun::{Offload, Tun};
use crate::{LabError, clock, descriptors, scheduling};
use firstflight_path::IpVersion;

/// One measurement.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StressJob {
    /// The server.
    pub server: ServerJob,
    /// Whether the clients use Fast Open.
    pub mode: Mode,
    /// Clients per second.
    pub rate: f64,
    /// How long clients arrive, s.
    pub seconds: f64,
    /// How long clients arrive before that without being counted, s.
    pub warm_up: f64,
    /// When a client gives up, ms.
    pub timeout_ms: f64,
    /// Round-trip time, ms.
    pub rtt_ms: f64,
    /// Size of the object that they fetch, bytes.
    pub body_bytes: usize,
    /// Connections that may wait at the built-in server.
    pub backlog: u32,
    /// Pending Fast Open requests that the built-in server allows.
    pub qlen: u32,
    /// SYN cookies: 0 never, 1 when the queue is full, 2 always.
    pub syn_cookies: u8,
    /// A flood during the measurement.
    pub flood: Option<FloodJob>,
}

/// The result. Processor times are ms.
#[derive(Debug, Clone, Serialize)]
pub struct StressRecord {
    /// Number of clients.
    pub requests: u64,
    /// Clients that got the whole object.
    pub answered: u64,
    /// Clients that did not.
    #[serde(flatten)]
    pub failures: Failures,
    /// From planned arrival to the last byte, ms.
    pub latency_ms: Percentiles,
    /// From the first arrival to the end of the last client, ms.
    pub elapsed_ms: f64,
    /// Processor time of the server's threads or processes, system calls included.
    pub server_cpu_ms: f64,
    /// Processor time that the server's kernel spent on receiving the clients' packets.
    pub receive_cpu_ms: f64,
    /// From the first arrival to the last, ms. The four times below cover this span.
    pub arriving_ms: f64,
    /// Time that the server's processor was not idle.
    pub server_used_ms: f64,
    /// Time that another virtual machine had the server's processor.
    pub server_stolen_ms: f64,
    /// Time that the clients' processor was not idle.
    pub clients_used_ms: f64,
    /// Time that another virtual machine had the clients' processor.
    pub clients_stolen_ms: f64,
    /// Processor time of the clients' thread.
    pub clients_cpu_ms: f64,
    /// Whether the server had a processor of its own.
    pub own_core: bool,
    /// How late clients arrived.
    pub arrivals: LatenessSummary,
    /// Packets that the clients sent.
    pub up: Tally,
    /// Packets that were sent to the clients.
    pub down: Tally,
    /// Lateness of the wire, up and down.
    pub wire: [LatenessSummary; 2],
    /// Packets that a TUN device refused.
    pub refused: u64,
    /// What the clients' sockets reported.
    pub sockets: Sockets,
    /// Counters of the clients' kernel.
    pub clients_kernel: KernelCounters,
    /// Counters of the server's kernel.
    pub server_kernel: KernelCounters,
    /// Counters of the server's kernel since the flood began, or since the first client of the warm-up.
    pub server_kernel_in_all: KernelCounters,
    /// Number of the flood's SYNs.
    pub flood_syns: u64,
    /// Processor time that the server's kernel spent on receiving them.
    pub flood_cpu_ms: f64,
    /// The verdict of the witnesses.
    pub proof: Proof,
}

/// How long a server may take until it answers.
const STARTING: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Limits of a job: an hour, and more packets than any machine sends.
const LONGEST_MS: f64 = 3_600_000.0;
const MOST_PER_SECOND: f64 = 1e8;

impl StressJob {
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        let job: Self = serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))?;
        job.check()?;
        Ok(job)
    }

    /// Refuses numbers that are out of range.
    fn check(&self) -> Result<(), LabError> {
        let flood_rate = self.flood.map_or(0.0, |flood| flood.rate);
        for (name, value, least, most) in [
            ("rate", self.rate, f64::MIN_POSITIVE, MOST_PER_SECOND),
            ("seconds", self.seconds, 0.0, LONGEST_MS / 1e3),
            ("warm_up", self.warm_up, 0.0, LONGEST_MS / 1e3),
            ("timeout_ms", self.timeout_ms, 0.0, LONGEST_MS),
            ("rtt_ms", self.rtt_ms, 0.0, LONGEST_MS),
            ("flood.rate", flood_rate, 0.0, MOST_PER_SECOND),
        ] {
            LabError::check_range(name, value, least, most)?;
        }
        match self.flood {
            Some(FloodJob {
                kind: Kind::Valid,
                addresses: 0,
                ..
            }) => Err(LabError::FloodWithoutAddress),
            _ => Ok(()),
        }
    }

    /// Builds both namespaces, starts the server, and runs the clients. Call it once per process.
    ///
    /// With `realtime` the calling thread has real-time priority, which the wire keeps. So the kernel's receiving
    /// goes before programs, as on a real server.
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be built or the server does not give the object.
    pub fn run(&self, realtime: bool) -> Result<StressRecord, LabError> {
        // If the limit is still too low, clients that cannot be opened are counted.
        descriptors::raise(u64::MAX);
        let processors = Processors::choose()?;
        meter::stay_on(processors.server)?;
        let mut server = Server::start(&self.server, self.settings())?;
        meter::stay_on(processors.clients)?;
        net::set_client_sysctls(self.mode == Mode::Tfo, false)?;
        net::set_sysctl("ip_local_port_range", "1024 65535")?;
        net::bring_loopback_up(Side::Client, IpVersion::V4)?;
        let tun = Tun::open(
            Side::Client,
            IpVersion::V4,
            Offload::Checksums,
            &Transport::default(),
        )?;
        let kernel = Kernel::open()?;
        let jar = CookieJar::default();
        let rtt = Duration::from_secs_f64(self.rtt_ms / 1e3);
        let wire = Wire::start([&tun, &server.tun], rtt, processors, realtime, &jar)?;
        let request = format!("GET {TARGET} HTTP/1.0\r\nHost: {}\r\n\r\n", SERVER.ip()).into_bytes();
        scheduling::become_ordinary();
        self.rehearse(&mut server, &request, processors)?;
        let flood = self
            .flood
            .map(|job| Flood::start(job, &server.tun, SERVER, &request, &jar, processors));
        let mut witnesses = Witnesses {
            wire,
            flood: flood.transpose()?,
            kernel,
            server,
        };
        let untouched = witnesses.server.kernel.read()?;
        clients::run(self.plan(&request, self.warm_up), processors)?;
        let before = witnesses.hear()?;
        let outcome = clients::run(self.plan(&request, self.seconds), processors)?;
        let after = witnesses.hear()?;
        witnesses.dismiss()?;
        Ok(StressRecord {
            server_kernel_in_all: growth(&untouched, &after.server_kernel),
            ..self.record(outcome, &before, &after, processors)
        })
    }

    fn settings(&self) -> Settings {
        Settings {
            waiting: Waiting {
                backlog: self.backlog,
                fast_open: self.qlen,
            },
            syn_cookies: self.syn_cookies,
            body_bytes: self.body_bytes,
        }
    }

    fn plan<'a>(&self, request: &'a [u8], seconds: f64) -> Plan<'a> {
        Plan {
            server: SERVER,
            request,
            body_bytes: self.body_bytes,
            requests: (self.rate * seconds).round() as u64,
            rate: self.rate,
            timeout: Duration::from_secs_f64(self.timeout_ms / 1e3),
        }
    }

    /// Runs a single client until it gets the object. Then the server is up, and the client's kernel has its
    /// cookie.
    fn rehearse(&self, server: &mut Server, request: &[u8], processors: Processors) -> Result<(), LabError> {
        let deadline = clock::now() + STARTING.as_nanos() as u64;
        loop {
            server.check()?;
            let one = Plan {
                requests: 1,
                timeout: STARTING,
                ..self.plan(request, 0.0)
            };
            let outcome = clients::run(one, processors)?;
            match outcome.failures {
                Failures { wrong: 1.., .. } => {
                    return Err(server.problem(ServerProblem::OtherAnswer {
                        target: TARGET,
                        body_bytes: self.body_bytes,
                    }));
                }
                failures if failures.total() == 0 => return Ok(()),
                _ if clock::now() > deadline => {
                    return Err(server.problem(ServerProblem::Silent(SERVER)));
                }
                _ => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }

    fn record(
        &self,
        outcome: Outcome,
        before: &Heard,
        after: &Heard,
        processors: Processors,
    ) -> StressRecord {
        let tally = |way: usize| after.carried[way].tally.since(before.carried[way].tally);
        let receiving = after.carried[0].receiving - before.carried[0].receiving;
        let clients_kernel = growth(&before.clients_kernel, &after.clients_kernel);
        let answered = outcome.latencies.len() as u64;
        let failures = outcome.failures;
        let [server, clients] = outcome.processors;
        let proof = Proof::examine(
            self.mode == Mode::Tfo,
            tally(0),
            outcome.sockets,
            &clients_kernel,
            failures.total(),
        );
        StressRecord {
            requests: answered + failures.total(),
            answered,
            failures,
            latency_ms: Percentiles::of(outcome.latencies, failures.total() as usize),
            elapsed_ms: ms(outcome.elapsed),
            server_cpu_ms: ms(after.server - before.server),
            receive_cpu_ms: ms(receiving),
            arriving_ms: ms(outcome.arriving),
            server_used_ms: ms(server.used),
            server_stolen_ms: ms(server.stolen),
            clients_used_ms: ms(clients.used),
            clients_stolen_ms: ms(clients.stolen),
            clients_cpu_ms: ms(after.clients - before.clients),
            own_core: processors.are_two(),
            arrivals: outcome.lateness.summary(),
            up: tally(0),
            down: tally(1),
            wire: lateness(&after.carried),
            refused: after.carried.iter().map(|carried| carried.refused).sum(),
            sockets: outcome.sockets,
            clients_kernel,
            server_kernel: growth(&before.server_kernel, &after.server_kernel),
            server_kernel_in_all: KernelCounters::new(),
            flood_syns: after.flood.syns - before.flood.syns,
            flood_cpu_ms: ms(after.flood.receiving - before.flood.receiving),
            proof,
        }
    }
}

/// All sources of counters.
struct Witnesses {
    wire: Wire,
    flood: Option<Flood>,
    kernel: Kernel,
    server: Server,
}

/// Their values at one moment.
struct Heard {
    carried: [Carried; 2],
    server: u64,
    clients: u64,
    flood: Sent,
    clients_kernel: KernelCounters,
    server_kernel: KernelCounters,
}

impl Witnesses {
    fn hear(&mut self) -> Result<Heard, LabError> {
        self.server.check()?;
        Ok(Heard {
            carried: self.wire.carried(),
            server: self.server.tasks.cpu(),
            clients: Tasks::this_thread().cpu(),
            flood: self.flood.as_ref().map(Flood::sent).unwrap_or_default(),
            clients_kernel: self.kernel.read()?,
            server_kernel: self.server.kernel.read()?,
        })
    }

    fn dismiss(self) -> Result<(), LabError> {
        self.flood.map_or(Ok(()), Flood::finish)?;
        self.wire.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(changed: &[(&str, serde_json::Value)]) -> Result<StressJob, LabError> {
        let mut job = serde_json::json!({
            "server": {"kind": "builtin"}, "mode": "tcp", "rate": 10.0, "seconds": 1.0, "warm_up": 0.0,
            "timeout_ms": 1000.0, "rtt_ms": 0.0, "body_bytes": 10, "backlog": 8, "qlen": 8, "syn_cookies": 1,
            "flood": {"kind": "valid", "rate": 0.0, "addresses": 1},
        });
        for (at, value) in changed {
            *job.pointer_mut(at).expect("a field of the job") = value.clone();
        }
        StressJob::from_json(&job.to_string())
    }

    #[test]
    fn a_job_without_delay_is_accepted() {
        job(&[]).expect("a possible job");
    }

    #[test]
    fn numbers_that_no_measurement_can_have_are_refused_by_their_names() {
        for (at, name, value) in [
            ("/rtt_ms", "rtt_ms", -1.0),
            ("/rtt_ms", "rtt_ms", 1e300),
            ("/timeout_ms", "timeout_ms", -1.0),
            ("/rate", "rate", 0.0),
            ("/rate", "rate", -5.0),
            ("/seconds", "seconds", -1.0),
            ("/warm_up", "warm_up", -1.0),
            ("/flood/rate", "flood.rate", -1.0),
        ] {
            let error = job(&[(at, value.into())]).expect_err(at);
            assert!(error.to_string().contains(name), "{error}");
            assert!(!error.hint().is_empty());
        }
    }

    #[test]
    fn a_flood_with_the_cookies_of_no_address_is_refused() {
        let error = job(&[("/flood/addresses", 0.into())]).expect_err("no address");
        assert!(error.to_string().contains("flood.addresses"), "{error}");
    }
}
