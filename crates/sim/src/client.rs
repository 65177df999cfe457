//! The client's side of a connection: carries out the loader's commands on a socket, and reports events to the
//! loader.
//!
//! The lab's client driver (`crates/lab/src/client`) on the virtual clock.

use firstflight_load::{EarlyRequests, MAX_EARLY_DATA};
use firstflight_loader::{ConnId, Event, Loader, TOO_EARLY};
use firstflight_path::Nanos;
use firstflight_tcp::{FastOpen, Socket};

use crate::channel::Channel;
use crate::host::Host;
use crate::http2::Http2;
use crate::page::Context;
use crate::tls::{Heard, Tls};

/// The receiver of events from the clients of all connections.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) loader: Loader,
    /// Bytes of header and body received per resource.
    pub(crate) wire_bytes: Vec<u64>,
}

/// Size of the 425 response of the lab's servers over HTTP/1.1, bytes.
pub(crate) const TOO_EARLY_BYTES: u64 = 45;

/// How a connection begins: the option of its SYN, and whether the SYN may carry data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) option: FastOpen,
    pub(crate) has_data: bool,
}

/// What happens to data before the TLS handshake is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Early {
    /// The handshake is done, or there is none.
    Over,
    /// The data is sent with the `ClientHello`.
    Goes,
    /// The data waits, and so does all data after it.
    Waits,
}

/// The client's side of one connection.
#[derive(Debug)]
pub(crate) struct Client {
    conn: ConnId,
    /// Set while the SYN waits for a request to carry (`TCP_FASTOPEN_CONNECT` with a cookie).
    deferred: Option<FastOpen>,
    /// Whether the TCP handshake was seen to be done.
    is_open: bool,
    /// Bytes of the request, or of TLS's first flight, that wait for the TCP handshake.
    unsent: u64,
    early: Early,
    /// Bytes to send again after the TLS handshake because the server rejects early data, and bytes that wait for
    /// it.
    held: [u64; 2],
    /// Whether the first request may be early data.
    pub(crate) may_be_early: Option<bool>,
    exchange: Option<Incoming>,
    pub(crate) is_closed: bool,
}

/// The response that is being received.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    resource: usize,
    header_left: u64,
    body_left: u64,
    /// Whether it is a 425, so that the request is repeated.
    is_too_early: bool,
}

