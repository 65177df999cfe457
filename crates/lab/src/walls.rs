//! What a program in the lab can reach apart from the lab's network.
//!
//! Two kinds of program run here. A *client* loads pages that others wrote (a browser, wget2, curl): it sees a file
//! system made for it, and no environment, terminal or rights of the user's. A *program* of the user's own
//! ([`crate::exec`]) keeps the file system and the terminal; only the ways are cut by which a process outside could
//! be asked to act for it.
//!
//! What this module does not do: limit memory, processor time or the number of processes, or filter system calls
//! other than the two that type into a terminal. Chromium filters those of its own processes.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command};
use std::{env, ptr, thread};

use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, geteuid, pivot_root};

use crate::LabError;
use crate::sandbox::{self, NOBODY};

/// What surrounds a program.
#[derive(Debug, Clone)]
pub enum Walls {
    /// Nothing but the lab: a server that the user names runs as the lab's own process does.
    None,
    /// A client of the lab's. It reads the system's programs and libraries, and these files and folders.
    Client(Vec<PathBuf>),
    /// A program of the user's. These sockets of the host's are covered; see [`host_sockets`].
    Program(Vec<PathBuf>),
}

/// Where the lab's own processes keep what clients leave, and clients their files.
const SCRATCH: &str = "/dev/shm";
/// Where the new root is put together, and where the old one lies meanwhile.
const STAGE: &str = "/tmp";
const OUTSIDE: &str = "/.outside";
/// What every client may read: programs, libraries, settings of the system.
const SYSTEM: [&str; 12] = [
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu", "/snap",
];
/// The same, in places where other things lie too. The names' files may be links to somewhere else.
const SYSTEM_FILES: [&str; 5] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/sys/devices/system",
    "/var/cache/fontconfig",
];
/// What a client finds empty and may write to, with its options. It ends with the client.
const EMPTY: [(&str, &str); 3] = [
    ("/run", "size=1m,mode=755"),
    ("/tmp", "size=256m,mode=1777"),
    ("/var/tmp", "size=16m,mode=1777"),
];
/// As the kernel counts them (`path_resolution(7)`).
const MOST_LINKS: u8 = 40;
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Variables that a client gets from the caller; `LC_` and `FIRSTFLIGHT_` begin others.
const HANDED_ON: [&str; 5] = ["PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH"];

/// What a program of the user's keeps of `/run`: NixOS has its programs there, desktops the user's disks.
const KEPT_OF_RUN: [&str; 4] = [
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/media",
];
/// Folders of sockets, which processes in other network namespaces may have opened.
const SOCKET_FOLDERS: [&str; 2] = ["/tmp/.X11-unix", "/tmp/.ICE-unix"];
/// Variables that lead to a process outside: proxies, buses, agents, displays.
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

/// The sockets that have a path in the network namespace of the calling thread, the host's (`unix(7)`).
///
/// One that is opened later, or in another network namespace, is not among them.
pub fn host_sockets() -> Vec<PathBuf> {
    let table = fs::read("/proc/self/net/unix").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n').skip(1);
    let paths = lines.filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b'/')?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[at..])))
    });
    paths.collect()
}

