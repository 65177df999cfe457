//! References: the shortest way to name a child in a body.

use url::Url;

use crate::{Initiator, Kind, Resource};

use super::tree::Tree;

/// A child to refer to.
pub(super) struct Ref<'a> {
    pub(super) child: usize,
    pub(super) resource: &'a Resource,
    pub(super) initiator: &'a Initiator,
    /// The shortest reference that resolves to the child's URL. ASCII, not yet escaped.
    pub(super) url: String,
    /// Whether the child has the origin of the document that asks for it.
    pub(super) same_origin: bool,
    /// Whether the child discovers others.
    pub(super) leads_on: bool,
}

impl Ref<'_> {
    /// Whether only a script can make the request: an element always asks with GET.
    pub(super) fn needs_script(&self) -> bool {
        self.resource.method != "GET"
    }

    /// Whether the request can be made at all: a page may not use other methods across origins unasked, and
    /// never those that the Fetch standard forbids.
    pub(super) fn possible(&self) -> bool {
        match self.resource.method.as_str() {
            "GET" => true,
            "HEAD" | "POST" => matches!(self.resource.kind, Kind::Xhr | Kind::Other) || !self.leads_on,
            "CONNECT" | "TRACE" | "TRACK" => false,
            _ => self.same_origin,
        }
    }
}

/// The references that `index` has to make, resolved against the URL of resource `base`.
pub(super) fn of<'a>(tree: &Tree<'a>, index: usize, base: usize) -> Vec<Ref<'a>> {
    if tree.children(index).next().is_none() {
        return Vec::new();
    }
    let parse = |index: usize| Url::parse(&tree.page.resources[index].url).ok();
    let (base, document) = (parse(base), parse(tree.document(index)));
    let reference = |(child, resource, initiator): (usize, &'a Resource, &'a Initiator)| {
        let url = Url::parse(&resource.url).ok()?;
        Some(Ref {
            child,
            resource,
            initiator,
            url: base
                .as_ref()
                .map_or_else(|| url.to_string(), |base| shortest(base, &url)),
            same_origin: document
                .as_ref()
                .is_some_and(|document| document.origin() == url.origin()),
            leads_on: tree.leads_on(child),
        })
    };
    tree.children(index).filter_map(reference).collect()
}

/// The shortest reference that `base` resolves to `url`.
fn shortest(base: &Url, url: &Url) -> String {
    let absolute = url.as_str();
    let after_scheme = absolute.find("//").map(|at| absolute[at..].to_owned());
    let after_authority = Some(absolute[url[..url::Position::BeforePath].len()..].to_owned());
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
            let found = shortest(&base, &Url::parse(url).expect("a URL"));
            assert_eq!(base.join(&found).expect("resolves").as_str(), url);
            assert!(found.len() <= expected.len(), "{found} instead of {expected}");
        }
    }
}
