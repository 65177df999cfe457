//! Parser of HTTP/1.1 responses (RFC 9112).

use super::chunked::{ChunkError, Chunked};

/// Largest number of header fields of a response.
const MAX_FIELDS: usize = 256;

/// Why bytes are not a response, or the length of its body is unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("not an HTTP response: {0}")]
    NoResponse(#[from] httparse::Error),
    #[error("the response does not say how long it is")]
    UnknownLength,
    #[error("{0} bytes more than the response announced")]
    TooLong(u64),
    #[error(transparent)]
    Chunks(#[from] ChunkError),
}

/// The parser of one response.
#[derive(Debug, Default)]
pub(super) struct Response {
    head: Vec<u8>,
    body: Option<Body>,
    /// Size of the header, bytes.
    pub(super) header_bytes: u64,
    reusable: bool,
}

/// How the end of a body is found.
#[derive(Debug)]
enum Body {
    /// This many bytes are left.
    Left(u64),
    Chunked(Chunked),
}

impl Body {
    /// Parses the next bytes. Returns how many belong to the body, and whether it is complete.
    fn take(&mut self, bytes: &[u8]) -> Result<(u64, bool), HttpError> {
        match self {
            Self::Chunked(chunked) => Ok(chunked.take(bytes)?),
            Self::Left(left) => {
                let more = bytes.len() as u64;
                *left = left
                    .checked_sub(more)
                    .ok_or(HttpError::TooLong(more.saturating_sub(*left)))?;
                Ok((more, *left == 0))
            }
        }
    }
}

/// What some bytes of a response contained.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The status and `Location` of a header that is now complete.
    pub(super) head: Option<(u16, Option<String>)>,
    /// Number of body bytes.
    pub(super) body: u64,
    /// `Some` if the response is complete; whether the connection can carry another request.
    pub(super) end: Option<bool>,
}

impl Progress {
    /// Whether the bytes contained anything.
    pub(super) fn is_news(&self) -> bool {
        self.head.is_some() || self.body > 0 || self.end.is_some()
    }
}

impl Response {
    /// Takes the next `bytes` of the stream.
    ///
    /// # Errors
    /// [`HttpError`] when this is no HTTP/1.1 response of known length.
    pub(super) fn take(&mut self, bytes: &[u8], head_only: bool) -> Result<Progress, HttpError> {
        let mut progress = Progress::default();
        let mut rest = bytes;
        if self.body.is_none() {
            self.head.extend_from_slice(bytes);
            let Some((status, location)) = self.read_head(head_only)? else {
                return Ok(progress);
            };
            rest = &bytes[bytes.len() - (self.head.len() - self.header_bytes as usize)..];
            progress.head = Some((status, location));
        }
        let Some(body) = &mut self.body else {
            return Ok(progress);
        };
        let (bytes, done) = body.take(rest)?;
        progress.body = bytes;
        progress.end = done.then_some(self.reusable);
        Ok(progress)
    }

    fn read_head(&mut self, head_only: bool) -> Result<Option<(u16, Option<String>)>, HttpError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut parsed = httparse::Response::new(&mut fields);
        let status = match parsed.parse(&self.head) {
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(httparse::Status::Complete(bytes)) => {
                self.header_bytes = bytes as u64;
                parsed.code.unwrap_or_default()
            }
            Err(error) => return Err(error.into()),
        };
        let find = |name: &str| {
            let field = parsed
                .headers
                .iter()
                .find(|field| field.name.eq_ignore_ascii_case(name));
            field.and_then(|field| std::str::from_utf8(field.value).ok())
        };
        let empty = head_only || status == 204 || status == 304;
        let chunked = find("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let length = find("content-length").and_then(|text| text.parse().ok());
        self.body = Some(match length {
            _ if empty => Body::Left(0),
            _ if chunked => Body::Chunked(Chunked::default()),
            Some(length) => Body::Left(length),
            None => return Err(HttpError::UnknownLength),
        });
        self.reusable = !find("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        Ok(Some((status, find("location").map(ToOwned::to_owned))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_in_pieces_is_counted_once() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody";
        for cut in 0..whole.len() {
            let mut response = Response::default();
            let first = response.take(&whole[..cut], false).unwrap();
            let second = response.take(&whole[cut..], false).unwrap();
            assert_eq!(first.body + second.body, 4);
            assert_eq!((first.end, second.end), (None, Some(true)));
            assert_eq!(first.head.or(second.head), Some((200, None)));
        }
    }

    #[test]
    fn a_chunked_response_in_pieces_is_counted_once() {
        let whole = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
        for cut in 0..whole.len() {
            let mut response = Response::default();
            let first = response.take(&whole[..cut], false).unwrap();
            let second = response.take(&whole[cut..], false).unwrap();
            assert_eq!(first.body + second.body, 4);
            assert_eq!((first.end, second.end), (None, Some(true)));
        }
    }

    #[test]
    fn a_closing_server_and_a_redirect_are_seen() {
        let text = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let progress = Response::default().take(text, false).unwrap();
        assert_eq!(progress.head, Some((302, Some("/b".to_owned()))));
        assert_eq!(progress.end, Some(false));
    }

    #[test]
    fn noise_and_a_lying_length_are_errors() {
        assert!(Response::default().take(b"\x00\x01\x02\r\n\r\n", false).is_err());
        assert!(
            Response::default()
                .take(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab", false)
                .is_err()
        );
    }
}
