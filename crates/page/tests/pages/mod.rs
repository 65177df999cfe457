//! Generates valid pages for property tests.

use firstflight_page::{FORMAT, Initiator, Kind, Missing, Page, Resource, Via, canonical_url};
use proptest::prelude::*;

/// Characters with a meaning in HTML, CSS or JavaScript, and some without.
const HOSTILE: &str = "[a-z0-9/&='\"<>()\\\\;!{}`,#%?$@*+ üλ-]{0,24}";

/// Any page that passes `Page::validate`, with URLs that try to break out of the text that quotes them.
pub(crate) fn any_page() -> impl Strategy<Value = Page> {
    let missing = prop::collection::vec((url(), ".{0,20}"), 0..3);
    (
        1_usize..14,
        "[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,19}",
        ".{0,20}",
        missing,
    )
        .prop_flat_map(|(count, name, source, missing)| {
            let missing: Vec<Missing> = missing
                .into_iter()
                .map(|(url, reason)| Missing { url, reason })
                .collect();
            prop::collection::vec(resource(), count).prop_map(move |mut resources| {
                connect(&mut resources);
                let page = Page {
                    format: FORMAT.to_owned(),
                    name: name.clone(),
                    source: source.clone(),
                    resources,
                    missing: missing.clone(),
                    hosts: Vec::new(),
                    link: None,
                };
                page.validate().expect("the strategy makes valid pages");
                page
            })
        })
}

/// Makes the initiators valid; the generated values are only hints.
fn connect(resources: &mut [Resource]) {
    for index in 0..resources.len() {
        let (before, rest) = resources.split_at_mut(index);
        let resource = &mut rest[0];
        let Some(by) = resource.initiator.as_mut().filter(|_| index > 0) else {
            resource.initiator = None;
            resource.kind = Kind::Document;
            continue;
        };
        by.resource %= index;
        let parent = &before[by.resource];
        if by.via == Via::Redirect && !(300..=399).contains(&parent.status) {
            by.via = Via::Script;
        }
        by.at_byte = if by.via == Via::Parser {
            by.at_byte.min(parent.body_bytes)
        } else {
            0
        };
    }
}

fn url() -> impl Strategy<Value = String> {
    let host = prop_oneof!["[a-z]{1,8}\\.(test|example)", Just("www.example.test".to_owned())];
    let text = ("https?", host, HOSTILE, prop::option::of(HOSTILE));
    text.prop_map(|(scheme, host, path, query)| {
        let path = path.replace(['#', '?'], "");
        let query = query.map_or(String::new(), |query| format!("?{}", query.replace('#', "")));
        let text = format!("{scheme}://{host}/{path}{query}");
        canonical_url(&text, None).expect("the host is a name")
    })
}

fn resource() -> impl Strategy<Value = Resource> {
    let kind = prop::sample::select(vec![
        (Kind::Frame, "text/html"),
        (Kind::Frame, "application/xhtml+xml"),
        (Kind::Style, "text/css"),
        (Kind::Style, "text/css"),
        (Kind::Script, "text/javascript"),
        (Kind::Script, "text/javascript"),
        (Kind::Script, "text/html"),
        (Kind::Font, "font/woff2"),
        (Kind::Xhr, "application/json"),
        (Kind::Image, "image/png"),
        (Kind::Image, ""),
        (Kind::Other, "video/mp4"),
        (Kind::Other, "text/xml"),
    ]);
    let method = prop::sample::select(vec!["GET", "GET", "GET", "GET", "POST", "PUT", "TRACE"]);
    let status = prop::sample::select(vec![200, 200, 200, 200, 204, 302, 304, 404]);
    let bytes = prop_oneof![0_u64..300, 0_u64..5_000];
    let time = prop_oneof![Just(0.0), 0.0..600_000.0];
    let sizes = (any::<u16>(), any::<u16>(), bytes, time.clone(), time);
    (url(), kind, method, status, sizes, any::<bool>(), initiator()).prop_map(
        |(url, (kind, mime), method, status, sizes, blocks_load, initiator)| Resource {
            url,
            method: method.to_owned(),
            kind,
            mime: mime.to_owned(),
            status,
            request_bytes: sizes.0.into(),
            header_bytes: sizes.1.into(),
            body_bytes: sizes.2,
            server_ms: sizes.3,
            cpu_ms: sizes.4,
            blocks_load,
            initiator: Some(initiator),
        },
    )
}

fn initiator() -> impl Strategy<Value = Initiator> {
    let via = prop::sample::select(vec![Via::Parser, Via::Style, Via::Script, Via::Redirect]);
    let delay = prop_oneof![Just(0.0), 0.0..1_000.0];
    (0_usize..20, via, 0_u64..5_000, delay, any::<bool>()).prop_map(
        |(resource, via, at_byte, delay_ms, inferred)| Initiator {
            resource,
            via,
            at_byte,
            after: None,
            delay_ms,
            inferred,
        },
    )
}
