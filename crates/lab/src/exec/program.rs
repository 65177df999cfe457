//! Running somebody else's program in the client's network namespace, as the first process of the lab must.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::net::SERVICES;
use crate::origin::{ECHO_PORT, SINK_PORT, SOURCE_PORT};
use crate::walls::Walls;
use crate::{LabError, scheduling};

/// A program with its arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name or path of the program, then its arguments.
    pub argv: Vec<String>,
    /// What its environment has beyond the lab's own.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Where its standard streams go.
#[derive(Debug)]
pub struct Streams {
    /// Standard input.
    pub input: Stdio,
    /// Standard output.
    pub output: Stdio,
    /// Standard error.
    pub errors: Stdio,
}

/// How it ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// Its exit code; 128 + n when signal n killed it, as shells count it.
    pub code: i32,
    /// It was killed because its time was up.
    pub timed_out: bool,
    /// How long it ran.
    pub elapsed: Duration,
}

impl Program {
    /// Runs it to its end, and reaps whatever dies meanwhile. Whatever it left running is killed.
    ///
    /// # Errors
    /// [`LabError`] when its walls cannot be had; within it, the kernel's error when it cannot be started.
    pub fn run(
        &self,
        walls: &Walls,
        streams: Streams,
        limit: Option<Duration>,
    ) -> Result<io::Result<Ending>, LabError> {
        let started = Instant::now();
        let [program, arguments @ ..] = self.argv.as_slice() else {
            return Ok(Err(io::ErrorKind::NotFound.into()));
        };
        let mut command = Command::new(program);
        walls.environment(&mut command);
        // A program is an ordinary task, whatever priority built the lab around it.
        scheduling::become_ordinary();
        command
            .args(arguments)
            .envs(services())
            .envs(&self.env)
            .stdin(streams.input)
            .stdout(streams.output)
            .stderr(streams.errors);
        let spawned = walls.spawn(&mut command)?;
        // It holds what the streams' other ends wait for.
        drop(command);
        Ok(spawned.and_then(|child| Self::watch(&child, started, limit)))
    }

    fn watch(child: &Child, started: Instant, limit: Option<Duration>) -> io::Result<Ending> {
        let timed_out = Arc::new(AtomicBool::new(false));
        let watch = limit.map(|limit| end_after(limit, Arc::clone(&timed_out)));
        let code = reap_until(child.id().cast_signed())?;
        drop(watch);
        end_everybody();
        Ok(Ending {
            code,
            timed_out: timed_out.load(Ordering::SeqCst),
            elapsed: started.elapsed(),
        })
    }
}

/// The lab's own services, as `host:port`.
fn services() -> [(&'static str, String); 3] {
    let at = |port: u16, host: Ipv4Addr| format!("{host}:{port}");
    [
        ("FIRSTFLIGHT_ECHO", at(ECHO_PORT, SERVICES)),
        ("FIRSTFLIGHT_SOURCE", at(SOURCE_PORT, SERVICES)),
        ("FIRSTFLIGHT_SINK", at(SINK_PORT, SERVICES)),
    ]
}

/// Kills everybody after `limit`, unless what it returns is dropped before.
fn end_after(limit: Duration, timed_out: Arc<AtomicBool>) -> mpsc::Sender<()> {
    let (done, over) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if over.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            timed_out.store(true, Ordering::SeqCst);
            end_everybody();
        }
    });
    done
}

/// Every process of the lab but this one, which is the first of its PID namespace.
fn end_everybody() {
    // Nobody left to kill is no error.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
}

/// Waits for `child`; orphans are handed to the first process of a PID namespace, and reaped on the way.
fn reap_until(child: libc::pid_t) -> io::Result<i32> {
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let reaped = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if reaped < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        } else if reaped == child {
            return Ok(if libc::WIFSIGNALED(status) {
                128 + libc::WTERMSIG(status)
            } else {
                libc::WEXITSTATUS(status)
            });
        }
    }
}
