//! HTTP/2 (RFC 9113) of the built-in client: several exchanges on one connection.
//!
//! The driver's epoll loop polls the connection, so wakers do nothing. Flow control never blocks: both windows have
//! the largest size. The server's header compression has a table of 0 bytes, and no padding enters the client's. So
//! the size of a header does not depend on those before it.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::TcpStream;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use firstflight_load::promise::Secured;
use firstflight_load::{Priority, head, priority};
use firstflight_page::Resource;
use h2::RecvStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use hyper::Request;
use hyper::header::{HeaderValue, LOCATION};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Failure;
use super::http::Progress;
use super::tls::{Incoming, Session};

/// The largest window (RFC 9113, section 6.9.1), bytes.
const WINDOW: u32 = (1 << 31) - 1;

/// The client's end of a connection.
pub(super) struct Http2 {
    connection: h2::client::Connection<Wire, Bytes>,
    session: Rc<RefCell<Session>>,
    sender: SendRequest<Bytes>,
    exchanges: Vec<Exchange>,
}

struct Exchange {
    resource: usize,
    response: Response,
}

enum Response {
    Due(ResponseFuture),
    Coming(RecvStream),
    Over,
}

impl Http2 {
    /// Begins HTTP/2, after `session` has negotiated it or in its early data. The connection preface is sent with
    /// the first request.
    pub(super) fn new(session: Session, stream: TcpStream) -> Result<Self, Failure> {
        let mut builder = Builder::new();
        builder
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .header_table_size(0)
            .enable_push(false);
        let session = Rc::new(RefCell::new(session));
        let wire = Wire {
            session: Rc::clone(&session),
            stream,
        };
        let handshake = pin!(builder.handshake(wire));
        match handshake.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok((sender, connection))) => Ok(Self {
                connection,
                session,
                sender,
                exchanges: Vec::new(),
            }),
            Poll::Ready(Err(error)) => Err(error.into()),
            Poll::Pending => Err(Failure::NoHttp2),
        }
    }

    /// What this end reports of its TLS.
    pub(super) fn secured(&self) -> Option<Secured> {
        self.session.borrow().secured()
    }

    /// Requests from now on wait for the TLS handshake.
    pub(super) fn defer(&mut self) {
        self.session.borrow_mut().defer();
    }

    /// Requests `resource`, number `index` of its page, with its priority. [`Self::advance`] sends the request.
    pub(super) fn ask(
        &mut self,
        index: usize,
        resource: &Resource,
        priority: Option<Priority>,
    ) -> Result<(), Failure> {
        let request = request(resource, priority)?;
        let (response, _) = self.sender.send_request(request, true)?;
        self.exchanges.push(Exchange {
            resource: index,
            response: Response::Due(response),
        });
        Ok(())
    }

    /// Writes and reads as much as the socket allows. Returns what came, by resource.
    ///
    /// # Errors
    /// [`Failure`]: the connection is closed, or one of its streams is.
    pub(super) fn advance(&mut self) -> Result<Vec<(usize, Progress)>, Failure> {
        let context = &mut Context::from_waker(Waker::noop());
        if let Poll::Ready(outcome) = Pin::new(&mut self.connection).poll(context) {
            outcome?;
            return Err(Failure::Closed);
        }
        let mut news = Vec::new();
        for exchange in &mut self.exchanges {
            let progress = exchange.response.advance(context)?;
            if progress.is_news() {
                news.push((exchange.resource, progress));
            }
        }
        self.exchanges
            .retain(|exchange| !matches!(exchange.response, Response::Over));
        Ok(news)
    }
}

impl Response {
    fn advance(&mut self, context: &mut Context<'_>) -> Result<Progress, Failure> {
        let mut progress = Progress::default();
        if let Self::Due(response) = self {
            let Poll::Ready(response) = Pin::new(response).poll(context) else {
                return Ok(progress);
            };
            let (head, body) = response?.into_parts();
            let location = head.headers.get(LOCATION).and_then(|value| value.to_str().ok());
            progress.head = Some((head.status.as_u16(), location.map(ToOwned::to_owned)));
            *self = Self::Coming(body);
        }
        while let Self::Coming(body) = self
            && let Poll::Ready(data) = body.poll_data(context)
        {
            let Some(data) = data.transpose()? else {
                progress.end = Some(true);
                *self = Self::Over;
                break;
            };
            progress.body += data.len() as u64;
            body.flow_control().release_capacity(data.len())?;
        }
        Ok(progress)
    }
}

/// The request for `resource`, with as much padding as over HTTP/1.1.
fn request(resource: &Resource, priority: Option<Priority>) -> Result<Request<()>, Failure> {
    let mut request = Request::builder()
        .method(resource.method.as_str())
        .uri(resource.url.split('#').next().unwrap_or_default());
    let authority = resource.origin().map(|origin| origin.authority());
    let padding = head::request_padding(resource, &authority.unwrap_or_default(), priority);
    if let Some(priority) = priority {
        let mut value = HeaderValue::from_static(priority.field());
        value.set_sensitive(true);
        request = request.header(priority::FIELD, value);
    }
    if padding > 0 {
        let mut value = HeaderValue::from_bytes(&vec![b'p'; padding]).map_err(hyper::http::Error::from)?;
        value.set_sensitive(true);
        request = request.header(head::PADDING, value);
    }
    Ok(request.body(())?)
}

/// A socket with TLS on top.
struct Wire {
    session: Rc<RefCell<Session>>,
    stream: TcpStream,
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { session, stream } = self.get_mut();
        loop {
            match session.borrow_mut().read(stream, buffer.initialize_unfilled()) {
                Ok(Incoming::Ready) => {}
                Ok(Incoming::Nothing) => return Poll::Pending,
                Ok(Incoming::Bytes(bytes)) => {
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.session.borrow_mut().take(bytes).map(|_| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { session, stream } = self.get_mut();
        Poll::Ready(match session.borrow_mut().flush(stream) {
            Ok(true) => Ok(()),
            Ok(false) => return Poll::Pending,
            Err(error) => Err(error),
        })
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
