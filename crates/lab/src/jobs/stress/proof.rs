//! Checks that Fast Open was used where it should be and nowhere else: relay, sockets and kernel must agree.

use serde::Serialize;

use super::clients::Sockets;
use super::kernel::KernelCounters;
use super::wire::Tally;

/// The verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Whether the witnesses agree with each other and with the mode.
    pub ok: bool,
    /// Every contradiction, as text.
    pub disagreements: Vec<String>,
}

impl Proof {
    /// Compares the wire, the clients' sockets and their kernel.
    ///
    /// Without Fast Open there must be no SYN with data, no cookie request and no acknowledged SYN data. `TCP_INFO`
    /// and the kernel's counter must agree on the number of acknowledged SYNs, except for clients that `gave_up`.
    /// That number must not exceed the SYNs with data on the wire.
    pub(super) fn examine(
        tfo: bool,
        up: Tally,
        sockets: Sockets,
        kernel: &KernelCounters,
        gave_up: u64,
    ) -> Self {
        let counter = |name| kernel.get(name).copied().unwrap_or_default();
        let acked = counter("TCPFastOpenActive");
        let mut disagreements = Vec::new();
        if !tfo && (up.syns_with_data, up.cookie_requests, acked) != (0, 0, 0) {
            disagreements.push(format!(
                "tcp: {} SYNs with data, {} cookie requests, {acked} acknowledged",
                up.syns_with_data, up.cookie_requests
            ));
        }
        if sockets.syn_data_acked.abs_diff(acked) > gave_up {
            disagreements.push(format!(
                "SYN data acknowledged: {} by TCP_INFO, {acked} by the kernel's counter",
                sockets.syn_data_acked
            ));
        }
        if acked > up.syns_with_data {
            disagreements.push(format!(
                "{acked} SYNs with data acknowledged, {} seen by the wire",
                up.syns_with_data
            ));
        }
        Self {
            ok: disagreements.is_empty(),
            disagreements,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examine(tfo: bool, syns_with_data: u64, said: u64, counted: u64) -> bool {
        let up = Tally {
            syns_with_data,
            ..Tally::default()
        };
        let sockets = Sockets {
            syn_data_acked: said,
            ..Sockets::default()
        };
        let kernel = KernelCounters::from([("TCPFastOpenActive", counted)]);
        Proof::examine(tfo, up, sockets, &kernel, 0).ok
    }

    #[test]
    fn witnesses_who_agree_prove_it() {
        assert!(examine(true, 10, 10, 10));
        assert!(examine(true, 10, 7, 7));
        assert!(examine(false, 0, 0, 0));
    }

    #[test]
    fn witnesses_who_do_not_agree_prove_nothing() {
        assert!(!examine(true, 10, 10, 9));
        assert!(!examine(true, 9, 10, 10));
        assert!(!examine(false, 1, 0, 0));
    }
}
