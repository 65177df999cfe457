//! Finds the recorded answer to a request. A request without one is a counted failure.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use firstflight_page::{Origin, Page, synth};
use serde::Serialize;

use super::answer::{Answer, HeaderFields};
use super::body;
use super::target::Target;
use crate::LabError;

/// Files that hold the bodies of an archive's resources, by index.
pub type Bodies = HashMap<usize, PathBuf>;
/// Recorded header fields of an archive's responses, by index of the resource.
pub type Headers = HashMap<usize, HeaderFields>;

/// Number of failed requests that are named; further ones are only counted.
const MAX_NAMED: usize = 1_000;

/// A page that the servers answer for.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// The page.
    pub page: &'a Page,
    /// Files with its recorded bodies.
    pub bodies: &'a Bodies,
    /// Its recorded header fields.
    pub headers: &'a Headers,
}

/// How many requests found a recorded response, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Matching {
    /// Requests without a recorded response.
    pub unmatched_requests: usize,
    /// Requests that differ from the recorded one only in values that change with every visit.
    pub approximate_requests: usize,
    /// The first thousand unmatched requests: URL, preceded by the method if it is not GET.
    pub unmatched: Vec<String>,
}

/// All answers of all origins.
#[derive(Debug, Default)]
pub struct Answers {
    by_origin: HashMap<Origin, Site>,
    matching: Mutex<Matching>,
}

/// The answers of one origin.
#[derive(Debug, Default)]
struct Site {
    /// Indices into `recorded`, by method and target.
    exact: HashMap<(String, String), usize>,
    recorded: Vec<Recorded>,
}

/// Answers to one method and target, in recorded order.
#[derive(Debug)]
struct Recorded {
    method: String,
    target: String,
    answers: Vec<Answer>,
    given: AtomicUsize,
}

impl Answers {
    /// Prepares every answer of `pages`. Bodies come from files, or are synthesised.
    ///
    /// # Errors
    /// [`LabError`] naming the file of a body that cannot be read.
    pub fn new(pages: &[Served<'_>], keep_alive: bool) -> Result<Self, LabError> {
        let mut answers = Self::default();
        for served in pages {
            answers.add(served, keep_alive)?;
        }
        Ok(answers)
    }

    fn add(&mut self, served: &Served<'_>, keep_alive: bool) -> Result<(), LabError> {
        let page = served.page;
        let synthesised = synth::Bodies::of(page);
        for (index, resource) in page.resources.iter().enumerate() {
            let Some(origin) = resource.origin() else { continue };
            let body = match served.bodies.get(&index) {
                Some(file) => body::open(file)?,
                None => synthesised.body(index).into(),
            };
            let answer = match served.headers.get(&index) {
                Some(fields) => Answer::recorded(index, resource, fields, body),
                None => Answer::padded(index, resource, page.location(index), body, keep_alive),
            };
            let site = self.by_origin.entry(origin).or_default();
            site.add(resource.method.clone(), resource.target(), answer);
        }
        Ok(())
    }

    /// Whether it has answers of `origin`.
    pub(super) fn knows(&self, origin: &Origin) -> bool {
        self.by_origin.contains_key(origin)
    }

    /// Every origin that answers.
    pub(crate) fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.by_origin.keys()
    }

    /// The answer to a request. Counts the request if there is none.
    pub(super) fn find(&self, origin: &Origin, method: &str, target: &str) -> Option<&Answer> {
        let site = self.by_origin.get(origin);
        let mut matching = self.matching.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorded) = site.and_then(|site| site.exactly(method, target)) {
            return Some(recorded.next());
        }
        if let Some((recorded, same)) = site.and_then(|site| site.nearly(method, target)) {
            matching.approximate_requests += usize::from(!same);
            return Some(recorded.next());
        }
        matching.unmatched_requests += 1;
        if matching.unmatched.len() < MAX_NAMED {
            let method = if method == "GET" {
                String::new()
            } else {
                format!("{method} ")
            };
            matching.unmatched.push(format!("{method}{origin}{target}"));
        }
        None
    }

    /// Whether this server itself should answer a CORS preflight to `target`: the preflight was not recorded, but
    /// the request that it announces may have been.
    pub(super) fn leave_preflight(&self, origin: &Origin, target: &str) -> bool {
        let asked = Target::of(target);
        let about = |recorded: &Recorded| Target::of(&recorded.target).likeness(&asked).is_some();
        self.by_origin
            .get(origin)
            .is_some_and(|site| site.exactly("OPTIONS", target).is_none() && site.recorded.iter().any(about))
    }

    /// How many requests found a recorded response so far, and how.
    pub fn matching(&self) -> Matching {
        self.matching
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Site {
    fn add(&mut self, method: String, target: String, answer: Answer) {
        let next = self.recorded.len();
        let place = *self.exact.entry((method.clone(), target.clone())).or_insert(next);
        if place == next {
            self.recorded.push(Recorded {
                method,
                target,
                answers: Vec::new(),
                given: AtomicUsize::new(0),
            });
        }
        self.recorded[place].answers.push(answer);
    }

    /// The answers recorded for this method and target. A HEAD may use those of the GET.
    fn exactly(&self, method: &str, target: &str) -> Option<&Recorded> {
        let find = |method: &str| self.exact.get(&(method.to_owned(), target.to_owned()));
        let place = find(method).or_else(|| find(instead_of(method)?))?;
        Some(&self.recorded[*place])
    }

    /// The answers recorded for an equivalent target, or for one that differs only in values that change with every
    /// visit. Of several it takes the one with the most equal values. If several have as many, it takes the first,
    /// provided that all are interchangeable. The flag is `true` if the target is equivalent.
    fn nearly(&self, method: &str, target: &str) -> Option<(&Recorded, bool)> {
        let asked = Target::of(target);
        let likeness = |recorded: &Recorded| {
            let fits = recorded.method == method || Some(recorded.method.as_str()) == instead_of(method);
            let like = fits.then(|| Target::of(&recorded.target).likeness(&asked));
            like.flatten()
        };
        let candidates: Vec<_> = self
            .recorded
            .iter()
            .filter_map(|recorded| Some((likeness(recorded)?, recorded)))
            .collect();
        let most = candidates.iter().map(|(equal, _)| *equal).max()?;
        let mut best = candidates
            .iter()
            .filter(|(equal, _)| *equal == most)
            .map(|(_, recorded)| *recorded);
        let first = best.next()?;
        let same = Target::of(&first.target) == asked;
        best.all(|other| other.answers_alike(first))
            .then_some((first, same))
    }
}

impl Recorded {
    /// The next answer in recorded order. Further requests get the last one again.
    fn next(&self) -> &Answer {
        let turn = self.given.fetch_add(1, Ordering::Relaxed);
        &self.answers[turn.min(self.answers.len() - 1)]
    }

    fn answers_alike(&self, other: &Self) -> bool {
        let alike = |(one, two): (&Answer, &Answer)| one.is_like(two);
        self.answers.len() == other.answers.len() && self.answers.iter().zip(&other.answers).all(alike)
    }
}

/// The method whose recorded answer can be used instead, without its body (RFC 9110, section 9.3.2).
fn instead_of(method: &str) -> Option<&'static str> {
    (method == "HEAD").then_some("GET")
}

#[cfg(test)]
mod tests;
