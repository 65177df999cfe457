//! Sharing a terminal with the program inside.
//!
//! The lab stays in the process group it was started in, and the program with it: Ctrl-C and Ctrl-\ reach all
//! of them, and only the program minds. A shell inside makes groups of its own and takes the terminal; from
//! within its PID namespace it cannot name the group it has the terminal from, so the lab gives it back.

use std::fs::File;
use std::os::fd::OwnedFd;

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::unistd::{Pid, tcgetpgrp, tcsetpgrp};

/// The terminal as it was found; given back when dropped.
#[derive(Debug)]
pub struct Terminal(Option<(OwnedFd, Pid)>);

impl Terminal {
    /// Leaves the keyboard's signals to the program, and remembers whose the terminal is.
    ///
    /// A signal with a handler is back to its default in a program that is started; one that our
    /// parent had ignored stays ignored.
    pub fn share() -> Self {
        for signal in [Signal::SIGINT, Signal::SIGQUIT] {
            let nothing = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
            // SAFETY: the handler does nothing at all.
            let before = unsafe { sigaction(signal, &nothing) };
            if let Ok(before) = before
                && matches!(before.handler(), SigHandler::SigIgn)
            {
                // SAFETY: this is what was there before.
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
        // Who takes the terminal from the background is stopped by SIGTTOU, unless it is blocked.
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTTOU);
        let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&stop), None);
        // The terminal is gone: nothing to give back.
        let _ = tcsetpgrp(terminal, *group);
        let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&stop), None);
    }
}

extern "C" fn nothing(_: libc::c_int) {}
