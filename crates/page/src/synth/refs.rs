//! References: the shortest URL of a child in a body, and the way to request it.

use url::Url;

use crate::{Kind, Resource};

use super::format::Format;
use super::tree::Tree;

/// A resource to request.
#[derive(Debug, Clone)]
pub(super) struct Ref<'a> {
    pub(super) child: usize,
    pub(super) resource: &'a Resource,
    /// The shortest reference that resolves to the child's URL. ASCII, not yet escaped.
    pub(super) url: String,
    /// Whether the child has the origin of the document that requests it.
    pub(super) same_origin: bool,
    /// Whether the child discovers others.
    pub(super) leads_on: bool,
    /// What to request once the child has loaded, because its own body cannot.
    pub(super) carried: Vec<Ref<'a>>,
}

/// How to make a browser request a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Frame,
    Image,
    Script,
    Style,
    Font,
    /// A style sheet for printing: it blocks neither scripts nor rendering, but the load event waits for it.
    PrintStyle,
    /// Requested with the priority of the named kind; the load event does not wait.
    Preload(&'static str),
    /// Requested by a script, as data. The load event never waits.
    Fetch,
}

impl<'a> Ref<'a> {
    /// A reference to `child` in a body with the base URL `base`.
    pub(super) fn new(tree: &Tree<'a>, child: usize, base: Option<&Url>, carried: Vec<Self>) -> Self {
        let resource = tree.resource(child);
        let url = Url::parse(&resource.url).ok();
        let document = Url::parse(&tree.resource(tree.document(asker(tree, child))).url).ok();
        Self {
            child,
            resource,
            same_origin: url.as_ref().map(Url::origin) == document.as_ref().map(Url::origin),
            url: match (base, &url) {
                (Some(base), Some(url)) => shortest(base, url),
                _ => resource.url.clone(),
            },
            leads_on: tree.leads_on(child),
            carried,
        }
    }

    /// How a document or script requests it.
    pub(super) fn how(&self) -> How {
        let passing = !self.resource.blocks_load && !self.leads_on;
        match self.resource.kind {
            _ if self.needs_script() => How::Fetch,
            Kind::Document | Kind::Frame => How::Frame,
            Kind::Style if passing => How::Preload("style"),
            Kind::Style => How::Style,
            Kind::Script if passing => How::Preload("script"),
            Kind::Script => How::Script,
            Kind::Image if passing => How::Preload("image"),
            Kind::Image => How::Image,
            Kind::Font if passing => How::Preload("font"),
            Kind::Font => How::Font,
            Kind::Other if !passing => How::PrintStyle,
            Kind::Xhr | Kind::Other => How::Fetch,
        }
    }

    /// Whether only a script can make the request: an element always uses GET.
    pub(super) fn needs_script(&self) -> bool {
        self.resource.method != "GET"
    }

    /// Whether a page can make the request at all. The Fetch standard forbids some methods; across origins it must
    /// need no preflight.
    pub(super) fn possible(&self) -> bool {
        match self.resource.method.as_str() {
            "GET" | "HEAD" | "POST" => true,
            "CONNECT" | "TRACE" | "TRACK" => false,
            _ => self.same_origin,
        }
    }

    /// Whether the request must use CORS. Browsers cut other responses of these types short if they come from
    /// another origin (opaque response blocking), so that a part of their bytes would not cross the path.
    pub(super) fn needs_cors(&self) -> bool {
        let guarded = matches!(
            Format::of(self.resource),
            Format::Json | Format::Xml | Format::Fragment
        );
        guarded && !self.same_origin && matches!(self.how(), How::Fetch | How::PrintStyle)
    }

    /// Whether it is a style sheet that requests something itself once the browser applies it.
    pub(super) fn is_applied(&self) -> bool {
        self.leads_on && self.how() == How::Style && Format::of(self.resource) == Format::Css
    }

    /// Number of nested loads to wait for until everything is requested.
    pub(super) fn depth(&self) -> usize {
        self.carried
            .iter()
            .map(|carried| carried.depth() + 1)
            .max()
            .unwrap_or(0)
    }
}

/// The resource that requests `child`.
fn asker(tree: &Tree<'_>, child: usize) -> usize {
    tree.resource(child)
        .initiator
        .as_ref()
        .map_or(0, |initiator| initiator.resource)
}

/// The shortest reference that `base` resolves to `url`.
fn shortest(base: &Url, url: &Url) -> String {
    let absolute = url.as_str();
    let after_scheme = absolute.find("//").map(|at| absolute[at..].to_owned());
    let after_authority = Some(url[url::Position::BeforePath..].to_owned());
    let candidates = [
        base.make_relative(url),
        after_authority,
        after_scheme,
        Some(absolute.to_owned()),
    ];
    let resolves = |text: &String| !text.is_empty() && base.join(text).is_ok_and(|joined| joined == *url);
    let found = candidates
        .into_iter()
        .flatten()
        .filter(resolves)
        .min_by_key(String::len);
    found.unwrap_or_else(|| absolute.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_as_short_as_it_can_be() {
        let base = Url::parse("http://example.org/news/today.html?page=1").expect("a URL");
        for (url, expected) in [
            ("http://example.org/news/a.png", "a.png"),
            ("http://example.org/a.png", "/a.png"),
            ("http://example.org/news/today.html?page=2", "?page=2"),
            ("http://other.org/a.png", "//other.org/a.png"),
            ("https://example.org/news/a.png", "https://example.org/news/a.png"),
            ("http://example.org/news/a:b", "/news/a:b"),
        ] {
            assert_eq!(shortest(&base, &Url::parse(url).expect("a URL")), expected);
        }
    }
}
