//! The built-in server for server rows: it answers any request, and records what it received.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::libc;

use crate::witness::TcpInfo;
use crate::{LabError, net};

/// Size of the answer to `/large`, which exceeds any initial window. Other requests get a short answer.
const LARGE_BYTES: usize = 100_000;
const SHORT: &[u8] = b"HTTP/1.0 200 OK\r\n\r\nhello";

/// A server that the row can tell when to accept, and when to stop listening.
#[derive(Debug)]
pub(super) struct App {
    listener: Option<TcpListener>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    /// Whether its socket reports that it came in the SYN.
    pub(super) in_syn: bool,
}

impl App {
    /// Listens on `address`. `pending`: Fast Open requests that may wait; `None` for no Fast Open. `accepts`:
    /// whether it accepts connections from the start, or only after [`Self::accept`].
    pub(super) fn listen(address: SocketAddr, pending: Option<u32>, accepts: bool) -> Result<Self, LabError> {
        let failed = |error: io::Error| LabError::system("starting the server", error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        if let Some(pending) = pending {
            net::set_tcp_option(&listener, libc::TCP_FASTOPEN, &pending).map_err(failed)?;
        }
        let mut app = Self {
            listener: Some(listener),
            heard: Arc::default(),
        };
        if accepts {
            app.accept().map_err(failed)?;
        }
        Ok(app)
    }

    /// From now on it accepts connections.
    pub(super) fn accept(&mut self) -> io::Result<()> {
        let Some(listener) = &self.listener else {
            return Ok(());
        };
        let listener = listener.try_clone()?;
        let heard = Arc::clone(&self.heard);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let heard = Arc::clone(&heard);
                // A client that closes in the middle is no error of the server.
                thread::spawn(move || serve(stream, &heard));
            }
        });
        Ok(())
    }

    /// The listening socket, until it is closed.
    pub(super) fn listener(&self) -> Option<&TcpListener> {
        self.listener.as_ref()
    }

    /// Stops listening. Has no effect on a server that accepts already.
    pub(super) fn close(&mut self) {
        self.listener = None;
    }

    /// The requests answered so far.
    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(mut stream: TcpStream, heard: &Mutex<Vec<Heard>>) -> io::Result<()> {
    let in_syn = TcpInfo::of(&stream)?.syn_data;
    let mut request = Vec::new();
    let mut chunk = [0; 4_096];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            length => request.extend_from_slice(&chunk[..length]),
        }
    }
    let answer = if request.starts_with(b"GET /large ") {
        [SHORT, &vec![b'.'; LARGE_BYTES]].concat()
    } else {
        SHORT.to_vec()
    };
    heard
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Heard { in_syn });
    stream.write_all(&answer)?;
    while stream.read(&mut chunk)? > 0 {}
    Ok(())
}
