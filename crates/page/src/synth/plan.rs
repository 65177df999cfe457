//! Decides which body refers to which resources.

use url::Url;

use super::choose::most;
use super::format::Format;
use super::refs::Ref;
use super::tree::Tree;
use super::{css, html, script};

/// Largest number of nested loads that a script may wait for. No recorded page has nearly as many; deeper pages are
/// cut.
const MAX_DEPTH: usize = 32;
/// The shortest request of a script, `fetch("x")`. Smaller bodies are not tried.
const MIN_BYTES: usize = 10;

/// Which body refers to which resources.
#[derive(Debug)]
pub(super) struct Plan {
    /// For each resource, the resources that its body requests.
    chosen: Vec<Vec<usize>>,
    /// For each resource, the resources that the file referring to it requests once it has loaded.
    carried: Vec<Vec<usize>>,
    lost: Vec<bool>,
}

impl Plan {
    /// The plan for resource `top` and everything that it leads to. From the document it covers the whole page.
    pub(super) fn of(tree: &Tree<'_>, top: usize) -> Self {
        let count = tree.page.resources.len();
        let mut plan = Self {
            chosen: vec![Vec::new(); count],
            carried: vec![Vec::new(); count],
            lost: vec![false; count],
        };
        // A resource comes after the one that discovers it, so backwards children are decided first.
        for index in tree.from(top).into_iter().rev() {
            plan.decide(tree, index);
        }
        plan
    }

    /// What the body of `index` requests.
    pub(super) fn refs<'a>(&self, tree: &Tree<'a>, index: usize) -> Vec<Ref<'a>> {
        self.make(tree, &self.chosen[index], base(tree, index).as_ref())
    }

    /// Whether no body requests `index`.
    pub(super) fn is_lost(&self, index: usize) -> bool {
        self.lost[index]
    }

    fn decide(&mut self, tree: &Tree<'_>, index: usize) {
        let children: Vec<usize> = tree.children(index).collect();
        let mut refs = self.make(tree, &children, base(tree, index).as_ref());
        refs.retain(|reference| {
            let hopeless = !reference.possible() || reference.depth() >= MAX_DEPTH;
            self.lost[reference.child] = hopeless;
            !hopeless
        });
        let wanted: Vec<usize> = refs.iter().map(|reference| reference.child).collect();
        let kept = fitting(tree, index, refs);
        self.chosen[index] = kept.iter().map(|reference| reference.child).collect();
        let mut left = wanted;
        left.retain(|child| self.chosen[index].binary_search(child).is_err());
        if let Some(target) = tree.redirect(index) {
            left.extend(&self.carried[target]);
        }
        if tree.document(index) == index {
            // No file is left to refer to it.
            for child in left {
                self.lost[child] = true;
            }
            self.cut(&kept);
        } else {
            self.carried[index] = left;
        }
    }

    /// Reduces the carried references to those that `kept` carries.
    fn cut(&mut self, kept: &[Ref<'_>]) {
        for reference in kept {
            let carried: Vec<usize> = reference.carried.iter().map(|carried| carried.child).collect();
            for child in std::mem::take(&mut self.carried[reference.child]) {
                self.lost[child] |= !carried.contains(&child);
            }
            self.carried[reference.child] = carried;
            self.cut(&reference.carried);
        }
    }

    fn make<'a>(&self, tree: &Tree<'a>, children: &[usize], base: Option<&Url>) -> Vec<Ref<'a>> {
        let reference = |&child: &usize| {
            let later = self.make(tree, &self.carried[child], script_base(tree, child).as_ref());
            Ref::new(tree, child, base, later)
        };
        children.iter().map(reference).collect()
    }
}

/// Those of `refs` that the body of `index` can request and has room for.
fn fitting<'a>(tree: &Tree<'a>, index: usize, mut refs: Vec<Ref<'a>>) -> Vec<Ref<'a>> {
    let resource = tree.resource(index);
    let size = resource.body_bytes as usize;
    let format = Format::of(resource);
    if format == Format::Css {
        refs.retain(|reference| css::can_name(tree, index, reference));
    }
    if refs.is_empty() || size < MIN_BYTES {
        return Vec::new();
    }
    match format {
        Format::Html { xml } if html::is_document(resource) => most(refs, false, |chosen| {
            html::length(tree, index, xml, chosen) <= size
        }),
        Format::Css if script::is_executed(resource.status) => most(refs, true, |chosen| {
            css::rules(tree, index, chosen, false).len() <= size
        }),
        Format::Script if script::is_executed(resource.status) => {
            most(refs, true, |chosen| script::least(chosen, false).len() <= size)
        }
        _ => Vec::new(),
    }
}

/// The base URL of references in the body of `index`.
fn base(tree: &Tree<'_>, index: usize) -> Option<Url> {
    match Format::of(tree.resource(index)) {
        Format::Css => Url::parse(&tree.resource(index).url).ok(),
        _ => script_base(tree, index),
    }
}

/// The base URL of references in a script: resource `index`, or one that waits for it.
fn script_base(tree: &Tree<'_>, index: usize) -> Option<Url> {
    Url::parse(&tree.resource(tree.document(index)).url).ok()
}
