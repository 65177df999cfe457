//! What a treatment promises of every connection, and how a connection can break it.
//!
//! On a path that loses and changes nothing, the cookie state decides what a connection's SYN carries, whether the
//! server accepts the data, and whether it sends a new cookie (RFC 7413, section 4.2; in Linux `tcp_try_fastopen`
//! and `tcp_rcv_fastopen_synack`). Cookies are compared by their bytes. A cookie that the client did not receive
//! during the load must come from priming.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use firstflight_path::{Nanos, Protocol};

use serde::Serialize;

use crate::ledger::{Cookie, EcnSeen, Entry, FirstFlight};
use crate::{Cookies, Load, TlsVersion};

/// A SYN that the client sent before it had a cookie may reach the lab's relay this much later, ns.
const GRACE: Nanos = 50_000_000;

/// A connection: its host's number, and its ledger entry.
pub type Connection<'a> = (usize, &'a Entry);

/// What a load promises of every connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    /// The promise about its SYN.
    pub fast_open: FastOpen,
    /// Whether both ends use ECN (RFC 3168); `None` promises nothing.
    pub ecn: Option<bool>,
    /// The server's initial window, segments (RFC 6928); `None` promises nothing.
    pub initial_window: Option<u32>,
    /// Congestion control of the servers' sockets; `None` promises nothing.
    pub congestion_control: Option<String>,
    /// Whether a `ClientHello` has a key share for X25519MLKEM768; `None` promises nothing.
    pub post_quantum: Option<bool>,
    /// The promise about TLS; `None` promises nothing.
    pub tls: Option<TlsPromise>,
    /// Numbers of the hosts that use TLS 1.2 because the recording did, whatever `tls` says.
    pub tls12_hosts: BTreeSet<usize>,
    /// Whether https origins use QUIC; `None` promises nothing.
    pub quic: Option<bool>,
}

/// What a load promises of every TLS connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TlsPromise {
    /// The version.
    pub version: TlsVersion,
    /// The cookie state, with its seed, if the client has sessions to resume when the load begins.
    pub sessions: Option<(Cookies, u64)>,
    /// Whether safe requests are sent as early data.
    pub early_data: bool,
    /// Whether the path may lose early data. QUIC then sends it again in other packets.
    pub may_lose: bool,
    /// The transport. A TCP connection that replaces QUIC must only have the right version.
    pub over: Protocol,
}

/// What the server's end of a connection reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// The congestion control of its socket; `None` if the socket could not be asked.
    pub congestion_control: Option<String>,
    /// Whether the `ClientHello` it received has a key share for X25519MLKEM768; `None` if it received none.
    pub post_quantum: Option<bool>,
    /// Its TLS; `None` if it answered no `ClientHello`.
    pub tls: Option<Secured>,
}

/// What the client's end of a connection reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Client {
    /// Its TLS; `None` if no handshake was done, or the program cannot be asked.
    pub tls: Option<Secured>,
    /// Whether its first request may be early data: the method is safe (RFC 9110, section 9.2.1), and the request
    /// short enough. `None` if no request was sent, or that is unknown.
    pub may_be_early: Option<bool>,
}

/// What one end reports of its TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secured {
    /// The version.
    pub version: TlsVersion,
    /// Whether it resumed a session.
    pub is_resumed: bool,
    /// The state of its early data.
    pub early_data: EarlyData,
}

/// What happened to early data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EarlyData {
    /// There was none.
    #[default]
    None,
    /// It was sent, and the outcome is unknown.
    Sent,
    /// The server accepted it.
    Accepted,
    /// The server rejected it, or would have: the client sends it again.
    Rejected,
}

/// A server whose application writes as fast as it can sends at least this many segments at once, if the window
/// allows: its send buffer has room for half as many again (`tcp_sndbuf_expand` in Linux).
const SURELY_WRITTEN: u32 = 20;
/// The most that a segment takes of the client's window, bytes.
const SEGMENT_BYTES: u32 = 1_460;

/// What the treatment promises of every SYN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FastOpen {
    /// `tcp`: no SYN carries the option or data.
    Never,
    /// `tfo` on a path that loses and changes nothing: the SYN follows from the cookies.
    Cookies {
        /// The cookie state.
        cookies: Cookies,
        /// Seed that decides which hosts have a cookie, if only a share of them has.
        seed: u64,
    },
    /// `tfo` on any other path: the witnesses must agree, whatever they saw.
    Agreement,
}

