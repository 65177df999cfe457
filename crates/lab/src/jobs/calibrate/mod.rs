//! Measures, with the lab's own services, whether the path is as the job asks.

mod floor;
mod flow;
mod probe;

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use firstflight_load::{Cookies, Load, Mode};
use firstflight_page::{FORMAT, Kind, MAX_HOSTS, Page, Resource};
use firstflight_path::{Direction, PathConfig};
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::lab::{Lab, LabConfig};
use crate::net::{CLIENT, SERVICES};
use crate::origin::{Bodies, ECHO_PORT, Headers, SINK_PORT, SOURCE_PORT, Served};
use crate::relay::RelaySummary;

pub use floor::{Floor, Over};
pub use flow::{Flow, flood, receive, transmit};
pub use probe::{Probes, RoundTrips};

/// A calibration job.
#[derive(Debug, Clone, Deserialize)]
pub struct Calibration {
    /// The path.
    pub path: PathConfig,
    /// UDP probes for the round-trip time.
    #[serde(flatten)]
    pub probes: Probes,
    /// How long each direction's rate is measured, ms; 0 skips it.
    #[serde(default)]
    pub rate_ms: u64,
    /// How long packets of a probe's size are sent up at the link's rate, ms, to measure the relay's processor
    /// time.
    #[serde(default)]
    pub flood_ms: u64,
    /// Number of origins in the lab.
    #[serde(default = "one")]
    pub origins: usize,
    /// The lab's settings.
    #[serde(flatten)]
    pub lab: LabConfig,
}

fn one() -> usize {
    1
}

/// The result of a calibration.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Round-trip times of the probes.
    pub rtt_ms: RoundTrips,
    /// Goodput towards the client.
    pub down_mbps: Rate,
    /// Goodput towards the origins.
    pub up_mbps: Rate,
    /// The relay's summary.
    pub relay: RelaySummary,
    /// How long it took to build the lab.
    pub setup_ms: f64,
}

/// TCP goodput, Mbit/s.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Rate {
    /// The link's rate; the mean rate of a trace; `None` for an unlimited rate.
    pub asked: Option<f64>,
    /// Expected goodput: the rate less headers. `None` for a trace, whose rate depends on the time.
    pub expected: Option<f64>,
    /// Measured goodput; `None` if it was not measured.
    pub measured: Option<f64>,
}

/// Longest duration of one measurement, ms: an hour.
const LONGEST_MS: f64 = 3_600_000.0;
/// Share of TCP payload in packets of 1,500 bytes: IPv4, TCP and timestamps take 52.
const GOODPUT_SHARE: f64 = 1448.0 / 1500.0;

