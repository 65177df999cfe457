//! `firstflight-lab`: one job on standard input, one JSON document on standard output.

use std::process::ExitCode;

use firstflight_lab::calibrate::{self, Calibration, Probes};
use firstflight_lab::job::Job;
use firstflight_lab::sandbox::{self, Side};
use firstflight_lab::{LabError, doctor, tether};
use serde::Serialize;

/// The job could not be done.
const EXIT_REFUSED: u8 = 2;

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let answer = match command.as_str() {
        "load" => in_lab(|realtime| answer(&Job::from_json(&tethered_job()?)?.run(realtime)?)),
        "calibrate" => in_lab(|realtime| answer(&Calibration::from_json(&tethered_job()?)?.run(realtime)?)),
        "floor" => in_lab(|_| answer(&calibrate::floor(tethered_probes()?)?)),
        "try-namespaces" => in_lab(|_| Ok(String::new())),
        "doctor" => {
            Ok(answer(&serde_json::json!({ "checks": doctor::examine() })).map(Some)).and_then(|text| text)
        }
        "--version" => Ok(Some(format!("firstflight-lab {}", env!("CARGO_PKG_VERSION")))),
        _ => Err(LabError::new(
            format!("'{command}' is not a job"),
            "use `firstflight run`; this program is its laboratory (load, calibrate, doctor)",
        )),
    };
    match answer {
        Ok(text) => {
            say(&text.unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            say(&serde_json::json!({ "error": error }).to_string());
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

/// Runs `job` inside a lab; outside, waits for it and leaves with its exit code.
fn in_lab(job: impl FnOnce(bool) -> Result<String, LabError>) -> Result<Option<String>, LabError> {
    match sandbox::enter()? {
        Side::Inside { realtime } => job(realtime).map(Some),
        Side::Outside(code) => std::process::exit(code),
    }
}

fn tethered_job() -> Result<String, LabError> {
    let text = tether::read_job()?;
    tether::die_with_stdin();
    Ok(text)
}

fn tethered_probes() -> Result<Probes, LabError> {
    serde_json::from_str(&tethered_job()?)
        .map_err(|error| LabError::new(format!("the probes: {error}"), "send one line of JSON"))
}

fn answer(document: &impl Serialize) -> Result<String, LabError> {
    serde_json::to_string(document).map_err(|error| {
        LabError::new(
            format!("writing the answer: {error}"),
            "please report this as a bug",
        )
    })
}

#[expect(clippy::print_stdout, reason = "standard output is this program's answer")]
fn say(text: &str) {
    println!("{text}");
}
