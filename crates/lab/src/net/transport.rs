//! The transport settings of every TCP connection of the lab, the client's and the servers'.

use std::io;

use firstflight_quic::{CongestionControl, Settings};
use nix::libc;
use serde::Deserialize;

use crate::LabError;

/// Initial window and congestion control of connections. Routes set them, not sockets or sysctls, so they also hold
/// for programs that are not part of the lab. A namespace inherits the host's congestion control, and may not
/// choose a restricted one (`net/ipv4/tcp_cong.c`, `tcp_set_default_congestion_control`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// Initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// Congestion control at both ends, by the kernel's name; `bbr` for QUIC only.
    pub congestion_control: String,
}

impl Default for Transport {
    /// The defaults of Linux.
    fn default() -> Self {
        Self {
            initial_window: 10,
            congestion_control: "cubic".to_owned(),
        }
    }
}

impl Transport {
    /// Congestion control of TCP connections: CUBIC if the setting is for QUIC only.
    pub fn over_tcp(&self) -> &str {
        match self.congestion_control.as_str() {
            "bbr" => "cubic",
            known => known,
        }
    }

    /// The settings of QUIC connections.
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

    /// The error when the kernel refuses a route with these settings.
    pub(super) fn refused(&self, error: io::Error) -> LabError {
        if error.raw_os_error() == Some(libc::EINVAL) {
            return LabError::NoCongestionControl(self.congestion_control.clone());
        }
        LabError::system("setting the initial window of a route", error)
    }
}
