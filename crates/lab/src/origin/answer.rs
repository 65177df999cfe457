//! One answer: status, header and body of the recorded sizes, or with the recorded header itself.

use std::time::Duration;

use bytes::Bytes;
use firstflight_page::{Kind, Resource};
use hyper::StatusCode;
use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::header::{CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};

/// Names and values of header fields, as recorded.
pub type HeaderFields = Vec<(String, String)>;

/// The header field that brings a response's header to its recorded size.
pub(super) const PADDING: HeaderName = HeaderName::from_static("p");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// Leads to servers outside the recording.
const ALT_SVC: HeaderName = HeaderName::from_static("alt-svc");

/// One recorded response.
#[derive(Debug)]
pub(super) struct Answer {
    /// Index of the resource in its page.
    pub(super) resource: usize,
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
    /// Whether it was recorded as chunked: its length is not said beforehand.
    pub(super) chunked: bool,
    pub(super) wait: Duration,
}

impl Answer {
    /// An answer with the header fields that were recorded, but for those of the connection and the framing
    /// (RFC 9110, section 7.6.1): they are this server's to say.
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

    /// An answer whose header is made up, as long as it was recorded (or as short as it can be).
    pub(super) fn padded(
        index: usize,
        resource: &Resource,
        location: Option<&str>,
        body: Bytes,
        keep_alive: bool,
    ) -> Self {
        let mut answer = Self::bare(index, resource, body);
        // What another origin may not read browsers stop reading; the recording does not say who could.
        let shared = matches!(resource.kind, Kind::Font | Kind::Xhr).then_some("*");
        let texts = [
            (CONTENT_TYPE, Some(resource.mime.as_str())),
            (LOCATION, location),
            (ACCESS_CONTROL_ALLOW_ORIGIN, shared),
        ];
        for (name, text) in texts {
            let value = text
                .filter(|text| !text.is_empty())
                .and_then(|text| HeaderValue::from_str(text).ok());
            answer.headers.extend(value.map(|value| (name, value)));
        }
        answer.pad(resource.header_bytes as usize, keep_alive);
        answer
    }

    /// Whether it makes no difference which of the two is given: status, type and length agree.
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

    /// Fills the header up to `header_bytes` with one more field.
    fn pad(&mut self, header_bytes: usize, keep_alive: bool) {
        let field = |name: &str, value: usize| name.len() + ": ".len() + value + "\r\n".len();
        let reason = self.status.canonical_reason().unwrap_or("<none>");
        let mut bytes = "HTTP/1.1 200 \r\n\r\n".len() + reason.len();
        bytes += self
            .headers
            .iter()
            .map(|(name, value)| field(name.as_str(), value.len()))
            .sum::<usize>();
        if has_length(self.status) {
            bytes += field("content-length", self.body.len().to_string().len());
        }
        if !keep_alive {
            bytes += field("connection", "close".len());
        }
        let padding = header_bytes.saturating_sub(bytes + field(PADDING.as_str(), 0));
        if padding > 0 {
            let value = HeaderValue::from_bytes(&vec![b'p'; padding]);
            self.headers.extend(value.ok().map(|value| (PADDING, value)));
        }
    }
}

/// Whether a response of this status says how long it is (RFC 9110, section 8.6).
pub(super) fn has_length(status: StatusCode) -> bool {
    status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED
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
