//! Clients that arrive at a constant rate, whether earlier ones have ended or not (an open loop).
//!
//! Each fetches one object over HTTP/1.0 on its own connection. Its latency counts from its planned arrival, not
//! from when this thread started it. So delays by a slow server are not hidden.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use serde::Serialize;

use super::meter::{Busy, Processors};
use crate::client::connect;
use crate::relay::Lateness;
use crate::witness::TcpInfo;
use crate::{LabError, clock};

/// What the clients do, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) server: SocketAddrV4,
    pub(super) request: &'a [u8],
    /// Size of the object, bytes.
    pub(super) body_bytes: usize,
    /// Number of clients.
    pub(super) requests: u64,
    /// Clients per second.
    pub(super) rate: f64,
    /// When a client gives up.
    pub(super) timeout: Duration,
}

/// The result of all clients.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Latencies of clients that got the whole object, ns.
    pub(super) latencies: Vec<u64>,
    pub(super) failures: Failures,
    pub(super) sockets: Sockets,
    /// How late clients arrived.
    pub(super) lateness: Lateness,
    /// From the first arrival to the last, ns.
    pub(super) arriving: u64,
    /// The processors' use meanwhile: of each one the time in use and the time stolen, ns.
    pub(super) processors: [Busy; 2],
    /// From the first arrival to the end of the last client, ns.
    pub(super) elapsed: u64,
}

/// Clients that did not get the object, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Failures {
    /// The object was not complete in time.
    pub timed_out: u64,
    /// The connection broke.
    pub broken: u64,
    /// Something other than the object came.
    pub wrong: u64,
    /// This machine could not open a connection: no descriptor or port was left.
    pub unsent: u64,
}

impl Failures {
    /// The sum.
    pub fn total(self) -> u64 {
        self.timed_out + self.broken + self.wrong + self.unsent
    }
}

/// What the clients' sockets reported of Fast Open when they were closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sockets {
    /// The SYN's data was acknowledged.
    pub syn_data_acked: u64,
    /// There was no cookie.
    pub no_cookie: u64,
    /// The SYN's data was not acknowledged, and was sent again after the handshake.
    pub not_acked: u64,
    /// The SYN itself was sent again.
    pub syn_again: u64,
}

/// Largest number of simultaneous connections. With the built-in server this process holds both ends.
const MOST_AT_ONCE: usize = 9_000;
/// Late arrivals that are started before other connections get their turn.
const BATCH: usize = 32;
const EVENTS: usize = 256;
const READ_BYTES: usize = 64 * 1024;

struct Client {
    stream: TcpStream,
    planned: u64,
    has_sent: bool,
    received: Vec<u8>,
}

/// How a client ended.
enum End {
    Whole,
    Wrong,
    Broken,
    TimedOut,
}

/// Starts the clients and waits for the last one.
///
/// # Errors
/// [`LabError`] when the kernel refuses an epoll instance.
pub(super) fn run(plan: Plan<'_>, processors: Processors) -> Result<Outcome, LabError> {
    let failed = |errno| LabError::system("epoll", errno);
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
    let mut crowd = Crowd {
        plan,
        epoll,
        began: clock::now(),
        arrived: 0,
        present: BTreeMap::new(),
        buffer: vec![0; READ_BYTES],
        outcome: Outcome::default(),
    };
    let before = processors.busy()?;
    while !crowd.is_over() {
        crowd.let_in();
        if crowd.arrived == plan.requests && crowd.outcome.arriving == 0 {
            crowd.outcome.arriving = clock::now() - crowd.began;
            let after = processors.busy()?;
            crowd.outcome.processors = [0, 1].map(|which| after[which].since(before[which]));
        }
        crowd.wait();
        crowd.attend().map_err(failed)?;
        crowd.send_away_late();
    }
    crowd.outcome.elapsed = clock::now() - crowd.began;
    Ok(crowd.outcome)
}

struct Crowd<'a> {
    plan: Plan<'a>,
    epoll: Epoll,
    began: u64,
    arrived: u64,
    /// Clients by number, which is the order of arrival.
    present: BTreeMap<u64, Client>,
    buffer: Vec<u8>,
    outcome: Outcome,
}

