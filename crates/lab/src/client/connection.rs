//! One TCP connection of the built-in client.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use firstflight_load::promise::Secured;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::TcpFastOpenConnect;
use nix::sys::socket::{
    self, AddressFamily, SockFlag, SockType, SockaddrStorage, setsockopt, socket, sockopt,
};

use super::Failure;
use super::http::{Progress, Response};
use super::http2::Http2;
use super::tls::{Incoming, Session};
use crate::ledger::ConnectionKey;
use crate::witness::TcpInfo;

/// Starts to connect. Returns `true` if the socket is writable at once, because the kernel holds the SYN back for
/// data.
///
/// # Errors
/// The kernel's, when it refuses at once.
pub fn connect(address: SocketAddr) -> io::Result<(TcpStream, bool)> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let stream = TcpStream::from(socket(family, SockType::Stream, flags, None)?);
    // If the client's sysctl is off, the kernel answers EOPNOTSUPP and the connection uses plain TCP. Whether the
    // option is granted is the treatment under test.
    let _ = setsockopt(&stream, TcpFastOpenConnect, &true);
    stream.set_nodelay(true)?;
    match socket::connect(stream.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) => Ok((stream, true)),
        Err(Errno::EINPROGRESS) => Ok((stream, false)),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes closing send a reset, so that no packet of the connection is left on the wire afterwards.
///
/// # Errors
/// The kernel's.
pub fn reset_when_closed(stream: &TcpStream) -> io::Result<()> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    Ok(setsockopt(stream, sockopt::Linger, &linger)?)
}

