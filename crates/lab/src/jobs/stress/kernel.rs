//! The kernel's counters that show floods, read from outside their namespace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};

use crate::LabError;
use crate::witness::tcp_ext;

/// The counters of one network namespace. An open file keeps showing that of the thread that opened it.
#[derive(Debug)]
pub(super) struct Kernel(File);

/// Counters of `TcpExt`, or their increase.
pub(super) type KernelCounters = BTreeMap<&'static str, u64>;

/// The counters to read: Fast Open, the accept queue, SYN cookies, the SYN queue.
const NAMES: [&str; 16] = [
    "TCPFastOpenActive",
    "TCPFastOpenActiveFail",
    "TCPFastOpenPassive",
    "TCPFastOpenPassiveFail",
    "TCPFastOpenListenOverflow",
    "TCPFastOpenCookieReqd",
    "ListenOverflows",
    "ListenDrops",
    "SyncookiesSent",
    "SyncookiesRecv",
    "SyncookiesFailed",
    "TCPReqQFullDoCookies",
    "TCPReqQFullDrop",
    "TCPTimeouts",
    "TCPSynRetrans",
    "TCPTimeWaitOverflow",
];

impl Kernel {
    /// The counters of the calling thread's namespace.
    pub(super) fn open() -> Result<Self, LabError> {
        File::open("/proc/thread-self/net/netstat")
            .map(Self)
            .map_err(|error| failed(&error))
    }

    /// Reads the counters. One that this kernel does not have is 0.
    pub(super) fn read(&mut self) -> Result<KernelCounters, LabError> {
        let mut text = String::new();
        self.0
            .rewind()
            .and_then(|()| self.0.read_to_string(&mut text))
            .map_err(|error| failed(&error))?;
        let found = tcp_ext(&text);
        Ok(NAMES
            .into_iter()
            .map(|name| (name, found.get(name).copied().unwrap_or_default()))
            .collect())
    }
}

/// Their increase.
pub(super) fn growth(before: &KernelCounters, after: &KernelCounters) -> KernelCounters {
    after
        .iter()
        .map(|(name, count)| (*name, count - before.get(name).copied().unwrap_or_default()))
        .collect()
}

fn failed(error: &std::io::Error) -> LabError {
    LabError::system("reading /proc/net/netstat", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_read_again_and_again() {
        let mut kernel = Kernel::open().unwrap();
        let (before, after) = (kernel.read().unwrap(), kernel.read().unwrap());
        assert_eq!(growth(&before, &after).len(), NAMES.len());
    }
}
