//! The interface between the loader and its driver.

use serde::Serialize;

/// A point in time or a time span: nanoseconds since an epoch that the driver chooses.
pub type Nanos = u64;

/// Nanoseconds in a millisecond.
pub const NANOS_PER_MS: Nanos = 1_000_000;

/// When the loader uses QUIC with https origins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Quic {
    /// Never.
    #[default]
    Never,
    /// Always, like Chromium with `--origin-to-force-quic-on`.
    Always,
    /// Where it works. If the handshake is not done after [`RACE`], the loader also opens a connection over TCP. It
    /// stays with TCP if that is ready first, or if QUIC fails. Chromium does the same
    /// (`HttpStreamFactory::JobController`). Each origin decides separately.
    WhereItWorks,
}

/// Which https origins use HTTP/2 over TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Http2 {
    /// None.
    #[default]
    Never,
    /// All.
    Always,
    /// Those whose host used it in the recording.
    Recorded,
}

/// Head start of QUIC over TCP while no round-trip time is known (Chromium:
/// `QuicSessionPool::GetTimeDelayForWaitingJob`).
pub const RACE: Nanos = 300 * NANOS_PER_MS;

/// The status that asks the client to send a request again, not as early data (RFC 8470, section 5.2).
pub const TOO_EARLY: u16 = 425;

/// Concurrent requests on one HTTP/2 connection; the limit of the lab's servers.
pub const MAX_STREAMS: u32 = 200;

/// Index into [`Loader::origins`](crate::Loader::origins).
pub type OriginId = usize;

/// A connection. Numbers are dense, in order of opening, and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ConnId(pub u32);

/// The browser's limits and timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Most connections to one origin at a time; at least 1.
    /// Chromium: `g_max_sockets_per_group` = 6, `net/socket/client_socket_pool_manager.cc`.
    pub connections_per_origin: usize,
    /// Most connections at a time; at least 1. Chromium: `g_max_sockets_per_pool` = 256, same file.
    pub max_connections: usize,
    /// Whether a connection may carry more than one request. The course's server closed after each.
    pub keep_alive: bool,
    /// Which https origins use HTTP/2: one connection to each, with up to [`MAX_STREAMS`] requests at a time.
    /// Requests wait while that connection is being opened.
    pub http2: Http2,
    /// Whether connections wait for certificate verification, as long as the page says for the host: the first TLS
    /// connection, and those that become ready meanwhile. Chromium verifies a certificate once
    /// (`net::CachingCertVerifier`).
    pub verifies: bool,
    /// Whether https origins use QUIC. As with HTTP/2, each has one connection.
    pub quic: Quic,
    /// Whether the first connection to a host waits for its name lookup, as long as the page says.
    pub lookups: bool,
    /// The loader gives up a connection without progress for this long. Progress is counted from opening to being
    /// writable, and then from sending a request over every event of the response. Waiting in the origin's queue
    /// does not count, nor does a slow body that keeps arriving.
    pub request_timeout: Nanos,
    /// The loader ends a load that is not done this long after navigation start. Unfinished requests have failed.
    pub load_timeout: Nanos,
}

impl Default for Config {
    /// Chromium's limits, keep-alive, no lookups, 30 s for a request and 120 s for the load.
    fn default() -> Self {
        Self {
            connections_per_origin: 6,
            max_connections: 256,
            keep_alive: true,
            http2: Http2::Never,
            verifies: false,
            quic: Quic::Never,
            lookups: false,
            request_timeout: 30_000 * NANOS_PER_MS,
            load_timeout: 120_000 * NANOS_PER_MS,
        }
    }
}

/// What happened to a connection, or to a request on it. The loader ignores events on a closed or unknown
/// connection, and events of a request that the connection does not carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// It can take a request: the handshake is done, or TFO or a ticket lets data be sent before that.
    Writable(ConnId),
    /// The QUIC handshake is done, so the server is reachable. Sent with or after `Writable`.
    Established(ConnId),
    /// The last byte of the request was handed to the kernel.
    RequestSent {
        /// The connection.
        conn: ConnId,
        /// Index of the resource in the page.
        request: usize,
    },
    /// The response's header is complete (a final one: interim 1xx responses are not reported).
    Head {
        /// The connection.
        conn: ConnId,
        /// Index of the resource in the page.
        request: usize,
        /// HTTP status.
        status: u16,
        /// The `Location` field. The page decides where it leads; a redirect without the field leads nowhere.
        location: Option<&'a str>,
    },
    /// More body bytes arrived.
    Body {
        /// The connection.
        conn: ConnId,
        /// Index of the resource in the page.
        request: usize,
        /// Number of new bytes, as on the wire.
        bytes: u64,
    },
    /// The response is complete.
    End {
        /// The connection.
        conn: ConnId,
        /// Index of the resource in the page.
        request: usize,
        /// Whether the connection can carry another request afterwards.
        reusable: bool,
    },
    /// The connection is closed: refused, reset, or closed by the server, with or without a pending response.
    Failed {
        /// The connection.
        conn: ConnId,
        /// Why, for the record.
        error: &'a str,
    },
}

/// What the driver must do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Open a connection.
    Open {
        /// The number of the new connection.
        conn: ConnId,
        /// The origin to connect to.
        origin: OriginId,
        /// Whether to use QUIC.
        quic: bool,
    },
    /// Send a request. The connection is writable. Unless it uses HTTP/2 or HTTP/3, it carries no other request.
    Send {
        /// The connection.
        conn: ConnId,
        /// Index of the resource in the page.
        request: usize,
    },
    /// Close a connection. The loader ignores its further events.
    Close {
        /// The connection.
        conn: ConnId,
    },
}
