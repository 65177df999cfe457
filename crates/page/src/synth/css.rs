//! Style sheets with `@import`, backgrounds and fonts that the browser really requests.

use std::fmt::Write as _;

use crate::Kind;

use super::escape;
use super::place::comment;
use super::refs::Ref;
use super::tree::Tree;

/// The places for images of a document's style sheets, one each. Two rules for one place would hide the earlier
/// one's image before the browser requests it. Every document has these elements.
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

/// The body of style sheet `index`, which requests `refs`. They must fit.
pub(super) fn body(tree: &Tree<'_>, index: usize, refs: &[Ref<'_>]) -> Vec<u8> {
    let refs: Vec<&Ref<'_>> = refs.iter().collect();
    let mut text = rules(tree, index, &refs, false);
    text.push_str(&comment(
        "/*",
        "*/",
        tree.resource(index).body_bytes as usize - text.len(),
    ));
    text.into_bytes()
}

/// Whether style sheet `index` can request `reference`. A style sheet cannot wait for a resource that it requests,
/// and needs its own place for images.
pub(super) fn can_name(tree: &Tree<'_>, index: usize, reference: &Ref<'_>) -> bool {
    let shown = !is_painted(reference.resource.kind) || tree.painters_before(index) < 2 * PLACES.len();
    shown && reference.carried.is_empty() && !reference.needs_script()
}

/// Rules that make a browser request `refs`. `inline`: for a `<style>` element.
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
        let place = tree.painters_before(index);
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

/// Whether a style sheet requests a resource as an image: everything but style sheets and fonts.
pub(super) fn is_painted(kind: Kind) -> bool {
    !matches!(kind, Kind::Style | Kind::Font)
}

/// A character for each font. A browser requests a font when text needs it, so each font has its own character.
fn glyph(child: usize) -> usize {
    0x4e00 + child
}

/// The text that needs all fonts of the document. Every style sheet with fonts has this same rule.
fn text_in_fonts(tree: &Tree<'_>, index: usize) -> String {
    let fonts =
        tree.page.resources.iter().enumerate().filter(|(at, resource)| {
            resource.kind == Kind::Font && tree.document(*at) == tree.document(index)
        });
    let text = fonts.fold(String::new(), |mut text, (at, _)| {
        _ = write!(text, "\\{:x} ", glyph(at));
        text
    });
    format!("html:after{{content:'{text}';font-family:f}}")
}
