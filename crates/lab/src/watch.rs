//! How a program asks for Fast Open, seen at its system calls: `connect`, `sendto`, `sendmsg` and `setsockopt`.
//!
//! The program runs under a seccomp filter that reports these calls to this process and then lets them go on
//! (`seccomp_unotify(2)`, Linux 5.5), so it works for static programs, and needs neither `ptrace` nor a preloaded library.
//! Children inherit the filter.
//!
//! What it cannot see: connections by `io_uring` (that a program sets one up is seen), calls of another architecture than
//! this one's, and what a program under another supervisor's filter does: the kernel allows one listener.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
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

use crate::LabError;
use crate::net::option_bytes;

/// What a program did that concerns the first flights of its connections.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Watched {
    /// Why its calls could not be watched; `None` where they were.
    pub blind: Option<String>,
    /// Its TCP sockets that were to be connected, in that order.
    pub sockets: Vec<Socket>,
    /// Sockets that were to listen with Fast Open (`TCP_FASTOPEN`).
    pub listeners: Vec<Listener>,
    /// Programs that set up `io_uring`, whose calls are not seen.
    pub io_uring: BTreeSet<String>,
}

/// A TCP socket of the program's.
#[derive(Debug, Clone, Serialize)]
pub struct Socket {
    /// The kernel's number of it (`SO_COOKIE`).
    #[serde(skip)]
    cookie: u64,
    /// Whose it is: the name of the program's file.
    pub program: String,
    /// How that is linked; `None` where the file cannot be read.
    pub linkage: Option<Linkage>,
    /// Libraries for TLS in its memory, by their file names.
    pub tls_libraries: BTreeSet<String>,
    /// Where it was to connect to.
    pub destination: Option<SocketAddr>,
    /// Its port, if it could be asked in time.
    pub port: Option<u16>,
    /// How it asked for Fast Open; `None` where it did not.
    pub asked: Option<Asked>,
    /// Whether it asked when it was too late: connected already.
    pub asked_late: bool,
}

/// A socket that was to listen with Fast Open.
#[derive(Debug, Clone, Serialize)]
pub struct Listener {
    #[serde(skip)]
    cookie: u64,
    /// Its port, if it could be asked in time.
    pub port: Option<u16>,
}

/// How a program is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Linkage {
    /// Libraries can be preloaded into it.
    Dynamic,
    /// It asks the kernel by itself, and loads no library.
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

/// A watch that is to be put on one program.
#[derive(Debug)]
pub struct Watch {
    ours: OwnedFd,
    theirs: OwnedFd,
}

/// A watch on a program that runs.
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
/// When a socket that is being connected is asked for its port.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(60),
];

impl Watch {
    /// One for a program that is not started yet.
    ///
    /// # Errors
    /// [`LabError`] when there is no descriptor left.
    pub fn new() -> Result<Self, LabError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Datagram, None, flags)
            .map_err(|errno| LabError::system("making a pair of sockets", errno))?;
        Ok(Self { ours, theirs })
    }

    /// Puts it on what `command` starts, which begins whether or not it can be watched.
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

    /// Begins to watch; call once the program is started. It waits at its first call until then.
    ///
    /// # Errors
    /// [`LabError`] when there is no thread to be had.
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
    /// What was seen; call once the program has ended.
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
    /// Sockets that are to be asked for their port: when, whose, and how often they were.
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
        // A call that cannot be read, of a program that dies, say, is none that reaches the wire.
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

    /// Notes a call; the cookie of the socket that it connects.
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
        // Closed before the program goes on: it must not keep the socket open.
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
            // `struct msghdr`, or of `sendmmsg` the first, begins with the address and its length.
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

    /// The entry of a socket; a new one where it is seen for the first time.
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

    /// Asks sockets for their ports that are due.
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

/// The port that a socket was given; `None` before, and once the descriptor is another socket's.
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

/// A descriptor of another process's, as one of ours (`pidfd_getfd(2)`, Linux 5.6).
fn borrow(task: libc::pid_t, descriptor: RawFd) -> Option<OwnedFd> {
    // A task may be a thread; its process has the same descriptors.
    let process = group(task).unwrap_or(task);
    // SAFETY: the call takes numbers.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) })?;
    // SAFETY: the call takes numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) })
}

/// The descriptor that a system call gave.
fn owned(answer: libc::c_long) -> Option<OwnedFd> {
    // SAFETY: what such a call gives belongs to its caller alone.
    (answer >= 0).then(|| unsafe { OwnedFd::from_raw_fd(answer as RawFd) })
}