/// How a connection breaks its load's promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// Its SYN, or the outcome of its SYN.
    #[error("{0}")]
    FastOpen(&'static str),
    /// The SYN did not ask for ECN.
    #[error("its SYN did not ask for ECN")]
    EcnNotAsked,
    /// The SYN-ACK did not agree to ECN.
    #[error("its SYN-ACK did not agree to ECN")]
    EcnNotAgreed,
    /// The server sent this many segments that no queue could mark.
    #[error("{} of the server's new data could not be marked, though both ends use ECN", plural(*.0, "packet"))]
    EcnNotUsed(u32),
    /// It used ECN in a load without ECN.
    #[error("it used ECN in a load without")]
    EcnUsed,
    /// The server sent more than its initial window.
    #[error("its server sent {} before any was acknowledged, with an initial window of {asked}", plural(*.sent, "segment"))]
    WindowExceeded {
        /// Segments.
        sent: u32,
        /// The initial window, segments.
        asked: u32,
    },
    /// The server waited before its initial window was used up.
    #[error("its server waited after {}, with an initial window of {asked}", plural(*.sent, "segment"))]
    WindowUnused {
        /// Segments.
        sent: u32,
        /// The initial window, segments.
        asked: u32,
    },
    /// The server's socket has another congestion control.
    #[error("its server's socket has congestion control {seen}, not {asked}")]
    CongestionControl {
        /// The kernel's name for it.
        seen: String,
        /// The one the job asked for.
        asked: String,
    },
    /// The `ClientHello` lacks a key share that it should have.
    #[error("its ClientHello offers no key share X25519MLKEM768")]
    NoPostQuantum,
    /// The `ClientHello` has a key share that it should not have.
    #[error("its ClientHello offers the key share X25519MLKEM768 in a load without")]
    PostQuantum,
    /// The server sent data, but its socket could not be asked.
    #[error("its server's socket could not be asked")]
    ServerUnasked,
    /// Its TLS, or its early data.
    #[error("{0}")]
    Tls(&'static str),
    /// It has TLS and used TCP in a load with QUIC.
    #[error("it spoke TLS over TCP in a load with QUIC")]
    NotQuic,
    /// It used UDP in a load without QUIC.
    #[error("it spoke QUIC in a load without")]
    Quic,
}

/// A count with its noun: `1 segment`, `2 segments`.
fn plural(count: u32, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Every cookie that the client received, and when.
#[derive(Debug, Default)]
pub struct Given {
    cookies: HashMap<(usize, u128), Nanos>,
    first: HashMap<usize, Nanos>,
}

impl<'a> FromIterator<Connection<'a>> for Given {
    fn from_iter<T: IntoIterator<Item = Connection<'a>>>(connections: T) -> Self {
        let mut given = Self::default();
        for (host, entry) in connections {
            let Some(at) = entry.answered.filter(|_| entry.new_cookie != 0) else {
                continue;
            };
            let cookie = given.cookies.entry((host, entry.new_cookie)).or_insert(at);
            *cookie = at.min(*cookie);
            let first = given.first.entry(host).or_insert(at);
            *first = at.min(*first);
        }
        given
    }
}

impl Given {
    fn has(&self, (host, entry): Connection<'_>) -> bool {
        self.cookies.contains_key(&(host, entry.sent_cookie))
    }

    /// Whether the client had one of this host's cookies for some time before it opened the connection.
    fn long_before(&self, (host, entry): Connection<'_>) -> bool {
        let first = self.first.get(&host);
        first.is_some_and(|at| at + GRACE < entry.opened)
    }
}

impl Load {
    /// What the load's treatment promises.
    #[must_use]
    pub fn promise(&self) -> Promise {
        Promise {
            fast_open: match self.mode {
                mode if !mode.is_fast_open() => FastOpen::Never,
                _ if self.path.may_lose() => FastOpen::Agreement,
                _ => FastOpen::Cookies {
                    cookies: self.cookies,
                    seed: self.path.seed,
                },
            },
            ecn: Some(self.path.ecn),
            initial_window: None,
            congestion_control: None,
            tls12_hosts: BTreeSet::new(),
            post_quantum: (self.offer().version == TlsVersion::V1_3).then_some(self.tls.post_quantum),
            tls: Some(TlsPromise {
                version: self.offer().version,
                sessions: self.mode.has_sessions().then_some((self.cookies, self.path.seed)),
                early_data: self.mode.sends_early_data(),
                may_lose: self.path.may_lose(),
                over: if self.mode.is_quic() {
                    Protocol::Udp
                } else {
                    Protocol::Tcp
                },
            }),
            // What does not get through over QUIC uses TCP.
            quic: match self.mode.is_quic() {
                true if self.path.may_interfere() => None,
                is_quic => Some(is_quic),
            },
        }
    }
}

impl From<FastOpen> for Promise {
    /// A promise about Fast Open alone.
    fn from(fast_open: FastOpen) -> Self {
        Self {
            fast_open,
            ecn: None,
            initial_window: None,
            congestion_control: None,
            tls12_hosts: BTreeSet::new(),
            post_quantum: None,
            tls: None,
            quic: None,
        }
    }
}

impl Promise {
    /// The first promise that a connection breaks on the wire.
    pub fn broken_by(&self, connection: Connection<'_>, given: &Given) -> Option<Breach> {
        let (_, entry) = connection;
        let fast_open = self.fast_open.broken_by(connection, given);
        fast_open
            .map(Breach::FastOpen)
            .or_else(|| self.ecn.and_then(|asked| ecn(asked, entry)))
            .or_else(|| {
                self.initial_window
                    .and_then(|asked| initial_window(asked, entry.first_flight))
            })
    }

    /// The first promise that a connection breaks by what its two ends report; `None` if no server accepted it.
    pub fn broken_by_ends(
        &self,
        connection: Connection<'_>,
        server: Option<&Server>,
        client: Client,
    ) -> Option<Breach> {
        self.congestion_control_broken_by(connection.1, server)
            .or_else(|| self.protocol_broken_by(connection.1, server))
            .or_else(|| self.key_share_broken_by(connection.0, server?))
            .or_else(|| {
                let tls = server?.tls?;
                let promised = TlsPromise {
                    version: if self.tls12_hosts.contains(&connection.0) {
                        TlsVersion::V1_2
                    } else {
                        self.tls?.version
                    },
                    ..self.tls?
                };
                promised.broken_by(connection, tls, client).map(Breach::Tls)
            })
    }

    fn protocol_broken_by(&self, entry: &Entry, server: Option<&Server>) -> Option<Breach> {
        let has_tls = server.is_some_and(|server| server.tls.is_some());
        match (self.quic?, entry.protocol) {
            (true, Protocol::Tcp) if has_tls => Some(Breach::NotQuic),
            (false, Protocol::Udp) => Some(Breach::Quic),
            _ => None,
        }
    }

    fn key_share_broken_by(&self, host: usize, server: &Server) -> Option<Breach> {
        let asked = self.post_quantum? && !self.tls12_hosts.contains(&host);
        match (asked, server.post_quantum?) {
            (true, false) => Some(Breach::NoPostQuantum),
            (false, true) => Some(Breach::PostQuantum),
            _ => None,
        }
    }

    fn congestion_control_broken_by(&self, entry: &Entry, server: Option<&Server>) -> Option<Breach> {
        let asked = self.congestion_control.as_ref()?;
        match server.and_then(|server| server.congestion_control.as_ref()) {
            Some(seen) => (seen != asked).then(|| Breach::CongestionControl {
                seen: seen.clone(),
                asked: asked.clone(),
            }),
            None => (entry.first_flight.segments > 0).then_some(Breach::ServerUnasked),
        }
    }
}

impl TlsPromise {
    /// Compares what the wire, the server and the client say of TLS with each other, and with the promise. For a
    /// connection whose server has answered its `ClientHello`.
    fn broken_by(
        self,
        (host, entry): Connection<'_>,
        server: Secured,
        client: Client,
    ) -> Option<&'static str> {
        let early_bytes = entry.hello.map_or(0, |hello| hello.early_data_bytes);
        let was_early = early_bytes > 0;
        // QUIC sends the data of lost 0-RTT packets again in other packets. The server then reports no early data.
        let may_be_lost = self.may_lose || entry.lost_datagrams > 0;
        let was_lost = entry.protocol == Protocol::Udp && may_be_lost && server.early_data == EarlyData::None;
        let of_client = |client: Secured| match client.early_data {
            EarlyData::Accepted if was_lost => EarlyData::None,
            known => known,
        };
        let agrees = |client: Secured| {
            (Secured {
                early_data: of_client(client),
                ..client
            }) == server
        };
        if client.tls.is_some_and(|client| !agrees(client)) {
            return Some("client and server do not agree on its TLS");
        }
        if server.early_data == EarlyData::Accepted && early_bytes == 0 {
            return Some("its server had early data, which the relay did not see");
        }
        if server.early_data == EarlyData::None && early_bytes > 0 && !was_lost {
            return Some("the relay saw early data, of which its server knows nothing");
        }
        if server.version != self.version {
            return Some(match self.version {
                TlsVersion::V1_2 => "it spoke TLS 1.3 in a load with TLS 1.2",
                TlsVersion::V1_3 => "it spoke TLS 1.2 in a load with TLS 1.3",
            });
        }
        if was_early && !self.early_data {
            return Some("it sent early data in a load without");
        }
        if was_early && client.may_be_early == Some(false) {
            return Some("it sent a request as early data that is not safe");
        }
        if entry.protocol != self.over {
            return None;
        }
        let state = self.sessions.map(|(cookies, seed)| cookies.of_host(host, seed));
        let is_demanded = self.early_data && state != Some(Cookies::NoEarlyData);
        match state {
            // The server knows every session that the client receives during the load.
            Some(Cookies::Cold | Cookies::Expired) => {
                let offers = entry.hello.is_some_and(|hello| hello.offers_session);
                (offers && !server.is_resumed).then_some("it offered a session that it should not have")
            }
            // The server does not know the client's first sessions; it knows later ones.
            Some(Cookies::Stale) => (server.early_data == EarlyData::Accepted && !server.is_resumed)
                .then_some("its server took early data without a session"),
            Some(_) if !server.is_resumed => Some("it resumed no session"),
            Some(_) if was_early && !is_demanded => {
                Some("it sent early data, which its ticket does not allow")
            }
            Some(_) if is_demanded && client.may_be_early == Some(true) && !was_early => {
                let is_announced = entry.hello.is_some_and(|hello| hello.offers_early_data);
                Some(if is_announced {
                    "its ClientHello announced early data, and its request did not go with it"
                } else {
                    "its request did not go with the ClientHello"
                })
            }
            Some(_) if server.early_data == EarlyData::Rejected => Some("its server rejected its early data"),
            _ => None,
        }
    }
}

