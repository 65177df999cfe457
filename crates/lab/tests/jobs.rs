//! The program `firstflight-lab` from outside: one job in, one JSON document out, no process left.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_firstflight-lab");
const DEADLINE: Duration = Duration::from_secs(10);
const EXIT_REFUSED: i32 = 2;
const EXIT_ABANDONED: i32 = 3;

/// A page of one document on a path without limits.
fn job() -> Value {
    json!({
        "page": {"format": "firstflight-profile/1", "name": "one", "resources": [{
            "url": "http://one.test/", "kind": "document", "mime": "text/html",
            "request_bytes": 300, "header_bytes": 200, "body_bytes": 500
        }]},
        "path": {"rtt_ms": 2.0},
        "mode": "tfo",
        "cookies": "warm"
    })
}

/// Starts a lab and sends it `text`; its standard input stays open.
fn start(command: &str, text: &str) -> Child {
    let mut lab = Command::new(PROGRAM)
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A lab that refuses at once may have exited already.
    let _ = writeln!(lab.stdin.as_mut().unwrap(), "{text}");
    lab
}

/// The exit code and the answer of a lab for the job `text`.
fn ask(command: &str, text: &str) -> (Option<i32>, Value) {
    let mut lab = start(command, text);
    let stdin = lab.stdin.take();
    let output = lab.wait_with_output().unwrap();
    drop(stdin);
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {:?} {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code(), document)
}

/// Whether labs work here; in CI they must.
fn has_labs() -> bool {
    let possible = Command::new(PROGRAM)
        .arg("try-namespaces")
        .output()
        .unwrap()
        .status
        .success();
    assert!(
        possible || std::env::var_os("CI").is_none(),
        "no laboratory can be built here"
    );
    if !possible {
        eprintln!("skipped: no laboratory can be built here");
    }
    possible
}

fn wait(lab: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = lab.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < deadline, "the laboratory lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_load_answers_with_one_document_that_holds_its_proof() {
    if !has_labs() {
        return;
    }
    for (mode, accepted) in [("tfo", 1), ("tcp", 0)] {
        let mut job = job();
        job["mode"] = mode.into();
        let (code, answer) = ask("load", &job.to_string());
        assert_eq!((code, &answer["status"]), (Some(0), &json!("ok")), "{answer}");
        assert_eq!(answer["proof"]["ok"], true, "{answer}");
        assert_eq!(answer["tfo_accepted"], accepted, "{answer}");
    }
}

#[test]
fn sparse_probes_all_come_back_and_say_what_the_relay_did_to_be_in_time() {
    if !has_labs() {
        return;
    }
    let sparse = json!({"probes": 5, "probe_gap_ms": 1.0, "sparse": true});
    for over in ["veth", "tun"] {
        let mut job = sparse.clone();
        job["over"] = over.into();
        let (code, answer) = ask("floor", &job.to_string());
        assert_eq!(
            (code, &answer["received"]),
            (Some(0), &json!(5)),
            "{over}: {answer}"
        );
    }
    let mut job = sparse;
    job["path"] = json!({"rtt_ms": 20.0});
    for (timing, taken_out_ms, keeps) in [
        (json!({}), 0.0, false),
        (json!({"keep_awake": true, "take_out_ms": 0.5}), 0.5, true),
        (json!({"take_out_ms": 50.0}), 1.0, false),
        (json!({"take_out_ms": -50.0}), 0.0, false),
    ] {
        job["timing"] = timing;
        // On a busy machine it takes a while until the idle tasks that keep processors awake run for the first
        // time.
        let probes = if keeps { 50 } else { 5 };
        job["probes"] = probes.into();
        let (code, answer) = ask("calibrate", &job.to_string());
        let (rtt, relay) = (&answer["rtt_ms"], &answer["relay"]);
        assert_eq!((code, &rtt["received"]), (Some(0), &json!(probes)), "{answer}");
        assert_eq!(rtt["expected"], 20.0);
        assert_eq!(relay["taken_out_ms"], taken_out_ms);
        assert_eq!(relay["kept_awake"].as_u64().unwrap() > 0, keeps);
        // No probe is quicker than the remaining delay.
        assert!(rtt["min"].as_f64().unwrap() >= 20.0 - taken_out_ms, "{answer}");
    }
}

