//! How long requests and responses are when HTTP/1.1 writes them: as recorded, or as short as they can be.
//!
//! The lab's client and servers pad with a header field `p` up to the recorded size; the simulator needs the
//! same sizes without the bytes.

use firstflight_page::{Kind, Origin, Page, Resource, Via};

/// A field without a value: name, `: `, line end.
const PADDING_FIELD: u64 = "p: \r\n".len() as u64;

/// Bytes of a request without padding.
fn bare_request(resource: &Resource, origin: &Origin) -> u64 {
    let authority = origin.authority();
    let mut bytes = resource.method.len() + resource.target().len() + "  HTTP/1.1\r\n".len();
    bytes += "host: \r\n".len() + authority.len() + "\r\n".len();
    if resource.method != "GET" && resource.method != "HEAD" {
        bytes += "content-length: 0\r\n".len();
    }
    bytes as u64
}

/// Bytes of the request of `resource` to `origin`.
pub(crate) fn request_bytes(resource: &Resource, origin: &Origin) -> u64 {
    padded(bare_request(resource, origin), resource.request_bytes)
}

/// How long the padding of a request is.
pub(crate) fn request_padding(resource: &Resource, origin: &Origin) -> u64 {
    padding(bare_request(resource, origin), resource.request_bytes)
}

/// Bytes of a made-up response header of resource `index`. `reason` is the status's reason phrase,
/// `keep_alive` whether the connection outlives the response.
pub(crate) fn header_bytes(page: &Page, index: usize, reason: &str, keep_alive: bool) -> u64 {
    let recorded = page.resources[index].header_bytes;
    padded(bare_header(page, index, reason, keep_alive), recorded)
}

/// How long the padding of such a header is.
pub(crate) fn header_padding(page: &Page, index: usize, reason: &str) -> u64 {
    padding(
        bare_header(page, index, reason, true),
        page.resources[index].header_bytes,
    )
}

fn bare_header(page: &Page, index: usize, reason: &str, keep_alive: bool) -> u64 {
    let resource = &page.resources[index];
    let field = |name: &str, value: usize| name.len() + ": ".len() + value + "\r\n".len();
    let mut bytes = "HTTP/1.1 200 \r\n\r\n".len() + reason.len();
    if !resource.mime.is_empty() {
        bytes += field("content-type", resource.mime.len());
    }
    if let Some(location) = redirect_target(page, index) {
        bytes += field("location", location.len());
    }
    if matches!(resource.kind, Kind::Font | Kind::Xhr) {
        bytes += field("access-control-allow-origin", 1);
    }
    if has_length(resource.status) {
        bytes += field("content-length", resource.body_bytes.to_string().len());
    }
    if !keep_alive {
        bytes += field("connection", "close".len());
    }
    bytes as u64
}

/// Whether a response has a body that is sent: one of this status (RFC 9110, section 6.4.1), to this method.
pub(crate) fn has_body(resource: &Resource) -> bool {
    resource.method != "HEAD" && has_length(resource.status)
}

/// Where resource `index` redirects to.
pub(crate) fn redirect_target(page: &Page, index: usize) -> Option<&str> {
    let redirected = page.resources.iter().find(|resource| {
        let initiator = resource.initiator.as_ref();
        initiator.is_some_and(|initiator| initiator.resource == index && initiator.via == Via::Redirect)
    });
    redirected.map(|resource| resource.url.as_str())
}

pub(crate) fn has_length(status: u16) -> bool {
    status != 204 && status != 304
}

fn padding(bytes: u64, recorded: u32) -> u64 {
    u64::from(recorded).saturating_sub(bytes + PADDING_FIELD)
}

fn padded(bytes: u64, recorded: u32) -> u64 {
    let recorded = u64::from(recorded);
    if recorded > bytes + PADDING_FIELD {
        recorded
    } else {
        bytes
    }
}
