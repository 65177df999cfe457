//! Checks whether a page can be loaded.

use std::collections::HashSet;

use url::{Host as UrlHost, Url};

use crate::{FORMAT, Origin, Page, PageError, Resource, Via};

/// Largest number of resources of a page.
pub const MAX_RESOURCES: usize = 20_000;
/// Largest number of hosts of a page; each gets its own server address.
pub const MAX_HOSTS: usize = 10_000;
/// Largest body, bytes.
pub const MAX_BODY_BYTES: u64 = 1 << 32;
/// Longest server, processing or waiting time, ms.
const MAX_TIME_MS: f64 = 600_000.0;
const MAX_NAME_CHARS: usize = 100;

impl Page {
    /// The document's URL.
    pub fn url(&self) -> &str {
        self.resources.first().map_or("", |resource| &resource.url)
    }

    /// The page's origins in order of first use.
    pub fn origins(&self) -> Vec<Origin> {
        let mut seen = HashSet::new();
        let origins = self.resources.iter().filter_map(Resource::origin);
        origins.filter(|origin| seen.insert(origin.clone())).collect()
    }

    /// Checks everything that both clocks rely on.
    ///
    /// # Errors
    /// [`PageError`] naming the first key that is wrong.
    pub fn validate(&self) -> Result<(), PageError> {
        if self.format != FORMAT {
            return Err(PageError::new(
                "format",
                format!("'{}' is not a format this version reads", self.format),
                format!("this version reads '{FORMAT}'; make the profile again with `firstflight profile`"),
            ));
        }
        let name_ok = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // The name becomes part of file names: '.' and '..' are folders.
        let is_folder = matches!(self.name.as_str(), "." | "..");
        let length_ok = (1..=MAX_NAME_CHARS).contains(&self.name.len());
        if !length_ok || is_folder || !self.name.chars().all(name_ok) {
            let hint = format!("use 1 to {MAX_NAME_CHARS} letters, digits and '-_.', but not '.' or '..'");
            return Err(PageError::new(
                "name",
                format!("'{}' is not a page name", self.name),
                hint,
            ));
        }
        if self.resources.is_empty() || self.resources.len() > MAX_RESOURCES {
            return Err(PageError::new(
                "resources",
                format!(
                    "a page has 1 to {MAX_RESOURCES} resources, this one has {}",
                    self.resources.len()
                ),
                "the first resource is the document",
            ));
        }
        for (index, resource) in self.resources.iter().enumerate() {
            self.validate_resource(index, resource)?;
        }
        let hosts: HashSet<_> = self.origins().into_iter().map(|origin| origin.host).collect();
        if hosts.len() > MAX_HOSTS {
            let count = hosts.len();
            let problem = format!("the page names {count} hosts, the lab has addresses for {MAX_HOSTS}");
            return Err(PageError::new("resources", problem, "split the page"));
        }
        self.validate_hosts()
    }

    /// Changes every URL of a valid page to the form in which browsers request it.
    pub(crate) fn canonicalise(&mut self) {
        for resource in &mut self.resources {
            if let Some(url) = canonical_url(&resource.url, None) {
                resource.url = url;
            }
        }
    }

    fn validate_hosts(&self) -> Result<(), PageError> {
        for (index, host) in self.hosts.iter().enumerate() {
            check_host(&host.host)
                .map_err(|(problem, hint)| PageError::new(format!("hosts[{index}].host"), problem, hint))?;
            if host.carrier.as_ref().is_some_and(|carrier| {
                *carrier == host.host || self.host(carrier).is_none_or(|other| other.carrier.is_some())
            }) {
                return Err(PageError::new(
                    format!("hosts[{index}].carrier"),
                    "not another host of `hosts` with a connection of its own",
                    "name the host whose connection carried the requests, or leave the key out",
                ));
            }
            check_time(host.rtt_ms, || format!("hosts[{index}].rtt_ms"))?;
            check_time(host.lookup_ms, || format!("hosts[{index}].lookup_ms"))?;
            check_time(host.verify_ms, || format!("hosts[{index}].verify_ms"))?;
            if host.tls_trips > 2 {
                let problem = format!("{} round trips are not those of a version of TLS", host.tls_trips);
                let hint = "use 2 (TLS 1.2) or 1 (TLS 1.3), or leave the key out";
                return Err(PageError::new(format!("hosts[{index}].tls_trips"), problem, hint));
            }
        }
        self.link.as_ref().map_or(Ok(()), |link| {
            check_time(link.rtt_ms, || "link.rtt_ms".to_owned())
        })
    }

