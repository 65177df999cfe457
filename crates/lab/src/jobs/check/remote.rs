//! Rows that need no raw packets, with a server on another machine. This machine's ordinary client connects,
//! outside of a lab, and `TCP_INFO` reports whether the server accepted the data in its SYN.
//!
//! The kernel decides which cookie it sends, and when it sends its ACK. So no row sends a wrong cookie, leaves a
//! SYN-ACK unanswered or sends a SYN twice. There is no capture, which would need privileges. Other programs share
//! the kernel's cookie cache and its counters; `TCP_INFO` belongs to the connection alone.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockaddrStorage, connect};
use serde::{Deserialize, Serialize};

use super::client::{begin_in_syn, tcp_socket};
use super::finding::{Finding, Stop};
use super::pair::converse;
use super::rows::Row;
use super::{RowRecord, row};
use crate::witness::TcpInfo;
use crate::{LabError, clock, net};

/// How long a connection and its answer may take together.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Number of connections of each kind in `R14-together`, and of connections in `R18-keys`.
const TIMES: usize = 3;
const SERVERS_TRIED: usize = 8;
/// A round trip below this cannot be told from the time that programs take, ms.
const SHORTEST_MS: f64 = 5.0;

type Trial = fn(&Remote) -> Result<Finding, Stop>;

/// The rows that work remotely, with their functions.
const TRIALS: &[(&str, Trial)] = &[
    ("R1-grant", grant),
    ("R14-together", together),
    ("R18-keys", keys),
    ("syn-data-no-option", no_option),
    ("zero-payload-server", zero_payload),
];

/// A job for one row with a server on another machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteJob {
    /// The row; empty to try whether any row works.
    #[serde(default)]
    row: String,
    /// The server's address.
    address: SocketAddr,
    /// The server's name, for HTTP.
    host: String,
}

/// The times of an ordinary connection.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ordinary {
    /// Time of the handshake, ms.
    pub connect_ms: f64,
    /// Time to the first byte of the answer, ms.
    pub answer_ms: f64,
}

/// Whether `row` works with a server on another machine.
pub(super) fn does(row: &Row) -> bool {
    trial(row.id).is_some()
}

fn trial(id: &str) -> Option<Trial> {
    let found = TRIALS.iter().find(|(name, _)| *name == id);
    found.map(|(_, trial)| *trial)
}

impl RemoteJob {
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| LabError::malformed("the job", error))
    }

    /// Makes the server answer an ordinary client. Call it outside of a lab.
    ///
    /// # Errors
    /// [`LabError`] when it cannot be reached or does not answer, or this machine's client does no Fast Open.
    pub fn try_server(&self) -> Result<Ordinary, LabError> {
        let setting = fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").unwrap_or_default();
        if setting.trim().parse().is_ok_and(|bits: u32| bits & 1 == 0) {
            return Err(LabError::ClientWithoutFastOpen(
                "net.ipv4.tcp_fastopen has no bit 0x1",
            ));
        }
        self.remote().ordinary()
    }

    /// Runs the row. Call it outside of a lab.
    ///
    /// # Errors
    /// [`LabError`] when the server cannot be reached or does not answer.
    pub fn run(&self) -> Result<RowRecord, LabError> {
        let row = row(&self.row)?;
        let begun = clock::now();
        let finding = match trial(row.id) {
            Some(trial) => Finding::of(trial(&self.remote()))?,
            None => Finding::not_applicable(
                "It takes packets that this machine's TCP does not send; --server does it with a local program.",
            ),
        };
        Ok(RowRecord {
            finding,
            packets: Vec::new(),
            counters: None,
            elapsed_ms: (clock::now() - begun) as f64 / 1e6,
        })
    }

    fn remote(&self) -> Remote {
        let host = &self.host;
        Remote {
            address: self.address,
            request: format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes(),
        }
    }
}

/// A server on another machine.
struct Remote {
    address: SocketAddr,
    request: Vec<u8>,
}

/// The result of a connection that tried to send data in its SYN.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    info: TcpInfo,
    answer_ms: f64,
}

