//! Reading and writing profiles: round trips, and errors that name the wrong key.

mod pages;

use firstflight_page::{Page, PageError, json_schema};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A small page in which every key is used.
fn whole() -> Value {
    json!({
        "format": "firstflight-profile/1",
        "name": "small",
        "source": "made by hand",
        "resources": [
            {"url": "http://example.org/", "kind": "document", "mime": "text/html", "request_bytes": 400,
             "header_bytes": 300, "body_bytes": 5000, "server_ms": 12.5, "cpu_ms": 3.0},
            {"url": "https://cdn.example.net/a.js?v=1", "kind": "script", "mime": "text/javascript",
             "request_bytes": 350, "header_bytes": 250, "body_bytes": 900, "cpu_ms": 0.1,
             "initiator": {"resource": 0, "via": "parser", "at_byte": 400, "inferred": true}},
            {"url": "http://example.org/hit", "method": "POST", "kind": "xhr", "mime": "", "status": 302,
             "request_bytes": 500, "header_bytes": 200, "body_bytes": 0, "blocks_load": false,
             "initiator": {"resource": 1, "via": "script", "after": 0, "delay_ms": 20.0}},
            {"url": "http://example.org/hit2", "kind": "xhr", "mime": "", "status": 204,
             "request_bytes": 500, "header_bytes": 200, "body_bytes": 0, "blocks_load": false,
             "initiator": {"resource": 2, "via": "redirect"}},
        ],
        "hosts": [{"host": "example.org", "rtt_ms": 30.0, "lookup_ms": 12.0}, {"host": "cdn.example.net", "rtt_ms": 41.5}],
        "missing": [{"url": "http://example.org/gone.png", "reason": "in the HTML, not recorded"}],
    })
}

fn read(value: &Value) -> Result<Page, PageError> {
    Page::from_json(&value.to_string())
}

/// The page with `value` at `pointer`; without the key if `value` is `None`.
fn with(pointer: &str, value: Option<Value>) -> Value {
    let mut page = whole();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
    let parent = page
        .pointer_mut(parent)
        .expect("the parent exists")
        .as_object_mut()
        .expect("it is an object");
    match value {
        Some(value) => parent.insert(key.to_owned(), value),
        None => parent.remove(key),
    };
    page
}

#[test]
fn a_host_is_as_much_farther_as_its_handshake_took_longer() {
    let page = read(&whole()).expect("a valid page");
    let farther = ["example.org", "cdn.example.net", "unknown.test"].map(|host| page.farther_ms(host));
    assert_eq!(farther, [0.0, 11.5, 0.0]);
    assert_eq!(
        ["example.org", "cdn.example.net"].map(|host| page.lookup_ms(host)),
        [12.0, 0.0]
    );
}

