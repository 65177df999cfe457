//! What every TCP connection of the lab has, the client's and the servers'.

use std::io;

use firstflight_quic::{CongestionControl, Settings};
use nix::libc;
use serde::Deserialize;

use crate::LabError;

/// How connections begin and how they share the path. Said by the routes, not by sockets or sysctls: so it holds
/// for a program that we did not write, and a namespace, which inherits the host's congestion control, may not
/// choose a restricted one (`net/ipv4/tcp_cong.c`, `tcp_set_default_congestion_control`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// Initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// Congestion control at both ends, as the kernel calls it; `bbr` of QUIC alone.
    pub congestion_control: String,
}

impl Default for Transport {
    /// As Linux has it.
    fn default() -> Self {
        Self {
            initial_window: 10,
            congestion_control: "cubic".to_owned(),
        }
    }
}

impl Transport {
    /// Congestion control of connections over TCP: CUBIC where only QUIC has another.
    pub fn over_tcp(&self) -> &str {
        match self.congestion_control.as_str() {
            "bbr" => "cubic",
            known => known,
        }
    }

    /// The same of connections of QUIC.
    ///
    /// # Errors
    /// [`LabError`] when QUIC has no such congestion control.
    pub fn quic(&self) -> Result<Settings, LabError> {
        Ok(Settings {
            congestion_control: match self.congestion_control.as_str() {
                "cubic" => CongestionControl::Cubic,
                "reno" => CongestionControl::NewReno,
                "bbr" => CongestionControl::Bbr,
                other => return Err(LabError::NoQuicCongestionControl(other.to_owned())),
            },
            initial_window: self.initial_window,
        })
    }

    /// Why a route could not say it.
    pub(super) fn refused(&self, error: io::Error) -> LabError {
        if error.raw_os_error() == Some(libc::EINVAL) {
            return LabError::NoCongestionControl(self.congestion_control.clone());
        }
        LabError::system("setting the initial window of a route", error)
    }
}