/// `tcpi_fastopen_client_fail` (`enum tcp_fastopen_client_fail` in `linux/tcp.h`).
const NO_COOKIE: u8 = 1;
const NOT_ACKNOWLEDGED: u8 = 2;
const SENT_AGAIN: u8 = 3;

impl Outcome {
    /// Whether the kernel had no cookie, and asked for one.
    fn asked(self) -> bool {
        !self.info.syn_data && self.info.client_fail == NO_COOKIE
    }

    fn told(self) -> &'static str {
        match (self.info.syn_data, self.info.client_fail) {
            (true, _) => "acknowledged",
            (false, NO_COOKIE) => "not sent, for want of a cookie",
            (false, NOT_ACKNOWLEDGED) => "not acknowledged",
            (false, SENT_AGAIN) => "lost: the SYN went again without it",
            (false, _) => "not sent",
        }
    }
}

impl Remote {
    /// An ordinary connection, a request and its answer.
    fn ordinary(&self) -> Result<Ordinary, LabError> {
        let begun = Instant::now();
        let socket = tcp_socket(self.address.ip())?;
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(self.address)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(self.failed(errno.desc())),
        }
        let stream = TcpStream::from(socket);
        let timeout = PollTimeout::try_from(TIMEOUT).unwrap_or(PollTimeout::MAX);
        let opened = poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)], timeout);
        if opened.is_ok_and(|ready| ready == 0) {
            return Err(self.failed(format!("no connection within {} s", TIMEOUT.as_secs())));
        }
        if let Some(error) = stream.take_error().unwrap_or_else(Some) {
            return Err(self.failed(error));
        }
        let connect_ms = begun.elapsed().as_secs_f64() * 1e3;
        self.finish(&stream, 0, begun)?;
        Ok(Ordinary {
            connect_ms,
            answer_ms: begun.elapsed().as_secs_f64() * 1e3,
        })
    }

    /// Sends the request with Fast Open.
    fn fast(&self) -> Result<Outcome, LabError> {
        self.fast_with(&tcp_socket(self.address.ip())?, &self.request)
    }

    /// Sends the request with Fast Open, of which the SYN carries at most `first`.
    fn fast_with(&self, socket: &OwnedFd, first: &[u8]) -> Result<Outcome, LabError> {
        let begun = Instant::now();
        let accepted = begin_in_syn(socket, self.address, first)?;
        let copy = socket.try_clone();
        let stream = TcpStream::from(copy.map_err(|error| LabError::system("sharing a socket", error))?);
        self.finish(&stream, accepted, begun)?;
        let answer_ms = begun.elapsed().as_secs_f64() * 1e3;
        let info = TcpInfo::of(&stream).map_err(|error| LabError::system("TCP_INFO", error))?;
        Ok(Outcome { info, answer_ms })
    }

    /// Sends the rest of the request, and waits for the first byte of the answer.
    fn finish(&self, stream: &TcpStream, sent: usize, begun: Instant) -> Result<(), LabError> {
        match converse(stream, &self.request[sent..], begun + TIMEOUT) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let seconds = TIMEOUT.as_secs();
                Err(self.failed(format!(
                    "it did not answer GET / within {seconds} s, or closed the connection"
                )))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Makes two connections; the first asks for a cookie if the kernel has none. Returns whether the kernel has
    /// one afterwards, and whether it asked.
    fn has_cookie(&self) -> Result<(bool, bool), LabError> {
        let first = self.fast()?;
        if !first.info.syn_data && first.info.client_fail == 0 {
            return Err(LabError::ClientWithoutFastOpen(
                "it sent neither data nor a request for a cookie, as after a suspected black hole",
            ));
        }
        if !first.asked() {
            return Ok((true, false));
        }
        Ok((!self.fast()?.asked(), true))
    }

    /// Fails if the kernel has no cookie.
    fn warm(&self) -> Result<(), Stop> {
        match self.has_cookie()? {
            (true, _) => Ok(()),
            (false, _) => Err(Stop::NotApplicable(
                "The server gives no cookie: Fast Open is off, or the path takes the option away.".to_owned(),
            )),
        }
    }

    fn failed(&self, problem: impl std::fmt::Display) -> LabError {
        LabError::RemoteServer {
            address: self.address,
            problem: problem.to_string(),
        }
    }
}

