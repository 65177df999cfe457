//! Checks whether the system has what the lab needs, each with the fix.

use std::fs;
use std::process::Command;

use serde::Serialize;

/// The check of one thing that the lab needs.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Whether it was found.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// The fix; empty if it was found.
    pub hint: String,
    /// Whether no lab works without it.
    pub needed: bool,
}

impl Check {
    fn new(name: &'static str, ok: bool, detail: impl Into<String>, hint: &str) -> Self {
        Self {
            name,
            ok,
            detail: detail.into(),
            hint: if ok { String::new() } else { hint.to_owned() },
            needed: true,
        }
    }
}

/// Makes all checks, from outside the lab.
pub fn examine() -> Vec<Check> {
    let namespaces = user_namespaces();
    let isolation = client_isolation(&namespaces);
    vec![
        kernel(),
        namespaces,
        isolation,
        tun(),
        fast_open(),
        cubic(),
        realtime(),
    ]
}

fn kernel() -> Check {
    let release = read("/proc/sys/kernel/osrelease");
    let mut numbers = release
        .split(['.', '-'])
        .map(|text| text.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    Check::new(
        "Linux kernel",
        version >= (5, 4),
        release,
        "use Linux 5.4 or later: per-namespace Fast Open came with 4.15, its TCP_INFO verdict with 5.5",
    )
}

/// Tries to create namespaces in a child, since a process cannot leave one again. Says what forbids them.
fn user_namespaces() -> Check {
    let tried = Command::new("/proc/self/exe").arg("try-namespaces").output();
    let ok = tried.as_ref().is_ok_and(|output| output.status.success());
    let said = tried.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
    let detail = if ok {
        "user, network, mount and PID".to_owned()
    } else {
        said.unwrap_or_default()
    };
    Check::new("namespaces", ok, detail, &who_forbids_namespaces())
}

/// What a foreign program gets in a lab besides namespaces: its own `/proc` and its own user. Containers hide parts
/// of `/proc`, and may have no second user. The built-in loader needs neither. Without namespaces this cannot be
/// tried.
fn client_isolation(namespaces: &Check) -> Check {
    let name = "client isolation";
    if !namespaces.ok {
        return Check {
            needed: false,
            ..Check::new(name, false, "not tried: it takes namespaces", "")
        };
    }
    let tried = Command::new("/proc/self/exe").arg("try-clients").output();
    let ok = tried.as_ref().is_ok_and(|output| output.status.success());
    let said = tried.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
    let detail = if ok {
        "a /proc of their own, and not root".to_owned()
    } else {
        said.unwrap_or_default()
    };
    let hint = "browsers, wget2 and curl need it; in a container an unmasked /proc: \
                Docker `--security-opt systempaths=unconfined`, Podman `--security-opt unmask=ALL`";
    Check {
        needed: false,
        ..Check::new(name, ok, detail, hint)
    }
}

fn who_forbids_namespaces() -> String {
    let off = |path: &str, value: &str| read(path) == value;
    if off("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return "AppArmor restricts user namespaces (Ubuntu 23.10 and later): \
                `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor profile with `userns,` \
                for this program"
            .to_owned();
    }
    if off("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return "`sudo sysctl kernel.unprivileged_userns_clone=1`".to_owned();
    }
    if off("/proc/sys/user/max_user_namespaces", "0") {
        return "`sudo sysctl user.max_user_namespaces=10000`".to_owned();
    }
    if read("/proc/self/status")
        .lines()
        .any(|line| line == "Seccomp:\t2")
    {
        return "a seccomp filter forbids it, as a container's default profile does: \
                start the container with `--security-opt seccomp=unconfined` (Docker, Podman)"
            .to_owned();
    }
    "the kernel needs CONFIG_USER_NS, CONFIG_NET_NS and CONFIG_PID_NS; inside a chroot it gives no user namespace: \
     use a container"
        .to_owned()
}

fn tun() -> Check {
    let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let hint = match &opened {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "`sudo modprobe tun`; in a container pass `--device /dev/net/tun`"
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            "`sudo chmod 666 /dev/net/tun`, the mode most distributions give it: a device made by an ordinary \
             user still needs a network namespace of that user's"
        }
        _ => "in a container pass `--device /dev/net/tun`",
    };
    let detail = opened
        .as_ref()
        .map_or_else(ToString::to_string, |_| "/dev/net/tun opens".to_owned());
    Check::new("TUN device", opened.is_ok(), detail, hint)
}

fn fast_open() -> Check {
    let path = "/proc/sys/net/ipv4/tcp_fastopen";
    let ok = fs::metadata(path).is_ok();
    let detail = if ok {
        "this kernel has it; the lab sets it per namespace"
    } else {
        "no such setting"
    };
    Check::new(
        "TCP Fast Open",
        ok,
        detail,
        "the kernel needs TCP Fast Open (Linux 3.7)",
    )
}

fn cubic() -> Check {
    let available = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let ok = available.split_whitespace().any(|name| name == "cubic");
    Check::new("CUBIC", ok, available, "`sudo modprobe tcp_cubic`")
}

/// The check never fails: an ordinary user works without it.
fn realtime() -> Check {
    let granted = crate::scheduling::become_realtime();
    crate::scheduling::become_ordinary();
    let detail = if granted {
        "the relay runs under SCHED_FIFO"
    } else {
        "not allowed: the relay runs as an ordinary task with a short slice; keep other work off this machine"
    };
    Check::new("relay priority", true, detail, "")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_namespaces_are_denied_no_hint_speaks_of_proc() {
        let denied = Check::new("namespaces", false, "Operation not permitted", "a hint");
        let isolation = client_isolation(&denied);
        assert!(!isolation.ok && !isolation.needed);
        assert_eq!(isolation.hint, "");
    }
}
