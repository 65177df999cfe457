//! Listening with Fast Open, and speaking HTTP/1.1.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use bytes::Bytes;
use firstflight_page::Origin;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::answer::{Answer, Answers};
use super::timer;
use crate::{LabError, net};

/// Connections that may wait to be accepted, and Fast Open requests that may be pending (RFC 7413, section 5.1).
const BACKLOG: u32 = 4_096;

/// Opens a listener that offers Fast Open with a key of its own.
pub(super) fn listen(address: Ipv4Addr, port: u16) -> Result<TcpListener, LabError> {
    let tried = format!("listening on {address}:{port}");
    let failed = |error: std::io::Error| LabError::system(&tried, error);
    let socket = TcpSocket::new_v4().map_err(failed)?;
    socket
        .bind(SocketAddrV4::new(address, port).into())
        .map_err(failed)?;
    net::set_congestion_control(&socket).map_err(failed)?;
    net::set_tcp_option(&socket, net::TCP_FASTOPEN, &BACKLOG).map_err(failed)?;
    net::set_tcp_option(&socket, net::TCP_FASTOPEN_KEY, &key(address)).map_err(failed)?;
    socket.listen(BACKLOG).map_err(failed)
}

/// A key per address: a cookie of one server says nothing to another. It need not be secret in here.
fn key(address: Ipv4Addr) -> [u8; 16] {
    let mut random = fastrand::Rng::with_seed(u64::from(address.to_bits()));
    std::array::from_fn(|_| random.u8(..))
}

/// Answers everything that comes to `origin`, for ever.
pub(super) async fn serve(listener: TcpListener, origin: Origin, answers: Arc<Answers>, keep_alive: bool) {
    let origin = Arc::new(origin);
    loop {
        // An error of accept is one of the connection that went away.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(talk(
                stream,
                Arc::clone(&origin),
                Arc::clone(&answers),
                keep_alive,
            ));
        }
    }
}

async fn talk(stream: TcpStream, origin: Arc<Origin>, answers: Arc<Answers>, keep_alive: bool) {
    // Without Nagle's delay a response leaves when it is written.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| answer(request, &origin, &answers));
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(keep_alive)
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    // A client that hangs up in the middle is the client's business.
    let _ = connection.await;
}

async fn answer(
    request: Request<Incoming>,
    origin: &Origin,
    answers: &Answers,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let Some(found) = answers.find(origin, head.method.as_str(), target) else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let _ = body.collect().await;
    timer::wait(found.wait).await;
    Ok(respond(found))
}

fn respond(answer: &Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body.clone()));
    *response.status_mut() = answer.status;
    response.headers_mut().extend(answer.headers.iter().cloned());
    response
}
