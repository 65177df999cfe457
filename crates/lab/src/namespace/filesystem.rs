//! The file system that a contained program sees.
//!
//! A client's holds what it needs and nothing of the user's. A user's own program keeps the host's, except for what
//! leads to processes outside. Both belong to the mount namespace of the calling thread.

use std::env;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{chdir, pivot_root};

use super::sandbox::SCRATCH;

/// Where the new root is built, and where the old one is mounted meanwhile.
const STAGE: &str = "/tmp";
const OUTSIDE: &str = "/.outside";
/// What every client may read: programs, libraries, and settings of the system.
const SYSTEM: [&str; 12] = [
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu", "/snap",
];
/// More of the same, from folders that also hold other things. Files for name resolution may be links to elsewhere.
const SYSTEM_FILES: [&str; 5] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/sys/devices/system",
    "/var/cache/fontconfig",
];
/// Folders that are empty for a client at first and that it may write to, with their mount options. They end with
/// it.
const EMPTY: [(&str, &str); 3] = [
    ("/run", "size=1m,mode=755"),
    ("/tmp", "size=256m,mode=1777"),
    ("/var/tmp", "size=16m,mode=1777"),
];
/// The kernel's limit on symbolic links (`path_resolution(7)`).
const MOST_LINKS: u8 = 40;
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// What a user's program keeps of `/run`: NixOS has its programs there, and desktops mount the user's disks there.
const KEPT_OF_RUN: [&str; 4] = [
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/media",
];
/// Folders of sockets, which processes in other network namespaces may have opened.
const SOCKET_FOLDERS: [&str; 2] = ["/tmp/.X11-unix", "/tmp/.ICE-unix"];

/// Builds a root that has only what a client may read, and makes it the calling thread's root.
pub(super) fn show_only(reads: &[PathBuf]) -> io::Result<()> {
    umask(Mode::from_bits_truncate(0o022));
    let home = env::var_os("HOME").map(PathBuf::from);
    let mut reads: Vec<PathBuf> = SYSTEM_FILES
        .iter()
        .map(PathBuf::from)
        .chain(reads.iter().cloned())
        .collect();
    // A folder is bound before what is in it.
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
    // A system folder may contain it.
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
    let processes = Path::new("/proc");
    make_folder(processes)?;
    bind(&outside(processes), processes, MsFlags::empty())?;
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

/// Shows a file or folder of the host's under the given name, with every link on the way.
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

/// Shows a file or folder of the host's at its own place, read-only.
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
    bind(&outside, path, MsFlags::MS_REC)?;
    let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
    set_attributes(path, attributes, libc::AT_RECURSIVE)
}

/// Shows harmless devices, and the lab's shared memory.
fn show_devices() -> io::Result<()> {
    make_folder(Path::new("/dev"))?;
    for device in DEVICES {
        let path = Path::new("/dev").join(device);
        File::create(&path)?;
        bind(&outside(&path), &path, MsFlags::empty())?;
    }
    symlink("/proc/self/fd", "/dev/fd")?;
    let scratch = Path::new(SCRATCH);
    make_folder(scratch)?;
    bind(&outside(scratch), scratch, MsFlags::empty())
}

/// Binds `source` to the existing `target`: with the mounts below it if `recursion` is `MS_REC`, without if empty.
fn bind(source: &Path, target: &Path, recursion: MsFlags) -> io::Result<()> {
    let flags = MsFlags::MS_BIND | recursion;
    mount(Some(source), target, None::<&str>, flags, None::<&str>)?;
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

/// Covers what leads to the host's processes: `/run`, the folders of displays, and the sockets that have a path.
pub(super) fn cover_sockets(sockets: &[PathBuf]) -> io::Result<()> {
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
        bind(Path::new(&source), &path, MsFlags::MS_REC)?;
    }
    for folder in SOCKET_FOLDERS.map(Path::new) {
        if folder.is_dir() {
            mount_tmpfs(folder, "size=1m,mode=1777")?;
        }
    }
    for socket in sockets {
        // A socket that this user may not stat cannot be connected to either.
        if socket
            .symlink_metadata()
            .is_ok_and(|found| found.file_type().is_socket())
        {
            bind(Path::new("/dev/null"), socket, MsFlags::empty())?;
        }
    }
    Ok(())
}
