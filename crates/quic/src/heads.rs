//! Synthesised header blocks of requests and responses, with as much padding as over HTTP/1.1.

use bytes::Bytes;
use firstflight_load::{Priority, head, priority};
use firstflight_page::Resource;

use crate::qpack;

/// The header block of the request for `resource` at `authority`, with its priority if it states one.
pub fn request_block(resource: &Resource, authority: &str, priority: Option<Priority>) -> Bytes {
    let target = resource.target();
    let padding = vec![b'p'; head::request_padding(resource, authority, priority)];
    let mut fields: Vec<(&[u8], &[u8])> = vec![
        (b":method", resource.method.as_bytes()),
        (b":scheme", b"https"),
        (b":authority", authority.as_bytes()),
        (b":path", target.as_bytes()),
    ];
    if let Some(priority) = priority {
        fields.push((priority::FIELD.as_bytes(), priority.field().as_bytes()));
    }
    if !padding.is_empty() {
        fields.push((head::PADDING.as_bytes(), &padding));
    }
    qpack::encode(fields)
}

/// The header block of a response with this status, these fields and a body of this size.
pub fn response_block<'a>(
    status: u16,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    body_bytes: u64,
) -> Bytes {
    let (status_text, length) = (status.to_string(), body_bytes.to_string());
    let mut all: Vec<(&[u8], &[u8])> = vec![(b":status", status_text.as_bytes())];
    for (name, value) in fields {
        all.push((name, value));
    }
    if head::has_length(status) {
        all.push((b"content-length", length.as_bytes()));
    }
    qpack::encode(all)
}
