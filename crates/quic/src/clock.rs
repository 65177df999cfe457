//! Converts the driver's time and ECN field to quinn-proto's types.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use firstflight_loader::Nanos;
use firstflight_path::Ecn;
use quinn_proto::EcnCodepoint;

/// The instant of the driver's time 0. Any instant serves.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn instant(at: Nanos) -> Instant {
    *EPOCH + Duration::from_nanos(at)
}

pub(crate) fn nanos(at: Instant) -> Nanos {
    at.saturating_duration_since(*EPOCH).as_nanos() as Nanos
}

pub(crate) fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable => Some(EcnCodepoint::Ect0),
        Ecn::Marked => Some(EcnCodepoint::Ce),
    }
}

pub(crate) fn ecn(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ce) => Ecn::Marked,
        Some(EcnCodepoint::Ect0 | EcnCodepoint::Ect1) => Ecn::Capable,
    }
}
