//! Listens with Fast Open, and serves HTTP/1.1, TLS and HTTP/2.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use firstflight_load::{Priorities, Priority, priority};
use firstflight_page::Origin;
use firstflight_path::{Purpose, Stream};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nix::libc;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Notify;

use super::answers::Answers;
use super::body::Outgoing;
use super::log::{Answered, Conversation, Log, is_visit};
use super::tls::Secure;
use super::turns::{Turn, Turns};
use super::{respond, timer};
use crate::{LabError, descriptors, net};

/// How many connections may wait at a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Connections that the server has not accepted yet, and SYNs whose handshake is not done.
    pub backlog: u32,
    /// Fast Open requests whose handshake is not done (RFC 7413, section 5.1); 0 switches Fast Open off.
    pub fast_open: u32,
}

impl Default for Waiting {
    /// More than any page needs.
    fn default() -> Self {
        Self {
            backlog: 4_096,
            fast_open: 4_096,
        }
    }
}

/// How long a listener waits when it cannot accept: other connections may be closed meanwhile.
const UNTIL_ACCEPTED_AGAIN: Duration = Duration::from_millis(10);

/// HTTP/2 and HTTP/1.1 in ALPN (RFC 7301, section 6).
pub(super) const HTTP2: &[u8] = b"h2";
pub(super) const HTTP1: &[u8] = b"http/1.1";

/// Opens a listener with Fast Open and its own key. `number`: which of the listeners at the address this is. The
/// kernel chooses among them by a hash of each connection's addresses and ports (`SO_REUSEPORT`).
pub(super) fn listen(
    address: IpAddr,
    port: u16,
    number: u32,
    waiting: Waiting,
) -> Result<TcpListener, LabError> {
    let at = SocketAddr::new(address, port);
    let failed = |error: std::io::Error| LabError::system(format!("listening on {at}"), error);
    let socket = match at {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket.map_err(failed)?;
    socket.set_reuseport(true).map_err(failed)?;
    socket.bind(at).map_err(failed)?;
    net::set_tcp_option(&socket, libc::TCP_FASTOPEN, &waiting.fast_open).map_err(failed)?;
    net::set_tcp_option(&socket, libc::TCP_FASTOPEN_KEY, &key(address, number)).map_err(failed)?;
    socket.listen(waiting.backlog).map_err(failed)
}

/// Changes the key of a listener. Its earlier cookies become stale, unless it keeps the old key as a backup.
pub(super) fn change_key(listener: &TcpListener, keeps_old: bool) -> Result<(), LabError> {
    let changed = listener.local_addr().and_then(|address| {
        let (old, new) = (key(address.ip(), 0), key(address.ip(), 1));
        if keeps_old {
            net::set_tcp_option(listener, libc::TCP_FASTOPEN_KEY, &[new, old])
        } else {
            net::set_tcp_option(listener, libc::TCP_FASTOPEN_KEY, &new)
        }
    });
    changed.map_err(|error| LabError::system("changing a listener's Fast Open key", error))
}

/// A key per address and listener: a cookie of one server means nothing to another. It need not be secret in a lab.
fn key(address: IpAddr, number: u32) -> [u8; 16] {
    let mut random = Stream::new(0, Purpose::FastOpenKey, &[number.into(), net::low_bits(address)]);
    let halves = [random.next_u64(), random.next_u64()].map(u64::to_le_bytes);
    std::array::from_fn(|byte| halves[byte / 8][byte % 8])
}

/// The server of one origin.
#[derive(Debug)]
pub(super) struct Server {
    /// The origin.
    pub(super) origin: Origin,
    /// The answers of all origins.
    pub(super) answers: Arc<Answers>,
    /// The log of connections and requests.
    pub(super) log: Arc<Log>,
    /// Whether a connection stays open after its first response.
    pub(super) keep_alive: bool,
    /// Whether it sends urgent responses first.
    pub(super) priorities: Priorities,
    /// Whether it answers requests in early data with 425.
    pub(super) refuses_early_requests: bool,
    /// Its TLS; `None` for http.
    pub(super) tls: Option<Arc<ServerConfig>>,
}

/// Answers all connections to `listener`, for ever.
pub(super) async fn serve(listener: Arc<TcpListener>, server: Arc<Server>) {
    loop {
        let accepted = accept(&listener, &server.log).await;
        tokio::spawn(talk(accepted, Arc::clone(&server)));
    }
}

/// The next connection. If the process has no descriptor left for it, notes that in the log and waits.
pub(super) async fn accept(listener: &TcpListener, log: &Log) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if descriptors::are_exhausted(&error) => {
                log.refuse(error);
                tokio::time::sleep(UNTIL_ACCEPTED_AGAIN).await;
            }
            // Any other error concerns a single connection that was closed.
            Err(_) => {}
        }
    }
}

