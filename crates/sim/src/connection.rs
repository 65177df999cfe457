//! One connection: client, server, and its ledger entry.

use firstflight_load::ledger::Entry;
use firstflight_load::{Cookies, HttpVersion, promise};
use firstflight_loader::{ConnId, NANOS_PER_MS, OriginId};
use firstflight_path::{Flow, Nanos};
use firstflight_tcp::{Answer, FastOpen, Segment, Socket, earlier};

use crate::channel::Channel;
use crate::client::{Browser, Client, Opening};
use crate::host::{Host, Keys};
use crate::http2::Http2;
use crate::job::Job;
use crate::load::seen;
use crate::page::Context;
use crate::server::Server;
use crate::tls::Tls;

/// If the server closes after its response, the client's FIN follows the response by at most this time. A real
/// client needs some time too: when the lab's client closes, the server's FIN has usually arrived, and the client's
/// FIN acknowledges it (`tcp_fin` delays the acknowledgment). On a slow link it has not.
const CLOSES_WITHIN: Nanos = NANOS_PER_MS;

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) host: usize,
    /// The keys of the server that it reaches.
    keys: Keys,
    /// Its ledger entry, from the first SYN on.
    pub(crate) entry: Option<Entry>,
    /// Its number in the order of first SYNs, and its flow on the path.
    pub(crate) number: Option<(u32, Flow)>,
    client: Client,
    client_socket: Socket,
    /// When the client closes, if the server does not close first.
    closes_at: Option<Nanos>,
    server: Server,
    server_socket: Option<Socket>,
    pub(crate) tls: Option<Box<Tls>>,
    http2: Option<Box<Http2>>,
    /// Whether it counts as a pending Fast Open request of its host.
    is_pending: bool,
    /// The earliest time for which the heap has an entry for it.
    armed: Option<Nanos>,
}

impl Connection {
    /// Opens connection `conn` to `origin` on `host`.
    pub(crate) fn open(
        context: Context<'_>,
        conn: ConnId,
        origin: OriginId,
        host: &mut Host,
        keys: Keys,
    ) -> Self {
        let job = context.job;
        let is_cookieless = job.load.cookies == Cookies::Cookieless;
        let is_fast_open = job.load.mode.is_fast_open();
        let option = if is_fast_open && !is_cookieless {
            host.option(&job.what_if)
        } else {
            FastOpen::Absent
        };
        let number = context.page.hosts[origin];
        let offer = job.load.offer_to(context.page.recorded[number].as_ref());
        let early_data = job.early_data();
        let mut tls = context
            .secure_host(origin)
            .map(|name| Box::new(Tls::new(offer, name, &mut host.sessions, early_data)));
        let mut client_socket = Socket::client(conn.0, context.settings);
        let has_data = match option {
            FastOpen::Absent => is_fast_open && is_cookieless && !host.is_avoided,
            FastOpen::Request => job.what_if.unproven.is_some(),
            FastOpen::Cookie(_) => true,
        };
        let opening = Opening { option, has_data };
        let client = Client::open(context.now, conn, opening, &mut client_socket, tls.as_deref_mut());
        Self {
            host: number,
            keys,
            entry: None,
            number: None,
            client,
            client_socket,
            closes_at: None,
            server: Server::default(),
            server_socket: None,
            http2: (tls.is_some() && offer.http == HttpVersion::V2).then(Box::default),
            tls,
            is_pending: false,
            armed: None,
        }
    }

    /// What its server's end reports; `None` if no SYN has reached it.
    pub(crate) fn server(&self) -> Option<promise::Server> {
        let socket = self.server_socket.as_ref()?;
        Some(promise::Server {
            congestion_control: Some(socket.algorithm().name().to_owned()),
            post_quantum: self.tls.as_ref().map(|tls| tls.offers_post_quantum()),
            tls: self.tls.as_ref().and_then(|tls| tls.secured(false)),
        })
    }

    /// What its client's end reports.
    pub(crate) fn client(&self) -> promise::Client {
        promise::Client {
            tls: self.tls.as_ref().and_then(|tls| tls.secured(true)),
            may_be_early: self.client.may_be_early,
        }
    }

    /// Its ledger entry.
    pub(crate) fn entry(&self) -> Option<Entry> {
        let mut entry = self.entry.clone()?;
        entry.hello = self.tls.as_ref().map(|tls| tls.hello());
        Some(entry)
    }

    /// Whether it accepts a request before anything was sent.
    pub(crate) fn is_deferred(&self) -> bool {
        self.client.is_deferred()
    }