/// Checks whether a connection used ECN as promised. A retransmitted SYN does not ask for ECN, to get past
/// middleboxes that drop such SYNs (`tcp_ecn_clear_syn`); retransmitted data is not ECN-capable. QUIC does not
/// negotiate ECN: its server's datagrams can be marked from the first on.
fn ecn(asked: bool, entry: &Entry) -> Option<Breach> {
    let EcnSeen {
        syn,
        syn_ack,
        capable,
        incapable,
    } = entry.ecn;
    let agrees = syn_ack.is_some_and(|bits| bits.ece);
    let is_clear = entry.interfered.is_none() && entry.syn_retransmits == 0;
    let over_tcp = entry.protocol == Protocol::Tcp;
    match asked {
        true if !over_tcp && is_clear && capable == 0 && incapable > 0 => Some(Breach::EcnNotUsed(incapable)),
        true if !over_tcp => None,
        false if syn.ece || syn.cwr || agrees || capable > 0 => Some(Breach::EcnUsed),
        true if !(syn.ece && syn.cwr) => Some(Breach::EcnNotAsked),
        true if is_clear && syn_ack.is_some() && !agrees => Some(Breach::EcnNotAgreed),
        true if is_clear && incapable > 0 => Some(Breach::EcnNotUsed(incapable)),
        _ => None,
    }
}

