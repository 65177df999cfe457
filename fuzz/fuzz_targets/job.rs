//! Jobs of the laboratory: refused in words, or packets cross their path.
#![no_main]

use firstflight_lab::LabError;
use firstflight_lab::jobs::calibrate::Calibration;
use firstflight_lab::jobs::exec::ExecJob;
use firstflight_lab::jobs::load::Job;
use firstflight_path::{Direction, Network, PathConfig};
use libfuzzer_sys::fuzz_target;

const HOUR: u64 = 3_600_000_000_000;

fuzz_target!(|text: &str| {
    for path in [
        read(Job::from_json(text)).map(|job| job.load.path),
        read(ExecJob::from_json(text)).map(|job| job.load.path),
        read(Calibration::from_json(text)).map(|job| job.path),
    ] {
        path.as_ref().map(cross);
    }
});

fn read<T>(job: Result<T, LabError>) -> Option<T> {
    job.inspect_err(|error| {
        assert!(
            !error.to_string().is_empty() && !error.hint().is_empty(),
            "{error}"
        )
    })
    .ok()
}

/// Packets come out in order of time, and none is made up.
fn cross(path: &PathConfig) {
    let mut network = match Network::new(path) {
        Ok(network) => network,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut sent = 0;
    for number in 0..8 {
        let direction = if number % 2 == 0 {
            Direction::Up
        } else {
            Direction::Down
        };
        network.send(number * 1_000, direction, (number % 3) as usize, 1_500, number);
        sent += u32::from(network.next_drop().is_none());
    }
    let (mut arrived, mut last) = (0, 0);
    while let Some((at, _, _)) = network.deliver(HOUR) {
        assert!(at >= last);
        (arrived, last) = (arrived + 1, at);
    }
    assert!(arrived <= sent);
}
