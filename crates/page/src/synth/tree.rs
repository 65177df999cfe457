//! Who discovers whom, seen from the discovering side.

use crate::{Initiator, Page, Resource, Via};

use super::format::Format;

/// The page with, for each resource, its children and the document it belongs to.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub(super) page: &'a Page,
    children: Vec<Vec<usize>>,
    documents: Vec<usize>,
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
            let own = index == 0 || matches!(Format::of(resource), Format::Html { .. });
            documents.push(if own { index } else { documents[parent] });
            if index != 0 {
                children[parent].push(index);
            }
        }
        Self {
            page,
            children,
            documents,
        }
    }

    /// The document in which resource `index` is used; a document is its own.
    pub(super) fn document(&self, index: usize) -> usize {
        self.documents[index]
    }

    /// Whether `index` discovers others.
    pub(super) fn leads_on(&self, index: usize) -> bool {
        !self.children[index].is_empty()
    }

    /// The resources that the body of `index` has to refer to, in order of discovery. A redirect is not among
    /// them: the response's header names its target.
    pub(super) fn children(
        &self,
        index: usize,
    ) -> impl Iterator<Item = (usize, &'a Resource, &'a Initiator)> {
        self.children[index].iter().filter_map(|&child| {
            let resource = &self.page.resources[child];
            let initiator = resource.initiator.as_ref()?;
            (initiator.via != Via::Redirect).then_some((child, resource, initiator))
        })
    }
}
