//! Serves QUIC and HTTP/3.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use firstflight_load::Priority;
use firstflight_path::Ecn;
use firstflight_quic::crypto::WitnessedServer;
use firstflight_quic::qpack::{self, Field};
use firstflight_quic::{Server as Endpoint, ServerEvent, StreamKey, response_block, seed};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use quinn_proto::ServerConfig;
use quinn_proto::crypto::rustls::QuicServerConfig;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::body::Outgoing;
use super::listen::Server;
use super::log::{Conversation, is_visit, lasts};
use super::timer;
use crate::client::quic_endpoint;
use crate::net::{Transport, low_bits, receive_datagram, receive_ecn, send_datagram};
use crate::{LabError, clock};

/// HTTP/3 in ALPN (RFC 9114, section 3.1).
pub(super) const HTTP3: &[u8] = b"h3";
/// Bytes of the headers of IPv4 and UDP.
const UDP_HEADERS: usize = 28;
/// Largest datagram: the path carries packets of 1,500 bytes.
const LONGEST_DATAGRAM: usize = 1_500;

/// A QUIC listener.
pub(super) struct Listener {
    socket: UdpSocket,
    address: SocketAddr,
    endpoint: Endpoint,
    uses_ecn: bool,
    timer: AsyncFd<Timer>,
}

/// A timer that tokio can poll.
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        use std::os::fd::AsFd;
        self.0.as_fd().as_raw_fd()
    }
}

/// Something to do after a delay.
enum Due {
    /// Send an answer on a stream, with its priority.
    Answer(StreamKey, Priority, Method, Box<Response<Outgoing>>),
    /// Close a connection.
    Close(usize),
}

/// Delay between the answer to a visit and the close of its connection.
const UNTIL_CLOSED: Duration = Duration::from_millis(50);

