use firstflight_page::{FORMAT, Initiator, Kind, Resource, Via};

use super::*;

const HOST: &str = "http://a.test";

fn resource(url: &str, body_bytes: u64) -> Resource {
    Resource {
        url: format!("{HOST}{url}"),
        method: "GET".to_owned(),
        kind: Kind::Other,
        mime: "text/plain".to_owned(),
        status: 200,
        request_bytes: 100,
        header_bytes: 100,
        body_bytes,
        server_ms: 0.0,
        cpu_ms: 0.0,
        blocks_load: true,
        initiator: Some(Initiator {
            resource: 0,
            via: Via::Script,
            at_byte: 0,
            after: None,
            delay_ms: 0.0,
            inferred: false,
        }),
    }
}

/// Answers of a page with these targets; the lengths of the bodies identify them.
fn answers(recorded: &[(&str, u64)]) -> Answers {
    let mut resources: Vec<_> = recorded
        .iter()
        .map(|(url, bytes)| resource(url, *bytes))
        .collect();
    resources[0].initiator = None;
    let page = Page {
        format: FORMAT.to_owned(),
        name: "a".to_owned(),
        source: String::new(),
        resources,
        missing: Vec::new(),
        hosts: Vec::new(),
        link: None,
    };
    let served = Served {
        page: &page,
        bodies: &Bodies::new(),
        headers: &Headers::new(),
    };
    Answers::new(&[served], true).unwrap()
}

/// The length of the body that a request gets.
fn ask(answers: &Answers, method: &str, target: &str) -> Option<usize> {
    let origin = Origin {
        secure: false,
        host: "a.test".to_owned(),
        port: 80,
    };
    answers
        .find(&origin, method, target)
        .map(|answer| answer.body.len())
}

#[test]
fn duplicates_are_answered_in_recorded_order_and_the_last_is_repeated() {
    let answers = answers(&[("/", 1), ("/a", 2), ("/a", 3)]);
    let given: Vec<_> = (0..4).map(|_| ask(&answers, "GET", "/a")).collect();
    assert_eq!(given, [Some(2), Some(3), Some(3), Some(3)]);
}

#[test]
fn what_was_not_recorded_is_named_and_counted() {
    let answers = answers(&[("/", 1)]);
    assert_eq!(ask(&answers, "GET", "/no?x=1"), None);
    assert_eq!(ask(&answers, "POST", "/"), None);
    let matching = answers.matching();
    assert_eq!(matching.unmatched_requests, 2);
    assert_eq!(
        matching.unmatched,
        ["http://a.test/no?x=1", "POST http://a.test/"]
    );
    assert_eq!(matching.approximate_requests, 0);
}

#[test]
fn a_head_is_answered_by_the_get() {
    let answers = answers(&[("/", 1), ("/a", 2)]);
    assert_eq!(ask(&answers, "HEAD", "/a"), Some(2));
    assert_eq!(answers.matching(), Matching::default());
}

#[test]
fn an_exact_answer_goes_before_a_likely_one() {
    let answers = answers(&[("/", 1), ("/a?t=1353542341", 2), ("/a?t=1353542342", 3)]);
    assert_eq!(ask(&answers, "GET", "/a?t=1353542342"), Some(3));
    assert_eq!(answers.matching().approximate_requests, 0);
}

#[test]
fn the_one_with_the_most_equal_values_is_taken() {
    let answers = answers(&[
        ("/", 1),
        ("/a?u=11111111&t=1353542341", 2),
        ("/a?u=22222222&t=1353542342", 3),
    ]);
    assert_eq!(ask(&answers, "GET", "/a?u=22222222&t=1753542342"), Some(3));
    assert_eq!(answers.matching().approximate_requests, 1);
}

#[test]
fn of_several_equally_likely_ones_none_is_guessed_unless_they_are_alike() {
    let different = answers(&[("/", 1), ("/a?id=11111111", 2), ("/a?id=22222222", 3)]);
    assert_eq!(ask(&different, "GET", "/a?id=33333333"), None);
    let alike = answers(&[("/", 1), ("/a?id=11111111", 2), ("/a?id=22222222", 2)]);
    assert_eq!(ask(&alike, "GET", "/a?id=33333333"), Some(2));
}

#[test]
fn percent_encoding_is_no_difference() {
    let answers = answers(&[("/", 1), ("/a;b", 2)]);
    assert_eq!(ask(&answers, "GET", "/a%3Bb"), Some(2));
    assert_eq!(answers.matching(), Matching::default());
}

#[test]
fn names_of_failures_are_bounded() {
    let answers = answers(&[("/", 1)]);
    for number in 0..MAX_NAMED + 5 {
        ask(&answers, "GET", &format!("/{number}"));
    }
    let matching = answers.matching();
    assert_eq!(
        (matching.unmatched_requests, matching.unmatched.len()),
        (MAX_NAMED + 5, MAX_NAMED)
    );
}