impl Walls {
    /// Leaves of the caller's environment what the program may have.
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
                command.env_clear().envs(handed_on).env("HOME", STAGE);
            }
        }
    }

    /// Starts a program behind them.
    ///
    /// # Errors
    /// [`LabError`] when the walls cannot be had; within it, the kernel's error when the program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> Result<io::Result<Child>, LabError> {
        if matches!(self, Self::None) {
            return Ok(command.spawn());
        }
        // A mount namespace belongs to a thread, and to what that starts.
        let started = thread::scope(|scope| {
            let aside = scope.spawn(|| {
                self.raise()?;
                self.shed(command)?;
                Ok(command.spawn())
            });
            aside.join()
        });
        started.map_err(|_| {
            LabError::new(
                "the thread that starts programs died",
                "please report this as a bug",
            )
        })?
    }

    /// Gives the calling thread mounts and System V IPC of its own, and cuts them down.
    fn raise(&self) -> Result<(), LabError> {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC)
            .map_err(|errno| LabError::system("making namespaces for a program", errno))?;
        match self {
            Self::None => Ok(()),
            Self::Client(reads) => {
                umask(Mode::from_bits_truncate(0o022));
                show_only(reads)
            }
            Self::Program(sockets) => cover(sockets),
        }
        .map_err(|error| LabError::system("making a program's file system", error))
    }

    /// Has the child give up its rights before it becomes the program.
    fn shed(&self, command: &mut Command) -> Result<(), LabError> {
        match self {
            Self::None => {}
            Self::Client(_) => {
                let ids = Ids::of_client()?;
                // SAFETY: it makes system calls and touches nothing else.
                unsafe { command.pre_exec(move || leave_rights(ids)) };
            }
            Self::Program(_) => {
                let filter = terminal_filter();
                // SAFETY: as above; the filter was allocated before.
                unsafe { command.pre_exec(move || leave_mounting(&filter)) };
            }
        }
        Ok(())
    }
}

/// Puts a root together that has only what a client may read, and makes it the calling thread's.
fn show_only(reads: &[PathBuf]) -> io::Result<()> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let mut reads: Vec<PathBuf> = SYSTEM_FILES
        .iter()
        .map(PathBuf::from)
        .chain(reads.iter().cloned())
        .collect();
    // A folder before what is in it.
    reads.sort_by_cached_key(|path| path.canonicalize().map_or(0, |found| found.as_os_str().len()));

    mount_tmpfs(Path::new(STAGE), "size=4m,mode=755")?;
    let old = Path::new(STAGE).join(&OUTSIDE[1..]);
    fs::create_dir(&old)?;
    pivot_root(STAGE, &old)?;
    chdir("/")?;
    for folder in SYSTEM {
        show(Path::new(folder))?;
    }
    for (folder, options) in EMPTY {
        make_folder(Path::new(folder))?;
        mount_tmpfs(Path::new(folder), options)?;
    }
    // The system's folders may hold it.
    let is_elsewhere = |home: &PathBuf| {
        let lies_in = |folder| home.starts_with(folder);
        home.is_absolute()
            && home.components().count() > 1
            && !EMPTY.map(|(folder, _)| folder).iter().any(lies_in)
    };
    let home = home.filter(is_elsewhere);
    if let Some(home) = &home {
        make_folder(home)?;
        mount_tmpfs(home, "size=256k,mode=755")?;
    }
    show_devices()?;
    bind("/proc")?;
    for path in reads {
        reveal(&path, MOST_LINKS)?;
    }
    umount2(OUTSIDE, MntFlags::MNT_DETACH)?;
    fs::remove_dir(OUTSIDE)?;
    if let Some(home) = &home {
        set_attributes(home, libc::MOUNT_ATTR_RDONLY, 0)?;
    }
    set_attributes(Path::new("/"), libc::MOUNT_ATTR_RDONLY, 0)
}

/// Shows a file or folder of the host's by the name it is given, with every link on the way.
fn reveal(path: &Path, links_left: u8) -> io::Result<()> {
    let mut at = PathBuf::from("/");
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        match part {
            Component::ParentDir => drop(at.pop()),
            Component::Normal(name) => at.push(name),
            _ => {}
        }
        if let Ok(target) = fs::read_link(outside(&at)) {
            let Some(fewer) = links_left.checked_sub(1) else {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            };
            let folder = at.parent().unwrap_or(&at);
            if at.symlink_metadata().is_err() {
                make_folder(folder)?;
                symlink(&target, &at)?;
            }
            return reveal(&folder.join(target).join(parts.as_path()), fewer);
        }
    }
    if at.exists() { Ok(()) } else { show(&at) }
}

