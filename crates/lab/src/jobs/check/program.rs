//! A server program of the user, in this network namespace.

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use firstflight_path::IpVersion;
use nix::unistd::geteuid;
use serde::Deserialize;

use crate::LabError;
use crate::namespace::Containment;
use crate::program::{Program, Running, Streams, is_alone};
use crate::watch::{Watch, Watching};

/// How long a server may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// `TCP_LISTEN` in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// How to start the server, and where it listens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedServer {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its port.
    pub port: u16,
}

impl NamedServer {
    /// Starts it, and waits until it listens for clients of `ip`.
    pub(super) fn start(&self, ip: IpVersion) -> Result<Running, LabError> {
        let mut running = self.spawn(None)?;
        self.wait(&mut running, ip)?;
        Ok(running)
    }

    /// The same, with a watch on its system calls.
    pub(in crate::jobs) fn start_watched(&self, ip: IpVersion) -> Result<(Running, Watching), LabError> {
        let watch = Watch::new()?;
        let mut running = self.spawn(Some(&watch))?;
        let watching = watch.begin()?;
        self.wait(&mut running, ip)?;
        Ok((running, watching))
    }

    fn spawn(&self, watch: Option<&Watch>) -> Result<Running, LabError> {
        allow_low_ports()?;
        let program = Program {
            argv: self.argv.clone(),
            ..Program::default()
        };
        program.start_watched(&Containment::None, Streams::Kept { input: "" }, watch)
    }

    fn wait(&self, running: &mut Running, ip: IpVersion) -> Result<(), LabError> {
        let (program, port) = (self.argv.first().map_or("", String::as_str), self.port);
        let of_ip = match ip {
            IpVersion::V4 => "",
            IpVersion::V6 => " of IPv6",
        };
        let deadline = Instant::now() + LISTEN_TIMEOUT;
        while !listens(port, ip)? {
            let ended = running.try_wait()?;
            // A program that went into the background has left other processes.
            let is_over = ended.is_some_and(|status| !status.success() || is_alone());
            let what = match ended {
                Some(status) if is_over => {
                    let how = status.to_string().replace("exit status:", "exit code");
                    format!("{program} ended with {how} and did not listen on port {port}{of_ip}")
                }
                _ if Instant::now() > deadline => {
                    let seconds = LISTEN_TIMEOUT.as_secs();
                    format!("{program} did not listen on port {port}{of_ip} within {seconds} s")
                }
                _ => {
                    thread::sleep(LOOK_AGAIN);
                    continue;
                }
            };
            return Err(LabError::CheckedServer {
                problem: what + &quoted(running),
                as_root: geteuid().is_root(),
            });
        }
        Ok(())
    }
}

/// What a server has printed, to append to a message.
pub(super) fn quoted(running: &Running) -> String {
    let output = running.output();
    if output.is_empty() {
        output
    } else {
        format!("; it said: {output}")
    }
}

/// Lets an ordinary user's server listen on ports below 1024 in the lab.
fn allow_low_ports() -> Result<(), LabError> {
    crate::net::set_sysctl("ip_unprivileged_port_start", "0")
}

/// Whether a server listens on `port` in this network namespace. An IPv6 socket may accept IPv4 clients too.
fn listens(port: u16, ip: IpVersion) -> Result<bool, LabError> {
    let suffix = format!(":{port:04X}");
    let tables = match ip {
        IpVersion::V4 => &["tcp", "tcp6"][..],
        IpVersion::V6 => &["tcp6"],
    };
    for table in tables {
        let path = format!("/proc/thread-self/net/{table}");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // The kernel has no IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(LabError::system(format!("reading {path}"), error)),
        };
        let found = text.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().unwrap_or_default();
            local.ends_with(&suffix) && words.nth(1) == Some(LISTENING)
        });
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}