/// Checks the size of a first flight.
fn initial_window(asked: u32, flight: FirstFlight) -> Option<Breach> {
    let sent = flight.segments;
    let due = asked.min(SURELY_WRITTEN).min(flight.window / SEGMENT_BYTES);
    match sent {
        _ if sent > asked => Some(Breach::WindowExceeded { sent, asked }),
        _ if flight.is_held && sent + flight.probes < due => Some(Breach::WindowUnused { sent, asked }),
        _ => None,
    }
}

impl FastOpen {
    fn broken_by(self, connection: Connection<'_>, given: &Given) -> Option<&'static str> {
        let (host, entry) = connection;
        match self {
            Self::Agreement => None,
            Self::Never => (entry.cookie != Cookie::None || entry.syn_payload_bytes > 0)
                .then_some("its SYN used Fast Open in a tcp load"),
            Self::Cookies { cookies, seed } => against(cookies.of_host(host, seed), connection, given),
        }
    }

    /// A host that has sent and accepted more different cookies than it has servers.
    pub fn crowded<'a>(self, connections: impl IntoIterator<Item = Connection<'a>>) -> Option<String> {
        let Self::Cookies {
            cookies: Cookies::Pool(servers),
            ..
        } = self
        else {
            return None;
        };
        let mut seen: BTreeMap<usize, BTreeSet<u128>> = BTreeMap::new();
        for (host, entry) in connections {
            let cookies = [entry.sent_cookie, entry.new_cookie].into_iter();
            seen.entry(host)
                .or_default()
                .extend(cookies.filter(|cookie| *cookie != 0));
        }
        let mut counts = seen.into_iter().map(|(host, cookies)| (host, cookies.len()));
        let (host, count) = counts.find(|(_, count)| *count > servers as usize)?;
        let servers = plural(servers, "server");
        Some(format!("host {host}: {count} different cookies of {servers}"))
    }
}

