//! Scripts: burn the recorded processing time, then ask for the children.

use std::fmt::Write as _;

use crate::Kind;

use super::place::comment;
use super::refs::{self, Ref};
use super::tree::Tree;
use super::{Composed, escape, fit};

/// Makes the element `n`, in the document.
const MAKE: &str = "let m=n=>document.head.appendChild(document.createElement(n));";

pub(super) fn compose(tree: &Tree<'_>, index: usize) -> Composed {
    let resource = &tree.page.resources[index];
    let size = resource.body_bytes as usize;
    let refs = if is_executed(resource.status) {
        refs::of(tree, index, tree.document(index))
    } else {
        Vec::new()
    };
    let (chosen, mut unplaced) = fit::choose(&refs, size, |chosen| code(0.0, chosen, false).len());
    if refs.is_empty() {
        unplaced = tree.children(index).map(|(child, ..)| child).collect();
    }
    let mut text = code(resource.cpu_ms, &chosen, false);
    if text.len() > size {
        text = code(0.0, &chosen, false);
    }
    if text.len() > size {
        text.clear();
    }
    text.push_str(&comment("/*", "*/", size - text.len()));
    Composed {
        bytes: text.into_bytes(),
        unplaced,
    }
}

/// Whether a browser executes (or applies) what it gets with this status.
pub(super) fn is_executed(status: u16) -> bool {
    (200..=299).contains(&status) && !matches!(status, 204 | 205)
}

/// A script that works for `cpu_ms` and then asks for `refs`. `inline`: it stands in a `<script>` element.
pub(super) fn code(cpu_ms: f64, refs: &[&Ref<'_>], inline: bool) -> String {
    let mut out = String::new();
    if cpu_ms > 0.0 {
        out = format!("for(let t=performance.now();{cpu_ms}>performance.now()-t;);");
    }
    let requests: String = refs.iter().map(|reference| request(reference, inline)).collect();
    if requests.contains("m(\"") {
        _ = write!(out, "{{{MAKE}{requests}}}");
    } else {
        out.push_str(&requests);
    }
    out
}

fn request(reference: &Ref<'_>, inline: bool) -> String {
    let asks = ask(reference, inline);
    match reference.initiator.delay_ms {
        0.0 => asks,
        delay_ms if inline => format!("setTimeout(function(){{{asks}}},{delay_ms});"),
        delay_ms => format!("setTimeout(()=>{{{asks}}},{delay_ms});"),
    }
}

fn ask(reference: &Ref<'_>, inline: bool) -> String {
    let url = escape::js_string(&reference.url, inline);
    let resource = reference.resource;
    match resource.kind {
        _ if reference.needs_script() => fetch(reference, &url),
        Kind::Script => format!("m(\"script\").src={url};"),
        Kind::Document | Kind::Frame => format!("m(\"iframe\").src={url};"),
        Kind::Style => format!("Object.assign(m(\"link\"),{{rel:\"stylesheet\",href:{url}}});"),
        // Low priority, blocks neither scripts nor rendering, but the load event waits for it.
        Kind::Other if resource.blocks_load => {
            format!("Object.assign(m(\"link\"),{{rel:\"stylesheet\",media:\"print\",href:{url}}});")
        }
        Kind::Image => format!("new Image().src={url};"),
        Kind::Font => {
            let source = escape::js_string(&escape::css_url(&reference.url, false), inline);
            format!("new FontFace(\"f\",{source}).load();")
        }
        Kind::Xhr | Kind::Other => fetch(reference, &url),
    }
}

fn fetch(reference: &Ref<'_>, url: &str) -> String {
    let mut options = Vec::new();
    if !reference.same_origin {
        options.push("mode:\"no-cors\"".to_owned());
    }
    if reference.needs_script() {
        options.push(format!("method:\"{}\"", reference.resource.method));
    }
    if options.is_empty() {
        format!("fetch({url});")
    } else {
        format!("fetch({url},{{{}}});", options.join(","))
    }
}