impl Crowd<'_> {
    fn is_over(&self) -> bool {
        self.arrived == self.plan.requests && self.present.is_empty()
    }

    /// The planned arrival of client `number`.
    fn planned(&self, number: u64) -> u64 {
        self.began + (number as f64 / self.plan.rate * 1e9) as u64
    }

    fn let_in(&mut self) {
        for _ in 0..BATCH {
            let (planned, now) = (self.planned(self.arrived), clock::now());
            if self.arrived == self.plan.requests || planned > now {
                return;
            }
            self.outcome.lateness.record(planned, now);
            let number = self.arrived;
            self.arrived += 1;
            if self.present.len() >= MOST_AT_ONCE || self.open(number, planned).is_err() {
                self.outcome.failures.unsent += 1;
            }
        }
    }

    fn open(&mut self, number: u64, planned: u64) -> io::Result<()> {
        let (stream, writable) = connect(self.plan.server.into())?;
        let mut client = Client {
            stream,
            planned,
            has_sent: false,
            received: Vec::new(),
        };
        // A socket whose SYN waits for data reports a hang-up, so it is watched only after its first write.
        if writable {
            client.send(self.plan.request)?;
        }
        let interest = if client.has_sent {
            EpollFlags::EPOLLIN
        } else {
            EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT
        };
        self.epoll
            .add(&client.stream, EpollEvent::new(interest, number))?;
        self.present.insert(number, client);
        Ok(())
    }

    /// Sleeps until an event comes, the next client arrives, or the first gives up.
    fn wait(&self) {
        let arrival = (self.arrived < self.plan.requests).then(|| self.planned(self.arrived));
        let timeout = self.plan.timeout.as_nanos() as u64;
        let surrender = self
            .present
            .first_key_value()
            .map(|(_, client)| client.planned + timeout);
        let next = arrival.into_iter().chain(surrender).min().unwrap_or_default();
        let longest = Duration::from_nanos(next.saturating_sub(clock::now()));
        let mut fds = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
        // After an interrupted or failed wait the loop looks again.
        let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(longest)), None);
    }

    fn attend(&mut self) -> nix::Result<()> {
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
            Err(nix::errno::Errno::EINTR) => 0,
            other => other?,
        };
        for event in &events[..count] {
            let number = event.data();
            let Some(client) = self.present.get_mut(&number) else {
                continue;
            };
            if !client.has_sent && event.events().contains(EpollFlags::EPOLLOUT) {
                let sent = client.send(self.plan.request);
                let mut rest = EpollEvent::new(EpollFlags::EPOLLIN, number);
                if sent.is_err() || self.epoll.modify(&client.stream, &mut rest).is_err() {
                    self.end(number, &End::Broken);
                    continue;
                }
            }
            if let Some(end) = client.receive(&mut self.buffer, self.plan.body_bytes) {
                self.end(number, &end);
            }
        }
        Ok(())
    }

    fn send_away_late(&mut self) {
        let timeout = self.plan.timeout.as_nanos() as u64;
        while let Some((number, client)) = self.present.first_key_value() {
            if client.planned + timeout > clock::now() {
                return;
            }
            self.end(*number, &End::TimedOut);
        }
    }

    fn end(&mut self, number: u64, end: &End) {
        let Some(client) = self.present.remove(&number) else {
            return;
        };
        let failures = &mut self.outcome.failures;
        match end {
            End::Whole => self.outcome.latencies.push(clock::now() - client.planned),
            End::Wrong => failures.wrong += 1,
            End::Broken => failures.broken += 1,
            End::TimedOut => failures.timed_out += 1,
        }
        if let Ok(info) = TcpInfo::of(&client.stream) {
            self.outcome.sockets.note(info);
        }
    }
}

impl Sockets {
    fn note(&mut self, info: TcpInfo) {
        self.syn_data_acked += u64::from(info.syn_data);
        match info.client_fail {
            1 => self.no_cookie += 1,
            2 => self.not_acked += 1,
            3 => self.syn_again += 1,
            _ => {}
        }
    }
}

impl Client {
    /// Writes the request, which fits into one segment.
    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        match self.stream.write(request) {
            Ok(_) => self.has_sent = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // There was no cookie after all, so the handshake comes first.
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads what has come. Returns how the client ended, if it did. In HTTP/1.0 the object ends with the
    /// connection.
    fn receive(&mut self, buffer: &mut [u8], body_bytes: usize) -> Option<End> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) if is_object(&self.received, body_bytes) => return Some(End::Whole),
                Ok(0) => return Some(End::Wrong),
                Ok(bytes) => self.received.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Some(End::Broken),
            }
        }
    }
}

/// Whether these bytes are a response with status 200 and a body of this size.
fn is_object(response: &[u8], body_bytes: usize) -> bool {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut fields);
    match head.parse(response) {
        Ok(httparse::Status::Complete(header)) => {
            head.code == Some(200) && response.len() - header == body_bytes
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_object_counts() {
        assert!(is_object(b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n12345", 5));
        for response in [
            &b"HTTP/1.0 200 OK\r\n\r\n1234"[..],
            b"HTTP/1.0 404 Not Found\r\n\r\n12345",
            b"HTTP/1.0 200 OK\r\n",
            b"",
        ] {
            assert!(!is_object(response, 5));
        }
    }
}
