//! Bodies for pages that have none.
//!
//! A synthesised body is as long as the recorded one and refers to the same resources, so that an unmodified
//! browser discovers them as it did in the original: HTML at the recorded bytes, style sheets through
//! `@import`, `url()` and `@font-face`, scripts by inserting elements after the recorded processing time.
//!
//! What a body cannot express is said by [`Bodies::unplaced`]: a body that is too small for its references, or
//! whose type cannot refer to anything (an image, a JSON answer, a response that is not executed).
//!
//! Not modelled: content encodings (a body has its wire size and is not compressed), the layout of the
//! original, and what a browser does with the content of media.

mod css;
mod data;
mod escape;
mod fit;
mod format;
mod html;
mod image;
mod place;
mod refs;
mod script;
mod tree;

use crate::Page;
use format::Format;
use tree::Tree;

/// The synthesised bodies of a page: everything that they have in common is worked out once.
#[derive(Debug)]
pub struct Bodies<'a> {
    tree: Tree<'a>,
}

impl<'a> Bodies<'a> {
    /// Prepares the bodies of `page`, which must have passed [`Page::validate`].
    pub fn of(page: &'a Page) -> Self {
        Self { tree: Tree::of(page) }
    }

    /// The body of resource `index`: exactly `body_bytes` long, and always the same.
    ///
    /// # Panics
    /// If the page has no such resource.
    pub fn body(&self, index: usize) -> Vec<u8> {
        self.compose(index).bytes
    }

    /// The resources (indices, ascending) that `index` discovers but whose references its body cannot hold.
    ///
    /// # Panics
    /// If the page has no such resource.
    pub fn unplaced(&self, index: usize) -> Vec<usize> {
        self.compose(index).unplaced
    }

    fn compose(&self, index: usize) -> Composed {
        let resource = &self.tree.page.resources[index];
        let size = resource.body_bytes as usize;
        let mut composed = match Format::of(resource) {
            Format::Html { xml } => html::compose(&self.tree, index, xml),
            Format::Css => css::compose(&self.tree, index),
            Format::Script => script::compose(&self.tree, index),
            Format::Image(format) => self.mute(index, image::body(format, size)),
            Format::Json => self.mute(index, data::json(size)),
            Format::Xml => self.mute(index, data::xml(size)),
            Format::Text => self.mute(index, data::text(size)),
            Format::Font(magic) => self.mute(index, data::bytes(magic, size)),
            Format::Bytes => self.mute(index, data::bytes(&[], size)),
        };
        composed.unplaced.sort_unstable();
        composed
    }

    /// A body that cannot refer to anything.
    fn mute(&self, index: usize, bytes: Vec<u8>) -> Composed {
        Composed {
            bytes,
            unplaced: self.tree.children(index).map(|(child, ..)| child).collect(),
        }
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
    Bodies::of(page).body(index)
}

/// The resources (indices, ascending) that `index` discovers but whose references its body cannot hold.
///
/// # Panics
/// If the page has no such resource.
pub fn unplaced(page: &Page, index: usize) -> Vec<usize> {
    Bodies::of(page).unplaced(index)
}

/// A body and the children it could not refer to.
struct Composed {
    bytes: Vec<u8>,
    unplaced: Vec<usize>,
}