/// The process of a task.
fn group(task: libc::pid_t) -> Option<libc::pid_t> {
    let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

fn number_of(socket: &OwnedFd, level: libc::c_int, option: libc::c_int) -> Option<libc::c_int> {
    option_bytes(socket, level, option)
        .ok()
        .map(libc::c_int::from_ne_bytes)
}

/// Bytes of another process's memory (`process_vm_readv(2)`).
fn read_memory<const LENGTH: usize>(task: libc::pid_t, at: u64) -> Option<[u8; LENGTH]> {
    let mut bytes = [0_u8; LENGTH];
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: LENGTH,
    };
    let remote = libc::iovec {
        iov_base: at as *mut libc::c_void,
        iov_len: LENGTH,
    };
    // SAFETY: the kernel writes at most `LENGTH` bytes to `bytes`; the other address is looked up in the other process.
    let read = unsafe { libc::process_vm_readv(task, &raw const local, 1, &raw const remote, 1, 0) };
    (usize::try_from(read) == Ok(LENGTH)).then_some(bytes)
}

/// An address that another process has given to a call.
fn peer(task: libc::pid_t, at: u64, length: u64) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(read_memory(task, at)?);
    match i32::from(family) {
        libc::AF_INET if length >= 16 => {
            let bytes = read_memory::<8>(task, at)?;
            let address: [u8; 4] = std::array::from_fn(|byte| bytes[4 + byte]);
            Some((address, u16::from_be_bytes([bytes[2], bytes[3]])).into())
        }
        libc::AF_INET6 if length >= 24 => {
            let bytes = read_memory::<24>(task, at)?;
            let address: [u8; 16] = std::array::from_fn(|byte| bytes[8 + byte]);
            let port = u16::from_be_bytes([bytes[2], bytes[3]]);
            Some(SocketAddr::new(
                std::net::IpAddr::from(address).to_canonical(),
                port,
            ))
        }
        _ => None,
    }
}

/// The name of a task's program.
fn program(task: libc::pid_t) -> String {
    let file = fs::read_link(format!("/proc/{task}/exe")).ok();
    let name = file.and_then(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "?".to_owned())
}

/// How a task's program is linked: dynamic ones name an interpreter (elf(5), `PT_INTERP`).
fn linkage(task: libc::pid_t) -> Option<Linkage> {
    let mut head = vec![0; 4_096];
    let mut file = fs::File::open(format!("/proc/{task}/exe")).ok()?;
    let length = file.read(&mut head).ok()?;
    has_interpreter(&head[..length]).map(|is_dynamic| {
        if is_dynamic {
            Linkage::Dynamic
        } else {
            Linkage::Static
        }
    })
}

