//! One answer: status, header and body. The sizes are the recorded ones, or the header is the recorded header
//! itself.

use std::time::Duration;

use bytes::Bytes;
use firstflight_load::head;
use firstflight_page::Resource;
use hyper::StatusCode;
use hyper::header::{CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};

/// Names and values of header fields, as recorded.
pub type HeaderFields = Vec<(String, String)>;

/// The header field that pads a response's header to its recorded size.
pub(super) const PADDING: HeaderName = HeaderName::from_static(head::PADDING);
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// Would lead the client to servers outside the recording.
const ALT_SVC: HeaderName = HeaderName::from_static("alt-svc");

/// One recorded response.
#[derive(Debug)]
pub(super) struct Answer {
    /// Index of the resource in its page.
    pub(super) resource: usize,
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
    /// Whether it was recorded as chunked, without its length in the header.
    pub(super) chunked: bool,
    pub(super) wait: Duration,
}

impl Answer {
    /// An answer with the recorded header fields, except those of the connection and the framing (RFC 9110, section
    /// 7.6.1), which this server sets itself.
    pub(super) fn recorded(index: usize, resource: &Resource, fields: &HeaderFields, body: Bytes) -> Self {
        let field = |(name, value): &(String, String)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
        };
        let mut headers: Vec<_> = fields.iter().filter_map(field).collect();
        let chunked = headers
            .iter()
            .any(|(name, value)| name == TRANSFER_ENCODING && value.as_bytes().ends_with(b"chunked"));
        headers.retain(|(name, _)| !is_of_the_connection(name));
        Self {
            headers,
            chunked,
            ..Self::bare(index, resource, body)
        }
    }

    /// An answer with a synthesised header, as long as the recorded one (or as short as possible).
    pub(super) fn padded(
        index: usize,
        resource: &Resource,
        location: Option<&str>,
        body: Bytes,
        keep_alive: bool,
    ) -> Self {
        let mut answer = Self::bare(index, resource, body);
        let head = head::Response::new(resource, location, answer.body.len() as u64, keep_alive);
        let padding = (head.padding > 0).then(|| (head::PADDING, "p".repeat(head.padding)));
        for (name, value) in head.fields.into_iter().chain(padding) {
            let value = HeaderValue::from_str(&value).ok();
            let name = HeaderName::from_static(name);
            answer.headers.extend(value.map(|value| (name, value)));
        }
        answer
    }

    /// Whether both answers are interchangeable: status, type and length agree.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let mime = |answer: &Self| {
            let field = answer.headers.iter().find(|(name, _)| name == CONTENT_TYPE);
            field.map(|(_, value)| value.clone())
        };
        (self.status, self.body.len(), mime(self)) == (other.status, other.body.len(), mime(other))
    }

    fn bare(index: usize, resource: &Resource, body: Bytes) -> Self {
        Self {
            resource: index,
            status: StatusCode::from_u16(resource.status).unwrap_or(StatusCode::OK),
            headers: Vec::new(),
            body,
            chunked: false,
            wait: Duration::from_secs_f64(resource.server_ms / 1e3),
        }
    }
}

fn is_of_the_connection(name: &HeaderName) -> bool {
    let names = [
        CONNECTION,
        CONTENT_LENGTH,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        ALT_SVC,
    ];
    names.contains(name)
}
