//! The other witnesses of Fast Open, and whether they agree with the ledger.

mod counters;
mod proof;
mod tally;
mod tcp_info;

use firstflight_load::TlsVersion;
use rustls::{CommonState, HandshakeKind, ProtocolVersion};

pub use counters::Counters;
pub use proof::{Proof, Sockets, Statement, examine};
pub use tcp_info::TcpInfo;

pub(crate) use counters::tcp_ext;
pub(crate) use tcp_info::congestion_control;

/// What one end has negotiated: the TLS version, and whether a session is resumed; `None` before.
pub(crate) fn agreed(tls: &CommonState) -> Option<(TlsVersion, bool)> {
    let version = match tls.protocol_version()? {
        ProtocolVersion::TLSv1_2 => TlsVersion::V1_2,
        _ => TlsVersion::V1_3,
    };
    Some((version, tls.handshake_kind()? == HandshakeKind::Resumed))
}
