//! Builders for pages.

use firstflight_page::{FORMAT, Initiator, Kind, Page, Resource, Via};

/// A valid page of these resources.
pub(crate) fn page(resources: Vec<Resource>) -> Page {
    let (format, name) = (FORMAT.to_owned(), "test".to_owned());
    let page = Page {
        format,
        name,
        source: String::new(),
        resources,
        missing: Vec::new(),
        hosts: Vec::new(),
        link: None,
    };
    page.validate().expect("tests use valid pages");
    page
}

/// A document of `body_bytes` on host `a.test`.
pub(crate) fn document(body_bytes: u64) -> Resource {
    Resource {
        url: "http://a.test/".to_owned(),
        method: "GET".to_owned(),
        kind: Kind::Document,
        mime: String::new(),
        status: 200,
        request_bytes: 100,
        header_bytes: 100,
        body_bytes,
        server_ms: 0.0,
        cpu_ms: 0.0,
        blocks_load: true,
        initiator: None,
    }
}

/// A resource of 1,000 bytes on `host`, discovered by resource `by`.
pub(crate) fn found(kind: Kind, host: &str, by: usize, via: Via) -> Resource {
    let initiator = Initiator {
        resource: by,
        via,
        at_byte: 0,
        after: None,
        delay_ms: 0.0,
        inferred: false,
    };
    Resource {
        url: format!("http://{host}/"),
        kind,
        initiator: Some(initiator),
        ..document(1_000)
    }
}

/// An image on `host` that the document's first bytes refer to.
pub(crate) fn image(host: &str) -> Resource {
    found(Kind::Image, host, 0, Via::Parser)
}

/// `resource`, found at byte `at` of its initiator.
pub(crate) fn at_byte(at: u64, mut resource: Resource) -> Resource {
    resource
        .initiator
        .as_mut()
        .expect("only a document has no initiator")
        .at_byte = at;
    resource
}

/// `resource`, requested `ms` after its discovery.
pub(crate) fn delayed(ms: f64, mut resource: Resource) -> Resource {
    resource
        .initiator
        .as_mut()
        .expect("only a document has no initiator")
        .delay_ms = ms;
    resource
}

/// `resource`, redirecting.
pub(crate) fn redirecting(resource: Resource) -> Resource {
    Resource {
        status: 302,
        body_bytes: 0,
        ..resource
    }
}
