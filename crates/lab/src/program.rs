//! Programs that the lab starts: clients, servers, and what a user runs with `exec`.
//!
//! A program runs in the network namespace of the thread that starts it, as an ordinary task, in a
//! [containment](Containment). The lab reads its output as it comes and keeps a bounded part, so that neither a
//! pipe nor the memory fills up. The lab's process is the first of its PID namespace. So it reaps and kills the
//! processes that a program leaves running.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::error::Role;
use crate::namespace::Containment;
use crate::watch::Watch;
use crate::{LabError, scheduling};

/// A program with its arguments.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name or path of the program, then its arguments.
    pub argv: Vec<String>,
    /// Variables to add to its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Its working directory; the lab's own if `None`.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
}

/// The standard streams of a program.
#[derive(Debug, Clone, Copy)]
pub enum Streams<'a> {
    /// The lab's own.
    Inherited,
    /// Standard input is a text. Beginning and end of standard output and error are kept, together.
    Kept {
        /// The text.
        input: &'a str,
    },
}

/// A program that was started. It ends with the lab at the latest.
#[derive(Debug)]
pub struct Running {
    child: Child,
    started: Instant,
    output: Output,
    reader: Option<JoinHandle<()>>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ending {
    /// Its exit code; 128 + n if signal n killed it, as in shells.
    pub code: i32,
    /// Whether it was killed at its time limit.
    pub timed_out: bool,
    /// How long it ran.
    pub elapsed: Duration,
    /// Names of the programs that it left running, which were killed.
    pub left_running: Vec<String>,
    /// The kept part of its output, on one line.
    pub output: String,
}

impl Program {
    /// Starts it from the calling thread, which becomes an ordinary task whatever its priority was.
    ///
    /// # Errors
    /// [`LabError::NotStarted`] when there is no such program or it cannot be run; others when the lab lacks
    /// something.
    pub fn start(&self, containment: &Containment, streams: Streams<'_>) -> Result<Running, LabError> {
        self.start_watched(containment, streams, None)
    }

    /// The same, with a watch on its system calls.
    ///
    /// # Errors
    /// As of [`Self::start`].
    pub fn start_watched(
        &self,
        containment: &Containment,
        streams: Streams<'_>,
        watch: Option<&Watch>,
    ) -> Result<Running, LabError> {
        let failed = |problem| LabError::NotStarted {
            role: match containment {
                Containment::None => Role::Server,
                Containment::Client(_) => Role::Client,
                Containment::Program(_) => Role::Program,
            },
            program: self.argv.first().cloned().unwrap_or_default(),
            problem,
        };
        let [program, arguments @ ..] = self.argv.as_slice() else {
            return Err(failed(io::ErrorKind::NotFound.into()));
        };
        let started = Instant::now();
        scheduling::become_ordinary();
        let mut command = Command::new(program);
        containment.environment(&mut command);
        command.args(arguments).envs(&self.env);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let output = Output::default();
        let mut reader = None;
        if let Streams::Kept { input } = streams {
            let (reading, writing) = io::pipe().map_err(failed)?;
            command
                .stdin(in_memory(input).map_err(failed)?)
                .stdout(writing.try_clone().map_err(failed)?)
                .stderr(writing);
            reader = Some(output.read(reading));
        }
        if let Some(watch) = watch {
            watch.install(&mut command);
        }
        let child = containment.spawn(&mut command)?.map_err(failed)?;
        Ok(Running {
            child,
            started,
            output,
            reader,
        })
    }
}

impl Running {
    /// Its process ID.
    pub fn id(&self) -> libc::pid_t {
        self.child.id().cast_signed()
    }

    /// How it ended; `None` while it runs.
    ///
    /// # Errors
    /// [`LabError`] when the kernel does not say.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, LabError> {
        self.child
            .try_wait()
            .map_err(|error| LabError::system("waiting for a program", error))
    }

    /// The kept part of its output so far, on one line.
    pub fn output(&self) -> String {
        self.output.line()
    }

    /// Waits for its end, and reaps whatever ends before it. Kills it after `limit`. In any case kills all
    /// processes that it left running. Call it on the first process of a PID namespace.
    ///
    /// # Errors
    /// [`LabError`] when the kernel does not let it wait.
    pub fn wait(self, limit: Option<Duration>) -> Result<Ending, LabError> {
        self.wait_for_all(limit, Duration::ZERO)
    }

    /// The same, but processes that it left running have a `grace` period to end by themselves.
    ///
    /// # Errors
    /// As of [`Self::wait`].
    pub fn wait_for_all(self, limit: Option<Duration>, grace: Duration) -> Result<Ending, LabError> {
        let timed_out = Arc::new(AtomicBool::new(false));
        let timer = limit.map(|limit| kill_all_after(limit, Arc::clone(&timed_out)));
        let code = reap_until(self.id()).map_err(|error| LabError::system("waiting for a program", error))?;
        let elapsed = self.started.elapsed();
        let left_running = left_after(grace);
        drop(timer);
        kill_all();
        // The pipe ends when the last process that holds it has ended.
        self.reader.map(JoinHandle::join);
        Ok(Ending {
            code,
            timed_out: timed_out.load(Ordering::SeqCst),
            elapsed,
            left_running,
            output: self.output.line(),
        })
    }
}

/// Whether this process, the first of its PID namespace, is the only one.
pub fn is_alone() -> bool {
    kill(Pid::from_raw(-1), None).is_err()
}