    fn validate_resource(&self, index: usize, resource: &Resource) -> Result<(), PageError> {
        let at = |key: &str| format!("resources[{index}].{key}");
        check_url(&resource.url).map_err(|(problem, hint)| PageError::new(at("url"), problem, hint))?;
        if resource.method.is_empty() || !resource.method.chars().all(|c| c.is_ascii_uppercase()) {
            let problem = format!("'{}' is not a request method", resource.method);
            return Err(PageError::new(
                at("method"),
                problem,
                "write it in capitals, as GET or POST",
            ));
        }
        if !(200..=599).contains(&resource.status) {
            let problem = format!("{} is not a final HTTP status", resource.status);
            return Err(PageError::new(at("status"), problem, "use 200 to 599"));
        }
        if resource.mime.len() > 200 || resource.mime.chars().any(|c| !(' '..='~').contains(&c)) {
            return Err(PageError::new(
                at("mime"),
                "not a MIME type",
                "use printable ASCII, as 'text/html'",
            ));
        }
        if resource.body_bytes > MAX_BODY_BYTES {
            let problem = format!("{} bytes is more than {MAX_BODY_BYTES}", resource.body_bytes);
            return Err(PageError::new(
                at("body_bytes"),
                problem,
                "leave the resource out",
            ));
        }
        check_time(resource.server_ms, || at("server_ms"))?;
        check_time(resource.cpu_ms, || at("cpu_ms"))?;
        self.validate_initiator(index, resource)
    }

    fn validate_initiator(&self, index: usize, resource: &Resource) -> Result<(), PageError> {
        let at = |key: &str| format!("resources[{index}].initiator{key}");
        let Some(initiator) = &resource.initiator else {
            return if index == 0 {
                Ok(())
            } else {
                Err(PageError::new(
                    at(""),
                    "missing",
                    "every resource but the first needs who discovers it",
                ))
            };
        };
        if index == 0 {
            return Err(PageError::new(at(""), "the document has none", "remove the key"));
        }
        if initiator.resource >= index {
            return Err(PageError::new(
                at(".resource"),
                format!("{} does not come before {index}", initiator.resource),
                "list a resource after the one that discovers it",
            ));
        }
        if let Some(after) = initiator.after.filter(|&after| after >= index) {
            return Err(PageError::new(
                at(".after"),
                format!("{after} does not come before {index}"),
                "list a resource after the one that it waits for",
            ));
        }
        check_time(initiator.delay_ms, || at(".delay_ms"))?;
        let parent = &self.resources[initiator.resource];
        match initiator.via {
            Via::Parser if initiator.at_byte > parent.body_bytes => Err(PageError::new(
                at(".at_byte"),
                format!(
                    "{} is past the initiator's {} body bytes",
                    initiator.at_byte, parent.body_bytes
                ),
                "at_byte counts bytes of the initiator's body on the wire",
            )),
            Via::Style | Via::Script | Via::Redirect if initiator.at_byte != 0 => Err(PageError::new(
                at(".at_byte"),
                "only a parser meets a reference at a byte",
                "remove the key, or use `via` = 'parser'",
            )),
            Via::Redirect if !(300..=399).contains(&parent.status) => Err(PageError::new(
                at(".via"),
                format!(
                    "resource {} has status {} and redirects nowhere",
                    initiator.resource, parent.status
                ),
                "give that resource a 3xx status or another `via`",
            )),
            _ => Ok(()),
        }
    }
}

