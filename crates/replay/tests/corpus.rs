//! Compares the model with recorded kernels: every case of `corpus/`, with the kernel's arrivals.
//!
//! `corpus/known` lists the cases in which the model still differs, each with the cause. The list is strict: a case
//! that no longer diverges must be removed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use firstflight_replay::{Case, TOLERANCE, compare, follow};

#[test]
fn the_model_sends_what_the_kernel_sent() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let known = fs::read_to_string(folder.join("known")).unwrap();
    let mut known: BTreeMap<&str, &str> = known
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .collect();
    let mut wrong = Vec::new();
    let mut cases = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        cases += 1;
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let case: Case = fs::read_to_string(&file)
            .unwrap()
            .parse()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let recorded = case.recorded.unwrap_or_else(|| panic!("{name}: no trace"));
        let model = follow(&case.flow, &recorded.trace, recorded.machine);
        match (
            compare(&recorded.trace, &model, TOLERANCE),
            known.remove(name.as_str()),
        ) {
            (Some(divergence), None) => {
                wrong.push(format!("{name}: {}", divergence.show(&recorded.trace, &model)));
            }
            (None, Some(why)) => wrong.push(format!(
                "{name} no longer diverges: take it out of `known` ({why})"
            )),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    assert!(cases > 0, "no cases in {}", folder.display());
    assert!(
        known.is_empty(),
        "`known` names cases that do not exist: {known:?}"
    );
    assert!(
        wrong.is_empty(),
        "{} of {cases} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
