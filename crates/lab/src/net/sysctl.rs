//! The kernel settings of the lab's namespaces. The host's are never touched.
//!
//! `/proc/sys/net` shows the network namespace of the thread that opens it.

use std::fs;

use crate::LabError;

const MOST_WAITING: &str = "65535";

/// Settings of the client: TFO as the mode says, everything else the same in every mode.
///
/// # Errors
/// [`LabError`] naming the setting the kernel refuses.
pub fn set_client_sysctls(tfo: bool) -> Result<(), LabError> {
    set_common()?;
    set_sysctl("tcp_fastopen", if tfo { "1" } else { "0" })
}

/// Settings of the servers: TFO is always on offer; the client decides.
///
/// # Errors
/// [`LabError`] naming the setting the kernel refuses.
pub fn set_server_sysctls() -> Result<(), LabError> {
    set_common()?;
    // How many may wait each server says itself.
    set_sysctl("tcp_max_syn_backlog", MOST_WAITING)?;
    write("/proc/sys/net/core/somaxconn", MOST_WAITING)?;
    set_sysctl("tcp_fastopen", "2")
}

fn set_common() -> Result<(), LabError> {
    // Keeps cookies but neither cwnd nor RTT between connections: a warm cookie must not also mean a warm
    // congestion window.
    set_sysctl("tcp_no_metrics_save", "1")?;
    set_sysctl("tcp_fastopen_blackhole_timeout_sec", "0")
}

/// Sets one of `net.ipv4` in the calling thread's network namespace.
///
/// # Errors
/// [`LabError`] naming the setting the kernel refuses.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), LabError> {
    write(&format!("/proc/sys/net/ipv4/{name}"), value)
}

fn write(path: &str, value: &str) -> Result<(), LabError> {
    fs::write(path, value).map_err(|error| LabError::system(&format!("setting {path} to {value}"), error))
}