/// Whether the socket accepted what was written.
///
/// # Errors
/// The kernel's, except those that mean to try again, or later.
pub(super) fn went_out<T>(written: io::Result<T>) -> io::Result<bool> {
    match written {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        // Data that does not fit into the SYN waits for the end of the handshake.
        Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A connection, and the exchange on it.
pub(super) struct Connection {
    stream: TcpStream,
    /// The address connected to.
    pub(super) server: SocketAddr,
    /// Whether the TCP handshake is done, or Fast Open allows the first write before that.
    pub(super) writable: bool,
    is_secure: bool,
    /// Whether it accepts a request before its TLS handshake has begun, and has had none.
    awaits_early_data: bool,
    /// Whether its first request may be early data; `None` before the first request.
    pub(super) may_be_early: Option<bool>,
    session: Option<Session>,
    /// HTTP/2. It replaces `session` once that has negotiated it.
    pub(super) http2: Option<Http2>,
    unsent: Vec<u8>,
    exchange: Option<Exchange>,
}

/// The result of reading from a connection.
#[derive(Debug)]
pub(super) enum Received {
    /// Nothing came.
    Nothing,
    /// The TLS handshake is done, so the connection can carry requests.
    Ready,
    /// A part of the response.
    Response(Progress),
}

#[derive(Debug)]
struct Exchange {
    response: Response,
    head_only: bool,
}

impl Connection {
    /// Starts to connect to `server`, with the TLS of `session` on top.
    pub(super) fn open(server: SocketAddr, session: Option<Session>) -> io::Result<Self> {
        let (stream, writable) = connect(server)?;
        Ok(Self {
            stream,
            server,
            writable,
            is_secure: session.is_some(),
            awaits_early_data: session.as_ref().is_some_and(Session::offers_early_data),
            may_be_early: None,
            session,
            http2: None,
            unsent: Vec::new(),
            exchange: None,
        })
    }

    /// Whether it accepts a request as soon as the socket is writable.
    pub(super) fn takes_request(&self) -> bool {
        !self.is_secure || self.awaits_early_data
    }

    /// What this end reports of its TLS.
    pub(super) fn secured(&self) -> Option<Secured> {
        match &self.http2 {
            Some(http2) => http2.secured(),
            None => self.session.as_ref()?.secured(),
        }
    }

    /// The handshake's outcome, once the socket became writable.
    pub(super) fn outcome(&self) -> io::Result<()> {
        self.stream.take_error()?.map_or(Ok(()), Err)
    }

    /// HTTP/2 for the next request, if the connection uses it, or must use it in early data. From the first request
    /// that may not be early data, all requests wait for the TLS handshake.
    ///
    /// # Errors
    /// [`Failure`]: HTTP/2 does not begin.
    pub(super) fn http2(&mut self, may_be_early: bool) -> Result<Option<&mut Http2>, Failure> {
        if self.awaits_early_data
            && let Some(mut session) = self.session.take_if(|session| session.speaks_http2())
        {
            self.awaits_early_data = false;
            if !may_be_early {
                session.defer();
            }
            self.begin_http2(session)?;
        }
        if let Some(http2) = &mut self.http2 {
            self.may_be_early.get_or_insert(may_be_early);
            if !may_be_early {
                http2.defer();
            }
        }
        Ok(self.http2.as_mut())
    }

    fn begin_http2(&mut self, session: Session) -> Result<(), Failure> {
        self.http2 = Some(Http2::new(session, self.stream.try_clone()?)?);
        Ok(())
    }

    /// Starts an exchange; `true` if the whole request was written. If `may_be_early` it may go with the
    /// `ClientHello`.
    pub(super) fn send(&mut self, request: Vec<u8>, may_be_early: bool, head_only: bool) -> io::Result<bool> {
        self.may_be_early.get_or_insert(may_be_early);
        self.awaits_early_data = false;
        let is_taken = if let Some(session) = &mut self.session {
            if !may_be_early {
                session.defer();
            }
            session.take(&request)?
        } else {
            self.unsent = request;
            true
        };
        self.exchange = Some(Exchange {
            response: Response::default(),
            head_only,
        });
        Ok(self.flush()? && is_taken)
    }

    /// Writes what is left of the request or of the TLS handshake; `true` if nothing is left.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        if let Some(session) = self.session.as_mut().filter(|_| !self.awaits_early_data) {
            return session.flush(&mut self.stream);
        }
        while self.has_unsent() {
            let written = self.stream.write(&self.unsent);
            let written = written.map(|written| drop(self.unsent.drain(..written)));
            if !went_out(written)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether anything is left to write.
    pub(super) fn has_unsent(&self) -> bool {
        match &self.session {
            Some(_) if self.awaits_early_data => false,
            Some(session) => session.has_unsent(),
            None => !self.unsent.is_empty(),
        }
    }

    /// Reads once.
    ///
    /// # Errors
    /// [`Failure`]: the connection is closed, or what came is not a response.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<Received, Failure> {
        let read = match &mut self.session {
            Some(session) => session.read(&mut self.stream, buffer),
            None => self.stream.read(buffer).map(Incoming::Bytes),
        };
        let bytes = match read {
            Ok(Incoming::Bytes(0)) => return Err(Failure::Closed),
            Ok(Incoming::Bytes(bytes)) => bytes,
            Ok(Incoming::Ready) => return self.negotiated(),
            Ok(Incoming::Nothing) => return Ok(Received::Nothing),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Received::Nothing);
            }
            Err(error) => return Err(error.into()),
        };
        let Some(exchange) = &mut self.exchange else {
            return Err(Failure::Unasked);
        };
        let progress = exchange.response.take(&buffer[..bytes], exchange.head_only)?;
        Ok(Received::Response(progress))
    }

    fn negotiated(&mut self) -> Result<Received, Failure> {
        if let Some(session) = self.session.take_if(|session| session.speaks_http2()) {
            self.begin_http2(session)?;
        }
        Ok(Received::Ready)
    }

    /// Size of the last response's header, bytes.
    pub(super) fn header_bytes(&self) -> u64 {
        self.exchange
            .as_ref()
            .map_or(0, |exchange| exchange.response.header_bytes)
    }

    /// The ledger's key of this connection, if it has a port.
    pub(super) fn key(&self) -> Option<ConnectionKey> {
        let local = self.stream.local_addr().ok()?;
        Some((local.port(), self.server.ip(), self.server.port()))
    }

    pub(super) fn tcp_info(&self) -> Option<TcpInfo> {
        TcpInfo::of(&self.stream).ok()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> i32 {
        self.stream.as_raw_fd()
    }
}
