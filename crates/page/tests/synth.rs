//! Synthesised bodies have their recorded size, and refer to the resources that they discover.

mod pages;

use firstflight_page::synth::{self, Bodies};
use firstflight_page::{Kind, Page, Via};
use proptest::prelude::*;
use serde_json::{Value, json};
use url::Url;

const ROOT: &str = "http://example.org/";

/// A resource of `body_bytes`; `more` has its other keys.
fn resource(url: &str, kind: &str, mime: &str, body_bytes: usize, more: &Value) -> Value {
    let mut made = json!({
        "url": url, "kind": kind, "mime": mime, "request_bytes": 400, "header_bytes": 200, "body_bytes": body_bytes,
    });
    let more = more.as_object().expect("an object").clone();
    made.as_object_mut().expect("an object").extend(more);
    made
}

fn page(resources: &[Value]) -> Page {
    let page = json!({"format": "firstflight-profile/1", "name": "made", "resources": resources});
    Page::from_json(&page.to_string()).expect("a valid page")
}

fn document(body_bytes: usize) -> Value {
    resource(ROOT, "document", "text/html", body_bytes, &json!({}))
}

fn by_parser(at_byte: usize) -> Value {
    json!({"initiator": {"resource": 0, "via": "parser", "at_byte": at_byte}})
}

fn by_script(index: usize) -> Value {
    json!({"initiator": {"resource": index, "via": "script"}})
}

fn text(page: &Page, index: usize) -> String {
    String::from_utf8(synth::body(page, index)).expect("text")
}

#[test]
fn a_body_has_its_recorded_size_whatever_its_type() {
    let types = [
        ("document", "text/html"),
        ("document", "application/xhtml+xml"),
        ("document", "text/plain"),
        ("style", "text/css"),
        ("script", "text/javascript"),
        ("image", "image/png"),
        ("image", "image/gif"),
        ("image", "image/jpeg"),
        ("image", "image/webp"),
        ("image", "image/svg+xml"),
        ("image", "image/x-icon"),
        ("image", "image/avif"),
        ("font", "font/woff2"),
        ("xhr", "application/json"),
        ("xhr", "text/xml"),
        ("xhr", "text/html"),
        ("other", ""),
    ];
    for (kind, mime) in types {
        for body_bytes in (0..600).chain([65_535, 65_700, 200_000]) {
            let page = page(&[resource(ROOT, kind, mime, body_bytes, &json!({"cpu_ms": 1.5}))]);
            assert_eq!(synth::body(&page, 0).len(), body_bytes, "{kind} {mime}");
        }
    }
}

#[test]
fn a_json_body_is_json() {
    for body_bytes in 1..50 {
        let page = page(&[resource(ROOT, "xhr", "application/json", body_bytes, &json!({}))]);
        assert!(
            serde_json::from_slice::<Value>(&synth::body(&page, 0)).is_ok(),
            "{body_bytes}"
        );
    }
}

