//! The tree of resources by discovery.

use crate::{Page, Resource, Via};

use super::format::Format;

/// The page with, for each resource, its children and its document.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub(super) page: &'a Page,
    children: Vec<Vec<usize>>,
    documents: Vec<usize>,
    /// For each resource, how many of its document's style sheets with images come before it.
    painters_before: Vec<usize>,
}

impl<'a> Tree<'a> {
    pub(super) fn of(page: &'a Page) -> Self {
        let mut children = vec![Vec::new(); page.resources.len()];
        let mut documents = Vec::with_capacity(page.resources.len());
        for (index, resource) in page.resources.iter().enumerate() {
            let parent = resource
                .initiator
                .as_ref()
                .map_or(0, |initiator| initiator.resource);
            let own = index == 0 || super::html::is_document(resource);
            documents.push(if own { index } else { documents[parent] });
            if index != 0 {
                children[parent].push(index);
            }
        }
        let mut tree = Self {
            page,
            children,
            documents,
            painters_before: Vec::new(),
        };
        tree.painters_before = tree.count_painters();
        tree
    }

    pub(super) fn resource(&self, index: usize) -> &'a Resource {
        &self.page.resources[index]
    }

    /// The document that the browser shows, after the redirects of the first resource.
    pub(super) fn top(&self) -> usize {
        std::iter::successors(Some(0), |&at| self.redirect(at))
            .last()
            .unwrap_or(0)
    }

    /// Resource `top` and everything that it leads to, ascending.
    pub(super) fn from(&self, top: usize) -> Vec<usize> {
        let mut found = vec![top];
        let mut next = 0;
        while let Some(&index) = found.get(next) {
            found.extend(&self.children[index]);
            next += 1;
        }
        found.sort_unstable();
        found
    }

    /// The document that uses resource `index`; a document is its own.
    pub(super) fn document(&self, index: usize) -> usize {
        self.documents[index]
    }

    /// How resource `index` is discovered; for the document itself, by a parser.
    pub(super) fn via(&self, index: usize) -> Via {
        self.page.resources[index]
            .initiator
            .as_ref()
            .map_or(Via::Parser, |initiator| initiator.via)
    }

    /// The resources that `index` discovers, in order. A redirect's target is not among them: the header names it.
    pub(super) fn children(&self, index: usize) -> impl Iterator<Item = usize> {
        self.children[index]
            .iter()
            .copied()
            .filter(|&child| self.via(child) != Via::Redirect)
    }

    /// The target of resource `index`, if it redirects.
    pub(super) fn redirect(&self, index: usize) -> Option<usize> {
        self.children[index]
            .iter()
            .copied()
            .find(|&child| self.via(child) == Via::Redirect)
    }

    /// Whether `index` leads to any resource, except the target of a redirect that ends there.
    pub(super) fn leads_on(&self, index: usize) -> bool {
        let mut at = index;
        loop {
            if self.children(at).next().is_some() {
                return true;
            }
            let Some(target) = self.redirect(at) else {
                return false;
            };
            at = target;
        }
    }

    /// How many of its document's style sheets with images come before `index`.
    pub(super) fn painters_before(&self, index: usize) -> usize {
        self.painters_before[index]
    }

    fn count_painters(&self) -> Vec<usize> {
        let mut of_document = vec![0; self.page.resources.len()];
        let count = |index: usize| {
            let before = of_document[self.document(index)];
            of_document[self.document(index)] += usize::from(self.paints(index));
            before
        };
        (0..self.page.resources.len()).map(count).collect()
    }

    fn paints(&self, index: usize) -> bool {
        let sheet = Format::of(self.resource(index)) == Format::Css;
        self.children(index).any(|child| {
            (sheet || self.via(child) == Via::Style) && super::css::is_painted(self.resource(child).kind)
        })
    }
}
