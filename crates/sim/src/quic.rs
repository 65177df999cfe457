//! One QUIC connection: client, server, and its ledger entry.
//!
//! Both ends are those of the lab ([`firstflight_quic`]), except that their cryptography only has the lengths.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use firstflight_load::ledger::Entry;
use firstflight_load::{EarlyRequests, Priority, promise};
use firstflight_loader::{ConnId, OriginId, TOO_EARLY};
use firstflight_path::{Direction, Ecn, Flow, Nanos};
use firstflight_quic::crypto::{
    NoKey, Seen, SizedClient, SizedServer, Ticket, WitnessedClient, WitnessedServer,
};
use firstflight_quic::proto::{ClientConfig, ConnectionId, ServerConfig};
use firstflight_quic::{
    Client, ClientEvent, Server, ServerEvent, Settings, StreamKey, deterministic_endpoint, response_block,
    seed,
};
use firstflight_tcp::earlier;

use crate::client::Browser;
use crate::host::Host;
use crate::page::Context;
use crate::tls::{Session, quic_lengths};

/// Bytes of a UDP header.
const HEADER: u32 = 8;
/// The content of bodies. Not zeros, which the cryptography without keys would take for padding.
static FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// One connection.
#[derive(Debug)]
pub(crate) struct Quic {
    pub(crate) host: usize,
    /// Its ledger entry, from the first datagram on.
    pub(crate) entry: Option<Entry>,
    /// Its number in the order of first packets, and its flow on the path.
    pub(crate) number: Option<(u32, Flow)>,
    conn: ConnId,
    client: Client,
    pub(crate) is_closed: bool,
    /// Number of tickets that the client has kept.
    tickets: u64,
    server: Server,
    seen: Option<Arc<Seen>>,
    offers_early_data: bool,
    post_quantum: bool,
    /// Answers with the time they are due, in the order of requests; `None` for a 425.
    waiting: Vec<(Nanos, StreamKey, Option<usize>)>,
    /// The earliest time for which the heap has an entry for it.
    armed: Option<Nanos>,
    /// Which ends may have something to send.
    unpolled: Ends,
}

/// Ends of a connection. As in the lab, an end is polled for datagrams only after events of its own. Otherwise
/// quinn's pacer would release each datagram as soon as there is room for one, instead of a burst when its timer
/// fires.
#[derive(Debug)]
struct Ends {
    client: bool,
    server: bool,
}

/// The settings of both ends.
fn settings(context: Context<'_>) -> Settings {
    Settings {
        congestion_control: context.job.congestion_control.over_quic(),
        initial_window: context.job.initial_window,
    }
}

/// Length of the connection ID that a client chooses for its server.
const FIRST_ID: usize = 20;

fn server_address(host: usize) -> SocketAddr {
    let [_, second, third, fourth] = (host as u32).to_be_bytes();
    SocketAddr::from(([198, 19 + second, third, fourth], 443))
}

