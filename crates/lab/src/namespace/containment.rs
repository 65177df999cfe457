//! What a program in the lab can reach besides the lab's network.
//!
//! Two kinds of program run here. A *client* loads pages that others wrote (a browser, wget2, curl). It sees a file
//! system made for it, and none of the user's environment, terminal or rights. A *program* of the user's own
//! ([`crate::jobs::exec`]) keeps the file system and the terminal. The lab only covers the ways to ask a process
//! outside to act for it.
//!
//! What this module does not do: limit memory, processor time or the number of processes, or filter system calls
//! other than the two that type into a terminal. Chromium filters those of its own processes.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;

use nix::sched::{CloneFlags, unshare};

use super::filesystem::{cover_sockets, show_only};
use super::rights;
use crate::LabError;

/// How a program is contained.
#[derive(Debug, Clone)]
pub enum Containment {
    /// Only the lab's namespaces: a server that the user names runs like the lab's own process.
    None,
    /// A client of the lab. It can read the system's programs and libraries, and these files and folders.
    Client(Vec<PathBuf>),
    /// A program of the user. The lab covers these sockets of the host; see [`host_sockets`].
    Program(Vec<PathBuf>),
}

/// Variables that a client gets from the caller, besides those that begin with `LC_` or `FIRSTFLIGHT_`.
const HANDED_ON: [&str; 5] = ["PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH"];

/// A client's home folder, empty at first.
const HOME: &str = "/tmp";

/// Variables that name a process outside: proxies, buses, agents, displays.
const LEADING_OUT: [&str; 24] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "ftp_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "SESSION_MANAGER",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "PULSE_SERVER",
    "PIPEWIRE_REMOTE",
    "NOTIFY_SOCKET",
    "TMUX",
    "STY",
];

/// The sockets with a path in the network namespace of the calling thread, the host's (`unix(7)`).
///
/// A socket that is opened later, or in another network namespace, is not among them.
pub fn host_sockets() -> Vec<PathBuf> {
    let table = fs::read("/proc/self/net/unix").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n').skip(1);
    let paths = lines.filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b'/')?;
        Some(PathBuf::from(OsStr::from_bytes(&line[at..])))
    });
    paths.collect()
}

impl Containment {
    /// Sets the environment of the program: the caller's, without the variables that it may not have.
    pub fn environment(&self, command: &mut Command) {
        match self {
            Self::None => {}
            Self::Program(_) => {
                for variable in LEADING_OUT {
                    command.env_remove(variable);
                }
            }
            Self::Client(_) => {
                let handed_on = env::vars_os().filter(|(name, _)| {
                    name.to_str().is_some_and(|name| {
                        HANDED_ON.contains(&name)
                            || name.starts_with("LC_")
                            || name.starts_with("FIRSTFLIGHT_")
                    })
                });
                command.env_clear().envs(handed_on).env("HOME", HOME);
            }
        }
    }

    /// Starts a program in this containment.
    ///
    /// # Errors
    /// [`LabError`] when the containment cannot be set up; within it, the kernel's error when the program cannot be
    /// started.
    pub fn spawn(&self, command: &mut Command) -> Result<io::Result<Child>, LabError> {
        if matches!(self, Self::None) {
            return Ok(command.spawn());
        }
        // A mount namespace belongs to a thread and to the processes that it starts.
        let started = thread::scope(|scope| {
            let aside = scope.spawn(|| {
                self.contain(command)?;
                Ok(command.spawn())
            });
            aside.join()
        });
        started.map_err(|_| LabError::bug("the thread that starts programs died"))?
    }

    /// Gives the calling thread its own mounts and System V IPC, restricted, and makes the child give up its rights
    /// before it becomes the program.
    fn contain(&self, command: &mut Command) -> Result<(), LabError> {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC)
            .map_err(|errno| LabError::system("making namespaces for a program", errno))?;
        let failed = |error| LabError::system("making a program's file system", error);
        match self {
            Self::None => Ok(()),
            Self::Client(reads) => {
                show_only(reads).map_err(failed)?;
                rights::give_up_all(command)
            }
            Self::Program(sockets) => {
                cover_sockets(sockets).map_err(failed)?;
                rights::give_up_mounting(command);
                Ok(())
            }
        }
    }
}
