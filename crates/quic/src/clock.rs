//! The driver's time and congestion marks as quinn-proto's.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use firstflight_loader::Nanos;
use firstflight_path::Ecn;
use quinn_proto::EcnCodepoint;

/// Stands for time 0 of the driver: which moment it is makes no difference.
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
