//! Name resolution: the page's hosts resolve, and no other name is looked up. Only the lab sees these files.

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::AddressPlan;
use crate::LabError;

/// An existing directory to mount a file system on for a short time.
const FOR_A_MOMENT: &str = "/tmp";
/// The socket folder of the name service cache daemon, which a C library asks before it reads any file.
const NSCD: &str = "/run/nscd";
const HOSTS: &str = "/etc/hosts";
/// No server is named, so a resolver asks the lab's own loopback. No server listens there, so it fails at once.
const NO_RESOLVER: &str = "options timeout:1 attempts:1\n";

/// Mounts the lab's own files over `/etc/hosts`, `/etc/resolv.conf` and `/etc/nsswitch.conf`, in this mount
/// namespace only. The page's names resolve by the hosts file; others fail at once.
///
/// # Errors
/// [`LabError`] when a mount is refused.
pub fn install_names(plan: &AddressPlan) -> Result<(), LabError> {
    mounted(mount(
        Some("tmpfs"),
        FOR_A_MOMENT,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("size=4m,mode=755"),
    ))?;
    if !Path::new(HOSTS).exists() {
        show_in_etc("hosts")?;
    }
    cover(HOSTS, &hosts(plan))?;
    for (file, content) in [
        ("/etc/resolv.conf", NO_RESOLVER.to_owned()),
        ("/etc/nsswitch.conf", by_file(&read("/etc/nsswitch.conf")?)),
    ] {
        // A system without this file resolves names without it.
        if Path::new(file).exists() {
            cover(file, &content)?;
        }
    }
    mounted(umount2(FOR_A_MOMENT, MntFlags::MNT_DETACH))?;
    let empty = mount(
        Some("tmpfs"),
        NSCD,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("size=4k"),
    );
    mounted(empty.or_else(|errno| {
        if errno == Errno::ENOENT {
            Ok(())
        } else {
            Err(errno)
        }
    }))
}

fn hosts(plan: &AddressPlan) -> String {
    let mut content = String::from("127.0.0.1 localhost\n");
    for (host, address) in plan.hosts() {
        let _ = writeln!(content, "{address} {host}");
    }
    content
}

/// The same sources, except that hosts come from the hosts file alone (`nsswitch.conf(5)`).
fn by_file(content: &str) -> String {
    let others = content
        .lines()
        .filter(|line| !line.trim_start().starts_with("hosts:"));
    others.chain(["hosts: files", ""]).collect::<Vec<_>>().join("\n")
}

fn read(file: &str) -> Result<String, LabError> {
    match fs::read(file) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(LabError::system(format!("reading {file}"), error)),
    }
}

/// Makes an empty file of this name visible in `/etc`: a minimal system may have none to mount another on.
///
/// `/etc` belongs to root, which a lab is not. An overlay of two folders that are not written to needs no rights
/// there. Linux allows it in a user namespace since 5.11.
fn show_in_etc(name: &str) -> Result<(), LabError> {
    let above = Path::new(FOR_A_MOMENT).join("etc");
    let written = fs::create_dir(&above).and_then(|()| fs::write(above.join(name), ""));
    written.map_err(|error| LabError::system(format!("writing the lab's /etc/{name}"), error))?;
    let folders = format!("lowerdir={}:/etc", above.display());
    mount(
        Some("overlay"),
        "/etc",
        Some("overlay"),
        MsFlags::empty(),
        Some(folders.as_str()),
    )
    .map_err(LabError::NoHostsFile)
}

fn cover(file: &str, content: &str) -> Result<(), LabError> {
    let ours = Path::new(FOR_A_MOMENT).join(file.replace('/', "-"));
    fs::write(&ours, content)
        .map_err(|error| LabError::system(format!("writing the lab's {file}"), error))?;
    mounted(mount(
        Some(&ours),
        file,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    ))
}

fn mounted(result: nix::Result<()>) -> Result<(), LabError> {
    result.map_err(|errno| LabError::system("mounting the lab's name files", errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_come_from_the_file_alone_and_users_from_where_they_did() {
        let before = "passwd: files ldap\nhosts:  files mdns4_minimal [NOTFOUND=return] dns\ngroup: files";
        assert_eq!(
            by_file(before),
            "passwd: files ldap\ngroup: files\nhosts: files\n"
        );
        assert_eq!(by_file(""), "hosts: files\n");
    }
}
