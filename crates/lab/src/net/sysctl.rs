//! The kernel settings of the lab's namespaces. The host's are never changed.
//!
//! `/proc/sys/net` shows the network namespace of the thread that opens it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::Side;
use crate::{LabError, scheduling};

const IPV6: &str = "/proc/sys/net/ipv6";
const MOST_WAITING: &str = "65535";
const MOST_ACCEPTED: &str = "/proc/sys/net/core/somaxconn";
/// Bits of `tcp_fastopen` (`Documentation/networking/ip-sysctl.rst`).
const CLIENT: u32 = 0x1;
const SERVER: u32 = 0x2;
const CLIENT_WITHOUT_COOKIE: u32 = 0x4;
const SERVER_WITHOUT_COOKIE: u32 = 0x200;

/// Settings of the client: TFO by the mode, everything else the same in every mode.
///
/// # Errors
/// [`LabError`] naming the setting the kernel refuses.
pub fn set_client_sysctls(tfo: bool, cookieless: bool) -> Result<(), LabError> {
    set_common()?;
    set_fast_open(match (tfo, cookieless) {
        (false, _) => 0,
        (true, false) => CLIENT,
        (true, true) => CLIENT | CLIENT_WITHOUT_COOKIE,
    })
}

/// Settings of the servers: TFO is always on, so the client decides.
///
/// # Errors
/// [`LabError`] naming the setting the kernel refuses.
pub fn set_server_sysctls(cookieless: bool) -> Result<(), LabError> {
    set_common()?;
    // Each server sets its own limit on waiting connections.
    set_sysctl("tcp_max_syn_backlog", MOST_WAITING)?;
    write_where_exported(MOST_ACCEPTED, MOST_WAITING)?;
    set_fast_open(if cookieless {
        SERVER | SERVER_WITHOUT_COOKIE
    } else {
        SERVER
    })
}

fn set_fast_open(bits: u32) -> Result<(), LabError> {
    set_sysctl("tcp_fastopen", &bits.to_string())
}

fn set_common() -> Result<(), LabError> {
    set_sysctl("tcp_ecn", "0")?;
    // Keeps cookies, but neither cwnd nor RTT between connections: a warm cookie must not also mean a warm
    // congestion window.
    set_sysctl("tcp_no_metrics_save", "1")?;
    set_sysctl("tcp_fastopen_blackhole_timeout_sec", "0")
}

/// From now on connections of this namespace use ECN (RFC 3168).
///
/// # Errors
/// [`LabError`] naming the setting the kernel refuses.
pub fn use_ecn() -> Result<(), LabError> {
    set_sysctl("tcp_ecn", "1")
}

/// Needed because a namespace inherits the host's settings, and the wires have neither neighbours nor routers.
const IPV6_SETTINGS: &[(&str, &str)] = &[
    ("conf/all/disable_ipv6", "0"),
    ("conf/default/disable_ipv6", "0"),
    ("conf/default/accept_dad", "0"),
    ("conf/default/accept_ra", "0"),
    ("conf/default/router_solicitations", "0"),
    // No link-local address.
    ("conf/default/addr_gen_mode", "1"),
];

/// Enables IPv6 in the namespace. It has only the addresses that the lab gives it, and sends only packets of
/// programs. Call it before its device is made. The settings `net.ipv4.tcp_*` hold for TCP over IPv6 too.
///
/// # Errors
/// [`LabError`] when the kernel has no IPv6, or naming the setting it refuses.
pub fn use_ipv6(side: Side) -> Result<(), LabError> {
    if !Path::new(IPV6).exists() {
        return Err(LabError::NoIpv6);
    }
    // For some of these the kernel tries again and again to take the lock of its network devices, without sleep
    // (`addrconf_disable_ipv6` in `net/ipv6/addrconf.c`). A real-time task would keep the lock's holder, or the
    // next in line, from the processor for good.
    scheduling::as_ordinary_task(|| {
        IPV6_SETTINGS
            .iter()
            .try_for_each(|(name, value)| write(&format!("{IPV6}/{name}"), value))
    })?;
    if side == Side::Servers {
        // The addresses of origins are local by a route only.
        write(&format!("{IPV6}/ip_nonlocal_bind"), "1")?;
    }
    Ok(())
}

/// Sets an option of `net.ipv4` in the calling thread's network namespace.
///
/// # Errors
/// [`LabError`] naming the setting the kernel refuses.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), LabError> {
    write(&format!("/proc/sys/net/ipv4/{name}"), value)
}

/// Sets an option that older kernels hide from a user namespace, which then has their default.
///
/// `sysctl_core_net_init` in `net/core/sysctl_net_core.c` of Linux 6.1 exports nothing of `net.core` to a network
/// namespace that a user namespace other than the first owns. There `somaxconn` stays 4096 (`SOMAXCONN`).
fn write_where_exported(path: &str, value: &str) -> Result<(), LabError> {
    if Path::new(path).exists() {
        write(path, value)
    } else {
        Ok(())
    }
}

fn write(path: &str, value: &str) -> Result<(), LabError> {
    fs::write(path, value).map_err(|error| match error.kind() {
        ErrorKind::ReadOnlyFilesystem => LabError::ReadOnlySettings(path.to_owned()),
        _ => LabError::system(format!("setting {path} to {value}"), error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_the_kernel_does_not_export_keeps_its_default() {
        write_where_exported("/proc/sys/net/core/no_such_setting", "1").expect("nothing to set");
    }

    #[test]
    fn a_setting_that_is_there_is_set_or_named_with_the_refusal() {
        let error = write_where_exported("/proc/sys/kernel/osrelease", "1").expect_err("the kernel's own");
        assert!(
            error
                .to_string()
                .starts_with("setting /proc/sys/kernel/osrelease to 1: "),
            "{error}"
        );
    }
}
