//! The kernel's namespaces: what separates the lab from the host, and what runs in the lab from the rest of it.
//!
//! [`enter`] makes the lab's own (user, network, mount, PID), [`in_new_network`] a second network for the servers,
//! and [`Containment`] is what a program gets beyond both.

mod containment;
mod filesystem;
mod rights;
mod sandbox;

use std::sync::mpsc;
use std::thread;

use nix::sched::{CloneFlags, unshare};

use crate::LabError;

pub use containment::{Containment, host_sockets};
pub use rights::try_browser_sandbox;
pub use sandbox::{NOBODY, Side, enter, mount_proc, mount_scratch};

/// Starts a thread in a network namespace of its own. There `set_up` is done first: half of what it makes goes to
/// the caller, with the other half the thread goes on.
///
/// The namespace lives as long as the thread, a socket or a device in it.
///
/// # Errors
/// [`LabError`] when the namespace or the thread cannot be had; what `set_up` says.
pub fn in_new_network<Given: Send + 'static, Kept>(
    name: &str,
    set_up: impl FnOnce() -> Result<(Given, Kept), LabError> + Send + 'static,
    go_on: impl FnOnce(Kept) + Send + 'static,
) -> Result<Given, LabError> {
    let (answer, answered) = mpsc::channel();
    let work = move || {
        let made = unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|errno| LabError::system("making a network namespace", errno))
            .and_then(|()| set_up());
        match made {
            // The receiver waits for this one answer.
            Ok((given, kept)) => {
                let _ = answer.send(Ok(given));
                go_on(kept);
            }
            Err(error) => drop(answer.send(Err(error))),
        }
    };
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| LabError::system(format!("starting the thread of the {name}"), error))?;
    let died = |_| LabError::bug(format!("the thread of the {name} died"));
    answered.recv().map_err(died)?
}
