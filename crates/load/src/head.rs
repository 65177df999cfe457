//! Synthesised heads of HTTP/1.1 messages (RFC 9112): as long as the recorded head, or as short as possible.
//!
//! The lab sends them; the simulator counts their bytes. The field [`PADDING`] brings a head to its recorded size.

use firstflight_page::{Kind, Resource};
use http::StatusCode;

use crate::priority::{self, Priority};

/// The header field that pads a head.
pub const PADDING: &str = "p";

/// The head of the request for `resource` at `authority`, with the empty line that ends it.
pub fn request(resource: &Resource, authority: &str) -> String {
    let mut text = bare_request(resource, authority);
    let padding = request_padding_of(resource, text.len());
    if padding > 0 {
        text.extend([PADDING, ": ", &"p".repeat(padding), "\r\n"]);
    }
    text + "\r\n"
}

/// Length of the padding of such a request, bytes. `priority`: the priority that the request states, if any.
pub fn request_padding(resource: &Resource, authority: &str, priority: Option<Priority>) -> usize {
    let said = priority.map_or(0, |priority| field(priority::FIELD, priority.field().len()));
    request_padding_of(resource, bare_request(resource, authority).len() + said)
}

/// A request without padding, and without the empty line that ends it.
fn bare_request(resource: &Resource, authority: &str) -> String {
    let (method, target) = (&resource.method, resource.target());
    let mut text = format!("{method} {target} HTTP/1.1\r\nhost: {authority}\r\n");
    if method != "GET" && method != "HEAD" {
        text += "content-length: 0\r\n";
    }
    text
}

fn request_padding_of(resource: &Resource, bare_bytes: usize) -> usize {
    let bytes = bare_bytes + "\r\n".len() + field(PADDING, 0);
    (resource.request_bytes as usize).saturating_sub(bytes)
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Its fields, without those of the connection, the framing and the padding.
    pub fields: Vec<(&'static str, String)>,
    /// Length of the padding, bytes.
    pub padding: usize,
    /// Size of the head in HTTP/1.1, bytes.
    pub bytes: u64,
}

impl Response {
    /// The head of the response for `resource`, whose body has `body_bytes`. `location`: where it redirects to;
    /// `keep_alive`: whether the connection stays open after it.
    #[must_use]
    pub fn new(resource: &Resource, location: Option<&str>, body_bytes: u64, keep_alive: bool) -> Self {
        // Browsers stop reading a font or XHR that another origin may not read. The recording does not say who may.
        let shared = matches!(resource.kind, Kind::Font | Kind::Xhr).then_some("*");
        let fields: Vec<_> = [
            ("content-type", Some(resource.mime.as_str())),
            ("location", location),
            ("access-control-allow-origin", shared),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.filter(|value| is_sent(value))?.to_owned())))
        .collect();
        let mut bytes = "HTTP/1.1 200 \r\n\r\n".len() + reason(resource.status).len();
        bytes += fields
            .iter()
            .map(|(name, value)| field(name, value.len()))
            .sum::<usize>();
        if has_length(resource.status) {
            bytes += field("content-length", body_bytes.to_string().len());
        }
        if !keep_alive {
            bytes += field("connection", "close".len());
        }
        let recorded = resource.header_bytes as usize;
        let padding = recorded.saturating_sub(bytes + field(PADDING, 0));
        Self {
            fields,
            padding,
            bytes: if padding > 0 { recorded } else { bytes } as u64,
        }
    }
}

/// Whether a request method is safe (RFC 9110, section 9.2.1). Of the safe methods only GET and HEAD are known
/// here.
pub fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

/// Whether a response to this resource's request has a body (RFC 9110, section 6.4.1).
pub fn has_body(resource: &Resource) -> bool {
    resource.method != "HEAD" && has_length(resource.status)
}

/// Whether a response of this status has `Content-Length` (RFC 9110, section 8.6).
pub fn has_length(status: u16) -> bool {
    status != 204 && status != 304
}

/// The reason phrase as hyper writes it.
fn reason(status: u16) -> &'static str {
    let status = StatusCode::from_u16(status).ok();
    status
        .and_then(|status| status.canonical_reason())
        .unwrap_or("<none>")
}

/// Size of a header field whose value has `value` bytes, bytes.
fn field(name: &str, value: usize) -> usize {
    name.len() + ": ".len() + value + "\r\n".len()
}

/// Whether a field with this value is sent: visible ASCII and blanks (RFC 9110, section 5.5).
fn is_sent(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(fields: &str) -> Resource {
        let text = format!(
            r#"{{"url": "http://a.test/x?y", "kind": "xhr", "mime": "text/plain", "body_bytes": 12, {fields}}}"#
        );
        serde_json::from_str(&text).expect("a resource")
    }

    #[test]
    fn a_request_is_as_long_as_recorded_or_as_short_as_it_can_be() {
        for (recorded, bytes) in [(0, 35), (40, 35), (41, 41), (500, 500)] {
            let resource = resource(&format!(r#""request_bytes": {recorded}, "header_bytes": 0"#));
            let text = request(&resource, "a.test");
            assert_eq!(text.len(), bytes, "{text}");
            assert!(text.starts_with("GET /x?y HTTP/1.1\r\nhost: a.test\r\n") && text.ends_with("\r\n\r\n"));
        }
    }

    #[test]
    fn a_response_has_the_fields_it_needs_and_the_length_it_had() {
        let short = Response::new(
            &resource(r#""request_bytes": 0, "header_bytes": 0"#),
            None,
            12,
            true,
        );
        let names: Vec<_> = short.fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["content-type", "access-control-allow-origin"]);
        assert_eq!(short.padding, 0);
        let text = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\naccess-control-allow-origin: *\r\n\
                    content-length: 12\r\n\r\n";
        assert_eq!(short.bytes, text.len() as u64);
        let long = Response::new(
            &resource(r#""request_bytes": 0, "header_bytes": 400"#),
            None,
            12,
            false,
        );
        assert_eq!(long.bytes, 400);
        assert_eq!(
            long.padding,
            400 - text.len() - "connection: close\r\np: \r\n".len()
        );
    }
}
