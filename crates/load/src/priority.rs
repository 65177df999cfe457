//! Priorities of requests (RFC 9218): what a browser states, and the order in which a server sends responses.
//!
//! Left out: `PRIORITY_UPDATE` frames, with which a browser changes a priority, and servers with priorities of
//! their own.

use firstflight_page::{Kind, Resource};
use serde::Deserialize;

/// The request header field with the priority.
pub const FIELD: &str = "priority";

/// Whether requests over HTTP/2 and HTTP/3 state a priority, and servers follow it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priorities {
    /// They state none, and servers send a part of each response in turn.
    #[default]
    None,
    /// They state it as in RFC 9218.
    Rfc9218,
}

impl Priorities {
    /// The priority that the request for `resource` states.
    #[must_use]
    pub fn of(self, resource: &Resource) -> Option<Priority> {
        (self == Self::Rfc9218).then(|| Priority::of(resource.kind))
    }
}

/// Urgency of a response, and whether the client can use a part of it. The smaller value goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority {
    urgency: u8,
    is_incremental: bool,
}

/// The priority of a request without the field (section 4).
impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: 3,
            is_incremental: false,
        }
    }
}

impl Priority {
    /// The priority of all responses if the client states none or the server ignores it: they take turns.
    pub const EQUAL: Self = Self {
        urgency: 3,
        is_incremental: true,
    };
    /// The lowest urgency (section 4.1).
    const LEAST: u8 = 7;

    /// The priority that Chromium states for a resource of this kind.
    ///
    /// After its `TypeToPriority` and `ShouldLoadIncremental`
    /// (`third_party/blink/renderer/platform/loader/fetch/resource_fetcher.cc`) and
    /// `ConvertRequestPriorityToQuicPriority` (`net/quic/quic_http_utils.cc`). Left out is what Chromium knows of
    /// single resources: images in view, scripts that do not block the parser, `fetchpriority`.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        let (urgency, is_incremental) = match kind {
            Kind::Document | Kind::Frame => (0, true),
            Kind::Style | Kind::Font => (0, false),
            Kind::Script => (1, false),
            Kind::Xhr => (1, true),
            Kind::Image | Kind::Other => (3, true),
        };
        Self {
            urgency,
            is_incremental,
        }
    }

    /// From 0, the most urgent, to 7.
    #[must_use]
    pub fn urgency(self) -> u8 {
        self.urgency
    }

    /// Whether the response shares the connection with others of the same urgency; otherwise they go one after
    /// another.
    #[must_use]
    pub fn is_incremental(self) -> bool {
        self.is_incremental
    }

    /// The value of the field, without parameters that have their default value.
    #[must_use]
    pub fn field(self) -> &'static str {
        const FIELDS: [[&str; 2]; 8] = [
            ["u=0", "u=0, i"],
            ["u=1", "u=1, i"],
            ["u=2", "u=2, i"],
            ["u=3", "i"],
            ["u=4", "u=4, i"],
            ["u=5", "u=5, i"],
            ["u=6", "u=6, i"],
            ["u=7", "u=7, i"],
        ];
        FIELDS[usize::from(self.urgency)][usize::from(self.is_incremental)]
    }

    /// Parses the value of the field, a dictionary (RFC 9651, section 3.2). Unknown members are ignored.
    #[must_use]
    pub fn parse(field: &str) -> Self {
        let mut priority = Self::default();
        for member in field.split(',') {
            let member = member.split(';').next().unwrap_or_default().trim();
            match member.split_once('=') {
                None if member == "i" => priority.is_incremental = true,
                Some(("i", "?1")) => priority.is_incremental = true,
                Some(("i", "?0")) => priority.is_incremental = false,
                Some(("u", value)) => {
                    let known = value.parse().ok().filter(|urgency| *urgency <= Self::LEAST);
                    priority.urgency = known.unwrap_or(priority.urgency);
                }
                _ => {}
            }
        }
        priority
    }
}

/// The index of the response to send next: the first among the most urgent. `None` if none waits.
///
/// After a part of a response was sent, the caller puts it back at its place, or at the end if it is incremental.
pub fn next<U: Ord>(line: impl IntoIterator<Item = U>) -> Option<usize> {
    let numbered = line.into_iter().enumerate();
    numbered
        .min_by(|(_, one), (_, other)| one.cmp(other))
        .map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(urgency: u8, is_incremental: bool) -> Priority {
        Priority {
            urgency,
            is_incremental,
        }
    }

    #[test]
    fn a_field_is_read_as_it_is_written() {
        for urgency in 0..=7 {
            for is_incremental in [false, true] {
                let priority = priority(urgency, is_incremental);
                assert_eq!(Priority::parse(priority.field()), priority);
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_passed_over() {
        for (field, expected) in [
            ("", Priority::default()),
            ("u=8, i", priority(3, true)),
            ("u=1;x=2,  i=?1", priority(1, true)),
            ("i, u=5, i=?0, a=b", priority(5, false)),
            ("u=, i=1, u=-1", Priority::default()),
        ] {
            assert_eq!(Priority::parse(field), expected, "{field:?}");
        }
    }

    #[test]
    fn the_most_urgent_goes_first_and_of_equals_the_one_in_front() {
        let (urgent, script, image) = (priority(0, false), priority(1, false), priority(3, true));
        assert_eq!(next([image, script, urgent, urgent]), Some(2));
        assert_eq!(next([image, script, script]), Some(1));
        assert_eq!(next([image, image]), Some(0));
        assert_eq!(next::<Priority>([]), None);
    }
}
