//! Style sheets: `@import`, backgrounds and fonts that the browser really asks for.

use std::fmt::Write as _;

use crate::{Kind, Via};

use super::format::Format;
use super::place::comment;
use super::refs::{self, Ref};
use super::tree::Tree;
use super::{Composed, escape, fit, script};

/// Where the sheets of a document paint, one place each: later rules for the same place would hide earlier ones
/// before the browser asks for their images. Every document has these elements.
const PLACES: [&str; 8] = [
    "html{",
    "body{",
    "html:before{content:'';",
    "body:before{content:'';",
    "body:after{content:'';",
    "head{display:block;",
    "head:before{content:'';",
    "head:after{content:'';",
];

pub(super) fn compose(tree: &Tree<'_>, index: usize) -> Composed {
    let resource = &tree.page.resources[index];
    let size = resource.body_bytes as usize;
    let applied = script::is_executed(resource.status);
    let refs = if applied {
        refs::of(tree, index, index)
    } else {
        Vec::new()
    };
    let (chosen, mut unplaced) = fit::choose(&refs, size, |chosen| rules(tree, index, chosen, false).len());
    if refs.is_empty() {
        unplaced = tree.children(index).map(|(child, ..)| child).collect();
    }
    let mut text = rules(tree, index, &chosen, false);
    text.push_str(&comment("/*", "*/", size - text.len()));
    Composed {
        bytes: text.into_bytes(),
        unplaced,
    }
}

/// Rules that make a browser ask for `refs`. `inline`: they stand in a `<style>` element.
pub(super) fn rules(tree: &Tree<'_>, index: usize, refs: &[&Ref<'_>], inline: bool) -> String {
    let of = |kind: fn(Kind) -> bool| refs.iter().filter(move |reference| kind(reference.resource.kind));
    let mut out = String::new();
    for reference in of(|kind| kind == Kind::Style) {
        _ = write!(out, "@import {};", escape::css_string(&reference.url, inline));
    }
    let images: Vec<String> = of(is_painted)
        .map(|reference| escape::css_url(&reference.url, inline))
        .collect();
    if !images.is_empty() {
        let place = place(tree, index);
        let property = if place < PLACES.len() {
            "background"
        } else {
            "cursor"
        };
        let last = if place < PLACES.len() { "" } else { ",auto" };
        _ = write!(
            out,
            "{}{property}:{}{last}}}",
            PLACES[place % PLACES.len()],
            images.join(",")
        );
    }
    let fonts: Vec<&&Ref<'_>> = of(|kind| kind == Kind::Font).collect();
    for font in &fonts {
        let source = escape::css_url(&font.url, inline);
        _ = write!(
            out,
            "@font-face{{font-family:f;src:{source};unicode-range:U+{:x}}}",
            glyph(font.child)
        );
    }
    if !fonts.is_empty() {
        out.push_str(&text_in_fonts(tree, index));
    }
    out
}

/// Everything that a style sheet can name and that is neither a sheet nor a font is asked for as an image.
fn is_painted(kind: Kind) -> bool {
    !matches!(kind, Kind::Style | Kind::Font)
}

/// Which of the sheets of its document `index` is, counting those that paint.
fn place(tree: &Tree<'_>, index: usize) -> usize {
    (0..index)
        .filter(|&sheet| tree.document(sheet) == tree.document(index) && paints(tree, sheet))
        .count()
}

fn paints(tree: &Tree<'_>, sheet: usize) -> bool {
    let format = Format::of(&tree.page.resources[sheet]);
    tree.children(sheet).any(|(_, resource, initiator)| {
        let styled = format == Format::Css || initiator.via == Via::Style;
        styled && is_painted(resource.kind)
    })
}

/// A character for each font: a font is asked for when text needs it, so each has a character of its own.
fn glyph(child: usize) -> usize {
    0x4e00 + child
}

/// The text that needs all fonts of the document. Every sheet with fonts has this same rule.
fn text_in_fonts(tree: &Tree<'_>, index: usize) -> String {
    let in_document = |&(at, resource): &(usize, &crate::Resource)| {
        resource.kind == Kind::Font
            && resource
                .initiator
                .as_ref()
                .is_some_and(|by| tree.document(by.resource) == tree.document(index))
            && tree.document(at) == tree.document(index)
    };
    let fonts = tree.page.resources.iter().enumerate().filter(in_document);
    let text = fonts.fold(String::new(), |mut text, (at, _)| {
        _ = write!(text, "\\{:x} ", glyph(at));
        text
    });
    format!("html:after{{content:'{text}';font-family:f}}")
}
