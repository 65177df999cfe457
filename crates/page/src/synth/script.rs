//! Scripts: they use the recorded processing time, then request the children.

use crate::{Kind, Resource};

use super::escape;
use super::place::comment;
use super::refs::{How, Ref};

/// Makes an element of the document.
const MAKE: &str = "let m=n=>document.head.appendChild(document.createElement(n));";
/// Waits for an element, whether it loads or fails.
const WAIT: &str = "let w=(e,f)=>(e.onload=e.onerror=f,e);";
/// Holds the load event back: it waits for a frame whose document is being written.
const HOLD: &str = "let h=m(\"iframe\").contentDocument;h.open();";
/// Makes the browser compute styles now. Only then does it request images and fonts; otherwise it might do so after
/// the load event. For an event handler attribute, where `document` is in scope.
pub(super) const APPLY: &str = "documentElement.offsetTop";

/// The body of script `resource`, which requests `refs`. They must fit.
pub(super) fn body(resource: &Resource, refs: &[Ref<'_>]) -> Vec<u8> {
    let size = resource.body_bytes as usize;
    let refs: Vec<&Ref<'_>> = refs.iter().collect();
    let written = [
        whole(resource.cpu_ms, &refs, false),
        whole(0.0, &refs, false),
        least(&refs, false),
    ];
    let mut text = written
        .into_iter()
        .find(|text| text.len() <= size)
        .unwrap_or_default();
    text.push_str(&comment("/*", "*/", size - text.len()));
    text.into_bytes()
}

/// Whether a browser executes (or applies) a response with this status.
pub(super) fn is_executed(status: u16) -> bool {
    (200..=299).contains(&status) && !matches!(status, 204 | 205)
}

/// A script that works for `cpu_ms` and then requests `refs`. The load event waits as long as the script waits to
/// request something that it depends on. `inline`: for HTML.
pub(super) fn whole(cpu_ms: f64, refs: &[&Ref<'_>], inline: bool) -> String {
    let blocking = refs.iter().filter(|reference| reference.resource.blocks_load);
    let held_ms = blocking.map(|reference| delay_ms(reference)).fold(0.0, f64::max);
    let mut requests = requests(refs, inline);
    if held_ms > 0.0 {
        requests = format!("{HOLD}{requests}setTimeout(()=>h.close(),{held_ms});");
    }
    burn(cpu_ms) + &with_helpers(&requests)
}

/// The shortest script that requests `refs`.
pub(super) fn least(refs: &[&Ref<'_>], inline: bool) -> String {
    with_helpers(&requests(refs, inline))
}

/// Declares the helpers that `requests` calls. A URL that looks like a call only costs some bytes.
fn with_helpers(requests: &str) -> String {
    let helpers = [("m(", MAKE), ("w(", WAIT)]
        .into_iter()
        .filter(|(call, _)| requests.contains(call));
    let helpers: String = helpers.map(|(_, helper)| helper).collect();
    if helpers.is_empty() {
        requests.to_owned()
    } else {
        format!("{{{helpers}{requests}}}")
    }
}

fn requests(refs: &[&Ref<'_>], inline: bool) -> String {
    refs.iter().map(|reference| request(reference, inline)).collect()
}

/// Code to run once `reference` has loaded. `inline`: for an event handler attribute.
pub(super) fn after(reference: &Ref<'_>, inline: bool) -> String {
    let mut out = if reference.is_applied() {
        format!("{APPLY};")
    } else {
        String::new()
    };
    if !reference.carried.is_empty() {
        let carried: Vec<&Ref<'_>> = reference.carried.iter().collect();
        out.push_str(&whole(unburnt_ms(reference.resource), &carried, inline));
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

/// Processing time that a script's own body is too small to use.
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
    match delay_ms(reference) {
        0.0 => asks,
        delay_ms => format!("setTimeout(()=>{{{asks}}},{delay_ms});"),
    }
}

fn delay_ms(reference: &Ref<'_>) -> f64 {
    reference
        .resource
        .initiator
        .as_ref()
        .map_or(0.0, |initiator| initiator.delay_ms)
}

fn ask(reference: &Ref<'_>, inline: bool) -> String {
    let url = escape::js_string(&reference.url, inline);
    let cors = if reference.needs_cors() {
        ",crossOrigin:\"\""
    } else {
        ""
    };
    let link = |properties: &str| {
        let element = waiting("m(\"link\")", reference, inline);
        format!("Object.assign({element},{{{properties}{cors},href:{url}}});")
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

/// `element`, with the code to run after it.
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

/// A promise's continuation that requests what `reference` carries.
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
    if !reference.same_origin && !reference.needs_cors() {
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
