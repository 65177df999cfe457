//! HTML: elements at the recorded bytes, and what inline style and script ask for at the end.

use crate::{Kind, Via};

use super::place::{Piece, comment, place};
use super::refs::{self, Ref};
use super::tree::Tree;
use super::{Composed, css, escape, fit, script};

const DOCTYPE: &str = "<!DOCTYPE html>";
/// Keeps the browser from asking for `/favicon.ico` where the recording did not.
const NO_ICON: &str = r#"<link rel="icon" href="data:,">"#;

pub(super) fn compose(tree: &Tree<'_>, index: usize, xml: bool) -> Composed {
    let size = tree.page.resources[index].body_bytes as usize;
    let filler = |n| comment("<!--", "-->", n);
    if !is_read(tree.page.resources[index].status) {
        let unplaced = tree.children(index).map(|(child, ..)| child).collect();
        return Composed {
            bytes: filler(size).into_bytes(),
            unplaced,
        };
    }
    let refs = refs::of(tree, index, index);
    let writer = Writer { tree, index, xml };
    let (chosen, unplaced) = fit::choose(&refs, size, |chosen| total(&writer.pieces(chosen, false)));
    let mut pieces = writer.pieces(&chosen, true);
    if total(&pieces) > size {
        pieces = writer.pieces(&chosen, false);
    }
    if total(&pieces) > size {
        pieces.clear();
    }
    Composed {
        bytes: place(&pieces, size, filler),
        unplaced,
    }
}

/// Whether a browser reads the body of a document with this status.
fn is_read(status: u16) -> bool {
    !matches!(status, 204 | 205 | 300..=399)
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
    /// The pieces that refer to `chosen`; with everything a document should have besides where `whole`.
    fn pieces(&self, chosen: &[&Ref<'_>], whole: bool) -> Vec<Piece> {
        let size = self.tree.page.resources[self.index].body_bytes as usize;
        let mut pieces = Vec::with_capacity(chosen.len() + 4);
        let icon = chosen.iter().position(|reference| is_icon(reference));
        let (open, close) = self.frame(whole, icon.is_none());
        pieces.push(Piece { text: open, end: 0 });

        let (parsed, rest): (Vec<_>, Vec<_>) = chosen
            .iter()
            .enumerate()
            .partition(|(_, r)| r.initiator.via == Via::Parser && !r.needs_script());
        let mut elements: Vec<Piece> = parsed
            .into_iter()
            .map(|(at, r)| Piece {
                text: self.element(r, icon == Some(at)),
                end: r.initiator.at_byte as usize,
            })
            .collect();
        elements.sort_by_key(|piece| piece.end);
        pieces.extend(elements);

        let (styled, scripted): (Vec<&Ref<'_>>, Vec<&Ref<'_>>) = rest
            .into_iter()
            .map(|(_, r)| *r)
            .partition(|r| r.initiator.via == Via::Style && !r.needs_script());
        let sheet = css::rules(self.tree, self.index, &styled, true);
        if !sheet.is_empty() {
            pieces.push(Piece {
                text: format!("<style>{sheet}</style>"),
                end: size,
            });
        }
        let cpu_ms = if whole {
            self.tree.page.resources[self.index].cpu_ms
        } else {
            0.0
        };
        let code = script::code(cpu_ms, &scripted, true);
        if !code.is_empty() {
            pieces.push(Piece {
                text: format!("<script>{code}</script>"),
                end: size,
            });
        }
        if !close.is_empty() {
            pieces.push(Piece {
                text: close,
                end: size,
            });
        }
        pieces
    }

    /// What comes before and after everything else.
    fn frame(&self, whole: bool, without_icon: bool) -> (String, String) {
        if self.xml {
            return (
                r#"<html xmlns="http://www.w3.org/1999/xhtml">"#.to_owned(),
                "</html>".to_owned(),
            );
        }
        let icon = if self.index == 0 && without_icon {
            NO_ICON
        } else {
            ""
        };
        (
            if whole {
                format!("{DOCTYPE}{icon}")
            } else {
                String::new()
            },
            String::new(),
        )
    }

    /// The element that makes a browser ask for `reference` when it meets it.
    fn element(&self, reference: &Ref<'_>, icon: bool) -> String {
        let url = escape::attribute(&reference.url, self.xml);
        let end = if self.xml { "/>" } else { ">" };
        if icon {
            return format!(r#"<link rel="icon" href={url}{end}"#);
        }
        let resource = reference.resource;
        let passing = !resource.blocks_load && !reference.leads_on;
        match resource.kind {
            Kind::Style if !passing => format!(r#"<link rel="stylesheet" href={url}{end}"#),
            Kind::Script if !passing => format!("<script src={url}></script>"),
            Kind::Image if !passing => format!("<img src={url}{end}"),
            Kind::Document | Kind::Frame => format!("<iframe src={url}></iframe>"),
            // Low priority, blocks neither scripts nor rendering, but the load event waits for it.
            Kind::Other if !passing => format!(r#"<link rel="stylesheet" media="print" href={url}{end}"#),
            Kind::Style => preload("style", &url, end),
            Kind::Script => preload("script", &url, end),
            Kind::Image => preload("image", &url, end),
            Kind::Font => preload(r#"font" crossorigin=""#, &url, end),
            Kind::Xhr | Kind::Other => preload(r#"fetch" crossorigin=""#, &url, end),
        }
    }
}

/// A request with the priority of its kind, for which the load event does not wait.
fn preload(kind: &str, url: &str, end: &str) -> String {
    format!(r#"<link rel="preload" as="{kind}" href={url}{end}"#)
}

fn is_icon(reference: &Ref<'_>) -> bool {
    reference.initiator.via == Via::Parser && reference.resource.url.ends_with("/favicon.ico")
}