/// Shows a file or folder of the host's at its own place, to be read.
fn show(path: &Path) -> io::Result<()> {
    let outside = outside(path);
    let kind = match outside.symlink_metadata() {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    make_folder(path.parent().unwrap_or(path))?;
    if kind.is_symlink() {
        return symlink(fs::read_link(&outside)?, path);
    }
    if kind.is_dir() {
        make_folder(path)?;
    } else {
        File::create(path)?;
    }
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(&outside), path, None::<&str>, flags, None::<&str>)?;
    let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
    set_attributes(path, attributes, libc::AT_RECURSIVE)
}

/// Devices that lead nowhere, and the lab's shared memory.
fn show_devices() -> io::Result<()> {
    make_folder(Path::new("/dev"))?;
    for device in DEVICES {
        let path = Path::new("/dev").join(device);
        File::create(&path)?;
        let flags = MsFlags::MS_BIND;
        mount(Some(&outside(&path)), &path, None::<&str>, flags, None::<&str>)?;
    }
    symlink("/proc/self/fd", "/dev/fd")?;
    bind(SCRATCH)
}

/// The mount of the lab's at its own place, as it is.
fn bind(path: &str) -> io::Result<()> {
    let path = Path::new(path);
    make_folder(path)?;
    mount(
        Some(&outside(path)),
        path,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )?;
    Ok(())
}

fn outside(path: &Path) -> PathBuf {
    let below = path.components().filter(|part| *part != Component::RootDir);
    Path::new(OUTSIDE).join(below.collect::<PathBuf>())
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

fn mount_tmpfs(path: &Path, options: &str) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options))?;
    Ok(())
}

/// `mount_setattr(2)`, since Linux 5.12.
fn set_attributes(path: &Path, attributes: u64, flags: libc::c_int) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: both pointers outlive the call, and the size is that of the structure.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            name.as_ptr(),
            flags,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    match (answer, io::Error::last_os_error()) {
        (0, _) => Ok(()),
        (_, error) if error.raw_os_error() == Some(libc::ENOSYS) => Err(io::Error::other(
            "clients other than the loader need Linux 5.12 or later (mount_setattr)",
        )),
        (_, error) => Err(error),
    }
}

/// Covers what leads to processes of the host's: `/run`, the folders of displays, and the sockets that have a path.
fn cover(sockets: &[PathBuf]) -> io::Result<()> {
    if Path::new("/dev/mqueue").is_dir() {
        mount(
            Some("mqueue"),
            "/dev/mqueue",
            Some("mqueue"),
            MsFlags::empty(),
            None::<&str>,
        )?;
    }
    let names = Path::new("/etc/resolv.conf").canonicalize().ok();
    let kept = KEPT_OF_RUN.iter().map(PathBuf::from).chain(names);
    let kept: Vec<_> = kept
        .filter(|path| path.starts_with("/run"))
        .filter_map(|path| {
            let mut opening = File::options();
            opening.read(true).custom_flags(libc::O_PATH);
            Some((opening.open(&path).ok()?, path))
        })
        .collect();
    if Path::new("/run").is_dir() {
        mount_tmpfs(Path::new("/run"), "size=64m,mode=755")?;
    }
    for (opened, path) in kept {
        make_folder(path.parent().unwrap_or(&path))?;
        if opened.metadata()?.is_dir() {
            make_folder(&path)?;
        } else {
            File::create(&path)?;
        }
        let source = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(source.as_str()), &path, None::<&str>, flags, None::<&str>)?;
    }
    for folder in SOCKET_FOLDERS.map(Path::new) {
        if folder.is_dir() {
            mount_tmpfs(folder, "size=1m,mode=1777")?;
        }
    }
    for socket in sockets {
        // What this user may not look at cannot be connected to either.
        if socket
            .symlink_metadata()
            .is_ok_and(|found| found.file_type().is_socket())
        {
            mount(
                Some("/dev/null"),
                socket,
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            )?;
        }
    }
    Ok(())
}

/// Who a client is.
#[derive(Debug, Clone, Copy)]
enum Ids {
    /// The caller, who is not root.
    Caller,
    /// A user of the lab's that has nothing on the host.
    Nobody,
}

