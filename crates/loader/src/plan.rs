//! A page prepared for many loads: URLs parsed, children sorted, times in nanoseconds.

use std::collections::HashMap;
use std::ops::Range;

use firstflight_page::{HttpSpoken, Kind, Origin, Page, Resource, Via};

use crate::{NANOS_PER_MS, Nanos, OriginId, priority};

/// What the loader needs of a page. Make it once and share it between loads.
#[derive(Debug)]
pub struct Plan {
    pub(crate) origins: Vec<Origin>,
    /// The host of each origin, and how long the lookup of each host's name takes.
    pub(crate) host_of: Vec<usize>,
    pub(crate) lookups: Vec<Nanos>,
    /// How long the verification of each host's certificate takes.
    pub(crate) verifying: Vec<Nanos>,
    /// For each origin the origin whose connection carried its requests in the recording: itself or another.
    pub(crate) carriers: Vec<OriginId>,
    /// Whether the host of each origin used HTTP/2 in the recording.
    pub(crate) spoke_http2: Vec<bool>,
    pub(crate) resources: Vec<Planned>,
    /// Resources grouped by the one that discovers them; [`Planned`] has ranges of this list.
    pub(crate) children: Vec<usize>,
    /// The resource that answers the navigation after all its redirects.
    pub(crate) document: usize,
}

/// A resource, with what the loader needs of it.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) origin: OriginId,
    pub(crate) rank: u8,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) cpu: Nanos,
    pub(crate) blocks_load: bool,
    pub(crate) initiator: Option<usize>,
    pub(crate) at_byte: u64,
    /// Another resource that must be settled before this one is requested.
    pub(crate) after: Option<usize>,
    /// Resources that wait for this one to be settled.
    pub(crate) followers: Vec<usize>,
    pub(crate) delay: Nanos,
    /// Whether it is the document, or a redirect on the way to it.
    pub(crate) is_navigation: bool,
    /// Whether the main thread must process it before it is settled.
    pub(crate) is_processed: bool,
    /// Children that its header redirects to.
    pub(crate) redirects: Range<usize>,
    /// Children that the parser finds, in order of `at_byte`.
    pub(crate) parsed: Range<usize>,
    /// Children that its processing (style, script) requests.
    pub(crate) requested: Range<usize>,
}

impl Plan {
    /// Prepares `page`.
    ///
    /// # Panics
    /// On a page that [`Page::validate`] refuses.
    pub fn new(page: &Page) -> Self {
        let mut origins = Origins::default();
        let mut resources: Vec<_> = page
            .resources
            .iter()
            .map(|resource| planned(resource, &mut origins))
            .collect();
        let children = sort_children(page, &mut resources);
        let document = mark_navigation(&mut resources, &children);
        for index in 0..resources.len() {
            if let Some(after) = resources[index].after {
                resources[after].followers.push(index);
            }
        }
        for (planned, resource) in resources.iter_mut().zip(&page.resources) {
            planned.is_processed = is_processed(planned, resource.kind);
        }
        let hosts = Hosts::new(page, &origins.list);
        let spoke_http2 = |origin: &Origin| {
            page.host(&origin.host)
                .is_some_and(|host| host.http == Some(HttpSpoken::V2))
        };
        Self {
            carriers: carriers(page, &origins.list),
            spoke_http2: origins.list.iter().map(spoke_http2).collect(),
            origins: origins.list,
            host_of: hosts.of_origins,
            lookups: hosts.lookups,
            verifying: hosts.verifying,
            resources,
            children,
            document,
        }
    }

    /// The page's origins, in order of first use.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }
}

#[derive(Default)]
struct Origins {
    list: Vec<Origin>,
    ids: HashMap<Origin, OriginId>,
}

impl Origins {
    fn id(&mut self, origin: Origin) -> OriginId {
        if let Some(&id) = self.ids.get(&origin) {
            return id;
        }
        self.list.push(origin.clone());
        self.ids.insert(origin, self.list.len() - 1);
        self.list.len() - 1
    }
}

/// The host of each origin, and the page's data on each host.
#[derive(Default)]
struct Hosts {
    of_origins: Vec<usize>,
    lookups: Vec<Nanos>,
    verifying: Vec<Nanos>,
}

