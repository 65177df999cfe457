//! `replay`: runs the same flow on this kernel and on the TCP model, and compares the packets.
//!
//! One lab runs many cases, each with its own address. So no cookie, metric or retransmission of one affects the
//! next. Not modelled: programs; this module plays both applications.

mod connection;

use std::fmt::{Display, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fs, io};

use firstflight_replay::{
    Case, Closes, Divergence, FastOpen, Machine, Recorded, TOLERANCE, Trace, compare, draw, follow, run,
    shrink,
};
use firstflight_tcp::Algorithm;
use nix::libc;

use crate::net::{self, Side, Transport};
use crate::tun::{Offload, Tun};
use crate::{LabError, namespace, scheduling};
use connection::{Connection, Outcome, Wire, jiffies_at_zero, read_buffer, send_memory};
use firstflight_path::IpVersion;

/// Pending Fast Open requests that a listener allows.
const PENDING: u32 = 16;
const PORT: u16 = 80;
/// The first case's address, and the number of addresses.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 19, 1, 1);
const ADDRESSES: u32 = 60_000;
/// Number of cases to try when shrinking one.
const MOST_TRIES: usize = 150;

/// A job for `replay`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayJob {
    /// Files of cases.
    pub files: Vec<PathBuf>,
    /// Whether to write the files anew, with what this kernel does.
    pub record: bool,
    /// The first seed of random cases, and their number.
    pub draw: Option<(u64, u64)>,
    /// Whether to shrink a case that diverges.
    pub shrink: bool,
    /// Where to write the cases with this kernel's traces, and the differences.
    pub out: Option<PathBuf>,
}

impl ReplayJob {
    /// Reads `FILE... [--record]` or `--draw SEED --count N [--shrink]`, both with `[--out DIR]`.
    ///
    /// # Errors
    /// [`LabError`] naming the argument that is wrong.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, LabError> {
        let mut job = Self::default();
        let (mut seed, mut count) = (None, 1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_default();
            let number = |text: String| {
                text.parse::<u64>()
                    .map_err(|error| LabError::malformed("a number", format!("{arg} {text}: {error}")))
            };
            match arg.as_str() {
                "--draw" => seed = Some(number(value())?),
                "--count" => count = number(value())?,
                "--shrink" => job.shrink = true,
                "--record" => job.record = true,
                "--out" => job.out = Some(value().into()),
                _ => job.files.push(arg.into()),
            }
        }
        job.draw = seed.map(|seed| (seed, count));
        Ok(job)
    }

    /// Replays everything. Call it once, inside a lab. `realtime`: whether this thread has real-time priority.
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be set up or a file is not a case.
    pub fn run(&self, realtime: bool) -> Result<String, LabError> {
        let mut stage = Stage::build(realtime)?;
        let mut tally = Tally::default();
        for file in &self.files {
            let wrong = |problem: &dyn Display| {
                LabError::malformed("a case", format!("{}: {problem}", file.display()))
            };
            let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
            let case: Case = text.parse().map_err(|error| wrong(&error))?;
            let replayed = stage.replay(&case)?;
            if self.record {
                let text = replayed.case.to_string();
                fs::write(file, text).map_err(|error| LabError::unwritable(file, &error))?;
            }
            self.report(&mut stage, &file.display().to_string(), replayed, &mut tally)?;
        }
        if let Some((first, count)) = self.draw {
            for seed in first..first + count {
                let replayed = stage.replay(&draw(seed))?;
                self.report(&mut stage, &format!("seed-{seed}"), replayed, &mut tally)?;
            }
        }
        Ok(tally.to_string())
    }

    fn report(
        &self,
        stage: &mut Stage,
        name: &str,
        mut replayed: Replayed,
        tally: &mut Tally,
    ) -> Result<(), LabError> {
        tally.count(&replayed);
        eprintln!("{name}: {}", replayed.verdict());
        if self.shrink && replayed.diverges().is_some() {
            let shortest = shrink(replayed.case.clone(), MOST_TRIES, |case| {
                stage
                    .replay(case)
                    .is_ok_and(|replayed| replayed.diverges().is_some())
            });
            // A divergence that does not happen every time is reported as it was seen first.
            let again = stage.replay(&shortest)?;
            if again.diverges().is_some() {
                replayed = again;
            }
        }
        let difference = replayed.show();
        let Some(out) = &self.out else {
            if !difference.is_empty() {
                eprintln!("{}{}{difference}", replayed.case.flow, replayed.case.script);
            }
            return Ok(());
        };
        let stem = Path::new(name)
            .file_stem()
            .map_or(name.into(), |stem| stem.to_string_lossy());
        for (ending, text) in [("txt", replayed.case.to_string()), ("diff", difference)] {
            if !text.is_empty() {
                let file = out.join(format!("{stem}.{ending}"));
                fs::write(&file, text).map_err(|error| LabError::unwritable(&file, &error))?;
            }
        }
        Ok(())
    }
}

