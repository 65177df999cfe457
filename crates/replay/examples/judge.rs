//! Compares the model with recorded cases, without a laboratory: `cargo run --example judge -- FILE...`
#![expect(clippy::print_stdout, reason = "what it is for")]

use std::error::Error;
use std::fs;

use firstflight_path::{Direction, Nanos};
use firstflight_replay::{Case, TOLERANCE, Trace, compare, follow, run};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut cases, mut when_fed, mut on_path, mut in_time) = (0, 0, 0, 0);
    for file in std::env::args().skip(1) {
        let case: Case = fs::read_to_string(&file)?.parse()?;
        let recorded = case.recorded.ok_or_else(|| format!("{file}: no trace"))?;
        let fed = follow(&case.flow, &recorded.trace, recorded.machine);
        let model = run(&case.flow, &case.script, recorded.machine)?;
        cases += 1;
        on_path += u32::from(compare(&recorded.trace, &model, 2 * TOLERANCE).is_none());
        let ends = [&recorded.trace, &model].map(last_byte);
        in_time += u32::from(ends[0].abs_diff(ends[1]) <= TOLERANCE);
        match compare(&recorded.trace, &fed, TOLERANCE) {
            Some(divergence) => println!("{file}: {}", divergence.show(&recorded.trace, &fed)),
            None => when_fed += 1,
        }
    }
    println!("{cases} cases, {when_fed} identical when fed, {on_path} on the path");
    println!("on the path, the last byte arrives within a tick in {in_time}");
    Ok(())
}

/// When the last new byte of data arrived.
fn last_byte(trace: &Trace) -> Nanos {
    let mut end = [0, 0];
    let mut arrivals: Vec<_> = trace
        .sent
        .iter()
        .flat_map(|sent| sent.arrived.iter().map(move |at| (*at, sent)))
        .collect();
    arrivals.sort_by_key(|(at, _)| *at);
    let mut last = 0;
    for (at, sent) in arrivals {
        let last_of = sent.packet.seq + u64::from(sent.packet.len);
        let reached = &mut end[usize::from(sent.direction == Direction::Down)];
        if sent.packet.len > 0 && last_of > *reached {
            (*reached, last) = (last_of, at);
        }
    }
    last
}
