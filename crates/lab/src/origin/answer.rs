//! What each origin answers: status, header and body of the recorded sizes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use firstflight_page::{Origin, Page, Resource, Via, synth};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};

use crate::LabError;

/// Files that hold the bodies of an archive's resources, by index.
pub type Bodies = HashMap<usize, PathBuf>;

/// A page to be served.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// The page.
    pub page: &'a Page,
    /// Files with its recorded bodies.
    pub bodies: &'a Bodies,
}

/// The header field that brings a response's header to its recorded size.
const PADDING: HeaderName = HeaderName::from_static("p");

/// All answers of all origins.
#[derive(Debug, Default)]
pub struct Answers {
    by_request: HashMap<Origin, HashMap<(String, String), Recorded>>,
    unmatched: AtomicUsize,
}

/// Answers to one method and target, in recorded order.
#[derive(Debug, Default)]
struct Recorded {
    answers: Vec<Answer>,
    given: AtomicUsize,
}

/// One recorded response.
#[derive(Debug)]
pub(super) struct Answer {
    /// Index of the resource in its page.
    pub(super) resource: usize,
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
    pub(super) wait: Duration,
}

impl Answers {
    /// Prepares every answer of `pages`; bodies come from files or are synthesised.
    ///
    /// # Errors
    /// [`LabError`] naming the file of a body that cannot be read.
    pub fn new(pages: &[Served<'_>], keep_alive: bool) -> Result<Self, LabError> {
        let mut answers = Self::default();
        for Served { page, bodies } in pages {
            answers.add(page, bodies, keep_alive)?;
        }
        Ok(answers)
    }

    fn add(&mut self, page: &Page, bodies: &Bodies, keep_alive: bool) -> Result<(), LabError> {
        for (index, resource) in page.resources.iter().enumerate() {
            let Some(origin) = resource.origin() else { continue };
            let body = match bodies.get(&index) {
                Some(file) => read_body(file)?,
                None => synth::body(page, index).into(),
            };
            let answer = Answer::new(index, resource, redirect_target(page, index), body, keep_alive);
            let request = (resource.method.clone(), resource.target());
            let of_origin = self.by_request.entry(origin).or_default();
            of_origin.entry(request).or_default().answers.push(answer);
        }
        Ok(())
    }

    /// Every origin that answers.
    pub(super) fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.by_request.keys()
    }

    /// The answer to a request; the last recorded one is repeated when a request comes more often.
    pub(super) fn find(&self, origin: &Origin, method: &str, target: &str) -> Option<&Answer> {
        let request = (method.to_owned(), target.to_owned());
        let Some(recorded) = self
            .by_request
            .get(origin)
            .and_then(|of_origin| of_origin.get(&request))
        else {
            self.unmatched.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let turn = recorded.given.fetch_add(1, Ordering::Relaxed);
        recorded.answers.get(turn.min(recorded.answers.len() - 1))
    }

    /// Requests that no recording answers.
    pub fn unmatched(&self) -> usize {
        self.unmatched.load(Ordering::Relaxed)
    }
}

impl Answer {
    fn new(index: usize, resource: &Resource, location: Option<&str>, body: Bytes, keep_alive: bool) -> Self {
        let status = StatusCode::from_u16(resource.status).unwrap_or(StatusCode::OK);
        let mut headers = Vec::new();
        let texts = [(CONTENT_TYPE, Some(resource.mime.as_str())), (LOCATION, location)];
        for (name, text) in texts {
            let value = text
                .filter(|text| !text.is_empty())
                .and_then(|text| HeaderValue::from_str(text).ok());
            headers.extend(value.map(|value| (name, value)));
        }
        let answer = Self {
            resource: index,
            status,
            headers,
            body,
            wait: Duration::from_secs_f64(resource.server_ms / 1e3),
        };
        answer.padded(resource.header_bytes as usize, keep_alive)
    }

    /// Fills the header up to `header_bytes` with one more field.
    fn padded(mut self, header_bytes: usize, keep_alive: bool) -> Self {
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
        self
    }
}

/// Whether a response of this status says how long it is (RFC 9110, section 8.6).
fn has_length(status: StatusCode) -> bool {
    status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED
}

fn redirect_target(page: &Page, index: usize) -> Option<&str> {
    let redirected = page.resources.iter().find(|resource| {
        let initiator = resource.initiator.as_ref();
        initiator.is_some_and(|initiator| initiator.resource == index && initiator.via == Via::Redirect)
    });
    redirected.map(|resource| resource.url.as_str())
}

fn read_body(file: &PathBuf) -> Result<Bytes, LabError> {
    std::fs::read(file).map(Bytes::from).map_err(|error| {
        LabError::new(
            format!("{}: {error}", file.display()),
            "the archive has changed since it was opened: start again",
        )
    })
}