impl Quic {
    /// Opens connection `conn` to `origin`, whose `name` is on `host`.
    pub(crate) fn open(
        context: Context<'_>,
        conn: ConnId,
        origin: OriginId,
        name: &str,
        host: &mut Host,
    ) -> Self {
        let (job, offer) = (context.job, context.job.load.offer());
        let session = host.quic_sessions.take(offer.version);
        let ticket = match session {
            Session::None => None,
            Session::Refused => Some(Ticket { is_known: false }),
            Session::Resumed => Some(Ticket { is_known: true }),
        };
        let lengths = quic_lengths(offer, name, session);
        let transport = settings(context).transport();
        let mut config = ClientConfig::new(Arc::new(WitnessedClient(Arc::new(SizedClient {
            lengths,
            ticket,
            early_data: offer.early_data,
        }))));
        config.transport_config(Arc::clone(&transport));
        config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&[conn.0 as u8; FIRST_ID])));
        let mut server_config = ServerConfig::new(
            Arc::new(WitnessedServer(Arc::new(SizedServer {
                lengths,
                early_data: offer.early_data,
            }))),
            Arc::new(NoKey),
        );
        server_config.transport_config(transport);
        let number = context.page.hosts[origin];
        let client = Client::connect(
            context.now,
            Arc::new(deterministic_endpoint(1)),
            config,
            server_address(number),
            name,
            seed(job.load.path.seed, conn.0, true),
        );
        Self {
            host: number,
            entry: None,
            number: None,
            conn,
            client: client.expect("a cryptography without names refuses none"),
            is_closed: false,
            tickets: 0,
            server: Server::new(
                Arc::new(deterministic_endpoint(2)),
                Arc::new(server_config),
                seed(job.load.path.seed, conn.0, false),
            ),
            seen: None,
            offers_early_data: offer.early_data && session != Session::None,
            post_quantum: offer.post_quantum,
            waiting: Vec::new(),
            armed: None,
            unpolled: Ends {
                client: true,
                server: false,
            },
        }
    }

    /// Whether it accepts a request before anything was sent.
    pub(crate) fn awaits_request(&self) -> bool {
        self.client.awaits_request()
    }

    /// What its server's end reports; `None` if no datagram has reached it.
    pub(crate) fn server(&self) -> Option<promise::Server> {
        let seen = self.seen.as_ref()?;
        Some(promise::Server {
            congestion_control: None,
            post_quantum: Some(self.post_quantum),
            tls: seen.at_server(self.offers_early_data),
        })
    }

    /// What its client's end reports.
    pub(crate) fn client(&self) -> promise::Client {
        self.client.told()
    }

    /// Requests `resource`.
    pub(crate) fn send(&mut self, context: Context<'_>, resource: usize, browser: &mut Browser) {
        let exchange = context.exchange(resource);
        self.client.ask(
            resource,
            context.http3_request(resource).clone(),
            exchange.is_safe,
        );
        self.unpolled.client = true;
        self.tell(context, browser);
    }

    /// The client closes it.
    pub(crate) fn close(&mut self, now: Nanos) {
        self.is_closed = true;
        self.client.close(now);
        self.unpolled.client = true;
    }

    /// A datagram arrives at one of its ends, with the ECN field of its IP header.
    pub(crate) fn arrive(
        &mut self,
        context: Context<'_>,
        direction: Direction,
        (datagram, ecn): (&[u8], Ecn),
        host: &mut Host,
        browser: &mut Browser,
    ) {
        let now = context.now;
        let bytes = BytesMut::from(datagram);
        match direction {
            Direction::Up => {
                let client = SocketAddr::from(([198, 18, 0, 1], self.conn.0 as u16));
                self.server.handle(now, client, bytes, ecn);
                self.unpolled.server = true;
                self.serve(context);
            }
            Direction::Down => {
                if let Some(entry) = &mut self.entry {
                    entry.datagram_arrived(now, packet_bytes(context, datagram));
                }
                self.client.handle(now, bytes, ecn);
                self.unpolled.client = true;
                self.gain_sessions(host);
                self.tell(context, browser);
            }
        }
    }

    /// Keeps the tickets that have come.
    fn gain_sessions(&mut self, host: &mut Host) {
        let tickets = self.client.seen().map_or(0, Seen::tickets);
        host.quic_sessions.gain((tickets - self.tickets) as u32);
        self.tickets = tickets;
    }

    fn serve(&mut self, context: Context<'_>) {
        while let Some(event) = self.server.poll() {
            match event {
                ServerEvent::Accepted { seen, .. } => self.seen = seen,
                ServerEvent::Request { stream, is_early, .. } => {
                    if is_early && context.job.load.early_requests() == EarlyRequests::AskedAgain {
                        self.waiting.push((context.now, stream, None));
                    } else if let Some(resource) = self.client.request_of(stream.1) {
                        let due = context.now + context.exchange(resource).wait;
                        self.waiting.push((due, stream, Some(resource)));
                    }
                }
            }
        }
        let (server, unpolled) = (&mut self.server, &mut self.unpolled);
        self.waiting.retain(|&(due, stream, resource)| {
            if due <= context.now {
                unpolled.server = true;
                if let Some(resource) = resource {
                    let exchange = context.exchange(resource);
                    let (priority, body) = (context.priority(resource), filler(exchange.body_bytes));
                    server.respond(stream, priority, &exchange.http3.response, body);
                } else {
                    server.respond(stream, Priority::EQUAL, &response_block(TOO_EARLY, [], 0), []);
                }
            }
            due > context.now
        });
    }

    /// Reports the client's events to the loader.
    fn tell(&mut self, context: Context<'_>, browser: &mut Browser) {
        while let Some(event) = self.client.poll() {
            if !self.is_closed {
                event.tell(
                    context.now,
                    self.conn,
                    &mut browser.loader,
                    &mut browser.wire_bytes,
                );
                self.is_closed = matches!(event, ClientEvent::Failed { .. });
            }
        }
    }

    /// A timer set for `at` has fired; `false` if it is not needed any more.
    pub(crate) fn fire(&mut self, context: Context<'_>, at: Nanos, browser: &mut Browser) -> bool {
        let now = context.now;
        if self.armed != Some(at) {
            return false;
        }
        self.armed = None;
        if self.client.next_timeout().is_some_and(|due| due <= now) {
            self.client.handle_timeout(now);
            self.unpolled.client = true;
            self.tell(context, browser);
        }
        if self.server.next_timeout().is_some_and(|due| due <= now) {
            self.server.handle_timeout(now);
            self.unpolled.server = true;
        }
        self.serve(context);
        true
    }

    /// Fills `datagram` with the next one of this direction. Returns the ECN field for its IP header; `None` if
    /// there is no datagram.
    pub(crate) fn poll(&mut self, now: Nanos, direction: Direction, datagram: &mut Vec<u8>) -> Option<Ecn> {
        if self.awaits_request() {
            return None;
        }
        let (is_unpolled, sent) = match direction {
            Direction::Up if self.unpolled.client => {
                let sent = self.client.poll_transmit(now, datagram);
                (&mut self.unpolled.client, sent)
            }
            Direction::Down if self.unpolled.server => {
                let sent = self.server.poll_transmit(now, datagram);
                (&mut self.unpolled.server, sent.map(|(_, ecn)| ecn))
            }
            Direction::Up | Direction::Down => return None,
        };
        *is_unpolled = sent.is_some();
        sent
    }

    /// The time to fire it, if that is earlier than its present entry.
    pub(crate) fn arm(&mut self) -> Option<Nanos> {
        let answer = self.waiting.iter().map(|(due, ..)| *due).min();
        let at = earlier(
            earlier(self.client.next_timeout(), self.server.next_timeout()),
            answer,
        )?;
        if self.awaits_request() || self.armed.is_some_and(|armed| armed <= at) {
            return None;
        }
        self.armed = Some(at);
        self.armed
    }
}

/// Size of the IP packet of a datagram, bytes.
pub(crate) fn packet_bytes(context: Context<'_>, datagram: &[u8]) -> u32 {
    context.job.load.ip.header_bytes() + HEADER + datagram.len() as u32
}

/// A body of this many bytes.
fn filler(bytes: u64) -> impl Iterator<Item = Bytes> {
    let mut left = bytes as usize;
    std::iter::from_fn(move || {
        let part = left.min(FILLER.len());
        left -= part;
        (part > 0).then(|| Bytes::from_static(&FILLER[..part]))
    })
}
