//! Shares a terminal with the program inside.
//!
//! The lab stays in the process group it was started in, and so does the program. Ctrl-C and Ctrl-\ reach all of
//! them, and only the program reacts. A shell inside makes its own groups and takes the terminal. From its PID
//! namespace it cannot name the group that had the terminal before, so the lab gives the terminal back.

use std::fs::File;
use std::os::fd::OwnedFd;

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::unistd::{Pid, tcgetpgrp, tcsetpgrp};

/// The terminal and its process group, given back when dropped.
#[derive(Debug)]
pub struct Terminal(Option<(OwnedFd, Pid)>);

impl Terminal {
    /// Leaves the keyboard's signals to the program, and remembers the terminal's process group.
    ///
    /// A signal with a handler gets its default action back in a program that is started. One that the parent had
    /// ignored stays ignored.
    pub fn share() -> Self {
        for signal in [Signal::SIGINT, Signal::SIGQUIT] {
            let nothing = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
            // SAFETY: the handler does nothing at all.
            let before = unsafe { sigaction(signal, &nothing) };
            if let Ok(before) = before
                && matches!(before.handler(), SigHandler::SigIgn)
            {
                // SAFETY: this is the action that was there before.
                let _ = unsafe { sigaction(signal, &before) };
            }
        }
        let terminal = File::open("/dev/tty").ok().map(OwnedFd::from);
        Self(terminal.and_then(|terminal| {
            let group = tcgetpgrp(&terminal).ok()?;
            Some((terminal, group))
        }))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let Some((terminal, group)) = &self.0 else { return };
        // SIGTTOU stops a background process that takes the terminal, unless it is blocked.
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTTOU);
        let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&stop), None);
        // If the terminal is gone, there is nothing to give back.
        let _ = tcsetpgrp(terminal, *group);
        let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&stop), None);
    }
}

extern "C" fn nothing(_: libc::c_int) {}
