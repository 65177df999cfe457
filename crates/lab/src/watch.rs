//! Watches how a program asks for Fast Open, by its system calls: `connect`, `sendto`, `sendmsg` and `setsockopt`.
//!
//! The program runs under a seccomp filter that reports these calls to this process and then lets them go on
//! (`seccomp_unotify(2)`, Linux 5.5). So it works for static programs, and needs neither `ptrace` nor a preloaded
//! library. Children inherit the filter.
//!
//! It cannot see connections by `io_uring` (only that a program sets one up), calls of another architecture than
//! this one's, and what a program does under the filter of another supervisor: the kernel allows one listener.

mod filter;
mod task;

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, getsockname, socketpair};
use serde::Serialize;

use self::filter::{filter, hand_over, listener, take_over};
use self::task::{borrow, linkage, peer, program, read_memory, tls_libraries};
use crate::LabError;
use crate::net::option_bytes;

/// The calls of a program that concern the first flights of its connections.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Watched {
    /// Why its calls could not be watched; `None` if they were.
    pub blind: Option<String>,
    /// The TCP sockets that it tried to connect, in order.
    pub sockets: Vec<Socket>,
    /// The sockets on which it set `TCP_FASTOPEN`, to listen with Fast Open.
    pub listeners: Vec<Listener>,
    /// Programs that set up `io_uring`, whose calls are not seen.
    pub io_uring: BTreeSet<String>,
}

/// A TCP socket of a program.
#[derive(Debug, Clone, Serialize)]
pub struct Socket {
    /// The kernel's number for it (`SO_COOKIE`).
    #[serde(skip)]
    cookie: u64,
    /// The name of the program's file.
    pub program: String,
    /// How that file is linked; `None` if it cannot be read.
    pub linkage: Option<Linkage>,
    /// TLS libraries in the program's memory, by their file names.
    pub tls_libraries: BTreeSet<String>,
    /// The address to connect to.
    pub destination: Option<SocketAddr>,
    /// Its local port, if it could be read in time.
    pub port: Option<u16>,
    /// How the program asked for Fast Open; `None` if it did not.
    pub asked: Option<Asked>,
    /// Whether it asked too late, after connecting.
    pub asked_late: bool,
}

/// A socket that asked for Fast Open as a listener.
#[derive(Debug, Clone, Serialize)]
pub struct Listener {
    #[serde(skip)]
    cookie: u64,
    /// Its port, if it could be read in time.
    pub port: Option<u16>,
}

/// How a program is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Linkage {
    /// Libraries can be preloaded into it.
    Dynamic,
    /// It makes system calls by itself, and loads no library.
    Static,
}

/// A way to ask for Fast Open (tcp(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Asked {
    /// `setsockopt`, and then `connect`.
    #[serde(rename = "TCP_FASTOPEN_CONNECT")]
    Option,
    /// A flag of `sendto` or `sendmsg`, in place of `connect`.
    #[serde(rename = "MSG_FASTOPEN")]
    Flag,
}

/// A watch for a program that is not started yet.
#[derive(Debug)]
pub struct Watch {
    ours: OwnedFd,
    theirs: OwnedFd,
}

/// A watch on a running program.
#[derive(Debug)]
pub struct Watching {
    is_over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<Watched>>,
    blind: String,
}

/// `TCP_FASTOPEN_CONNECT` (`linux/tcp.h`).
const TCP_FASTOPEN_CONNECT: libc::c_int = 30;
const TCP_FASTOPEN: libc::c_int = 23;
const IPPROTO_MPTCP: i32 = 262;
/// `asm-generic/socket.h`.
const SO_COOKIE: libc::c_int = 57;
/// `TCP_CLOSE` (`net/tcp_states.h`).
const CLOSED: u8 = 7;
/// When the port of a connecting socket is read, after the call.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(60),
];

