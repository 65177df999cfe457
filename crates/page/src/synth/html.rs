//! HTML: elements at the recorded bytes, and inline style and script at the end.

use crate::{Resource, Via};

use super::format::Format;
use super::place::{Piece, comment, place};
use super::refs::{How, Ref};
use super::tree::Tree;
use super::{css, escape, script};

/// The body of document `index`, which requests `refs`. They must fit.
pub(super) fn body(tree: &Tree<'_>, index: usize, xml: bool, refs: &[Ref<'_>]) -> Vec<u8> {
    let size = tree.resource(index).body_bytes as usize;
    let refs: Vec<&Ref<'_>> = refs.iter().collect();
    let writer = Writer { tree, index, xml };
    let written = [true, false].map(|whole| writer.pieces(&refs, whole));
    let pieces = written
        .into_iter()
        .find(|pieces| total(pieces) <= size)
        .unwrap_or_default();
    place(&pieces, size, filler)
}

/// Bytes that document `index` needs to request `refs`.
pub(super) fn length(tree: &Tree<'_>, index: usize, xml: bool, refs: &[&Ref<'_>]) -> usize {
    total(&Writer { tree, index, xml }.pieces(refs, false))
}

/// Whether a browser reads the body as a document.
pub(super) fn is_document(resource: &Resource) -> bool {
    matches!(Format::of(resource), Format::Html { .. }) && !matches!(resource.status, 204 | 205 | 300..=399)
}

/// `n` bytes without meaning in HTML.
pub(super) fn filler(n: usize) -> String {
    comment("<!--", "-->", n)
}

fn total(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.text.len()).sum()
}

struct Writer<'t, 'a> {
    tree: &'t Tree<'a>,
    index: usize,
    xml: bool,
}

impl Writer<'_, '_> {
    /// The pieces that request `refs`; if `whole`, with everything else that a document should have.
    fn pieces(&self, refs: &[&Ref<'_>], whole: bool) -> Vec<Piece> {
        let icon = refs
            .iter()
            .find(|reference| self.is_icon(reference))
            .map(|reference| reference.child);
        let via = |via| move |reference: &&&Ref<'_>| !reference.needs_script() && self.via(reference) == via;
        let mut elements: Vec<Piece> = refs
            .iter()
            .filter(via(Via::Parser))
            .map(|reference| Piece {
                text: self.element(reference, icon),
                end: at_byte(reference),
            })
            .collect();
        elements.sort_by_key(|piece| piece.end);

        let mut pieces = vec![Piece {
            text: self.open(whole, icon.is_none()),
            end: 0,
        }];
        pieces.append(&mut elements);
        let styled: Vec<&Ref<'_>> = refs.iter().filter(via(Via::Style)).copied().collect();
        let (styled, unstyled): (Vec<_>, Vec<_>) = styled
            .into_iter()
            .partition(|reference| css::can_name(self.tree, self.index, reference));
        let scripted = refs
            .iter()
            .filter(|r| r.needs_script() || self.via(r) == Via::Script)
            .copied();
        let scripted: Vec<&Ref<'_>> = scripted.chain(unstyled).collect();
        let cpu_ms = self.tree.resource(self.index).cpu_ms;
        let code = if whole {
            script::whole(cpu_ms, &scripted, true)
        } else {
            script::least(&scripted, true)
        };
        let last = [self.style(&styled), self.script(&code), self.close().to_owned()];
        pieces.extend(last.map(|text| Piece {
            text,
            end: usize::MAX,
        }));
        pieces
    }

    fn via(&self, reference: &Ref<'_>) -> Via {
        self.tree.via(reference.child)
    }

    /// The beginning. If no icon is recorded, an empty one keeps the browser from requesting `/favicon.ico`.
    fn open(&self, whole: bool, without_icon: bool) -> String {
        let icon = if whole && without_icon && self.index == self.tree.top() {
            format!(r#"<link rel="icon" href="data:,"{}"#, self.void())
        } else {
            String::new()
        };
        match (self.xml, whole) {
            (true, _) => format!(r#"<html xmlns="http://www.w3.org/1999/xhtml"><head>{icon}</head><body>"#),
            (false, true) => format!("<!DOCTYPE html>{icon}"),
            (false, false) => String::new(),
        }
    }

    fn close(&self) -> &'static str {
        if self.xml { "</body></html>" } else { "" }
    }

    /// The end of a void element's tag.
    fn void(&self) -> &'static str {
        if self.xml { "/>" } else { ">" }
    }

    fn style(&self, refs: &[&Ref<'_>]) -> String {
        if refs.is_empty() {
            return String::new();
        }
        let rules = css::rules(self.tree, self.index, refs, true);
        format!(r#"<style onload="{}">{rules}</style>"#, script::APPLY)
    }

    fn script(&self, code: &str) -> String {
        match (code.is_empty(), self.xml) {
            (true, _) => String::new(),
            (false, true) => format!("<script><![CDATA[{code}]]></script>"),
            (false, false) => format!("<script>{code}</script>"),
        }
    }

    /// The element that makes a browser request `reference` when it parses it.
    fn element(&self, reference: &Ref<'_>, icon: Option<usize>) -> String {
        let url = escape::attribute(&reference.url, self.xml);
        let then = self.handler(reference);
        let end = self.void();
        let cors = if reference.needs_cors() {
            r#" crossorigin="""#
        } else {
            ""
        };
        let link = |attributes: &str| format!("<link {attributes}{cors} href={url}{then}{end}");
        if icon == Some(reference.child) {
            return link(r#"rel="icon""#);
        }
        match reference.how() {
            How::Frame => format!("<iframe src={url}{then}></iframe>"),
            How::Image => format!("<img src={url}{then}{end}"),
            How::Script => format!("<script src={url}{then}></script>"),
            How::Style => link(r#"rel="stylesheet""#),
            How::PrintStyle => link(r#"rel="stylesheet" media="print""#),
            How::Font => self.script(&script::least(&[reference], true)),
            How::Preload("font") => link(r#"rel="preload" as="font" crossorigin="""#),
            How::Preload(kind) => link(&format!(r#"rel="preload" as="{kind}""#)),
            How::Fetch => link(r#"rel="preload" as="fetch""#),
        }
    }

    /// The attributes that request what `reference` carries, whether it loads or fails.
    fn handler(&self, reference: &Ref<'_>) -> String {
        let code = script::after(reference, true);
        match (code.is_empty(), reference.carried.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!(" onload={}", escape::attribute(&code, self.xml)),
            (false, false) => {
                format!(
                    r#" onload={} onerror="onload()""#,
                    escape::attribute(&code, self.xml)
                )
            }
        }
    }

    fn is_icon(&self, reference: &Ref<'_>) -> bool {
        let named = reference.resource.url.ends_with("/favicon.ico");
        self.index == self.tree.top() && named && !reference.leads_on && self.via(reference) == Via::Parser
    }
}

fn at_byte(reference: &Ref<'_>) -> usize {
    reference
        .resource
        .initiator
        .as_ref()
        .map_or(0, |initiator| initiator.at_byte as usize)
}
