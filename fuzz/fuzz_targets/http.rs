//! Responses, however they are cut; request targets; ranges. The modules are private to the laboratory.
#![no_main]

use firstflight_lab::LabError;
use libfuzzer_sys::fuzz_target;

#[expect(dead_code, reason = "files and streams of bodies")]
#[path = "../../crates/lab/src/origin/body.rs"]
mod body;
#[path = "../../crates/lab/src/client/chunked.rs"]
mod chunked;
#[expect(dead_code, reason = "requests are written, not read")]
#[path = "../../crates/lab/src/client/http.rs"]
mod http;
#[path = "../../crates/lab/src/origin/target.rs"]
mod target;
#[expect(dead_code, reason = "bodies that several streams share")]
#[path = "../../crates/lab/src/origin/turns.rs"]
mod turns;

use body::Part;
use http::Response;
use target::Target;

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, at], data)) = data.split_first_chunk() else {
        return;
    };
    check_response(data, usize::from(at).min(data.len()), flags & 1 == 1);
    if let Ok(text) = std::str::from_utf8(data) {
        check_targets(text);
        check_range(text, usize::from(at));
    }
});

/// What a response in one piece tells, two pieces tell.
fn check_response(data: &[u8], at: usize, head_only: bool) {
    let Ok(whole) = Response::default().take(data, head_only) else {
        return;
    };
    let mut response = Response::default();
    let first = response
        .take(&data[..at], head_only)
        .expect("its beginning is right, too");
    let second = response.take(&data[at..], head_only).expect("and its rest");
    assert_eq!(first.body + second.body, whole.body);
    assert_eq!(first.end.or(second.end), whole.end);
    assert_eq!(first.head.or(second.head), whole.head);
}

/// Likeness works both ways, and everything is like itself.
fn check_targets(text: &str) {
    let (one, two) = text.split_once(' ').unwrap_or((text, text));
    let (one, two) = (Target::of(one), Target::of(two));
    assert_eq!(one.likeness(&two), two.likeness(&one));
    assert!(one.likeness(&one).is_some());
}

/// A part of a body is in it, and is something.
fn check_range(text: &str, length: usize) {
    if let Part::Bytes(part) = Part::of(text, length) {
        assert!(
            part.start < part.end && part.end <= length,
            "{text:?} of {length}: {part:?}"
        );
    }
}
