//! Synthesised bodies have their recorded size, whatever the page.

use firstflight_page::{Page, synth};

fn page(resources: &serde_json::Value) -> Page {
    let page = serde_json::json!({"format": "firstflight-profile/1", "name": "made", "resources": resources});
    Page::from_json(&page.to_string()).expect("a valid page")
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
        ("other", ""),
    ];
    for (kind, mime) in types {
        for body_bytes in (0..600).chain([65_535, 65_700, 200_000]) {
            let page = page(&serde_json::json!([{
                "url": "http://example.org/", "kind": kind, "mime": mime, "cpu_ms": 1.5,
                "request_bytes": 1, "header_bytes": 1, "body_bytes": body_bytes,
            }]));
            assert_eq!(synth::body(&page, 0).len(), body_bytes, "{kind} {mime}");
        }
    }
}
