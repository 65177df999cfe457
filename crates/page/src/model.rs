//! The types of a page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything one navigation loads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Format and version: `firstflight-profile/1`.
    pub format: String,
    /// Short name, used in tables and file names: letters, digits and `-_.`; not `.` or `..`.
    pub name: String,
    /// The source of the page: recording, date, tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The resources of the page. The first is the document; each comes after the one that discovers it.
    pub resources: Vec<Resource>,
    /// References in the page without a recorded response. They are listed, never requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Network properties of the page's hosts in the recording. Replayed only if a plan asks for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
    /// The access link that the page was recorded over, if it is known. The hosts are beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

impl Page {
    /// The resource that the response of resource `index` redirects to.
    pub fn redirected_to(&self, index: usize) -> Option<usize> {
        self.resources.iter().position(|resource| {
            let initiator = resource.initiator.as_ref();
            initiator.is_some_and(|by| by.resource == index && by.via == Via::Redirect)
        })
    }

    /// The URL that it redirects to: the response's `Location`.
    pub fn location(&self, index: usize) -> Option<&str> {
        let target = self.redirected_to(index)?;
        Some(&self.resources[target].url)
    }

    /// The resource that the navigation ends with, after all redirects.
    pub fn document(&self) -> usize {
        std::iter::successors(Some(0), |&index| self.redirected_to(index))
            .last()
            .unwrap_or_default()
    }
}

/// The access link that a page was recorded over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Round-trip time of the link alone, ms.
    pub rtt_ms: f64,
    /// Rate to the client, bit/s.
    pub down_bps: u64,
    /// Rate from the client, bit/s.
    pub up_bps: u64,
}

/// Round-trip time and protocols of a host when the page was recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Host name, lower case.
    pub host: String,
    /// Round-trip time, ms; 0: not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rtt_ms: f64,
    /// Duration of the name lookup before the first connection, ms; 0: not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lookup_ms: f64,
    /// HTTP version that the host spoke over TLS; none: not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSpoken>,
    /// Round trips of a full TLS handshake: 2 as in TLS 1.2, 1 as in TLS 1.3; 0: not recorded.
    #[serde(default, skip_serializing_if = "is_no_trip")]
    pub tls_trips: u8,
    /// The host whose HTTP/2 connection also carried the requests to this host (RFC 9113, section 9.1.1); none: the
    /// host had its own connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
    /// Duration of a TLS handshake beyond its round trips, ms: mainly the verification of the certificate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub verify_ms: f64,
}

/// A version of HTTP over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpSpoken {
    /// RFC 9112.
    #[serde(rename = "1.1")]
    V1_1,
    /// RFC 9113.
    #[serde(rename = "2")]
    V2,
}

/// One request and its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Absolute `http` or `https` URL, without fragment, user, blanks or control characters.
    pub url: String,
    /// Request method.
    #[serde(default = "get", skip_serializing_if = "is_get")]
    pub method: String,
    /// What the browser uses the resource for.
    pub kind: Kind,
    /// MIME type of the response, without parameters. May be empty (as for a 204).
    pub mime: String,
    /// HTTP status of the response.
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    pub status: u16,
    /// Request line and header fields (and body of a POST), bytes on the wire.
    pub request_bytes: u32,
    /// Status line and header fields of the response, bytes on the wire.
    pub header_bytes: u32,
    /// Body of the response, bytes on the wire (as encoded).
    pub body_bytes: u64,
    /// From the request's arrival at the server to the response's first byte leaving it, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub server_ms: f64,
    /// Main-thread time the browser spends on it once it has arrived (parse, style, execute), ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_ms: f64,
    /// Whether the load event waits for it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub blocks_load: bool,
    /// How the resource is discovered. Only the document has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<Initiator>,
}

/// Which resource discovers this one, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Initiator {
    /// Index of the discovering resource.
    pub resource: usize,
    /// How it is discovered.
    pub via: Via,
    /// With `via` = `parser`: bytes of the initiator's body that must have arrived, on the wire.
    #[serde(default, skip_serializing_if = "is_none")]
    pub at_byte: u64,
    /// Index of a resource that must also have been processed before this one is requested, such as a script that
    /// blocks the parser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<usize>,
    /// Time between discovery, or the end of `after`, and the request, ms: a timer, or waiting code of the page.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ms: f64,
    /// `true` if the recording does not name the initiator and a rule of the importer chose it.
    #[serde(default, skip_serializing_if = "is_no")]
    pub inferred: bool,
}

/// How a resource is discovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// The parser (or preload scanner) meets the reference while the initiator's body streams in.
    Parser,
    /// A style sheet refers to the resource, which is requested when the sheet has arrived and been processed.
    Style,
    /// A script requests the resource when the script has arrived and been executed.
    Script,
    /// The initiator's response redirects to the resource, which is requested when the response's header has arrived.
    Redirect,
}

/// What the browser uses a resource for. This decides its priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The page itself.
    Document,
    /// A document inside a frame.
    Frame,
    /// A style sheet.
    Style,
    /// A script.
    Script,
    /// A web font.
    Font,
    /// Data that a script requests.
    Xhr,
    /// An image.
    Image,
    /// Anything else (media, plug-in content, beacons).
    Other,
}

/// A reference without a recorded response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// The URL of the reference.
    pub url: String,
    /// Where the reference is, and why it has no response.
    pub reason: String,
}

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Origin {
    /// `true` for https.
    pub secure: bool,
    /// Lower-case host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Origin {
    /// Host and port as in a request. The port is left out if it is the scheme's default.
    pub fn authority(&self) -> String {
        let own = if self.secure { 443 } else { 80 };
        if self.port == own {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

fn get() -> String {
    "GET".to_owned()
}
fn is_get(method: &str) -> bool {
    method == "GET"
}
fn ok() -> u16 {
    200
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_ok(status: &u16) -> bool {
    *status == 200
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_none(bytes: &u64) -> bool {
    *bytes == 0
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_no_trip(trips: &u8) -> bool {
    *trips == 0
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(ms: &f64) -> bool {
    *ms == 0.0
}
fn yes() -> bool {
    true
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_yes(flag: &bool) -> bool {
    *flag
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_no(flag: &bool) -> bool {
    !*flag
}
