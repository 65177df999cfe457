//! A case is written as it is read, and the model is deterministic.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use firstflight_replay::{
    Case, Difference, Direction, Machine, Recorded, Trace, compare, draw, follow, run, shrink,
};
use firstflight_tcp::SendMemory;

const MACHINE: Machine = Machine {
    start: 37_529_593_158_914,
    jiffies: 4_294_892_272,
    memory: SendMemory {
        segment: 4_352,
        skb: 896,
    },
};

/// A case with the model's trace in place of a kernel's.
fn recorded(seed: u64) -> Case {
    let case = draw(seed);
    let trace = run(&case.flow, &case.script, MACHINE).unwrap();
    Case {
        recorded: Some(Recorded {
            kernel: "none".to_owned(),
            machine: MACHINE,
            trace,
        }),
        ..case
    }
}

fn trace(case: &Case) -> &Trace {
    &case.recorded.as_ref().unwrap().trace
}

#[test]
fn a_case_is_written_as_it_is_read() {
    for seed in 0..100 {
        let text = recorded(seed).to_string();
        assert_eq!(text.parse::<Case>().unwrap().to_string(), text, "seed {seed}");
    }
}

#[test]
fn a_line_that_is_no_part_of_a_case_is_named() {
    let head = "flow rtt=80ms\nexchange up=200 down=30000\n";
    for (line, what) in [
        ("lose sideways 3", "direction"),
        ("lose down", "missing"),
        ("lose down x", "no number"),
        ("delay up 2 10s", "ms"),
        ("close both", "closes"),
        ("end 3", "no trace"),
        ("forget down 3", "forget"),
        ("trace\n0.000 S 0+200 => lost", "direction"),
    ] {
        let error = format!("{head}{line}\n").parse::<Case>().unwrap_err().to_string();
        assert!(error.contains(what), "{line}: {error}");
    }
    assert!("close server".parse::<Case>().is_err());
}

#[test]
fn fed_with_its_own_arrivals_the_model_does_the_same_again() {
    for seed in 0..100 {
        let case = recorded(seed);
        let fed = follow(&case.flow, trace(&case), MACHINE);
        let divergence = compare(trace(&case), &fed, 0);
        assert_eq!(
            divergence,
            None,
            "seed {seed}: {}",
            divergence.as_ref().unwrap().show(trace(&case), &fed)
        );
    }
}

#[test]
fn a_packet_that_one_of_them_does_not_send_is_a_difference() {
    let case = recorded(3);
    let whole = trace(&case);
    let mut short = whole.clone();
    let last = short
        .sent
        .iter()
        .rposition(|sent| sent.direction == Direction::Down)
        .unwrap();
    short.sent.remove(last);
    assert_eq!(compare(whole, whole, 0), None);
    assert_eq!(compare(whole, &short, 0).unwrap().what, Difference::Missing);
    assert_eq!(compare(&short, whole, 0).unwrap().what, Difference::Extra);
    let late = short
        .sent
        .iter()
        .rposition(|sent| sent.direction == Direction::Up)
        .unwrap();
    let mut later = whole.clone();
    later.sent[late].at += 5_000_000;
    assert_eq!(
        compare(whole, &later, 4_000_000).unwrap().what,
        Difference::Time(5_000_000)
    );
    assert_eq!(compare(whole, &later, 5_000_000), None);
}

#[test]
fn a_case_is_shrunk_to_the_one_fate_that_matters() {
    let case = (0..1_000)
        .map(draw)
        .find(|case| case.script.faults.len() > 6 && case.script.faults.contains_key(&(false, 4)))
        .unwrap();
    let shortest = shrink(case, 1_000, |case| case.script.faults.contains_key(&(false, 4)));
    assert_eq!(shortest.script.faults.len(), 1);
    assert_eq!(shortest.flow.exchanges.len(), 1);
}
