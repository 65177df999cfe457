//! Sizes of headers after HPACK compression (RFC 7541), as the lab's client and servers use it.
//!
//! The server's dynamic table is empty. In the client's only the authority is found again: padding is never
//! indexed, and paths seldom repeat.

use firstflight_load::{Priority, head, priority};
use firstflight_loader::TOO_EARLY;
use firstflight_page::Resource;

/// Code lengths of ASCII characters from the space on, bits (RFC 7541, appendix B).
const CODES: [u8; 95] = [
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
];
/// Approximate code length of any other byte, bits.
const RARE_CODE: u64 = 24;
const PADDING_CODE: u64 = 6;
/// Statuses in the static table (appendix A).
const KNOWN_STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
/// A field whose name is in the static table: entries below 15 take one byte, the others two.
const NEAR_NAME: u64 = 1;
const FAR_NAME: u64 = 2;

/// The entry `:scheme: https`, and an authority that is in the table.
const SCHEME: u64 = 1;
const AUTHORITY: u64 = 1;

/// Sizes of the header blocks of one exchange, bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    /// A request whose authority is in the table, without and with a priority.
    pub(crate) request: [u64; 2],
    /// What the first request of a connection adds.
    pub(crate) authority: u64,
    pub(crate) response: u64,
}

impl Blocks {
    /// Sizes for `resource`, whose response has this head over HTTP/1.1.
    pub(crate) fn new(resource: &Resource, response: &head::Response, authority: &str) -> Self {
        let target = resource.target();
        let path = match target.as_ref() {
            "/" | "/index.html" => 1,
            path => NEAR_NAME + text(path),
        };
        let method = match resource.method.as_str() {
            "GET" | "POST" => 1,
            method => NEAR_NAME + text(method),
        };
        Self {
            request: [None, Some(Priority::of(resource.kind))].map(|said| {
                let padding = padding(head::request_padding(resource, authority, said));
                method + SCHEME + path + AUTHORITY + said.map_or(0, says) + padding
            }),
            authority: text(authority),
            response: response_block(resource, response),
        }
    }
}

/// Size of the header block of a 425 response.
pub(super) fn too_early() -> u64 {
    NEAR_NAME + text(&TOO_EARLY.to_string()) + FAR_NAME + text("0")
}

fn response_block(resource: &Resource, head: &head::Response) -> u64 {
    let mut bytes = match resource.status {
        status if KNOWN_STATUSES.contains(&status) => 1,
        status => NEAR_NAME + text(&status.to_string()),
    };
    bytes += head
        .fields
        .iter()
        .map(|(_, value)| FAR_NAME + text(value))
        .sum::<u64>();
    if head::has_length(resource.status) {
        bytes += FAR_NAME + text(&resource.body_bytes.to_string());
    }
    bytes + padding(head.padding)
}

/// Size of the priority field, which never enters the client's table.
fn says(priority: Priority) -> u64 {
    1 + text(priority::FIELD) + text(priority.field())
}

/// Size of a field `p` of this many letters.
fn padding(letters: usize) -> u64 {
    if letters == 0 {
        0
    } else {
        1 + text("p") + string(letters as u64 * PADDING_CODE)
    }
}

fn text(value: &str) -> u64 {
    let code = |byte: u8| {
        let known = CODES.get(usize::from(byte.wrapping_sub(b' ')));
        known.map_or(RARE_CODE, |&bits| u64::from(bits))
    };
    string(value.bytes().map(code).sum())
}

/// Size of a string of this many bits, with its length (RFC 7541, sections 5.1 and 5.2).
fn string(bits: u64) -> u64 {
    let bytes = bits.div_ceil(8);
    let length = match bytes {
        0..127 => 1,
        127..255 => 2,
        _ => 3,
    };
    length + bytes
}
