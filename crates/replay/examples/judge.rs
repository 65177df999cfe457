//! Holds the model against recorded cases, without a laboratory: `cargo run --example judge -- FILE...`
#![expect(clippy::print_stdout, reason = "what it is for")]

use std::error::Error;
use std::fs;

use firstflight_replay::{Case, TOLERANCE, compare, follow, run};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut cases, mut when_fed, mut on_path) = (0, 0, 0);
    for file in std::env::args().skip(1) {
        let case: Case = fs::read_to_string(&file)?.parse()?;
        let recorded = case.recorded.ok_or_else(|| format!("{file}: no trace"))?;
        let fed = follow(&case.flow, &recorded.trace, recorded.machine);
        let model = run(&case.flow, &case.script, recorded.machine)?;
        cases += 1;
        on_path += u32::from(compare(&recorded.trace, &model, 2 * TOLERANCE).is_none());
        match compare(&recorded.trace, &fed, TOLERANCE) {
            Some(divergence) => println!("{file}: {}", divergence.show(&recorded.trace, &fed)),
            None => when_fed += 1,
        }
    }
    println!("{cases} cases, {when_fed} identical when fed, {on_path} on the path");
    Ok(())
}
