//! The kernel's counters that tell of floods, read from outside their namespace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};

use crate::LabError;
use crate::witness::tcp_ext;

/// The counters of one network namespace: the file shows that of the process that opened it.
#[derive(Debug)]
pub(super) struct Kernel(File);

/// Counters of `TcpExt`, or their growth.
pub(super) type KernelCounters = BTreeMap<&'static str, u64>;

/// What is read. Fast Open; the queue of connections to be accepted; SYN cookies; the queue of SYNs.
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

    /// Reads them; one that this kernel does not have is 0.
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

/// How much they grew.
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
