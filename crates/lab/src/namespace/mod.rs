//! The kernel's namespaces. They separate the lab from the host, and programs in the lab from the rest of the lab.
//!
//! [`enter`] makes the lab's own (user, network, mount, PID), and [`in_new_network`] a second network for the
//! servers. [`Containment`] is what restricts a program further.

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

/// Starts a thread in a network namespace of its own. The thread first calls `set_up`: one half of the result goes
/// to the caller, the thread continues with the other.
///
/// The namespace lives as long as the thread, or a socket or device in it.
///
/// # Errors
/// [`LabError`] when the namespace or the thread cannot be created, or from `set_up`.
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
            // The receiver waits for this single answer.
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