impl Listener {
    /// Listens at `address`. `ecn`: whether its connections use explicit congestion notification.
    ///
    /// # Errors
    /// [`LabError`] naming the address, or what is wrong with `tls` or `transport`.
    pub(super) async fn bind(
        address: SocketAddr,
        tls: rustls::ServerConfig,
        transport: &Transport,
        uses_ecn: bool,
    ) -> Result<Self, LabError> {
        let failed = |error: io::Error| LabError::system(format!("listening on {address} for QUIC"), error);
        let tls =
            QuicServerConfig::try_from(tls).map_err(|error| LabError::system("setting up QUIC", error))?;
        let mut config = ServerConfig::with_crypto(Arc::new(WitnessedServer(Arc::new(tls))));
        config.transport_config(transport.quic()?.transport());
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )
        .map_err(|errno| LabError::system("timerfd", errno))?;
        // SAFETY: the `AsyncFd` owns the descriptor, which stays open for as long as it is registered.
        let timer = unsafe { AsyncFd::register_with_interest(Timer(timer), Interest::READABLE) };
        let endpoint = Endpoint::new(
            Arc::new(quic_endpoint()),
            Arc::new(config),
            seed(low_bits(address.ip()), 0, false),
        );
        let socket = UdpSocket::bind(address).await.map_err(failed)?;
        receive_ecn(&socket, address.is_ipv6()).map_err(failed)?;
        Ok(Self {
            socket,
            address,
            endpoint,
            uses_ecn,
            timer: timer.map_err(|error| failed(error.into()))?,
        })
    }

    /// Answers all connections, for ever.
    pub(super) async fn serve(mut self, server: Arc<Server>) {
        let (due, mut answers) = unbounded_channel();
        let mut conversations: HashMap<usize, Arc<Conversation>> = HashMap::new();
        loop {
            while let Some(event) = self.endpoint.poll() {
                match event {
                    ServerEvent::Accepted {
                        connection,
                        client,
                        seen,
                    } => {
                        let key = (client.port(), self.address.ip(), self.address.port());
                        let conversation = server.log.accepted_quic(key, seen);
                        conversations.insert(connection, conversation);
                    }
                    ServerEvent::Request {
                        stream,
                        block,
                        is_early,
                    } => {
                        if let Some(conversation) = conversations.get(&stream.0) {
                            conversation.note_reading(is_early);
                            self.answer(stream, &block, &server, conversation, &due);
                        }
                    }
                }
            }
            self.transmit(&conversations).await;
            self.rest(&mut answers).await;
        }
    }

    fn answer(
        &mut self,
        stream: StreamKey,
        block: &[u8],
        server: &Server,
        conversation: &Conversation,
        due: &UnboundedSender<Due>,
    ) {
        let Some((method, target, fields)) = request(block) else {
            let block = response_block(400, [], 0);
            return self.endpoint.respond(stream, Priority::EQUAL, &block, []);
        };
        let (response, wait) = server.answer(None, &method, &target, &fields, conversation);
        if is_visit(&target) && !lasts(&target) {
            later(UNTIL_CLOSED, Due::Close(stream.0), due.clone());
        }
        let priority = server.priority(&fields);
        if wait.is_zero() {
            return self.respond(stream, priority, &method, response);
        }
        let answer = Due::Answer(stream, priority, method, Box::new(response));
        later(wait, answer, due.clone());
    }

    fn respond(
        &mut self,
        stream: StreamKey,
        priority: Priority,
        method: &Method,
        response: Response<Outgoing>,
    ) {
        let (head, body) = response.into_parts();
        let fields = head
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        let block = response_block(head.status.as_u16(), fields, body.len());
        let body = Some(body.into_bytes()).filter(|body: &Bytes| *method != Method::HEAD && !body.is_empty());
        self.endpoint.respond(stream, priority, &block, body);
    }

    async fn transmit(&mut self, conversations: &HashMap<usize, Arc<Conversation>>) {
        let mut datagram = Vec::with_capacity(LONGEST_DATAGRAM);
        while let Some((client, ecn)) = self.endpoint.poll_transmit(clock::now(), &mut datagram) {
            if let Some((number, has_data)) = self.endpoint.last_sent()
                && let Some(conversation) = conversations.get(&number)
            {
                conversation.count_written(datagram.len() + UDP_HEADERS);
                if has_data {
                    conversation.note_answered();
                }
            }
            // A client that has closed its socket is no reason to stop.
            let ecn = if self.uses_ecn { ecn } else { Ecn::NotCapable };
            let is_ipv6 = self.address.is_ipv6();
            let send = || send_datagram(&self.socket, &datagram, is_ipv6, Some(client), ecn);
            let _ = self.socket.async_io(Interest::WRITABLE, send).await;
        }
    }

    /// Waits for a datagram, a timer or an answer, and handles what has come.
    async fn rest(&mut self, answers: &mut UnboundedReceiver<Due>) {
        self.set_timer();
        let (mut answer, mut is_due, mut comes) = (None, false, false);
        poll_fn(|context| {
            if let Poll::Ready(Some(due)) = answers.poll_recv(context) {
                answer = Some(due);
            }
            comes = self.socket.poll_recv_ready(context).is_ready();
            if let Poll::Ready(Ok(mut guard)) = self.timer.poll_read_ready(context) {
                is_due = true;
                guard.clear_ready();
            }
            if answer.is_some() || is_due || comes {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        if comes {
            self.receive();
        }
        match answer {
            Some(Due::Answer(stream, priority, method, response)) => {
                self.respond(stream, priority, &method, *response);
            }
            Some(Due::Close(connection)) => self.endpoint.close(clock::now(), connection),
            None => {}
        }
        if self.endpoint.next_timeout().is_some_and(|at| at <= clock::now()) {
            self.endpoint.handle_timeout(clock::now());
        }
    }

    fn set_timer(&mut self) {
        let timer = &self.timer.get_ref().0;
        // The kernel accepts any time. Without a timeout the timer stays off.
        let _ = match self.endpoint.next_timeout() {
            None => timer.unset(),
            Some(at) => {
                let at = TimeSpec::from_duration(Duration::from_nanos(at.max(1)));
                timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            }
        };
    }

    fn receive(&mut self) {
        let mut buffer = [0; LONGEST_DATAGRAM];
        while let Ok((bytes, Some(client), ecn)) = self
            .socket
            .try_io(Interest::READABLE, || receive_datagram(&self.socket, &mut buffer))
        {
            let datagram = BytesMut::from(&buffer[..bytes]);
            self.endpoint.handle(clock::now(), client, datagram, ecn);
        }
    }
}

/// Sends `what` once `wait` is over.
fn later(wait: Duration, what: Due, due: UnboundedSender<Due>) {
    tokio::spawn(async move {
        timer::wait(wait).await;
        // The receiver has gone if the servers have.
        let _ = due.send(what);
    });
}

/// Method, target and header fields of a request; `None` for a block that is not one.
fn request(block: &[u8]) -> Option<(Method, String, HeaderMap)> {
    let fields = qpack::decode(block).ok()?;
    let pseudo = |name: &[u8]| {
        let found = fields.iter().find(|(known, _)| known == name)?;
        std::str::from_utf8(&found.1).ok()
    };
    let method = Method::from_bytes(pseudo(b":method")?.as_bytes()).ok()?;
    let target = pseudo(b":path")?.to_owned();
    let field = |(name, value): &Field| {
        let name = HeaderName::from_bytes(name).ok()?;
        Some((name, HeaderValue::from_bytes(value).ok()?))
    };
    Some((method, target, fields.iter().filter_map(field).collect()))
}