impl Calibration {
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        let calibration: Self =
            serde_json::from_str(text).map_err(|error| LabError::malformed("the calibration", error))?;
        calibration.probes.check()?;
        for (name, value, most) in [
            ("rate_ms", calibration.rate_ms as f64, LONGEST_MS),
            ("flood_ms", calibration.flood_ms as f64, LONGEST_MS),
            ("origins", calibration.origins as f64, MAX_HOSTS as f64),
        ] {
            LabError::check_range(name, value, 0.0, most)?;
        }
        Ok(calibration)
    }

    /// Builds a lab without a page and measures.
    ///
    /// # Errors
    /// [`LabError`] when the lab cannot be built or its services do not answer.
    pub fn run(&self, realtime: bool) -> Result<Measured, LabError> {
        let page = unloaded_page(self.origins);
        let pages = [Served {
            page: &page,
            bodies: &Bodies::new(),
            headers: &Headers::new(),
        }];
        let load = Load::new(self.path.clone(), Mode::Tcp, Cookies::Cold);
        let lab = Lab::build(&load, &self.lab, &pages, false, realtime)?;
        let failed = |error: io::Error| LabError::system("measuring the path", error);
        let rtt_ms = self.round_trips().map_err(failed)?;
        let down_mbps = self.rate(Direction::Down, SOURCE_PORT, receive).map_err(failed)?;
        let up_mbps = self.rate(Direction::Up, SINK_PORT, transmit).map_err(failed)?;
        if let (Some(bps), 1..) = (self.path.up_bps, self.flood_ms) {
            flood(bps, self.probes, Duration::from_millis(self.flood_ms)).map_err(failed)?;
        }
        let setup_ms = lab.setup.as_secs_f64() * 1e3;
        let relay = RelaySummary::new(&lab.finish()?, self.lab.late_bound_ms);
        Ok(Measured {
            rtt_ms,
            down_mbps,
            up_mbps,
            relay,
            setup_ms,
        })
    }

    fn round_trips(&self) -> io::Result<RoundTrips> {
        let bits = self.probes.packet_bytes() as f64 * 8.0;
        let rates = [self.path.down_bps, self.path.up_bps].into_iter().flatten();
        let serialisation_ms: Vec<f64> = rates.map(|rate| bits / rate as f64 * 1e3).collect();
        let expected = self.path.rtt_ms + serialisation_ms.iter().sum::<f64>();
        // Probes must not queue behind each other.
        let slowest = serialisation_ms.into_iter().fold(0.0, f64::max);
        let probes = Probes {
            probe_gap_ms: self.probes.probe_gap_ms.max(2.0 * slowest),
            ..self.probes
        };
        let measured = probes.send((CLIENT, 0), (SERVICES, ECHO_PORT), self.path.rtt_ms)?;
        Ok(RoundTrips { expected, ..measured })
    }

    fn rate(&self, direction: Direction, port: u16, flow: Flow) -> io::Result<Rate> {
        let mbps = |bps: u64| bps as f64 / 1e6;
        let asked = self.path.rate_bps(direction);
        let steady = asked.filter(|_| self.path.trace(direction).is_none());
        let mut rate = Rate {
            asked: asked.map(mbps),
            expected: steady.map(|bps| mbps(bps) * GOODPUT_SHARE),
            measured: None,
        };
        if self.rate_ms > 0 {
            let stream = TcpStream::connect((SERVICES, port))?;
            rate.measured = Some(flow(stream, Duration::from_millis(self.rate_ms))?);
        }
        Ok(rate)
    }
}

/// A page with `origins` origins, which a lab needs. No client loads it.
fn unloaded_page(origins: usize) -> Page {
    let document = |number| Resource {
        url: format!("http://calibration-{number}.invalid/"),
        method: "GET".to_owned(),
        kind: Kind::Document,
        mime: "text/html".to_owned(),
        status: 200,
        request_bytes: 100,
        header_bytes: 100,
        body_bytes: 100,
        server_ms: 0.0,
        cpu_ms: 0.0,
        blocks_load: true,
        initiator: None,
    };
    Page {
        format: FORMAT.to_owned(),
        name: "calibration".to_owned(),
        source: String::new(),
        resources: (0..origins).map(document).collect(),
        missing: Vec::new(),
        hosts: Vec::new(),
        link: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_measurement_can_have_are_refused_by_their_names() {
        for (name, value) in [
            ("probe_gap_ms", "-1"),
            ("probe_gap_ms", "1e300"),
            ("probe_bytes", "65508"),
            ("probes", "18446744073709551615"),
            ("rate_ms", "18446744073709551615"),
            ("flood_ms", "18446744073709551615"),
            ("origins", "10001"),
        ] {
            let job = format!(r#"{{"path": {{"rtt_ms": 20}}, "{name}": {value}}}"#);
            let error = Calibration::from_json(&job).expect_err(&job);
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.hint().starts_with("give "), "{}", error.hint());
        }
        for text in ["{\"probe_gap_ms\": -1}", "{\"probes\": 2000000}"] {
            assert!(Floor::from_json(text).is_err(), "{text}");
        }
        assert!(Floor::from_json("{}").is_ok());
    }
}
