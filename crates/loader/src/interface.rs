//! What crosses the border between the loader and its driver.

use serde::Serialize;

/// A point in time, or a span of it: nanoseconds, counted from an epoch of the driver's choice.
pub type Nanos = u64;

/// Nanoseconds in a millisecond.
pub const NANOS_PER_MS: Nanos = 1_000_000;

/// When the loader speaks QUIC with https origins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Quic {
    /// Never.
    #[default]
    Never,
    /// Always, as Chromium with `--origin-to-force-quic-on`.
    Always,
    /// Where it gets through. If its handshake is not done after [`RACE`] the loader opens a connection over TCP too, and
    /// stays with it if that is ready first, or if the one over QUIC fails: as Chromium does
    /// (`HttpStreamFactory::JobController`), for each origin by itself.
    WhereItWorks,
}

/// Which https origins speak HTTP/2 over TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Http2 {
    /// None.
    #[default]
    Never,
    /// All.
    Always,
    /// Those whose host did in the recording.
    Recorded,
}

/// How long QUIC is ahead of TCP where nothing is known of the round trip (Chromium:
/// `QuicSessionPool::GetTimeDelayForWaitingJob`).
pub const RACE: Nanos = 300 * NANOS_PER_MS;

/// The status that asks for a request again, not as early data (RFC 8470, section 5.2).
pub const TOO_EARLY: u16 = 425;

/// Requests that a connection of HTTP/2 carries at a time: as many as the lab's servers allow.
pub const MAX_STREAMS: u32 = 200;

/// Index into [`Loader::origins`](crate::Loader::origins).
pub type OriginId = usize;

/// A connection: dense, in order of opening, never used twice.
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
    /// Whether a connection carries more than one request. The course's server closed after each.
    pub keep_alive: bool,
    /// Which https origins speak HTTP/2: one connection to each, which carries up to
    /// [`MAX_STREAMS`] requests at a time. What is asked for while it is being opened waits for it.
    pub http2: Http2,
    /// Whether the first connection over TLS to a host, and those that are ready meanwhile, wait as long as the
    /// page says that verifying the host's certificate took. Chromium verifies a certificate once
    /// (`net::CachingCertVerifier`).
    pub verifies: bool,
    /// Whether https origins are spoken to over QUIC, as with HTTP/2 on one connection to each.
    pub quic: Quic,
    /// Whether the first connection to a host waits for the lookup of its name, as long as the page says.
    pub lookups: bool,
    /// A connection that makes no progress for this long is given up: counted from opening it to being
    /// writable, and from handing it a request over every event of the response. Waiting in the origin's
    /// queue does not count, nor does a slow body that keeps arriving.
    pub request_timeout: Nanos,
    /// A load that is not done this long after navigation start is ended: what is unfinished has failed.
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

/// What happened to a connection, or to a request that it carries. Events on a connection that is closed or unknown,
/// or of a request that it does not carry, are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// It can take a request: the handshake is done or, with TFO or a ticket, data may go ahead of it.
    Writable(ConnId),
    /// QUIC's handshake is done: the server is there. It comes after `Writable`, or with it.
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
        /// The `Location` field. Where it leads is the page's to say; a redirect without it leads nowhere.
        location: Option<&'a str>,
    },
    /// More body bytes arrived.
    Body {
        /// The connection.
        conn: ConnId,
        /// Index of the resource in the page.
        request: usize,
        /// How many more, as on the wire.
        bytes: u64,
    },
    /// The response is complete.
    End {
        /// The connection.
        conn: ConnId,
        /// Index of the resource in the page.
        request: usize,
        /// Whether the server lets the connection carry another request.
        reusable: bool,
    },
    /// It is gone: refused, reset, or closed, whether a response was due or not.
    Failed {
        /// The connection.
        conn: ConnId,
        /// Why, for the record.
        error: &'a str,
    },
}

/// What the loader wants done, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Open a connection.
    Open {
        /// Its name from here on.
        conn: ConnId,
        /// Where to.
        origin: OriginId,
        /// Over QUIC.
        quic: bool,
    },
    /// Send a request. The connection is writable and, unless it speaks HTTP/2, carries no other.
    Send {
        /// The connection.
        conn: ConnId,
        /// Index of the resource in the page.
        request: usize,
    },
    /// Close a connection: the loader is done with it and listens to it no more.
    Close {
        /// The connection.
        conn: ConnId,
    },
}