#[test]
fn a_reference_ends_at_its_byte() {
    let page = page(&[
        document(20_000),
        resource(
            "http://example.org/a.css",
            "style",
            "text/css",
            100,
            &by_parser(1_200),
        ),
        resource(
            "http://cdn.test/b.js?x=1&y=2",
            "script",
            "text/javascript",
            100,
            &by_parser(9_000),
        ),
        resource(
            "http://example.org/c.png",
            "image",
            "image/png",
            100,
            &by_parser(20_000),
        ),
    ]);
    let body = text(&page, 0);
    assert!(body[..1_200].ends_with(r#"<link rel="stylesheet" href="a.css">"#));
    assert!(body[..9_000].ends_with(r#"<script src="//cdn.test/b.js?x=1&y=2"></script>"#));
    assert!(body.ends_with(r#"<img src="c.png">"#));
}

#[test]
fn references_that_crowd_at_one_byte_keep_their_order() {
    let image = |name: &str, at| {
        resource(
            &format!("{ROOT}{name}"),
            "image",
            "image/png",
            100,
            &by_parser(at),
        )
    };
    let page = page(&[
        document(400),
        image("a", 0),
        image("b", 0),
        image("c", 399),
        image("d", 400),
    ]);
    let body = text(&page, 0);
    let places: Vec<usize> = ["a", "b", "c", "d"]
        .iter()
        .filter_map(|name| body.find(&format!("<img src=\"{name}\">")))
        .collect();
    assert_eq!(places.len(), 4, "{body}");
    assert!(
        places.is_sorted() && places[1] < 100 && places[2] > 300,
        "{places:?}"
    );
}

#[test]
fn a_script_works_before_it_asks() {
    let more = json!({"cpu_ms": 12.5, "initiator": {"resource": 0, "via": "parser", "at_byte": 400}});
    let page = page(&[
        document(2_000),
        resource("http://cdn.test/a.js", "script", "text/javascript", 1_000, &more),
        resource(
            "http://example.org/b.png",
            "image",
            "image/png",
            100,
            &by_script(1),
        ),
    ]);
    let body = text(&page, 1);
    let work = body.find("12.5>performance.now()").expect("it works");
    // Relative to the document, not to the script.
    assert!(body[work..].contains(r#"new Image().src="b.png""#), "{body}");
}

#[test]
fn a_body_without_room_leaves_its_references_to_whoever_refers_to_it() {
    let page = page(&[
        document(2_000),
        resource(
            "http://example.org/a.js",
            "script",
            "text/javascript",
            20,
            &by_parser(900),
        ),
        resource(
            "http://example.org/b.png",
            "image",
            "image/png",
            100,
            &by_script(1),
        ),
        resource(
            "http://example.org/c.json",
            "xhr",
            "application/json",
            100,
            &by_script(1),
        ),
        resource(
            "http://example.org/d.png",
            "image",
            "image/png",
            100,
            &by_script(3),
        ),
    ]);
    let body = text(&page, 0);
    assert!(body[..900].contains(r#"<script src="a.js" onload='"#), "{body}");
    assert!(body.contains(r#"new Image().src="b.png""#), "{body}");
    assert!(
        body.contains(r#"fetch("c.json").then(r=>r.text()).finally(()=>{new Image().src="d.png";})"#),
        "{body}"
    );
    assert!((0..5).all(|index| synth::unplaced(&page, index).is_empty()));
}

#[test]
fn what_the_document_has_no_room_for_is_unplaced() {
    let long = format!("{ROOT}{}", "x".repeat(200));
    let page = page(&[
        document(60),
        resource(&long, "image", "image/png", 100, &by_parser(50)),
        resource(
            "http://example.org/a.js",
            "script",
            "text/javascript",
            0,
            &by_parser(60),
        ),
        resource(
            "http://example.org/b.png",
            "image",
            "image/png",
            100,
            &by_script(2),
        ),
    ]);
    assert_eq!(synth::unplaced(&page, 0), [1]);
    assert_eq!(synth::unplaced(&page, 2), [3]);
    assert_eq!(synth::body(&page, 0).len(), 60);
}

#[test]
fn a_document_without_room_for_all_keeps_what_comes_first() {
    let mut resources = vec![document(2_000)];
    resources.push(resource(
        "http://example.org/a.js",
        "script",
        "text/javascript",
        0,
        &by_parser(900),
    ));
    let image = |n: usize| {
        resource(
            &format!("{ROOT}{n}.png"),
            "image",
            "image/png",
            100,
            &by_script(1),
        )
    };
    resources.extend((0..100).map(image));
    let page = page(&resources);
    let body = text(&page, 0);
    assert!(body.contains(r#"<script src="a.js" onload="#), "{body}");
    let placed = (0..100)
        .filter(|n| body.contains(&format!("\"{n}.png\"")))
        .count();
    assert!(placed > 40, "{placed}");
    assert_eq!(synth::unplaced(&page, 1).len(), 100 - placed);
}

#[test]
fn a_request_that_no_page_can_make_is_unplaced() {
    let put = |url: &str| {
        let more = json!({"method": "PUT", "initiator": {"resource": 0, "via": "script"}});
        resource(url, "xhr", "", 0, &more)
    };
    let page = page(&[
        document(2_000),
        put("http://example.org/mine"),
        put("http://other.test/theirs"),
    ]);
    assert_eq!(synth::unplaced(&page, 0), [2]);
    assert!(text(&page, 0).contains(r#"fetch("mine",{method:"PUT"})"#));
}

#[test]
fn every_sheet_of_a_document_paints_in_a_place_of_its_own() {
    let sheet = |n: usize| {
        resource(
            &format!("{ROOT}{n}.css"),
            "style",
            "text/css",
            200,
            &by_parser(500),
        )
    };
    let image = |n: usize, sheet: usize| {
        let more = json!({"initiator": {"resource": sheet, "via": "style"}});
        resource(&format!("{ROOT}{n}.png"), "image", "image/png", 100, &more)
    };
    let mut resources = vec![document(9_000)];
    resources.extend((1..=20).map(sheet));
    resources.extend((1..=20).map(|n| image(n, n)));
    let page = page(&resources);
    let bodies: Vec<String> = (1..=20).map(|index| text(&page, index)).collect();
    let rule = |body: &String| body.find("url(").map(|end| body[..end].to_owned());
    let rules: std::collections::HashSet<String> = bodies.iter().filter_map(rule).collect();
    assert_eq!(rules.len(), 16);
    // The document requests what did not fit.
    assert!(text(&page, 0).contains("20.png"));
    assert!((0..=40).all(|index| synth::unplaced(&page, index).is_empty()));
}

#[test]
fn a_deep_chain_of_empty_scripts_does_not_exhaust_the_stack() {
    let empty = |n: usize| {
        resource(
            &format!("{ROOT}{n}.js"),
            "script",
            "text/javascript",
            0,
            &by_script(n),
        )
    };
    let mut resources = vec![document(100_000)];
    resources.extend((0..3_000).map(empty));
    let page = page(&resources);
    let bodies = Bodies::of(&page);
    assert!((0..=3_000).any(|index| !bodies.unplaced(index).is_empty()));
    assert_eq!(bodies.body(0).len(), 100_000);
}

/// What an HTML parser would request: the decoded `src` and `href` of every element.
fn asked_by_tags(html: &str, base: &Url) -> Vec<String> {
    let mut found = Vec::new();
    for tag in html.split('<').skip(1) {
        let Some(start) = [" src=\"", " href=\""]
            .iter()
            .find_map(|name| Some(tag.find(name)? + name.len()))
        else {
            continue;
        };
        let value = &tag[start..start + tag[start..].find('"').expect("the value ends")];
        let value = value
            .replace("&lt;", "<")
            .replace("&#39;", "'")
            .replace("&#34;", "\"")
            .replace("&amp;", "&");
        if !value.starts_with("data:") {
            found.push(base.join(&value).expect("resolves").to_string());
        }
    }
    found
}

proptest! {
    #[test]
    fn any_body_has_its_recorded_size(page in pages::any_page()) {
        let bodies = Bodies::of(&page);
        for (index, resource) in page.resources.iter().enumerate() {
            let body = bodies.body(index);
            prop_assert_eq!(body.len() as u64, resource.body_bytes);
            // All at once or one by one gives the same.
            prop_assert_eq!(&body, &synth::body(&page, index));
            prop_assert_eq!(bodies.unplaced(index), synth::unplaced(&page, index));
        }
    }

    #[test]
    fn any_url_survives_being_quoted(mut page in pages::any_page()) {
        page.resources[0].body_bytes = 100_000;
        page.resources[0].mime = "text/html".to_owned();
        page.resources[0].status = 200;
        for resource in &mut page.resources[1..] {
            resource.kind = Kind::Image;
            resource.method = "GET".to_owned();
            if let Some(initiator) = &mut resource.initiator {
                initiator.resource = 0;
                initiator.via = Via::Parser;
            }
        }
        let base = Url::parse(page.url()).expect("a URL");
        let mut asked = asked_by_tags(&text(&page, 0), &base);
        let urls = page.resources[1..].iter().map(|resource| Url::parse(&resource.url).expect("a URL").to_string());
        let mut expected: Vec<String> = urls.collect();
        asked.sort();
        expected.sort();
        prop_assert_eq!(asked, expected);
    }

    #[test]
    fn no_url_closes_the_script_or_style_it_stands_in(page in pages::any_page()) {
        for (index, resource) in page.resources.iter().enumerate() {
            if matches!(resource.kind, Kind::Document | Kind::Frame) {
                let body = String::from_utf8_lossy(&synth::body(&page, index)).into_owned();
                for element in ["script", "style", "iframe"] {
                    let open = body.matches(&format!("<{element}")).count();
                    prop_assert_eq!(body.matches(&format!("</{element}>")).count(), open, "{}", body);
                }
            }
        }
    }
}