#[test]
fn a_profile_comes_out_as_it_went_in() {
    let page = read(&whole()).expect("a valid page");
    assert_eq!(
        serde_json::from_str::<Value>(&page.to_json()).expect("JSON"),
        whole()
    );
    assert_eq!(Page::from_json(&page.to_json()).as_ref(), Ok(&page));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of everything that can be wrong")]
fn what_is_wrong_is_named_and_mended() {
    let cases = [
        (
            "/hosts/0/lookup_ms",
            Some(json!(-1)),
            "hosts[0].lookup_ms",
            "not a time",
        ),
        (
            "/resources/2/initiator/after",
            Some(json!(2)),
            "resources[2].initiator.after",
            "does not come before",
        ),
        ("/format", Some(json!("har")), "format", "not a format"),
        ("/format", None, ".", "missing field `format`"),
        ("/name", Some(json!("a/b")), "name", "not a page name"),
        ("/name", Some(json!("")), "name", "not a page name"),
        ("/name", Some(json!(".")), "name", "not a page name"),
        ("/name", Some(json!("..")), "name", "not a page name"),
        ("/colour", Some(json!(1)), "colour", "unknown field"),
        ("/resources", Some(json!([])), "resources", "1 to 20000"),
        (
            "/resources/0/url",
            Some(json!("a.html")),
            "resources[0].url",
            "relative URL",
        ),
        (
            "/resources/0/url",
            Some(json!("ftp://example.org/")),
            "resources[0].url",
            "not http or https",
        ),
        (
            "/resources/0/url",
            Some(json!("http://example.org/#top")),
            "resources[0].url",
            "fragment",
        ),
        (
            "/resources/0/url",
            Some(json!("http://me:pw@example.org/")),
            "resources[0].url",
            "password",
        ),
        (
            "/resources/0/url",
            Some(json!(format!("http://{}.org/", "a".repeat(64)))),
            "resources[0].url",
            "host name",
        ),
        (
            "/resources/0/url",
            Some(json!("http://example.org/\nurl = file:///etc/passwd")),
            "resources[0].url",
            "a blank or a control character",
        ),
        (
            "/resources/0/url",
            Some(json!("http://exam\tple.org/")),
            "resources[0].url",
            "a blank or a control character",
        ),
        (
            "/resources/0/url",
            Some(json!("http://example.org/a b")),
            "resources[0].url",
            "a blank or a control character",
        ),
        (
            "/resources/0/url",
            Some(json!("http://example.org/a\u{2028}b")),
            "resources[0].url",
            "a blank or a control character",
        ),
        (
            "/resources/0/url",
            Some(json!("http://*/")),
            "resources[0].url",
            "\"*\" is not a host name",
        ),
        (
            "/resources/0/url",
            Some(json!("http://a,b/")),
            "resources[0].url",
            "\"a,b\" is not a host name",
        ),
        (
            "/resources/0/url",
            Some(json!("http://a..b/")),
            "resources[0].url",
            "\"a..b\" is not a host name",
        ),
        (
            "/hosts/0/host",
            Some(json!("a.example\nb.example")),
            "hosts[0].host",
            "is not a host name",
        ),
        (
            "/resources/0/kind",
            Some(json!("applet")),
            "resources[0].kind",
            "unknown variant",
        ),
        ("/resources/0/kind", None, "resources[0]", "missing field `kind`"),
        (
            "/resources/0/mime",
            Some(json!("text/html\n")),
            "resources[0].mime",
            "MIME type",
        ),
        (
            "/resources/0/status",
            Some(json!(100)),
            "resources[0].status",
            "100",
        ),
        (
            "/resources/0/status",
            Some(json!(-1)),
            "resources[0].status",
            "-1",
        ),
        (
            "/resources/0/method",
            Some(json!("get")),
            "resources[0].method",
            "request method",
        ),
        (
            "/resources/0/body_bytes",
            Some(json!(1_u64 << 33)),
            "resources[0].body_bytes",
            "8589934592",
        ),
        (
            "/resources/0/body_bytes",
            Some(json!("many")),
            "resources[0].body_bytes",
            "invalid type",
        ),
        (
            "/resources/0/server_ms",
            Some(json!(-1.0)),
            "resources[0].server_ms",
            "not a time",
        ),
        (
            "/resources/0/cpu_ms",
            Some(json!(1e9)),
            "resources[0].cpu_ms",
            "not a time",
        ),
        (
            "/resources/0/initiator",
            Some(json!({"resource": 0, "via": "script"})),
            "resources[0].initiator",
            "none",
        ),
        (
            "/resources/1/initiator",
            None,
            "resources[1].initiator",
            "missing",
        ),
        (
            "/resources/1/initiator/resource",
            Some(json!(1)),
            "resources[1].initiator.resource",
            "before",
        ),
        (
            "/resources/1/initiator/at_byte",
            Some(json!(5001)),
            "resources[1].initiator.at_byte",
            "5000",
        ),
        (
            "/resources/2/initiator/at_byte",
            Some(json!(1)),
            "resources[2].initiator.at_byte",
            "only a parser",
        ),
        (
            "/resources/1/initiator/via",
            Some(json!("magic")),
            "resources[1].initiator.via",
            "unknown variant",
        ),
        (
            "/resources/2/initiator/delay_ms",
            Some(json!(-2)),
            "resources[2].initiator.delay_ms",
            "not a time",
        ),
        (
            "/resources/2/status",
            Some(json!(200)),
            "resources[3].initiator.via",
            "redirects nowhere",
        ),
    ];
    for (pointer, value, at, problem) in cases {
        let error = read(&with(pointer, value.clone())).expect_err(pointer);
        assert_eq!(error.at, at, "{pointer} = {value:?}: {error}");
        assert!(error.problem.contains(problem), "{pointer} = {value:?}: {error}");
        assert!(!error.hint.is_empty(), "{pointer}");
    }
}

#[test]
fn a_url_is_stored_as_browsers_request_it() {
    for (written, stored) in [
        ("HTTP://Example.org:80", "http://example.org/"),
        (
            "http://example.org/a/../b|c\"{d}",
            "http://example.org/b|c%22%7Bd%7D",
        ),
        (
            "http://b\u{fc}cher.example/\u{e4}?\u{e4}",
            "http://xn--bcher-kva.example/%C3%A4?%C3%A4",
        ),
        ("http://a_b.example./", "http://a_b.example./"),
        ("http://127.1:8080/", "http://127.0.0.1:8080/"),
        ("http://[::1]/%20", "http://[::1]/%20"),
    ] {
        let page = read(&with("/resources/0/url", Some(json!(written)))).unwrap();
        assert_eq!(page.url(), stored);
        assert_eq!(Page::from_json(&page.to_json()).as_ref(), Ok(&page));
    }
}

#[test]
fn a_profile_that_is_cut_short_is_refused_at_every_byte() {
    let text = read(&whole()).expect("a valid page").to_json();
    for end in 0..text.len() - 1 {
        let Some(start) = text.get(..end) else { continue };
        let error = Page::from_json(start).err();
        // Without its last newline the text is still complete.
        if start.trim_end() == text.trim_end() {
            assert_eq!(error, None);
            continue;
        }
        let error = error.expect("a part is not a page");
        assert!(error.problem.contains("ends too early"), "{end}: {error}");
        assert!(error.hint.contains("again"), "{end}: {}", error.hint);
    }
}

#[test]
fn what_follows_a_profile_is_refused() {
    let error = Page::from_json(&format!("{} {{}}", whole())).expect_err("two objects");
    assert!(error.hint.contains("remove"), "{}", error.hint);
}

#[test]
fn the_published_schema_is_the_one_of_the_code() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profile.schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(file, json_schema()).expect("docs can be written");
    }
    let published = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        published == json_schema(),
        "run UPDATE_SCHEMA=1 cargo test -p firstflight-page --test profile"
    );
}

#[test]
fn the_documented_example_is_a_page() {
    let docs = include_str!("../../../docs/profile.md");
    let example = docs
        .split("```")
        .nth(1)
        .and_then(|block| block.strip_prefix("json\n"))
        .expect("an example");
    let page = Page::from_json(example).expect("a valid page");
    assert_eq!(page.resources.len(), 3);
}

proptest! {
    #[test]
    fn any_page_comes_out_as_it_went_in(page in pages::any_page()) {
        prop_assert_eq!(Page::from_json(&page.to_json()), Ok(page));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".*") {
        _ = Page::from_json(&text);
    }

    #[test]
    fn no_damage_makes_the_reader_panic(
        page in pages::any_page(), at in any::<proptest::sample::Index>(), damage in prop::collection::vec(any::<u8>(), 1..4)
    ) {
        let mut text = page.to_json().into_bytes();
        let at = at.index(text.len());
        text.splice(at..(at + damage.len()).min(text.len()), damage);
        if let Err(error) = Page::from_json(&String::from_utf8_lossy(&text)) {
            prop_assert!(!error.at.is_empty() && !error.problem.is_empty() && !error.hint.is_empty());
        }
    }
}