/// Waits up to `grace` until this process is alone. Returns the names of the programs that still run, one per
/// process.
fn left_after(grace: Duration) -> Vec<String> {
    if grace.is_zero() {
        return Vec::new();
    }
    let deadline = Instant::now() + grace;
    loop {
        // SAFETY: without a place for the status the kernel writes none.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
        if is_alone() {
            return Vec::new();
        }
        if Instant::now() > deadline {
            return running_programs();
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The names of all processes but this one, if `/proc` shows this PID namespace.
fn running_programs() -> Vec<String> {
    let is_ours = fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == "1");
    let entries = fs::read_dir("/proc").ok().filter(|_| is_ours);
    let mut numbers: Vec<u32> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number != 1)
        .collect();
    numbers.sort_unstable();
    let name = |number: &u32| fs::read_to_string(format!("/proc/{number}/comm")).ok();
    let names: Vec<_> = numbers
        .iter()
        .filter_map(name)
        .map(|name| name.trim().to_owned())
        .collect();
    if names.is_empty() {
        vec!["?".to_owned()]
    } else {
        names
    }
}

/// Kills every process of the lab except this one, the first of its PID namespace.
fn kill_all() {
    // It is no error if there is none to kill.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
}

/// Kills all processes after `limit`, unless the returned sender is dropped before.
fn kill_all_after(limit: Duration, timed_out: Arc<AtomicBool>) -> mpsc::Sender<()> {
    let (done, over) = mpsc::channel::<()>();
    thread::spawn(move || {
        if over.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            timed_out.store(true, Ordering::SeqCst);
            kill_all();
        }
    });
    done
}

/// Waits for `child`. Also reaps orphans, which the kernel gives to the first process of a PID namespace.
fn reap_until(child: libc::pid_t) -> io::Result<i32> {
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call. (The wrapper in `nix` has no name for real-time signals.)
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

fn in_memory(text: &str) -> io::Result<Stdio> {
    let mut file = File::from(memfd_create(c"input", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Bytes kept of the beginning of an output, and of its end.
const HEAD: usize = 1_000;
const TAIL: usize = 1_000;
/// Pause of the reader after each piece. Otherwise a server that logs every request would wake it each time, on a
/// processor whose time is measured.
const REST: Duration = Duration::from_millis(1);

/// Output of bounded size, shared with the thread that reads it.
#[derive(Debug, Clone, Default)]
struct Output(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Output {
    /// Reads a stream to its end, so that no pipe fills up.
    fn read(&self, mut stream: impl Read + Send + 'static) -> JoinHandle<()> {
        let output = self.clone();
        thread::spawn(move || {
            let mut piece = vec![0; 65_536];
            while let Ok(length @ 1..) = stream.read(&mut piece) {
                output.keep(&piece[..length]);
                thread::sleep(REST);
            }
        })
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - kept.head.len()));
        kept.head.extend_from_slice(head);
        kept.tail.extend(rest);
        let excess = kept.tail.len().saturating_sub(TAIL);
        kept.tail.drain(..excess);
        kept.left_out += excess as u64;
    }

    /// All kept output on one line, with the number of bytes left out in between.
    fn line(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = kept.head.clone();
        if kept.left_out > 0 {
            bytes.extend(format!(" [{} bytes left out] ", kept.left_out).bytes());
        }
        bytes.extend(&kept.tail);
        let text = String::from_utf8_lossy(&bytes);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pieces: &[&[u8]]) -> Output {
        let output = Output::default();
        for piece in pieces {
            output.keep(piece);
        }
        output
    }

    #[test]
    fn a_short_output_is_kept_whole_on_one_line() {
        assert_eq!(kept(&[b"one\ntwo", b"  three\n"]).line(), "one two three");
        assert_eq!(kept(&[]).line(), "");
    }

    #[test]
    fn of_a_long_output_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let middle = vec![b'-'; 1_000_000];
        let line = kept(&[b"begin", &middle, b"end"]).line();
        assert!(line.starts_with("begin-"), "{line}");
        assert!(line.ends_with("-end"), "{line}");
        assert!(
            line.contains(&format!(" [{} bytes left out] ", 1_000_008 - HEAD - TAIL)),
            "{line}"
        );
        assert!(line.len() < HEAD + TAIL + 50);
    }

    #[test]
    fn a_program_reads_its_input_and_both_its_outputs_are_kept_in_their_order() {
        let program = Program {
            argv: ["sh", "-c", "cat; echo error >&2; echo last"]
                .map(str::to_owned)
                .into(),
            ..Program::default()
        };
        let mut running = program
            .start(&Containment::None, Streams::Kept { input: "first\n" })
            .expect("a shell");
        assert!(running.child.wait().expect("a process to wait for").success());
        running.reader.take().map(JoinHandle::join);
        assert_eq!(running.output(), "first error last");
    }

    #[test]
    fn a_program_that_is_not_there_is_told_from_a_lab_that_cannot_be_had() {
        let program = Program {
            argv: vec!["no-such-program".to_owned()],
            ..Program::default()
        };
        let error = program
            .start(&Containment::None, Streams::Inherited)
            .expect_err("no program");
        assert!(
            matches!(&error, LabError::NotStarted { problem, .. } if problem.kind() == io::ErrorKind::NotFound)
        );
        assert!(
            error
                .to_string()
                .starts_with("server: cannot run no-such-program: "),
            "{error}"
        );
    }
}
