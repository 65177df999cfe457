//! A page prepared for many simulations.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use firstflight_load::{Priorities, Priority, head};
use firstflight_loader::{NANOS_PER_MS, OriginId, Plan};
use firstflight_page::{Host, Origin, Page, Resource, Scheme};
use firstflight_path::Nanos;
use firstflight_quic::{request_block, response_block};
use firstflight_tcp::Settings;

use crate::http2::Blocks;
use crate::job::Job;

/// What the simulator needs of a page. Make it once and share it between loads.
#[derive(Debug)]
pub struct SimPage {
    pub(crate) plan: Arc<Plan>,
    pub(crate) resources: Vec<Exchange>,
    /// The host of each origin. Cookies and links belong to hosts.
    pub(crate) hosts: Vec<usize>,
    /// How much farther each host is than the nearest, ms.
    pub(crate) farther_ms: Vec<f64>,
    /// What the recording says of each host.
    pub(crate) recorded: Vec<Option<Host>>,
}

/// One request and its response, as sizes on the wire.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) url: String,
    pub(crate) origin: String,
    pub(crate) mime: String,
    pub(crate) status: u16,
    /// Whether its method is safe (RFC 9110, section 9.2.1).
    pub(crate) is_safe: bool,
    /// Where it redirects to.
    pub(crate) location: Option<String>,
    pub(crate) request_bytes: u64,
    /// With and without keep-alive.
    pub(crate) header_bytes: [u64; 2],
    /// Its sizes in HTTP/2.
    pub(crate) blocks: Blocks,
    /// Its header blocks in HTTP/3.
    pub(crate) http3: Http3,
    pub(crate) body_bytes: u64,
    /// The priority that its request may state.
    pub(crate) priority: Priority,
    pub(crate) wait: Nanos,
}

/// The header blocks of one exchange over HTTP/3.
#[derive(Debug)]
pub(crate) struct Http3 {
    /// Without and with a priority.
    request: [Bytes; 2],
    pub(crate) response: Bytes,
}

impl Http3 {
    fn new(resource: &Resource, head: &head::Response, authority: &str) -> Self {
        let padding = "p".repeat(head.padding);
        let padding = (head.padding > 0).then_some((head::PADDING.as_bytes(), padding.as_bytes()));
        let fields = head
            .fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Self {
            request: [None, Some(Priority::of(resource.kind))]
                .map(|priority| request_block(resource, authority, priority)),
            response: response_block(resource.status, fields.chain(padding), resource.body_bytes),
        }
    }
}

/// What the connections of a load can read, at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) now: Nanos,
    pub(crate) page: &'a SimPage,
    pub(crate) job: &'a Job,
    pub(crate) settings: Settings,
}

impl<'a> Context<'a> {
    pub(crate) fn exchange(&self, resource: usize) -> &'a Exchange {
        &self.page.resources[resource]
    }

    /// The priority of a response at the server.
    pub(crate) fn priority(&self, resource: usize) -> Priority {
        match self.job.load.priorities {
            Priorities::None => Priority::EQUAL,
            Priorities::Rfc9218 => self.exchange(resource).priority,
        }
    }

    /// The header block of a request over HTTP/3.
    pub(crate) fn http3_request(&self, resource: usize) -> &'a Bytes {
        &self.exchange(resource).http3.request[self.says_priorities()]
    }

    /// Size of the header block of an HTTP/2 request whose authority is in the table, bytes.
    pub(crate) fn http2_request(&self, resource: usize) -> u64 {
        self.exchange(resource).blocks.request[self.says_priorities()]
    }

    fn says_priorities(&self) -> usize {
        usize::from(self.job.load.priorities == Priorities::Rfc9218)
    }

    /// Size of the head of a response over HTTP/1.1, bytes.
    pub(crate) fn header_bytes(&self, exchange: &Exchange) -> u64 {
        exchange.header_bytes[usize::from(!self.job.load.keep_alive)]
    }

    /// The name of `origin`'s host if it uses TLS.
    pub(crate) fn secure_host(&self, origin: OriginId) -> Option<&'a str> {
        let origin = &self.page.plan.origins()[origin];
        let is_secure = match self.job.load.scheme {
            Scheme::Http => false,
            Scheme::Recorded => origin.secure,
            Scheme::Https => true,
        };
        is_secure.then_some(origin.host.as_str())
    }
}

impl SimPage {
    /// Prepares `page`. Responses have synthesised headers of the recorded sizes.
    ///
    /// # Panics
    /// On a page that [`Page::validate`] refuses.
    pub fn new(page: &Page) -> Self {
        let plan = Arc::new(Plan::new(page));
        let origins = plan.origins().to_vec();
        let (hosts, names) = hosts(&origins);
        let resources = (0..page.resources.len())
            .map(|index| exchange(page, index))
            .collect();
        Self {
            plan,
            resources,
            hosts,
            farther_ms: names.iter().map(|name| page.farther_ms(name)).collect(),
            recorded: names.iter().map(|name| page.host(name).cloned()).collect(),
        }
    }
}

fn exchange(page: &Page, index: usize) -> Exchange {
    let resource = &page.resources[index];
    let origin = resource
        .origin()
        .expect("a valid page has only absolute http and https URLs");
    let location = page.location(index);
    let header = |keep_alive| head::Response::new(resource, location, resource.body_bytes, keep_alive);
    Exchange {
        url: resource.url.clone(),
        origin: origin.to_string(),
        mime: resource.mime.clone(),
        status: resource.status,
        is_safe: head::is_safe(&resource.method),
        location: location.map(ToOwned::to_owned),
        request_bytes: head::request(resource, &origin.authority()).len() as u64,
        header_bytes: [true, false].map(|keep_alive| header(keep_alive).bytes),
        blocks: Blocks::new(resource, &header(true), &origin.authority()),
        http3: Http3::new(resource, &header(true), &origin.authority()),
        body_bytes: if head::has_body(resource) {
            resource.body_bytes
        } else {
            0
        },
        priority: Priority::of(resource.kind),
        wait: (resource.server_ms * NANOS_PER_MS as f64).round() as Nanos,
    }
}

/// Numbers the hosts of `origins` in order of first use. Returns each origin's number, and the names.
fn hosts(origins: &[Origin]) -> (Vec<usize>, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let mut numbers = HashMap::new();
    let hosts = origins
        .iter()
        .map(|origin| {
            *numbers.entry(origin.host.as_str()).or_insert_with(|| {
                names.push(origin.host.clone());
                names.len() - 1
            })
        })
        .collect();
    (hosts, names)
}