async fn talk(accepted: (TcpStream, SocketAddr), server: Arc<Server>) {
    // Without Nagle's algorithm a response is sent when it is written.
    let _ = accepted.0.set_nodelay(true);
    let (stream, conversation) = server.log.accepted(accepted);
    let Some(tls) = &server.tls else {
        return speak_http1(stream, &server, &conversation).await;
    };
    match Secure::accept(Arc::clone(tls), stream, Arc::clone(&conversation)).await {
        Ok(stream) if stream.protocol() == Some(HTTP2) => {
            speak_http2(stream, server, conversation).await;
        }
        Ok(stream) => speak_http1(stream, &server, &conversation).await,
        // A client that does not trust the lab's authority reports that itself.
        Err(_) => {}
    }
}

async fn speak_http1(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    server: &Server,
    conversation: &Conversation,
) {
    let service = service_fn(|request: Request<Incoming>| answer(request, server, conversation, None));
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(server.keep_alive)
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    // A client that closes in the middle is no error of the server.
    let _ = connection.await;
}

async fn speak_http2(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    server: Arc<Server>,
    conversation: Arc<Conversation>,
) {
    let visited = Arc::new(Notify::new());
    let visits = Arc::clone(&visited);
    let turns = (server.priorities == Priorities::Rfc9218).then(Arc::<Turns>::default);
    let service = service_fn(move |request: Request<Incoming>| {
        let (server, conversation) = (Arc::clone(&server), Arc::clone(&conversation));
        let turns = turns.clone();
        if is_visit(request.uri().path()) {
            visits.notify_one();
        }
        async move { answer(request, &server, &conversation, turns.as_ref()).await }
    });
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let (mut connection, mut visited) = (pin!(connection), pin!(visited.notified()));
    let is_over = poll_fn(|context| match connection.as_mut().poll(context) {
        Poll::Ready(_) => Poll::Ready(true),
        Poll::Pending => visited.as_mut().poll(context).map(|()| false),
    });
    if !is_over.await {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Answers a request. With `turns` the body waits for its turn.
async fn answer(
    request: Request<Incoming>,
    server: &Server,
    conversation: &Conversation,
    turns: Option<&Arc<Turns>>,
) -> Result<Response<Outgoing>, Infallible> {
    let (head, mut body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let named = server.named(&head.uri);
    let (mut response, wait) =
        server.answer(named.as_ref(), &head.method, target, &head.headers, conversation);
    if is_visit(target) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    } else if server.keep_alive {
        respond::keep_alive(&mut response, &head.headers);
    }
    // An uploaded body is read and ignored.
    while let Some(Ok(_)) = body.frame().await {}
    timer::wait(wait).await;
    if let Some(turns) = turns {
        let turn = Turn::new(turns, server.priority(&head.headers));
        response.body_mut().wait_for(turn);
    }
    Ok(response)
}

impl Server {
    /// The priority of the answer to a request with these fields.
    pub(super) fn priority(&self, fields: &HeaderMap) -> Priority {
        match self.priorities {
            Priorities::None => Priority::EQUAL,
            Priorities::Rfc9218 => {
                let field = fields.get(priority::FIELD).and_then(|value| value.to_str().ok());
                field.map_or_else(Priority::default, Priority::parse)
            }
        }
    }

    /// Another origin of the page, named by a request on an HTTP/2 connection that carries several origins (RFC
    /// 9113, section 9.1.1).
    fn named(&self, uri: &Uri) -> Option<Origin> {
        let authority = uri.authority()?;
        let origin = Origin {
            secure: self.origin.secure,
            host: authority.host().to_ascii_lowercase(),
            port: authority.port_u16().unwrap_or(self.origin.port),
        };
        self.answers.knows(&origin).then_some(origin)
    }

    /// The answer to a request, and the delay before it. `named`: the origin that the request names, if it is not
    /// the server's own.
    pub(super) fn answer(
        &self,
        named: Option<&Origin>,
        method: &Method,
        target: &str,
        fields: &HeaderMap,
        conversation: &Conversation,
    ) -> (Response<Outgoing>, Duration) {
        let origin = named.unwrap_or(&self.origin);
        if self.refuses_early_requests && conversation.is_early() {
            return (respond::too_early(), Duration::ZERO);
        }
        if is_visit(target) {
            let response = respond::to_visit();
            conversation.note(&Answered {
                origin,
                method: method.as_str(),
                target,
                resource: None,
                status: response.status().as_u16(),
                body_bytes: 0,
            });
            return (response, Duration::ZERO);
        }
        if respond::is_preflight(method, fields) && self.answers.leave_preflight(origin, target) {
            return (respond::allowed(fields), Duration::ZERO);
        }
        let found = self.answers.find(origin, method.as_str(), target);
        let response = match found {
            Some(found) => respond::recorded(found, fields),
            None => respond::not_found(),
        };
        conversation.note(&Answered {
            origin,
            method: method.as_str(),
            target,
            resource: found.map(|found| found.resource),
            status: response.status().as_u16(),
            body_bytes: response.body().len(),
        });
        (response, found.map_or(Duration::ZERO, |found| found.wait))
    }
}
