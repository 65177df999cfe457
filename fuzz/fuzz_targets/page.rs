//! Profiles: what is read is the same after it was written, with and without TLS, and has bodies of its sizes.
#![no_main]

use firstflight_page::{Page, PageError, synth};
use libfuzzer_sys::fuzz_target;

/// Larger bodies are not made here, bytes.
const MOST_BODIES: u64 = 1 << 20;

fuzz_target!(|text: &str| {
    let Ok(page) = Page::from_json(text).inspect_err(check_refusal) else {
        return;
    };
    check_written(&page);
    check_bodies(&page);
    let mut clear = page.clone();
    clear.clear_scheme();
    check_written(&clear);
    let mut secure = page.clone();
    secure.secure_scheme();
    check_written(&secure);
});

fn check_refusal(error: &PageError) {
    assert!(!error.problem.is_empty() && !error.hint.is_empty(), "{error}");
}

fn check_written(page: &Page) {
    let again = Page::from_json(&page.to_json()).expect("what was written can be read");
    assert_eq!(&again, page);
}

fn check_bodies(page: &Page) {
    let total = page
        .resources
        .iter()
        .try_fold(0_u64, |sum, resource| sum.checked_add(resource.body_bytes));
    if total.is_none_or(|total| total > MOST_BODIES) {
        return;
    }
    let bodies = synth::Bodies::of(page);
    for (index, resource) in page.resources.iter().enumerate() {
        assert_eq!(bodies.body(index).len() as u64, resource.body_bytes);
        bodies.unplaced(index);
    }
}
