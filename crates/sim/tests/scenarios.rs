//! The scenarios of `tests/parity/scenarios.json` on the virtual clock.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use firstflight_page::Page;
use firstflight_sim::{Job, SimPage, trace};
use serde_json::{Value, json};

fn table() -> Value {
    serde_json::from_str(include_str!("../../../tests/parity/scenarios.json")).unwrap()
}

/// `base` with the keys of `over` on top.
fn overlaid(base: &Value, over: &Value) -> Value {
    let mut merged = base.clone();
    for (key, value) in over.as_object().into_iter().flatten() {
        merged[key] = value.clone();
    }
    merged
}

fn page(document: &Value) -> SimPage {
    let fixed = json!({"url": "http://a.test/", "kind": "document", "mime": "text/html"});
    let page = json!({
        "format": "firstflight-profile/1",
        "name": "scenario",
        "resources": [overlaid(&fixed, document)],
    });
    SimPage::new(&Page::from_json(&page.to_string()).unwrap())
}

fn job(table: &Value, scenario: &Value) -> Job {
    let job = json!({
        "path": overlaid(&table["path"], &scenario["path"]),
        "mode": scenario["mode"],
        "cookies": scenario["cookies"].as_str().unwrap_or("warm"),
        "keep_alive": scenario["keep_alive"].as_bool().unwrap_or(true),
        "lose": if scenario["lose"].is_null() { json!([]) } else { scenario["lose"].clone() },
    });
    Job::from_json(&job.to_string()).unwrap()
}

#[test]
fn every_scenario_ends_as_the_table_says() {
    let table = table();
    let mut failures = Vec::new();
    for scenario in table["scenarios"].as_array().unwrap() {
        let page = page(&overlaid(&table["document"], &scenario["document"]));
        let (record, lines) = trace(&page, &job(&table, scenario)).unwrap();
        let record = serde_json::to_value(&record).unwrap();
        let mut problems = Vec::new();
        let plt = record["plt_ms"].as_f64().unwrap_or(f64::NAN);
        let bounds = [0, 1].map(|at| scenario["plt_ms"][at].as_f64().unwrap());
        if !(bounds[0]..=bounds[1]).contains(&plt) {
            problems.push(format!("PLT {plt} ms is not within {bounds:?}"));
        }
        for (key, expected) in scenario["connection"].as_object().unwrap() {
            let found = &record["connections"][0][key];
            if found != expected {
                problems.push(format!("{key} is {found}, not {expected}"));
            }
        }
        let least = scenario["retransmits_at_least"].as_u64().unwrap_or(0);
        if record["retransmits"].as_u64().unwrap() < least {
            problems.push("nothing was sent in vain".to_owned());
        }
        if !problems.is_empty() {
            failures.push(format!(
                "{}: {}\n{}",
                scenario["name"],
                problems.join("; "),
                lines.join("\n")
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