/// Whether an ELF file of 64 bits names an interpreter; `None` of anything else.
fn has_interpreter(head: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| {
        let field = head.get(at..at + bytes)?;
        Some(
            field
                .iter()
                .rev()
                .fold(0_u64, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    // Little-endian, 64 bits.
    if head.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let (start, size, count) = (
        number(32, 8)? as usize,
        number(54, 2)? as usize,
        number(56, 2)? as usize,
    );
    for entry in 0..count {
        if number(start.checked_add(entry * size)?, 4)? == u64::from(PT_INTERP) {
            return Some(true);
        }
    }
    Some(false)
}

/// Libraries for TLS that a task has in its memory.
fn tls_libraries(task: libc::pid_t) -> BTreeSet<String> {
    const NAMES: [&str; 8] = [
        "libssl",
        "libgnutls",
        "libnss3",
        "libmbedtls",
        "libwolfssl",
        "libs2n",
        "libboringssl",
        "librustls",
    ];
    let maps = fs::read_to_string(format!("/proc/{task}/maps")).unwrap_or_default();
    maps.lines()
        .filter_map(|line| line.rsplit_once('/').map(|(_, name)| name))
        .filter(|name| NAMES.iter().any(|known| name.starts_with(known)))
        .map(str::to_owned)
        .collect()
}

/// Loads the filter into the calling thread: the descriptor that its notifications come by, or the error as a negative
/// number. Called between `fork` and `exec`.
fn listener(filter: &[libc::sock_filter]) -> libc::c_int {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // A signal must not interrupt a call that is being looked at (Linux 5.19); Go sends its threads many.
    for flags in [
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
    ] {
        // SAFETY: the kernel copies the filter, which outlives the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        if answer >= 0 {
            return answer as libc::c_int;
        }
    }
    // SAFETY: the C library gives every thread a place for its errno.
    -unsafe { *libc::__errno_location() }
}

/// Room for a control message with one descriptor (cmsg(3)).
#[repr(C, align(8))]
struct Control([u8; 24]);

/// A message of one number, with room for a descriptor.
struct Letter {
    number: libc::c_int,
    control: Control,
}

impl Letter {
    /// Lets `send` or `receive` do its work on the message.
    fn with<T>(&mut self, work: impl FnOnce(&mut libc::msghdr) -> T) -> T {
        let mut part = libc::iovec {
            iov_base: (&raw mut self.number).cast(),
            iov_len: size_of::<libc::c_int>(),
        };
        // SAFETY: the structure is numbers and pointers, all of which may be zero.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut self.control.0).cast();
        message.msg_controllen = size_of::<Control>() as _;
        work(&mut message)
    }
}

/// Sends a descriptor, or an error. Called between `fork` and `exec`.
fn hand_over(to: RawFd, listener: libc::c_int) {
    let mut letter = Letter {
        number: listener,
        control: Control([0; 24]),
    };
    letter.with(|message| {
        // SAFETY: the header and its data lie within `Control`, which is aligned for it.
        unsafe {
            if listener < 0 {
                message.msg_controllen = 0;
            } else {
                let header = libc::CMSG_FIRSTHDR(message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
                libc::CMSG_DATA(header)
                    .cast::<libc::c_int>()
                    .write_unaligned(listener);
            }
            libc::sendmsg(to, message, 0);
        }
    });
}

/// Receives what [`hand_over`] sent.
fn take_over(from: &OwnedFd) -> io::Result<OwnedFd> {
    let mut letter = Letter {
        number: -libc::ENOMSG,
        control: Control([0; 24]),
    };
    let descriptor = letter.with(|message| {
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the kernel writes the number and the control message into `letter`.
        unsafe {
            if libc::recvmsg(from.as_raw_fd(), message, flags) < 0 {
                return None;
            }
            let header = libc::CMSG_FIRSTHDR(message);
            if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            let descriptor = libc::CMSG_DATA(header).cast::<libc::c_int>().read_unaligned();
            Some(OwnedFd::from_raw_fd(descriptor))
        }
    });
    descriptor.ok_or_else(|| io::Error::from_raw_os_error(-letter.number.min(-1)))
}

/// The architecture whose calls are looked at (`linux/audit.h`); 0, which none has, on others.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xC000_003E
} else if cfg!(target_arch = "aarch64") {
    0xC000_00B7
} else {
    0
};

/// Reports every `connect`, what sends with `MSG_FASTOPEN`, the options of Fast Open, and new `io_uring`s; allows
/// everything else.
fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUALS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const HAS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    // The lower half of an argument in `struct seccomp_data`.
    const LOWER: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };
    let step = |code, k: u32, jt, jf| libc::sock_filter { code, jt, jf, k };
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let report = step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0);
    let argument = |number: u32| step(LOAD, LOWER + 8 * number, 0, 0);
    let mut filter = vec![
        step(LOAD, 4, 0, 0),
        step(EQUALS, ARCHITECTURE, 1, 0),
        allow,
        step(LOAD, 0, 0, 0),
    ];
    for call in [libc::SYS_connect, libc::SYS_io_uring_setup] {
        filter.extend([step(EQUALS, call as u32, 0, 1), report]);
    }
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        filter.extend([
            step(EQUALS, call as u32, 0, 4),
            argument(flags),
            step(HAS, libc::MSG_FASTOPEN as u32, 0, 1),
            report,
            allow,
        ]);
    }
    filter.extend([
        step(EQUALS, libc::SYS_setsockopt as u32, 0, 6),
        argument(1),
        step(EQUALS, libc::IPPROTO_TCP as u32, 0, 4),
        argument(2),
        step(EQUALS, TCP_FASTOPEN_CONNECT as u32, 1, 0),
        step(EQUALS, TCP_FASTOPEN as u32, 0, 1),
        report,
        allow,
    ]);
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_program_is_told_from_a_dynamic_one_by_its_interpreter() {
        let header = |kinds: &[u32]| {
            let mut head = vec![0_u8; 64 + 56 * kinds.len()];
            head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
            (head[32], head[54], head[56]) = (64, 56, kinds.len() as u8);
            for (entry, kind) in kinds.iter().enumerate() {
                head[64 + 56 * entry..][..4].copy_from_slice(&kind.to_le_bytes());
            }
            head
        };
        assert_eq!(has_interpreter(&header(&[6, 3, 1])), Some(true));
        assert_eq!(has_interpreter(&header(&[1, 4])), Some(false));
        assert_eq!(has_interpreter(b"#!/bin/sh\n"), None);
        // A header that is cut off says nothing.
        assert_eq!(has_interpreter(&header(&[1, 3])[..100]), None);
        let ours = std::process::id().cast_signed();
        assert!(linkage(ours).is_some());
    }
}