#[test]
fn an_impossible_job_is_refused_with_what_is_wrong_and_a_hint() {
    if !has_labs() {
        return;
    }
    let long_host = format!("http://{}.test/", "a".repeat(300));
    let cases = [
        ("/path/rtt_ms", json!(-1), "rtt_ms"),
        ("/path/rtt_ms", json!("fast"), "fast"),
        ("/path/loss", json!(-0.5), "loss"),
        ("/path/loss", json!(1), "loss"),
        ("/path/queue", json!({"packets": 0}), "queue"),
        ("/path/down_bps", json!(1), "down_bps"),
        ("/path/colour", json!("red"), "colour"),
        ("/mode", json!("quick"), "quick"),
        ("/cookies", json!("burnt"), "burnt"),
        ("/page/resources/0/url", json!(long_host), "host"),
        ("/page/resources", json!([]), "resources"),
        ("/page/format", json!("firstflight-profile/9"), "format"),
        ("/bodies", json!({"0": "/nowhere/body"}), "/nowhere/body"),
        ("/nonsense", json!(1), "nonsense"),
    ];
    for (place, value, says) in cases {
        let mut job = job();
        let (parent, key) = place.rsplit_once('/').unwrap();
        match job.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
            object => object[key] = value,
        }
        let (code, answer) = ask("load", &job.to_string());
        assert_eq!(code, Some(EXIT_REFUSED), "{place}: {answer}");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains(says),
            "{place}: {answer}"
        );
        assert!(
            !answer["error"]["hint"].as_str().unwrap().is_empty(),
            "{place}: {answer}"
        );
    }
}

#[test]
fn a_congestion_control_that_this_kernel_has_not_is_refused_by_name() {
    if !has_labs() {
        return;
    }
    let mut job = job();
    job["transport"] = json!({"congestion_control": "nonesuch"});
    let (code, answer) = ask("load", &job.to_string());
    assert_eq!(code, Some(EXIT_REFUSED));
    let error = &answer["error"];
    assert!(
        error["message"].as_str().unwrap().contains("nonesuch"),
        "{answer}"
    );
    assert!(error["hint"].as_str().unwrap().contains("modprobe"), "{answer}");
}

#[test]
fn what_is_no_job_is_refused() {
    if !has_labs() {
        return;
    }
    let whole = job().to_string();
    for text in ["", "{}", "[]", "null", "\u{0}", &whole[..whole.len() / 2]] {
        for command in ["load", "calibrate"] {
            let (code, answer) = ask(command, text);
            assert_eq!(code, Some(EXIT_REFUSED), "{command} {text:?}: {answer}");
            assert!(
                !answer["error"]["hint"].as_str().unwrap().is_empty(),
                "{command} {text:?}: {answer}"
            );
        }
    }
}

#[test]
fn a_command_nobody_knows_is_refused_without_a_laboratory() {
    let (code, answer) = ask("fly", "{}");
    assert_eq!(code, Some(EXIT_REFUSED));
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("fly"),
        "{answer}"
    );
}

#[test]
fn a_laboratory_whose_owner_goes_away_ends() {
    if !has_labs() {
        return;
    }
    let mut job = job();
    job["page"]["resources"][0]["server_ms"] = 60_000.into();
    let mut lab = start("load", &job.to_string());
    drop(lab.stdin.take());
    assert_eq!(wait(&mut lab).code(), Some(EXIT_ABANDONED));
}

#[test]
fn a_laboratory_whose_owner_goes_away_before_the_job_came_ends() {
    if !has_labs() {
        return;
    }
    let mut lab = start("load", "");
    drop(lab.stdin.take());
    assert!(!wait(&mut lab).success());
}