impl Hosts {
    fn new(page: &Page, origins: &[Origin]) -> Self {
        let mut ids = HashMap::new();
        let mut hosts = Self::default();
        for origin in origins {
            let id = *ids.entry(origin.host.as_str()).or_insert_with(|| {
                let verify_ms = page.host(&origin.host).map_or(0.0, |host| host.verify_ms);
                hosts.lookups.push(nanos(page.lookup_ms(&origin.host)));
                hosts.verifying.push(nanos(verify_ms));
                hosts.lookups.len() - 1
            });
            hosts.of_origins.push(id);
        }
        hosts
    }
}

/// The origin whose connection carries the requests to each origin. Such a connection uses TLS, and one port.
fn carriers(page: &Page, origins: &[Origin]) -> Vec<OriginId> {
    let carrier = |origin: &Origin| {
        let host = page.host(&origin.host)?.carrier.as_ref()?;
        origins.iter().position(|other| {
            origin.secure && other.secure && other.port == origin.port && other.host == *host
        })
    };
    let of_each = origins.iter().enumerate();
    of_each
        .map(|(own, origin)| carrier(origin).unwrap_or(own))
        .collect()
}

fn planned(resource: &Resource, origins: &mut Origins) -> Planned {
    let origin = resource
        .origin()
        .expect("a valid page has only absolute http and https URLs");
    let initiator = resource.initiator.as_ref();
    Planned {
        origin: origins.id(origin),
        rank: priority::rank(resource.kind),
        status: resource.status,
        body_bytes: resource.body_bytes,
        cpu: nanos(resource.cpu_ms),
        blocks_load: resource.blocks_load,
        initiator: initiator.map(|initiator| initiator.resource),
        at_byte: initiator.map_or(0, |initiator| initiator.at_byte),
        after: initiator.and_then(|initiator| initiator.after),
        followers: Vec::new(),
        delay: initiator.map_or(0, |initiator| nanos(initiator.delay_ms)),
        is_navigation: false,
        is_processed: false,
        redirects: 0..0,
        parsed: 0..0,
        requested: 0..0,
    }
}

/// Lists all children by discoverer, way of discovery, byte and index. Sets the ranges of every resource.
fn sort_children(page: &Page, resources: &mut [Planned]) -> Vec<usize> {
    let key = |index: usize| {
        let initiator = page.resources[index]
            .initiator
            .as_ref()
            .expect("only a page's document has no initiator");
        let stage = match initiator.via {
            Via::Redirect => 0,
            Via::Parser => 1,
            Via::Style | Via::Script => 2,
        };
        (initiator.resource, stage, initiator.at_byte, index)
    };
    let mut children: Vec<_> = (1..resources.len()).collect();
    children.sort_unstable_by_key(|&index| key(index));
    let mut start = 0;
    for run in children.chunk_by(|&a, &b| (key(a).0, key(a).1) == (key(b).0, key(b).1)) {
        let (parent, stage, ..) = key(run[0]);
        let range = start..start + run.len();
        start = range.end;
        match stage {
            0 => resources[parent].redirects = range,
            1 => resources[parent].parsed = range,
            _ => resources[parent].requested = range,
        }
    }
    children
}

/// Follows the navigation's redirects and makes each of them block the load. Returns the last resource.
fn mark_navigation(resources: &mut [Planned], children: &[usize]) -> usize {
    let mut document = 0;
    loop {
        resources[document].is_navigation = true;
        resources[document].blocks_load = true;
        match resources[document].redirects.clone().next() {
            Some(first) => document = children[first],
            None => return document,
        }
    }
}

/// Whether a resource needs the main thread: it takes time there, or it must wait its turn even if it takes none.
fn is_processed(planned: &Planned, kind: Kind) -> bool {
    let runs = matches!(kind, Kind::Document | Kind::Frame | Kind::Style | Kind::Script);
    planned.cpu > 0 || !planned.requested.is_empty() || (runs && planned.redirects.is_empty())
}

fn nanos(ms: f64) -> Nanos {
    (ms * NANOS_PER_MS as f64).round() as Nanos
}
