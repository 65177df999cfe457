//! Synthesises bodies for pages that have none.
//!
//! A synthesised body is as long as the recorded one and refers to the same resources. So an unmodified browser
//! discovers them as it did in the original: HTML at the recorded bytes, style sheets through `@import`, `url()`
//! and `@font-face`, scripts by inserting elements after the recorded processing time.
//!
//! Some bodies cannot hold their references (the body was compressed, it computed its URLs, it is an image or a
//! 304). The file that refers to such a body then makes these requests when the body has loaded: at the same
//! moment. [`Bodies::unplaced`] lists what the document itself cannot hold. `docs/profile.md` has the rules.
//!
//! Not modelled: content encodings (a body has its wire size and is not compressed), the layout of the original,
//! and what a browser does with the content of media.

mod choose;
mod css;
mod data;
mod escape;
mod format;
mod html;
mod image;
mod place;
mod plan;
mod refs;
mod script;
mod tree;

use crate::Page;
use format::Format;
use plan::Plan;
use tree::Tree;

/// The synthesised bodies of a page. Common decisions are made once.
#[derive(Debug)]
pub struct Bodies<'a> {
    tree: Tree<'a>,
    plan: Plan,
}

impl<'a> Bodies<'a> {
    /// Decides which body refers to what. `page` must have passed [`Page::validate`].
    pub fn of(page: &'a Page) -> Self {
        Self::from(page, 0)
    }

    /// The bodies of resource `top` and everything that it leads to.
    fn from(page: &'a Page, top: usize) -> Self {
        let tree = Tree::of(page);
        let plan = Plan::of(&tree, top);
        Self { tree, plan }
    }

    /// The body of resource `index`: exactly `body_bytes` long, and always the same.
    ///
    /// # Panics
    /// If the page has no such resource.
    pub fn body(&self, index: usize) -> Vec<u8> {
        let resource = &self.tree.page.resources[index];
        let size = resource.body_bytes as usize;
        let refs = self.plan.refs(&self.tree, index);
        match Format::of(resource) {
            Format::Html { xml } => html::body(&self.tree, index, xml, &refs),
            Format::Css => css::body(&self.tree, index, &refs),
            Format::Script => script::body(resource, &refs),
            Format::Fragment => html::filler(size).into_bytes(),
            Format::Image(format) => image::body(format, size),
            Format::Json => data::json(size),
            Format::Xml => data::xml(size),
            Format::Text => data::text(size),
            Format::Font(magic) => data::bytes(magic, size),
            Format::Bytes => data::bytes(&[], size),
        }
    }

    /// The resources (indices, ascending) that `index` discovers but that no body has room to refer to. A browser
    /// requests neither them nor what they lead to.
    ///
    /// # Panics
    /// If the page has no such resource.
    pub fn unplaced(&self, index: usize) -> Vec<usize> {
        self.tree
            .children(index)
            .filter(|&child| self.plan.is_lost(child))
            .collect()
    }
}

/// The synthesised body of resource `index`: exactly `body_bytes` long.
///
/// To make all bodies of a page, use [`Bodies`].
///
/// # Panics
/// If the page has no such resource.
///
/// ```
/// use firstflight_page::{Page, synth};
///
/// let page = Page::from_json(
///     r#"{"format": "firstflight-profile/1", "name": "small", "resources": [
///         {"url": "http://example.org/", "kind": "document", "mime": "text/html",
///          "request_bytes": 400, "header_bytes": 200, "body_bytes": 300},
///         {"url": "http://example.org/a.png", "kind": "image", "mime": "image/png",
///          "request_bytes": 400, "header_bytes": 200, "body_bytes": 90,
///          "initiator": {"resource": 0, "via": "parser", "at_byte": 200}}]}"#,
/// )?;
/// let body = String::from_utf8(synth::body(&page, 0)).expect("HTML is text");
/// assert_eq!(body.len(), 300);
/// assert!(body[..200].ends_with(r#"<img src="a.png">"#));
/// # Ok::<(), firstflight_page::PageError>(())
/// ```
pub fn body(page: &Page, index: usize) -> Vec<u8> {
    Bodies::from(page, index).body(index)
}

/// The resources that `index` discovers but that no body has room to refer to: see [`Bodies::unplaced`].
///
/// # Panics
/// If the page has no such resource.
pub fn unplaced(page: &Page, index: usize) -> Vec<usize> {
    Bodies::of(page).unplaced(index)
}
