//! Makes the response to a request.

use firstflight_load::head::has_length;
use hyper::header::{
    ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, CONNECTION, CONTENT_RANGE,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, RANGE,
};
use hyper::{Method, Response, StatusCode};

use super::answer::{Answer, PADDING};
use super::body::{Outgoing, Part};

/// The recorded response to a request with these fields, or a part of it if `Range` asks for one.
pub(super) fn recorded(answer: &Answer, fields: &HeaderMap) -> Response<Outgoing> {
    let mut response = Response::new(Outgoing::whole(answer.body.clone()));
    *response.status_mut() = answer.status;
    for (name, value) in &answer.headers {
        response.headers_mut().append(name, value.clone());
    }
    if !has_length(answer.status.as_u16()) {
        *response.body_mut() = Outgoing::whole(bytes::Bytes::new());
        return response;
    }
    let range = fields.get(RANGE).filter(|_| answer.status == StatusCode::OK);
    match range
        .and_then(|value| value.to_str().ok())
        .map(|text| Part::of(text, answer.body.len()))
    {
        None | Some(Part::Whole) if answer.chunked => {
            *response.body_mut() = Outgoing::chunked(answer.body.clone());
        }
        None | Some(Part::Whole) => {}
        Some(Part::Bytes(part)) => {
            let (first, last, length) = (part.start, part.end - 1, answer.body.len());
            cut(
                &mut response,
                StatusCode::PARTIAL_CONTENT,
                &format!("bytes {first}-{last}/{length}"),
            );
            *response.body_mut() = Outgoing::whole(answer.body.slice(part));
        }
        Some(Part::Beyond) => {
            cut(
                &mut response,
                StatusCode::RANGE_NOT_SATISFIABLE,
                &format!("bytes */{}", answer.body.len()),
            );
            *response.body_mut() = Outgoing::whole(bytes::Bytes::new());
        }
    }
    response
}

fn cut(response: &mut Response<Outgoing>, status: StatusCode, range: &str) {
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    fields.extend(HeaderValue::from_str(range).map(|value| (CONTENT_RANGE, value)));
}

/// Adds `Connection: keep-alive` for a client that asks for it, as Apache and nginx do: wget2 needs it. The padding
/// shrinks by as much, so that the header keeps its recorded size.
pub(super) fn keep_alive(response: &mut Response<Outgoing>, asked: &HeaderMap) {
    let word = HeaderValue::from_static("keep-alive");
    let asks = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(word.as_bytes());
    if !asked.get(CONNECTION).is_some_and(asks) {
        return;
    }
    let fields = response.headers_mut();
    let bytes = CONNECTION.as_str().len() + ": ".len() + word.len() + "\r\n".len();
    let padding = fields
        .get(PADDING)
        .and_then(|padding| padding.as_bytes().get(bytes..));
    if let Some(Ok(shorter)) = padding.map(HeaderValue::from_bytes) {
        fields.insert(PADDING, shorter);
    }
    fields.insert(CONNECTION, word);
}

/// The response to a request that was not recorded.
pub(super) fn not_found() -> Response<Outgoing> {
    let mut response = Response::new(Outgoing::whole(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// The response 425: the client must repeat the request after the handshake (RFC 8470, section 5.2).
pub(super) fn too_early() -> Response<Outgoing> {
    let mut response = Response::new(Outgoing::whole(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::TOO_EARLY;
    response
}

/// The response to a visit: no body, not to be cached.
pub(super) fn to_visit() -> Response<Outgoing> {
    let mut response = Response::new(Outgoing::whole(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let fields = response.headers_mut();
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// Whether a request is a CORS preflight (Fetch standard, CORS-preflight request). Recordings seldom contain these.
pub(super) fn is_preflight(method: &Method, fields: &HeaderMap) -> bool {
    *method == Method::OPTIONS && fields.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Allows what a preflight asks for. The header of the actual response says whether the page may read it.
pub(super) fn allowed(asked: &HeaderMap) -> Response<Outgoing> {
    let mut response = Response::new(Outgoing::whole(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let echoes: [(HeaderName, HeaderName); 3] = [
        (ORIGIN, ACCESS_CONTROL_ALLOW_ORIGIN),
        (ACCESS_CONTROL_REQUEST_METHOD, ACCESS_CONTROL_ALLOW_METHODS),
        (ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_ALLOW_HEADERS),
    ];
    for (from, to) in echoes {
        let value = asked.get(from).cloned();
        response.headers_mut().extend(value.map(|value| (to, value)));
    }
    let credentials = HeaderName::from_static("access-control-allow-credentials");
    response
        .headers_mut()
        .insert(credentials, HeaderValue::from_static("true"));
    response
}