impl Watch {
    /// A watch for a program that is not started yet.
    ///
    /// # Errors
    /// [`LabError`] when there is no descriptor left.
    pub fn new() -> Result<Self, LabError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Datagram, None, flags)
            .map_err(|errno| LabError::system("making a pair of sockets", errno))?;
        Ok(Self { ours, theirs })
    }

    /// Installs the watch in the program that `command` starts. The program starts even if it cannot be watched.
    pub fn install(&self, command: &mut Command) {
        let (filter, theirs) = (filter(), self.theirs.as_raw_fd());
        // SAFETY: it makes system calls and touches nothing but its own stack; the filter was allocated before.
        unsafe {
            command.pre_exec(move || {
                hand_over(theirs, listener(&filter));
                Ok(())
            })
        };
    }

    /// Begins to watch. Call it once the program is started, which waits at its first reported call until then.
    ///
    /// # Errors
    /// [`LabError`] when no thread can be started.
    pub fn begin(self) -> Result<Watching, LabError> {
        drop(self.theirs);
        let is_over = Arc::new(AtomicBool::new(false));
        let listener = match take_over(&self.ours) {
            Ok(listener) => listener,
            Err(error) => {
                return Ok(Watching {
                    is_over,
                    watcher: None,
                    blind: format!("the kernel refuses seccomp notifications: {error}"),
                });
            }
        };
        let over = Arc::clone(&is_over);
        let watcher = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || Watcher::new(listener).run(&over))
            .map_err(|error| LabError::system("starting the thread that watches", error))?;
        Ok(Watching {
            is_over,
            watcher: Some(watcher),
            blind: String::new(),
        })
    }
}

impl Watching {
    /// The result. Call it once the program has ended.
    ///
    /// # Errors
    /// [`LabError`] when the thread has died.
    pub fn finish(self) -> Result<Watched, LabError> {
        self.is_over.store(true, Ordering::SeqCst);
        match self.watcher {
            Some(watcher) => watcher
                .join()
                .map_err(|_| LabError::bug("the thread that watches died")),
            None => Ok(Watched {
                blind: Some(self.blind),
                ..Watched::default()
            }),
        }
    }
}

/// Reads notifications, and answers each.
struct Watcher {
    listener: OwnedFd,
    seen: Watched,
    /// Sockets whose port must still be read.
    waiting: Vec<Waiting>,
}

struct Waiting {
    due: Instant,
    looks: usize,
    task: libc::pid_t,
    descriptor: RawFd,
    cookie: u64,
}

impl Watcher {
    fn new(listener: OwnedFd) -> Self {
        Self {
            listener,
            seen: Watched::default(),
            waiting: Vec::new(),
        }
    }

    fn run(mut self, is_over: &AtomicBool) -> Watched {
        while !is_over.load(Ordering::SeqCst) {
            let mut polled = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            let wait = if self.waiting.is_empty() { 20_u8 } else { 1 };
            if poll(&mut polled, PollTimeout::from(wait)).is_err() {
                continue;
            }
            let events = polled[0].revents().unwrap_or(PollFlags::empty());
            if events.contains(PollFlags::POLLIN) {
                self.answer_one();
            } else if events.contains(PollFlags::POLLHUP) {
                break;
            }
            self.look();
        }
        self.seen
    }