impl Client {
    /// Whether no response is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.exchange.is_none()
    }

    /// Opens a connection. A SYN that may carry data waits for a request; with TLS the `ClientHello` is sent at
    /// once.
    pub(crate) fn open(
        now: Nanos,
        conn: ConnId,
        Opening { option, has_data }: Opening,
        socket: &mut Socket,
        tls: Option<&mut Tls>,
    ) -> Self {
        let mut deferred = has_data.then_some(option);
        let early = match &tls {
            Some(tls) if tls.has_early_data() => Early::Goes,
            _ => Early::Over,
        };
        let mut unsent = tls.map_or(0, Tls::begin);
        match deferred {
            None => socket.connect(now, option),
            Some(cookie) if unsent > 0 && early == Early::Over => {
                unsent -= socket.connect_with_data(now, cookie, unsent);
                deferred = None;
            }
            Some(_) => {}
        }
        Self {
            conn,
            deferred,
            is_open: false,
            unsent,
            early,
            held: [0; 2],
            may_be_early: None,
            exchange: None,
            is_closed: false,
        }
    }

    /// Whether it accepts a request before anything was sent.
    pub(crate) fn is_deferred(&self) -> bool {
        self.deferred.is_some()
    }

    /// Sends a request; `true` if all of it was sent.
    pub(crate) fn send(&mut self, context: Context<'_>, resource: usize, channel: &mut Channel<'_>) -> bool {
        let (now, exchange) = (context.now, context.exchange(resource));
        let sent = self.write(now, &[exchange.request_bytes], exchange.is_safe, channel);
        let is_too_early = self.is_refused(context, channel);
        self.exchange = Some(Incoming {
            resource,
            header_left: if is_too_early {
                TOO_EARLY_BYTES
            } else {
                context.header_bytes(exchange)
            },
            body_left: if is_too_early { 0 } else { exchange.body_bytes },
            is_too_early,
        });
        sent
    }

    /// Whether the latest request is early data that the server will answer with 425.
    pub(crate) fn is_refused(&self, context: Context<'_>, channel: &Channel<'_>) -> bool {
        let goes_early = self.early == Early::Goes && !channel.rejects_early_data();
        goes_early && context.job.load.early_requests() == EarlyRequests::AskedAgain
    }

    /// Sends a request, written in `parts` that leave together; `true` if all of it was sent. Before the TLS
    /// handshake it sends requests that are `is_safe`, up to the first that is not.
    pub(crate) fn write(
        &mut self,
        now: Nanos,
        parts: &[u64],
        is_safe: bool,
        channel: &mut Channel<'_>,
    ) -> bool {
        let may_be_early = is_safe && parts.iter().sum::<u64>() <= MAX_EARLY_DATA;
        self.may_be_early.get_or_insert(may_be_early);
        let waits_for = |early, takes: bool| match early {
            Early::Goes if !takes => Early::Waits,
            other => other,
        };
        self.early = waits_for(self.early, is_safe);
        for &bytes in parts {
            self.early = waits_for(self.early, channel.takes_early(bytes));
            match self.early {
                Early::Goes if channel.rejects_early_data() => self.held[0] += bytes,
                Early::Waits => self.held[1] += bytes,
                Early::Goes | Early::Over => {}
            }
            if self.early != Early::Waits {
                self.unsent += channel.seal(bytes);
            }
        }
        if let Some(cookie) = self.deferred.take() {
            self.is_open = true;
            self.unsent -= channel.socket.connect_with_data(now, cookie, self.unsent);
        } else if channel.socket.is_established() {
            channel.socket.write(now, std::mem::take(&mut self.unsent));
        }
        self.unsent == 0 && self.early != Early::Waits
    }

    /// Reports a change of the socket to the loader.
    pub(crate) fn tell(
        &mut self,
        context: Context<'_>,
        channel: &mut Channel<'_>,
        http2: Option<&mut Http2>,
        browser: &mut Browser,
        host: &mut Host,
    ) {
        let (now, conn) = (context.now, self.conn);
        if channel.socket.is_dead() {
            self.is_closed = true;
            let error = if channel.socket.is_refused() {
                "Connection refused (os error 111)"
            } else {
                "Connection timed out (os error 110)"
            };
            return browser.loader.handle(now, Event::Failed { conn, error });
        }
        if !channel.socket.is_established() {
            return;
        }
        if !self.is_open {
            self.is_open = true;
            if channel.tls.is_none() || self.early != Early::Over {
                browser.loader.handle(now, Event::Writable(conn));
            }
        }
        // A connection that accepts early data waits for a request.
        if self.unsent > 0 && (self.early == Early::Over || self.may_be_early.is_some()) {
            channel.socket.write(now, std::mem::take(&mut self.unsent));
            if self.early != Early::Waits {
                self.tell_sent(now, browser);
            }
        }
        let heard = channel.read(now);
        heard.remember(&mut host.sessions);
        if heard.is_ready && std::mem::replace(&mut self.early, Early::Over) == Early::Over {
            browser.loader.handle(now, Event::Writable(conn));
        }
        if self.early == Early::Over && self.held != [0; 2] {
            channel.write_parts(now, &std::mem::take(&mut self.held));
            self.tell_sent(now, browser);
        }
        match http2 {
            Some(http2) => http2.hear(context, conn, &heard, channel, browser),
            None => self.hear(context, &heard, channel.socket.is_at_end(), browser),
        }
    }

    fn tell_sent(&self, now: Nanos, browser: &mut Browser) {
        if let Some(Incoming {
            resource: request, ..
        }) = self.exchange
        {
            let conn = self.conn;
            browser.loader.handle(now, Event::RequestSent { conn, request });
        }
    }

    fn hear(&mut self, context: Context<'_>, heard: &Heard, is_at_end: bool, browser: &mut Browser) {
        let conn = self.conn;
        if heard.data > 0 {
            self.receive(context, heard.data, browser);
        } else if is_at_end && !self.is_closed && self.exchange.is_none() {
            self.is_closed = true;
            let error = "closed by the server";
            browser.loader.handle(context.now, Event::Failed { conn, error });
        }
    }

    fn receive(&mut self, context: Context<'_>, bytes: u64, browser: &mut Browser) {
        let now = context.now;
        let Browser { loader, wire_bytes } = browser;
        let (conn, mut left) = (self.conn, bytes);
        let Some(incoming) = &mut self.exchange else {
            return;
        };
        let request = incoming.resource;
        let exchange = context.exchange(request);
        wire_bytes[request] += bytes;
        if incoming.header_left > 0 {
            let header = left.min(incoming.header_left);
            incoming.header_left -= header;
            left -= header;
            if incoming.header_left > 0 {
                return;
            }
            let head = Event::Head {
                conn,
                request,
                status: if incoming.is_too_early {
                    TOO_EARLY
                } else {
                    exchange.status
                },
                location: exchange.location.as_deref().filter(|_| !incoming.is_too_early),
            };
            loader.handle(now, head);
        }
        incoming.body_left = incoming.body_left.saturating_sub(left);
        let is_over = incoming.body_left == 0;
        if left > 0 {
            let bytes = left;
            loader.handle(now, Event::Body { conn, request, bytes });
        }
        if is_over {
            self.exchange = None;
            let reusable = context.job.load.keep_alive;
            let end = Event::End {
                conn,
                request,
                reusable,
            };
            loader.handle(now, end);
        }
    }
}