impl Resource {
    /// Scheme, host and port; `None` only for a URL that [`Page::validate`] refuses.
    pub fn origin(&self) -> Option<Origin> {
        let url = Url::parse(&self.url).ok()?;
        Some(Origin {
            secure: url.scheme() == "https",
            host: url.host_str()?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }

    /// Path and query, as in the request line.
    pub fn target(&self) -> String {
        Url::parse(&self.url).map_or_else(
            |_| "/".to_owned(),
            |url| {
                url.query().map_or_else(
                    || url.path().to_owned(),
                    |query| format!("{}?{query}", url.path()),
                )
            },
        )
    }
}

fn check_time(ms: f64, at: impl Fn() -> String) -> Result<(), PageError> {
    if (0.0..=MAX_TIME_MS).contains(&ms) {
        return Ok(());
    }
    Err(PageError::new(
        at(),
        format!("{ms} is not a time in ms"),
        format!("use 0 to {MAX_TIME_MS}"),
    ))
}

/// `text` as browsers write and request it (WHATWG URL Standard), without fragment: trimmed, host in lower case
/// and Punycode, other characters percent-encoded, no default port. A relative `text` is resolved against
/// `base`. `None`: no http or https URL.
///
/// ```
/// use firstflight_page::canonical_url;
///
/// let canonical = canonical_url(" HTTP://B\u{fc}cher.example:80/a b#c", None);
/// assert_eq!(canonical.as_deref(), Some("http://xn--bcher-kva.example/a%20b"));
/// assert_eq!(canonical_url("javascript:alert(1)", None), None);
/// ```
pub fn canonical_url(text: &str, base: Option<&str>) -> Option<String> {
    let base = base.map(Url::parse).transpose().ok()?;
    let mut url = Url::options().base_url(base.as_ref()).parse(text).ok()?;
    url.set_fragment(None);
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}

fn check_url(text: &str) -> Result<(), (String, String)> {
    let hint = || "use an absolute URL, as 'http://www.example.org/a.css'".to_owned();
    // `Url::parse` skips tabs and newlines, and encodes blanks. But other programs get the text itself.
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        let problem = format!("{:?} contains a blank or a control character", shorten(text));
        return Err((problem, "percent-encode it: a blank is %20".to_owned()));
    }
    let url = Url::parse(text).map_err(|error| (format!("'{}': {error}", shorten(text)), hint()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err((format!("'{}' is not http or https", shorten(text)), hint()));
    }
    if url.fragment().is_some() {
        return Err((
            format!("'{}' has a fragment", shorten(text)),
            "cut it from '#' on".to_owned(),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // A browser requests no resource whose URL names a user, and a profile is made to be shared.
        let problem = format!("'{}' names a user or a password", shorten(url.path()));
        return Err((
            problem,
            "cut it: write only the host between '//' and the next '/'".to_owned(),
        ));
    }
    check_host(url.host_str().unwrap_or_default())
}

/// Checks a host: an address, or a name of letters, digits, `-` and `_`, which real hosts have. `Url::parse`
/// accepts more: a `*` would be a wildcard in Chromium's resolver rules.
fn check_host(host: &str) -> Result<(), (String, String)> {
    // RFC 1035 section 2.3.4: 255 octets on the wire, so 253 characters, and 63 per label.
    if host.is_empty() || host.len() > 253 || host.split('.').any(|label| label.len() > 63) {
        let problem = format!("host name '{}' has {} characters", shorten(host), host.len());
        return Err((
            problem,
            "a host name has at most 253 characters, 63 between two dots".to_owned(),
        ));
    }
    let name_ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    // A name may end in the root's dot.
    let labels_ok = !host
        .strip_suffix('.')
        .unwrap_or(host)
        .split('.')
        .any(str::is_empty);
    let is_address = || matches!(UrlHost::parse(host), Ok(UrlHost::Ipv4(_) | UrlHost::Ipv6(_)));
    if (labels_ok && host.chars().all(name_ok)) || is_address() {
        return Ok(());
    }
    Err((
        format!("{:?} is not a host name or address", shorten(host)),
        "use letters in lower case, digits and '-_.'; write other letters in Punycode, as 'xn--bcher-kva'"
            .to_owned(),
    ))
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= 60 {
        text.to_owned()
    } else {
        text.chars().take(60).collect::<String>() + "…"
    }
}
