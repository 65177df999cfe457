//! Ties the lab's life to the descriptor of its job: the process that started it holds the other end.
//!
//! It is standard input, or another one if standard input belongs to the user's program ([`crate::jobs::exec`]).

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::LabError;

/// The descriptor of the job.
#[derive(Debug)]
pub struct Tether(File);

/// Exit code of a lab whose owner has ended.
const EXIT_ABANDONED: i32 = 3;

impl Tether {
    /// Takes a descriptor that this process was started with. Programs started from here do not inherit it.
    ///
    /// # Errors
    /// [`LabError`] when there is no such descriptor.
    pub fn take(descriptor: RawFd) -> Result<Self, LabError> {
        take(descriptor).map(|owned| Self(owned.into()))
    }

    /// Reads the job, one line. From then on this process exits when the descriptor reaches its end.
    ///
    /// # Errors
    /// [`LabError`] when the line cannot be read.
    pub fn read_job(mut self) -> Result<String, LabError> {
        let text = self
            .read_line()
            .map_err(|error| LabError::malformed("reading the job", error))?;
        std::thread::spawn(move || {
            let mut rest = [0; 256];
            while matches!(self.0.read(&mut rest), Ok(1..)) {}
            std::process::exit(EXIT_ABANDONED);
        });
        Ok(text)
    }

    fn read_line(&mut self) -> std::io::Result<String> {
        let mut line = Vec::new();
        let mut chunk = vec![0; 65_536];
        while !line.ends_with(b"\n") {
            match self.0.read(&mut chunk)? {
                0 => break,
                length => line.extend_from_slice(&chunk[..length]),
            }
        }
        String::from_utf8(line).map_err(std::io::Error::other)
    }
}

/// Takes a descriptor that this process was started with, and that no other part uses.
///
/// # Errors
/// [`LabError`] when there is no such descriptor.
pub fn take(descriptor: RawFd) -> Result<OwnedFd, LabError> {
    let missing = |errno| LabError::system(format!("taking descriptor {descriptor}"), errno);
    // SAFETY: the parent process opened it for this purpose alone, and named it in the arguments.
    let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
    match fcntl(&owned, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)) {
        Ok(_) => Ok(owned),
        Err(errno) => {
            // It is not open: there is nothing to close.
            std::mem::forget(owned);
            Err(missing(errno))
        }
    }
}
