//! Scripts: burn the recorded processing time, then ask for the children.

use std::fmt::Write as _;

use crate::{Kind, Resource};

use super::escape;
use super::place::comment;
use super::refs::{How, Ref};

/// Makes an element of the document.
const MAKE: &str = "let m=n=>document.head.appendChild(document.createElement(n));";
/// Waits for an element, whether it loads or fails.
const WAIT: &str = "let w=(e,f)=>(e.onload=e.onerror=f,e);";
/// Makes the browser compute styles now: it asks for images and fonts only then, and it may do so after the
/// load event otherwise. For an event handler attribute, where `document` is in scope.
pub(super) const APPLY: &str = "documentElement.offsetTop";

/// The body of script `resource`, which asks for `refs`. They must fit.
pub(super) fn body(resource: &Resource, refs: &[Ref<'_>]) -> Vec<u8> {
    let size = resource.body_bytes as usize;
    let refs: Vec<&Ref<'_>> = refs.iter().collect();
    let written = [resource.cpu_ms, 0.0].map(|cpu_ms| code(cpu_ms, &refs, false));
    let mut text = written
        .into_iter()
        .find(|text| text.len() <= size)
        .unwrap_or_default();
    text.push_str(&comment("/*", "*/", size - text.len()));
    text.into_bytes()
}

/// Whether a browser executes (or applies) what it gets with this status.
pub(super) fn is_executed(status: u16) -> bool {
    (200..=299).contains(&status) && !matches!(status, 204 | 205)
}

/// A script that works for `cpu_ms` and then asks for `refs`. `inline`: it stands in HTML.
pub(super) fn code(cpu_ms: f64, refs: &[&Ref<'_>], inline: bool) -> String {
    let requests: String = refs.iter().map(|reference| request(reference, inline)).collect();
    let mut out = burn(cpu_ms);
    // Each helper is declared where its call occurs; a URL that looks like a call costs some bytes, no more.
    let helpers: String = [("m(", MAKE), ("w(", WAIT)]
        .into_iter()
        .filter_map(|(call, helper)| requests.contains(call).then_some(helper))
        .collect();
    if helpers.is_empty() {
        out.push_str(&requests);
    } else {
        _ = write!(out, "{{{helpers}{requests}}}");
    }
    out
}

/// What has to run once `reference` has loaded; in an event handler attribute where `inline`.
pub(super) fn after(reference: &Ref<'_>, inline: bool) -> String {
    let mut out = if reference.is_applied() {
        format!("{APPLY};")
    } else {
        String::new()
    };
    if !reference.carried.is_empty() {
        let carried: Vec<&Ref<'_>> = reference.carried.iter().collect();
        out.push_str(&code(unburnt_ms(reference.resource), &carried, inline));
    }
    out
}

fn burn(cpu_ms: f64) -> String {
    match cpu_ms {
        0.0 => String::new(),
        // Not `now < end`: in XML a bare `<` would open an element.
        _ => format!("for(let t=performance.now();{cpu_ms}>performance.now()-t;);"),
    }
}

/// Processing time that a script's own body is too small to burn.
fn unburnt_ms(resource: &Resource) -> f64 {
    let too_small = burn(resource.cpu_ms).len() as u64 > resource.body_bytes;
    if resource.kind == Kind::Script && too_small {
        resource.cpu_ms
    } else {
        0.0
    }
}

fn request(reference: &Ref<'_>, inline: bool) -> String {
    let asks = ask(reference, inline);
    let delay_ms = reference
        .resource
        .initiator
        .as_ref()
        .map_or(0.0, |initiator| initiator.delay_ms);
    if delay_ms == 0.0 {
        asks
    } else {
        format!("setTimeout(()=>{{{asks}}},{delay_ms});")
    }
}

fn ask(reference: &Ref<'_>, inline: bool) -> String {
    let url = escape::js_string(&reference.url, inline);
    let link = |properties: &str| {
        format!(
            "Object.assign({},{{{properties},href:{url}}});",
            waiting("m(\"link\")", reference, inline)
        )
    };
    let source = |element: &str| format!("{}.src={url};", waiting(element, reference, inline));
    match reference.how() {
        How::Frame => source("m(\"iframe\")"),
        How::Image => source("new Image()"),
        How::Script => source("m(\"script\")"),
        How::Style => link("rel:\"stylesheet\""),
        How::PrintStyle => link("rel:\"stylesheet\",media:\"print\""),
        How::Preload("font") => link("rel:\"preload\",as:\"font\",crossOrigin:\"\""),
        How::Preload(kind) => link(&format!("rel:\"preload\",as:\"{kind}\"")),
        How::Font => {
            let source = escape::js_string(&escape::css_url(&reference.url, false), inline);
            format!(
                "new FontFace(\"f\",{source}).load(){};",
                finally(reference, inline)
            )
        }
        How::Fetch => fetch(reference, &url, inline),
    }
}

/// `element`, with what has to run after it.
fn waiting(element: &str, reference: &Ref<'_>, inline: bool) -> String {
    let mut code = after(reference, inline);
    if reference.is_applied() {
        code.insert_str(0, "document.");
    }
    if code.is_empty() {
        element.to_owned()
    } else {
        format!("w({element},()=>{{{code}}})")
    }
}

/// A promise's continuation with what `reference` carries.
fn finally(reference: &Ref<'_>, inline: bool) -> String {
    let code = after(reference, inline);
    if code.is_empty() {
        String::new()
    } else {
        format!(".finally(()=>{{{code}}})")
    }
}

fn fetch(reference: &Ref<'_>, url: &str, inline: bool) -> String {
    let mut options = Vec::new();
    if !reference.same_origin {
        options.push("mode:\"no-cors\"".to_owned());
    }
    if reference.needs_script() {
        options.push(format!("method:\"{}\"", reference.resource.method));
    }
    let options = if options.is_empty() {
        String::new()
    } else {
        format!(",{{{}}}", options.join(","))
    };
    let body = if reference.carried.is_empty() {
        ""
    } else {
        ".then(r=>r.text())"
    };
    format!("fetch({url}{options}){body}{};", finally(reference, inline))
}