    /// Whether the client has closed it, or knows that it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed
    }

    /// Sends the request for `resource`; `true` if all of it was sent.
    pub(crate) fn send(&mut self, context: Context<'_>, resource: usize) -> bool {
        let mut channel = Channel {
            socket: &mut self.client_socket,
            tls: self.tls.as_deref_mut(),
            is_client: true,
        };
        let exchange = context.exchange(resource);
        if let Some(http2) = &mut self.http2 {
            let parts = http2.ask(context, resource);
            self.client
                .write(context.now, &parts, exchange.is_safe, &mut channel);
            if self.client.is_refused(context, &channel) {
                http2.refuse(resource);
            }
            return true;
        }
        let sent = self.client.send(context, resource, &mut channel);
        let is_refused = self.client.is_refused(context, &channel);
        self.server.expect(resource, exchange.request_bytes, is_refused);
        sent
    }

    /// The client closes it.
    pub(crate) fn close(&mut self, context: Context<'_>, host: &mut Host) {
        if context.job.what_if.negative_cache.is_some() {
            host.is_avoided |= self.client_socket.was_swallowed();
        }
        self.client.is_closed = true;
        let server_closes = !context.job.load.keep_alive
            && self.http2.is_none()
            && self.client.is_idle()
            && self.client_socket.is_established();
        self.closes_at = Some(context.now + if server_closes { CLOSES_WITHIN } else { 0 });
        self.close_in_time(context.now);
    }

    /// The load is over: a client that was about to close closes now.
    pub(crate) fn hang_up(&mut self, now: Nanos) {
        self.closes_at = self.closes_at.map(|_| now);
        self.close_in_time(now);
    }

    /// A client that has finished closes: when the server has closed, or when its waiting time is over.
    fn close_in_time(&mut self, now: Nanos) {
        if let Some(at) = self.closes_at {
            self.client_socket.read_all(now);
            if self.client_socket.is_at_end() || at <= now {
                self.closes_at = None;
                self.client_socket.close(now);
            }
        }
    }

    /// A segment reaches the client.
    pub(crate) fn at_client(&mut self, context: Context<'_>, segment: &Segment, host: &mut Host) {
        if let Some(entry) = &mut self.entry {
            entry.arrived(context.now, &seen(segment));
        }
        let was_open = self.client_socket.is_established();
        self.client_socket.handle(context.now, segment);
        self.close_in_time(context.now);
        if segment.syn
            && !was_open
            && let Some(cookie) = self.client_socket.granted_cookie()
        {
            host.gain_cookie(cookie, &context.job.what_if);
        }
        self.learn(context.job, host);
    }

    /// What-if: a client remembers hosts where Fast Open failed.
    fn learn(&self, job: &Job, host: &mut Host) {
        if job.what_if.negative_cache.is_some() {
            host.is_avoided |= self.client_socket.was_failed_by_fast_open();
        }
    }

    /// A segment reaches the server.
    pub(crate) fn at_server(&mut self, context: Context<'_>, segment: &Segment, host: &mut Host) {
        let Context { now, job, .. } = context;
        match &mut self.server_socket {
            Some(socket) => socket.handle(now, segment),
            None if segment.syn => {
                let answer = if host.pending < job.fast_open_backlog {
                    job.what_if.answer(now, segment, self.keys)
                } else {
                    Answer::BUSY
                };
                self.is_pending = answer.early.is_some();
                host.pending += u32::from(self.is_pending);
                self.server_socket = Some(Socket::accept(now, segment, answer, context.settings));
            }
            None => return,
        }
        self.serve(context, host);
    }

    fn serve(&mut self, context: Context<'_>, host: &mut Host) {
        let Some(socket) = &mut self.server_socket else {
            return;
        };
        if self.is_pending && (socket.is_established() || socket.is_dead()) {
            self.is_pending = false;
            host.pending -= 1;
        }
        let mut channel = Channel {
            socket,
            tls: self.tls.as_deref_mut(),
            is_client: false,
        };
        match &mut self.http2 {
            Some(http2) => http2.serve(context, &mut channel),
            None => self.server.read(context, &mut channel),
        }
    }

    /// Reports events of the client's socket to the loader.
    pub(crate) fn tell(&mut self, context: Context<'_>, browser: &mut Browser, host: &mut Host) {
        if self.client.is_closed {
            return;
        }
        let mut channel = Channel {
            socket: &mut self.client_socket,
            tls: self.tls.as_deref_mut(),
            is_client: true,
        };
        let http2 = self.http2.as_deref_mut();
        self.client.tell(context, &mut channel, http2, browser, host);
    }

    /// A timer set for `at` has fired; `false` if it is not needed any more.
    pub(crate) fn fire(&mut self, context: Context<'_>, at: Nanos, host: &mut Host) -> bool {
        let now = context.now;
        if self.armed != Some(at) {
            return false;
        }
        self.armed = None;
        self.client_socket.handle_timeout(now);
        self.close_in_time(now);
        self.learn(context.job, host);
        if let Some(socket) = &mut self.server_socket {
            socket.handle_timeout(now);
            let mut channel = Channel {
                socket,
                tls: self.tls.as_deref_mut(),
                is_client: false,
            };
            match &mut self.http2 {
                Some(http2) => http2.serve(context, &mut channel),
                None => self.server.answer(context, &mut channel),
            }
        }
        true
    }

    /// The next segment that one of its ends has to send.
    pub(crate) fn poll(&mut self) -> Option<Segment> {
        let segment = self.client_socket.poll();
        segment.or_else(|| self.server_socket.as_mut().and_then(Socket::poll))
    }

    /// The time to fire it, if that is earlier than its present entry.
    pub(crate) fn arm(&mut self) -> Option<Nanos> {
        let client = earlier(self.client_socket.next_timeout(), self.closes_at);
        let server_socket = self.server_socket.as_ref().and_then(Socket::next_timeout);
        let server = earlier(server_socket, self.server.next_timeout());
        let http2 = self.http2.as_ref().and_then(|http2| http2.next_timeout());
        let at = earlier(earlier(client, server), http2)?;
        if self.armed.is_some_and(|armed| armed <= at) {
            return None;
        }
        self.armed = Some(at);
        self.armed
    }
}
