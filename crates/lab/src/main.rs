//! `firstflight-lab`: reads one job on standard input, and writes one JSON document on standard output.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use firstflight_lab::jobs::calibrate::{Calibration, Floor};
use firstflight_lab::jobs::check::{self, CheckJob, RemoteJob, TryJob};
use firstflight_lab::jobs::exec::{ExecJob, Terminal};
use firstflight_lab::jobs::load::{Client, Job, Record};
use firstflight_lab::jobs::prove::{self, ProveJob, ProveRecord};
use firstflight_lab::jobs::replay::ReplayJob;
use firstflight_lab::jobs::stress::{StressJob, StressRecord};
use firstflight_lab::namespace::{self, Side};
use firstflight_lab::tether::{self, Tether};
use firstflight_lab::{LabError, doctor};
use serde::Serialize;

/// Exit code if the job could not be done.
const EXIT_REFUSED: u8 = 2;

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let answer = match command.as_str() {
        "load" => in_lab_for_clients(|realtime| answer(&load(realtime)?)),
        "try-browser-sandbox" => in_lab_for_clients(|_| {
            tethered_job()?;
            answer(&serde_json::json!({ "sandbox": namespace::try_browser_sandbox()? }))
        }),
        "exec" => return exec(),
        "calibrate" => in_lab(|realtime| answer(&Calibration::from_json(&tethered_job()?)?.run(realtime)?)),
        "check" => in_lab(|realtime| answer(&CheckJob::from_json(&tethered_job()?)?.run(realtime)?)),
        "check-rows" => answer(&serde_json::json!({ "rows": check::rows().collect::<Vec<_>>() })).map(Some),
        "try-server" => in_lab(|_| {
            TryJob::from_json(&tethered_job()?)?.run()?;
            Ok("{}".to_owned())
        }),
        "prove" => {
            let sockets = namespace::host_sockets();
            in_lab(|realtime| answer(&prove(realtime, sockets)?))
        }
        "prove-server" => in_lab(|realtime| {
            let job = tethered_job()?;
            // If /proc is masked, the watch cannot name programs.
            let _ = namespace::mount_proc();
            answer(&prove::ServerJob::from_json(&job)?.run(realtime)?)
        }),
        // Outside a lab on purpose: it connects to a server that the user names.
        "check-remote" => tethered_job()
            .and_then(|job| answer(&RemoteJob::from_json(&job)?.run()?))
            .map(Some),
        "try-remote" => tethered_job()
            .and_then(|job| answer(&RemoteJob::from_json(&job)?.try_server()?))
            .map(Some),
        "stress" => in_lab(|realtime| answer(&stress(realtime)?)),
        "replay" => in_lab(|realtime| ReplayJob::from_args(std::env::args().skip(2))?.run(realtime)),
        "floor" => in_lab(|_| answer(&Floor::from_json(&tethered_job()?)?.measure()?)),
        "try-namespaces" => in_lab(|_| Ok(String::new())),
        "try-clients" => in_lab_for_clients(|_| {
            namespace::mount_proc()?;
            Ok(String::new())
        }),
        "doctor" => {
            Ok(answer(&serde_json::json!({ "checks": doctor::examine() })).map(Some)).and_then(|text| text)
        }
        "--version" => Ok(Some(format!("firstflight-lab {}", env!("CARGO_PKG_VERSION")))),
        _ => Err(LabError::UnknownJob(command)),
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

/// Runs `job` inside a lab. The process outside waits for it, and exits with its code.
fn in_lab(job: impl FnOnce(bool) -> Result<String, LabError>) -> Result<Option<String>, LabError> {
    beyond(&namespace::enter(false)?, job)
}

/// As [`in_lab`], in a lab whose clients are not root.
fn in_lab_for_clients(
    job: impl FnOnce(bool) -> Result<String, LabError>,
) -> Result<Option<String>, LabError> {
    beyond(&namespace::enter(true)?, job)
}

fn beyond(
    side: &Side,
    job: impl FnOnce(bool) -> Result<String, LabError>,
) -> Result<Option<String>, LabError> {
    match *side {
        Side::Inside { realtime } => job(realtime).map(Some),
        Side::Outside(code) => std::process::exit(code),
    }
}

fn load(realtime: bool) -> Result<Record, LabError> {
    let job = Job::from_json(&tethered_job()?)?;
    let foreign = matches!(job.client, Client::Command(_));
    if foreign {
        namespace::mount_proc()?;
    }
    // Files for clients must not end up in the host's shared memory.
    if foreign || job.lab.ca_file.is_some() {
        namespace::mount_scratch()?;
    }
    job.run(realtime)
}

/// Runs a program on the caller's own streams and terminal. The first argument names the descriptor of the job, the
/// second that of the answer. Exits with the program's exit status.
fn exec() -> ExitCode {
    let descriptor = |at: usize| std::env::args().nth(at)?.parse().ok();
    let (Some(job), Some(answer)) = (descriptor(2), descriptor(3)) else {
        eprintln!("usage: firstflight-lab exec JOB-DESCRIPTOR ANSWER-DESCRIPTOR");
        return ExitCode::from(EXIT_REFUSED);
    };
    // Taken before any program is started, so that none inherits them.
    let (tether, answer) = match (Tether::take(job), tether::take(answer)) {
        (Ok(tether), Ok(answer)) => (tether, answer),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(EXIT_REFUSED);
        }
    };
    let terminal = Terminal::share();
    let sockets = namespace::host_sockets();
    let ran = match namespace::enter(false) {
        Ok(Side::Outside(code)) => {
            drop(terminal);
            return ExitCode::from(code as u8);
        }
        Ok(Side::Inside { realtime }) => {
            // The process outside gives the terminal back.
            std::mem::forget(terminal);
            // If /proc is masked, the program sees the host's processes, whose numbers are not valid for it.
            let _ = namespace::mount_proc();
            tether.read_job().and_then(|text| {
                namespace::mount_scratch()?;
                ExecJob::from_json(&text)?.run(realtime, sockets)
            })
        }
        Err(error) => Err(error),
    };
    let (text, code) = match &ran {
        Ok(record) => (serde_json::json!(record).to_string(), record.exit_code as u8),
        Err(error) => (serde_json::json!({ "error": error }).to_string(), EXIT_REFUSED),
    };
    // If it cannot be written, its reader finds nothing and reports that.
    let _ = File::from(answer).write_all(text.as_bytes());
    ExitCode::from(code)
}

fn prove(realtime: bool, sockets: Vec<PathBuf>) -> Result<ProveRecord, LabError> {
    let job = tethered_job()?;
    // If /proc is masked, the watch cannot name programs.
    let _ = namespace::mount_proc();
    namespace::mount_scratch()?;
    ProveJob::from_json(&job)?.run(realtime, sockets)
}

fn stress(realtime: bool) -> Result<StressRecord, LabError> {
    let job = StressJob::from_json(&tethered_job()?)?;
    // A program's files must not end up in the host's shared memory.
    namespace::mount_scratch()?;
    job.run(realtime)
}

fn tethered_job() -> Result<String, LabError> {
    Tether::take(0)?.read_job()
}

fn answer(document: &impl Serialize) -> Result<String, LabError> {
    serde_json::to_string(document).map_err(|error| LabError::bug(format!("writing the answer: {error}")))
}

#[expect(clippy::print_stdout, reason = "standard output is this program's answer")]
fn say(text: &str) {
    println!("{text}");
}