    /// Reads one call, notes it, and lets it go on.
    fn answer_one(&mut self) {
        // SAFETY: the structure is plain numbers, and the kernel wants it to be zero.
        let mut call: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
        let listener = self.listener.as_raw_fd();
        // SAFETY: the kernel writes one such structure.
        if unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) } < 0 {
            // The caller was interrupted, or died.
            return;
        }
        let noted = self.note(&call);
        let mut answer = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        // SAFETY: the kernel reads one such structure. A caller that died meanwhile needs no answer.
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
        // A call that cannot be read, such as one of a dying program, does not reach the wire.
        if let Some(cookie) = noted {
            self.waiting.push(Waiting {
                due: Instant::now() + LOOKS[0],
                looks: 0,
                task: call.pid.cast_signed(),
                descriptor: call.data.args[0] as RawFd,
                cookie,
            });
        }
    }

    /// Notes a call. Returns the cookie of the socket if it connects one.
    fn note(&mut self, call: &libc::seccomp_notif) -> Option<u64> {
        let (task, args) = (call.pid.cast_signed(), &call.data.args);
        let number = libc::c_long::from(call.data.nr);
        if number == libc::SYS_io_uring_setup {
            self.seen.io_uring.insert(program(task));
            return None;
        }
        let socket = borrow(task, args[0] as RawFd)?;
        if !matches!(
            number_of(&socket, libc::SOL_SOCKET, libc::SO_PROTOCOL)?,
            libc::IPPROTO_TCP | IPPROTO_MPTCP
        ) {
            return None;
        }
        let cookie = u64::from_ne_bytes(option_bytes(&socket, libc::SOL_SOCKET, SO_COOKIE).ok()?);
        let is_set = number_of(&socket, libc::IPPROTO_TCP, TCP_FASTOPEN_CONNECT) == Some(1);
        let state =
            option_bytes::<8>(&socket, libc::IPPROTO_TCP, libc::TCP_INFO).map_or(CLOSED, |info| info[0]);
        // Closed before the program continues: this copy must not keep the socket open.
        drop(socket);
        if number == libc::SYS_setsockopt && args[2] as libc::c_int == TCP_FASTOPEN {
            self.seen.listeners.push(Listener { cookie, port: None });
            return Some(cookie);
        }
        let noted = self.socket(cookie, task);
        if number == libc::SYS_setsockopt {
            if state == CLOSED {
                noted.asked = Some(Asked::Option);
            } else {
                noted.asked_late = true;
            }
            return None;
        }
        let address = match number {
            libc::SYS_connect => Some((args[1], args[2])),
            libc::SYS_sendto => Some((args[4], args[5])),
            // `struct msghdr`, the first one for `sendmmsg`, begins with the address and its length.
            _ => read_memory::<16>(task, args[1]).map(|head| {
                let word = |at: usize| std::array::from_fn(|byte| head[at + byte]);
                (
                    u64::from_ne_bytes(word(0)),
                    u64::from(u32::from_ne_bytes(std::array::from_fn(|byte| head[8 + byte]))),
                )
            }),
        };
        noted.destination = address
            .and_then(|(at, length)| peer(task, at, length))
            .or(noted.destination);
        noted.asked = match number {
            libc::SYS_connect if is_set => Some(Asked::Option),
            libc::SYS_connect => noted.asked,
            _ => Some(Asked::Flag),
        };
        Some(cookie)
    }

    /// The entry of a socket; a new one if it is seen for the first time.
    fn socket(&mut self, cookie: u64, task: libc::pid_t) -> &mut Socket {
        let sockets = &mut self.seen.sockets;
        let index = sockets.iter().position(|socket| socket.cookie == cookie);
        let index = index.unwrap_or_else(|| {
            sockets.push(Socket {
                cookie,
                program: program(task),
                linkage: linkage(task),
                tls_libraries: tls_libraries(task),
                destination: None,
                port: None,
                asked: None,
                asked_late: false,
            });
            sockets.len() - 1
        });
        &mut sockets[index]
    }

    /// Reads the ports of the sockets that are due.
    fn look(&mut self) {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting| waiting.due <= now);
        self.waiting = later;
        for mut waiting in due {
            if let Some(port) = port(&waiting) {
                let socket = self
                    .seen
                    .sockets
                    .iter_mut()
                    .find(|socket| socket.cookie == waiting.cookie);
                if let Some(socket) = socket {
                    socket.port = Some(port);
                }
                let listeners = &mut self.seen.listeners;
                if let Some(listener) = listeners
                    .iter_mut()
                    .find(|listener| listener.cookie == waiting.cookie)
                {
                    listener.port = Some(port);
                }
                continue;
            }
            waiting.looks += 1;
            if let Some(next) = LOOKS.get(waiting.looks) {
                waiting.due = now + *next;
                self.waiting.push(waiting);
            }
        }
    }
}

/// The port of a socket; `None` before it has one, and if the descriptor now belongs to another socket.
fn port(waiting: &Waiting) -> Option<u16> {
    let socket = borrow(waiting.task, waiting.descriptor)?;
    let cookie = option_bytes(&socket, libc::SOL_SOCKET, SO_COOKIE).ok()?;
    if u64::from_ne_bytes(cookie) != waiting.cookie {
        return None;
    }
    let address: SockaddrStorage = getsockname(socket.as_raw_fd()).ok()?;
    let port = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(v4), _) => v4.port(),
        (_, Some(v6)) => v6.port(),
        _ => 0,
    };
    (port != 0).then_some(port)
}

fn number_of(socket: &OwnedFd, level: libc::c_int, option: libc::c_int) -> Option<libc::c_int> {
    option_bytes(socket, level, option)
        .ok()
        .map(libc::c_int::from_ne_bytes)
}
