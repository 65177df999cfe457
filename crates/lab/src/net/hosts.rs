//! Names: a hosts file that only the lab sees.

use std::fmt::Write;
use std::fs;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::AddressPlan;
use crate::LabError;

/// An existing directory to mount the file's home on, for a moment.
const FOR_A_MOMENT: &str = "/tmp";

/// Binds a hosts file with the page's names over `/etc/hosts`, in this mount namespace only.
///
/// # Errors
/// [`LabError`] when a mount is refused.
pub fn install_hosts(plan: &AddressPlan) -> Result<(), LabError> {
    let mut content = String::from("127.0.0.1 localhost\n");
    for (host, address) in plan.hosts() {
        let _ = writeln!(content, "{address} {host}");
    }
    let mounted = |result: nix::Result<()>| {
        result.map_err(|errno| LabError::system("mounting the lab's hosts file", errno))
    };
    let file = format!("{FOR_A_MOMENT}/hosts");
    mounted(mount(
        Some("tmpfs"),
        FOR_A_MOMENT,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("size=4m,mode=755"),
    ))?;
    fs::write(&file, content).map_err(|error| LabError::system("writing the lab's hosts file", error))?;
    mounted(mount(
        Some(file.as_str()),
        "/etc/hosts",
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    ))?;
    mounted(umount2(FOR_A_MOMENT, MntFlags::MNT_DETACH))
}