/// Checks a connection to a host in this cookie state.
fn against(state: Cookies, connection: Connection<'_>, given: &Given) -> Option<&'static str> {
    let (_, entry) = connection;
    match (state, entry.cookie) {
        (Cookies::Cookieless, Cookie::None) if entry.offered() => outcome(entry, true, false),
        (Cookies::Cookieless, _) => Some("its SYN carried no data without a cookie"),
        (Cookies::Cold | Cookies::Moved, Cookie::Requested) if given.long_before(connection) => {
            Some("its SYN asked for a cookie, which the client had been given before")
        }
        (Cookies::Cold | Cookies::Moved, Cookie::Requested) => outcome(entry, false, true),
        (_, Cookie::Sent) if entry.offered() => sent(state, connection, given),
        _ => Some("its SYN carried no data in a warm tfo load"),
    }
}

/// Checks a connection whose SYN carried data and a cookie.
fn sent(state: Cookies, connection: Connection<'_>, given: &Given) -> Option<&'static str> {
    let (is_new, (_, entry)) = (given.has(connection), connection);
    match state {
        _ if !is_new && given.long_before(connection) => {
            Some("its SYN carried an old cookie, though the client had been given a new one")
        }
        Cookies::Cold | Cookies::Moved if !is_new => {
            Some("its SYN carried a cookie that the client had not been given")
        }
        Cookies::Pool(_) if entry.new_cookie == entry.sent_cookie => {
            Some("it was given the cookie that it had sent")
        }
        Cookies::Pool(_) => outcome(entry, entry.accepted(), !entry.accepted()),
        Cookies::Stale | Cookies::Nat if !is_new => outcome(entry, false, true),
        Cookies::Backup if !is_new => outcome(entry, true, true),
        _ => outcome(entry, true, false),
    }
}

/// Checks the outcome of a SYN. A full queue may drop the SYN, which is then sent again without data, or the
/// SYN-ACK, which is then sent again without a cookie (`tcp_retransmit_timer`, `tcp_rtx_synack`).
fn outcome(entry: &Entry, is_accepted: bool, is_given: bool) -> Option<&'static str> {
    if entry.syn_retransmits > 0 || entry.answered.is_none() {
        return None;
    }
    match (entry.accepted(), entry.new_cookie != 0) {
        (false, _) if is_accepted => Some("its SYN's data was not acknowledged"),
        (true, _) if !is_accepted => Some("its SYN's data was acknowledged, though its cookie was not good"),
        (_, false) if is_given && entry.retransmits == 0 => Some("it was given no cookie"),
        (_, true) if !is_given => Some("it was given a cookie, though it had a good one"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