fn grant(remote: &Remote) -> Result<Finding, Stop> {
    let (granted, asked) = remote.has_cookie()?;
    let seen = match (granted, asked) {
        (true, true) => {
            "The kernel asked for a cookie, and sent one with its next SYN; Linux keeps none of another length."
        }
        (true, false) => "The kernel had a cookie of this server already, from an earlier connection.",
        (false, _) => {
            "The kernel asked twice and got no cookie: Fast Open is off, or the path takes the option away."
        }
    };
    Ok(Finding::judged(granted, seen))
}

fn together(remote: &Remote) -> Result<Finding, Stop> {
    remote.warm()?;
    let mut ordinary = Vec::new();
    let mut fast = Vec::new();
    for _ in 0..TIMES {
        ordinary.push(remote.ordinary()?);
        fast.push(remote.fast()?);
    }
    let taken = fast.iter().filter(|outcome| outcome.info.syn_data).count();
    let least = |times: &mut dyn Iterator<Item = f64>| times.fold(f64::INFINITY, f64::min);
    let handshake_ms = least(&mut ordinary.iter().map(|seen| seen.connect_ms));
    let ordinary_ms = least(&mut ordinary.iter().map(|seen| seen.answer_ms));
    let fast_ms = least(&mut fast.iter().map(|seen| seen.answer_ms));
    let is_sooner = ordinary_ms - fast_ms > handshake_ms / 2.0;
    let timed = if handshake_ms < SHORTEST_MS {
        "; too short a round trip to compare the times"
    } else {
        ""
    };
    let seen = format!(
        "Data in the SYN: {}. Least time of {TIMES} until the answer {fast_ms:.1} ms, of ordinary connections \
         {ordinary_ms:.1} ms, of which {handshake_ms:.1} ms for the handshake{timed}.",
        fast.iter()
            .map(|outcome| outcome.told())
            .collect::<Vec<_>>()
            .join(", "),
    );
    Ok(Finding::judged(
        taken == TIMES && (is_sooner || !timed.is_empty()),
        seen,
    ))
}

fn keys(remote: &Remote) -> Result<Finding, Stop> {
    remote.warm()?;
    let mut taken = 0;
    for _ in 0..SERVERS_TRIED {
        taken += usize::from(remote.fast()?.info.syn_data);
    }
    Err(Stop::NotApplicable(format!(
        "It binds operators. Seen: of {SERVERS_TRIED} connections with a cookie {taken} had their data \
         acknowledged{}.",
        if taken < SERVERS_TRIED {
            "; servers with different keys behind one address look like this"
        } else {
            ""
        }
    )))
}

fn no_option(remote: &Remote) -> Result<Finding, Stop> {
    let socket = tcp_socket(remote.address.ip())?;
    net::set_tcp_option(&socket, libc::TCP_FASTOPEN_NO_COOKIE, &1_u32)
        .map_err(|error: io::Error| LabError::system("setting TCP_FASTOPEN_NO_COOKIE", error))?;
    // The server has answered before, so a failure now is due to this SYN.
    Ok(match remote.fast_with(&socket, &remote.request) {
        Ok(outcome) => Finding::judged(
            !outcome.info.syn_data,
            format!(
                "Data in a SYN without option: {}; the request was answered.",
                outcome.told()
            ),
        ),
        Err(error) => Finding::judged(false, format!("The request was not answered: {error}.")),
    })
}

fn zero_payload(remote: &Remote) -> Result<Finding, Stop> {
    remote.warm()?;
    let socket = tcp_socket(remote.address.ip())?;
    Ok(match remote.fast_with(&socket, &[]) {
        Ok(outcome) => Finding::judged(
            true,
            format!(
                "The connection opened; the request was answered after {:.1} ms.",
                outcome.answer_ms
            ),
        ),
        Err(error) => Finding::judged(false, format!("The request was not answered: {error}.")),
    })
}