impl Ids {
    fn of_client() -> Result<Self, LabError> {
        if !geteuid().is_root() {
            return Ok(Self::Caller);
        }
        if sandbox::maps_nobody() {
            return Ok(Self::Nobody);
        }
        Err(LabError::new(
            "a client would run as root: this lab has no other user",
            "run firstflight as an ordinary user, or give this container user ids up to 65534",
        ))
    }
}

/// Leaves session, keys, groups, user and capabilities, for good. Called between `fork` and `exec`.
fn leave_rights(ids: Ids) -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: these calls take numbers and null pointers.
    unsafe {
        check(libc::setsid())?;
        // A kernel without keys has none to hide.
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_JOIN_SESSION_KEYRING,
            ptr::null::<libc::c_char>(),
        );
        check(libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        ))?;
        for capability in 0..64 {
            // The kernel knows fewer; the first that it does not know ends them.
            if libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 {
                break;
            }
        }
        if matches!(ids, Ids::Nobody) {
            check(libc::setgroups(0, ptr::null()))?;
            check(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
            check(libc::setresuid(NOBODY, NOBODY, NOBODY))?;
        }
        let none = [0_u32; 6];
        let header = [LINUX_CAPABILITY_VERSION_3, 0];
        check(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) as libc::c_int)?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    }
}

/// `linux/capability.h`.
const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Capabilities by which root's program could take the covers away, or look at the lab's own process
/// (`linux/capability.h`): `SYS_MODULE`, `SYS_RAWIO`, `SYS_PTRACE`, `SYS_ADMIN`, `SYS_BOOT`.
const UNCOVERING: [libc::c_int; 5] = [16, 17, 19, 21, 22];

/// Leaves the right to change mounts, and typing into terminals. Called between `fork` and `exec`.
fn leave_mounting(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the filter, which outlives the call; the others take numbers.
    unsafe {
        if !filter.is_empty() {
            check(libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ))?;
        }
        for capability in UNCOVERING {
            check(libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0))?;
        }
    }
    Ok(())
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// `ioctl` in the ways that this processor knows to call it: architecture (`linux/audit.h`) and number.
const IOCTLS: &[(u32, u32)] = if cfg!(target_arch = "x86_64") {
    // The last is the number in the x32 way.
    &[
        (0xC000_003E, 16),
        (0x4000_0003, 54),
        (0xC000_003E, 0x4000_0000 + 514),
    ]
} else if cfg!(target_arch = "aarch64") {
    &[(0xC000_00B7, 29), (0x4000_0028, 54)]
} else {
    &[]
};

/// Refuses to put characters into a terminal's input (`TIOCSTI`, and `TIOCLINUX` of the console): a shell that reads
/// them once the program has ended would run them outside.
fn terminal_filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    // Offsets in `struct seccomp_data`; of the request the kernel looks at the lower half.
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    const REQUEST: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut filter = Vec::new();
    for (architecture, number) in IOCTLS {
        filter.extend([
            step(LOAD, ARCHITECTURE, 0, 0),
            step(JUMP, *architecture, 0, 6),
            step(LOAD, NUMBER, 0, 0),
            step(JUMP, *number, 0, 4),
            step(LOAD, REQUEST, 0, 0),
            step(JUMP, libc::TIOCSTI as u32, 1, 0),
            step(JUMP, libc::TIOCLINUX as u32, 0, 1),
            step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        ]);
    }
    filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    filter
}

/// Whether a client could make the namespaces that Chromium's sandbox is built of: tried by a child with the rights
/// of a client.
///
/// # Errors
/// [`LabError`] when there is no client, or no child, to try it with.
pub fn try_browser_sandbox() -> Result<bool, LabError> {
    let ids = Ids::of_client()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("--version").stdout(std::process::Stdio::null());
    let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET;
    // SAFETY: it makes system calls and touches nothing else.
    unsafe {
        command.pre_exec(move || {
            leave_rights(ids)?;
            check(libc::unshare(flags.bits()))?;
            libc::_exit(0)
        });
    }
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS | libc::EINVAL) => Ok(false),
            _ => Err(LabError::system("trying a browser's namespaces", error)),
        },
    }
}