/// A case, on the kernel and on the model.
#[derive(Debug)]
struct Replayed {
    /// The case, with the kernel's trace.
    case: Case,
    kernel: Trace,
    /// The model's traces: on its own path, and with the kernel's arrivals.
    model: Trace,
    fed: Trace,
    late: u64,
    on_path: Option<Divergence>,
    when_fed: Option<Divergence>,
}

impl Replayed {
    /// The first difference in TCP itself: the model did something else with the same packets at the same times.
    fn diverges(&self) -> Option<&Divergence> {
        self.when_fed.as_ref()
    }

    fn verdict(&self) -> String {
        let late_ms = self.late as f64 / 1e6;
        let packets = self.kernel.sent.len();
        let what = match (&self.when_fed, &self.on_path) {
            (None, None) => "identical".to_owned(),
            (None, Some(on_path)) => format!("identical when fed; on the path {on_path}"),
            (Some(fed), None) => format!("identical on the path; when fed {fed}"),
            (Some(fed), Some(_)) => fed.to_string(),
        };
        format!("{what} ({packets} packets, at most {late_ms:.3} ms late)")
    }

    fn show(&self) -> String {
        match (&self.when_fed, &self.on_path) {
            (Some(fed), _) => fed.show(&self.kernel, &self.fed),
            (None, Some(on_path)) => on_path.show(&self.kernel, &self.model),
            (None, None) => String::new(),
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    cases: u32,
    same_on_path: u32,
    same_when_fed: u32,
}

impl Tally {
    fn count(&mut self, replayed: &Replayed) {
        self.cases += 1;
        self.same_on_path += u32::from(replayed.on_path.is_none());
        self.same_when_fed += u32::from(replayed.when_fed.is_none());
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = |same: u32| f64::from(same) * 100.0 / f64::from(self.cases.max(1));
        let mut text = String::new();
        let _ = write!(text, "{} cases", self.cases);
        for (same, what) in [
            (self.same_on_path, "on the path"),
            (self.same_when_fed, "when fed"),
        ] {
            let _ = write!(text, ", {same} identical {what} ({:.1} %)", share(same));
        }
        f.write_str(&text)
    }
}

type Work = Box<dyn FnOnce() + Send>;

/// A client's and a server's network namespace.
struct Stage {
    wire: Wire,
    /// The channel to the thread in the servers' namespace.
    servers: Sender<Work>,
    kernel: String,
    machine: Machine,
    buffer: Vec<u8>,
    cases: u32,
}

impl Stage {
    fn build(realtime: bool) -> Result<Self, LabError> {
        let jiffies = (0..5).filter_map(|_| jiffies_at_zero()).min();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_err(|error| LabError::system("asking for the kernel's version", error))?;
        net::bring_loopback_up(Side::Client, IpVersion::V4)?;
        let memory =
            send_memory().map_err(|error| LabError::system("asking for the send buffer's size", error))?;
        let client = Tun::open(
            Side::Client,
            IpVersion::V4,
            Offload::Checksums,
            &Transport::default(),
        )?;
        let set_up = || {
            scheduling::become_ordinary();
            net::bring_loopback_up(Side::Servers, IpVersion::V4)?;
            net::set_server_sysctls(false)?;
            let tun = Tun::open(
                Side::Servers,
                IpVersion::V4,
                Offload::Checksums,
                &Transport::default(),
            )?;
            let (servers, work) = channel::<Work>();
            Ok(((tun, servers), work))
        };
        let go_on = |work: Receiver<Work>| work.iter().for_each(|work| work());
        let (servers_tun, servers) = namespace::in_new_network("servers", set_up, go_on)?;
        scheduling::become_relay(realtime);
        Ok(Self {
            wire: Wire {
                client,
                servers: servers_tun,
            },
            servers,
            kernel: kernel.trim().to_owned(),
            machine: Machine {
                start: 0,
                jiffies: jiffies.unwrap_or(u64::from(u32::MAX) + 1 - 300 * 250),
                memory,
            },
            buffer: read_buffer(),
            cases: 0,
        })
    }

    /// Runs `work` in the servers' namespace.
    fn among_servers<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LabError> + Send + 'static,
    ) -> Result<T, LabError> {
        let (answer, answered) = channel();
        let died = |_| LabError::bug("the thread of the servers died");
        let work = Box::new(move || drop(answer.send(work())));
        self.servers
            .send(work)
            .map_err(|_| LabError::bug("the thread of the servers died"))?;
        answered.recv().map_err(died)?
    }

    /// Runs a case on this kernel and on the model.
    fn replay(&mut self, case: &Case) -> Result<Replayed, LabError> {
        let Outcome { trace, start, late } = self.on_kernel(case)?;
        let machine = Machine {
            start,
            ..self.machine
        };
        let model =
            run(&case.flow, &case.script, machine).map_err(|error| LabError::malformed("the flow", error))?;
        let fed = follow(&case.flow, &trace, machine);
        Ok(Replayed {
            on_path: compare(&trace, &model, TOLERANCE + 8 * late),
            when_fed: compare(&trace, &fed, TOLERANCE),
            case: Case {
                recorded: Some(Recorded {
                    kernel: self.kernel.clone(),
                    machine,
                    trace: trace.clone(),
                }),
                ..case.clone()
            },
            kernel: trace,
            model,
            fed,
            late,
        })
    }

    fn on_kernel(&mut self, case: &Case) -> Result<Outcome, LabError> {
        let flow = &case.flow;
        let transport = Transport {
            initial_window: flow.initial_window,
            congestion_control: match flow.algorithm {
                Algorithm::Cubic => "cubic",
                Algorithm::Reno => "reno",
            }
            .to_owned(),
        };
        net::set_client_sysctls(flow.fast_open != FastOpen::None, false)?;
        net::change_transport(Side::Client, &transport)?;
        let ecn = if flow.ecn { "1" } else { "0" };
        net::set_sysctl("tcp_ecn", ecn)?;
        let address = Ipv4Addr::from_bits(FIRST.to_bits() + self.cases % ADDRESSES);
        self.cases += 1;
        let listener = self.among_servers(move || {
            net::change_transport(Side::Servers, &transport)?;
            net::set_sysctl("tcp_ecn", ecn)?;
            let failed = |error: io::Error| LabError::system("starting the server", error);
            let listener = TcpListener::bind((address, PORT)).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            net::set_tcp_option(&listener, libc::TCP_FASTOPEN, &PENDING).map_err(failed)?;
            net::set_tcp_option(&listener, libc::TCP_FASTOPEN_KEY, &[1_u8; 16]).map_err(failed)?;
            Ok(listener)
        })?;
        if matches!(flow.fast_open, FastOpen::Cookie | FastOpen::Unknown) {
            Connection::open(&priming(case), &self.wire, &listener, &mut self.buffer)?.run()?;
        }
        if flow.fast_open == FastOpen::Unknown {
            net::set_tcp_option(&listener, libc::TCP_FASTOPEN_KEY, &[2_u8; 16])
                .map_err(|error| LabError::system("changing the server's key", error))?;
        }
        Connection::open(case, &self.wire, &listener, &mut self.buffer)?.run()
    }
}

/// A connection that only fetches a cookie.
fn priming(case: &Case) -> Case {
    let mut priming = case.clone();
    priming.script = firstflight_replay::Script::default();
    priming.flow.rtt = 0;
    priming.flow.exchanges.clear();
    priming.flow.close = Closes::Nobody;
    priming
}
