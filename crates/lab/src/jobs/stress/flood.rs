//! Floods of SYNs at a constant rate, from addresses behind the wire that never complete a handshake.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use firstflight_path::{Purpose, Stream};
use serde::{Deserialize, Serialize};

use super::flood_packet::{spoofed_address, syn, take_back};
use super::meter::{self, Processors};
use super::wire::{CookieJar, lock};
use crate::error::ServerProblem;
use crate::tun::{Frame, Tun};
use crate::{LabError, clock, scheduling};

/// The first port that needs no privileges.
const FIRST_UNRESERVED: u16 = 1_024;

/// The SYNs of a flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Without Fast Open option or data: a classic SYN flood.
    Plain,
    /// With data and an invented cookie.
    Forged,
    /// With data and the cookie that the server gave to this address. The attacker controls or controlled the hosts
    /// there (RFC 7413, section 5.1).
    Valid,
}

/// A flood.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloodJob {
    /// The kind of its SYNs.
    pub kind: Kind,
    /// SYNs per second.
    pub rate: f64,
    /// Number of addresses for which it gets cookies. Other floods come from 65,280 addresses.
    pub addresses: u16,
}

/// Counts so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) syns: u64,
    /// Time that the server's kernel spent on them during the writes, ns.
    pub(super) receiving: u64,
}

/// A running flood.
#[derive(Debug)]
pub(super) struct Flood {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), LabError>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    syns: AtomicU64,
    receiving: AtomicU64,
}

/// Simultaneous cookie requests, and how long their answers may take.
const ASKED_AT_ONCE: usize = 64;
const COOKIE_TIMEOUT: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Pause of the thread between two bursts, ns.
const REST_NS: u64 = 200_000;
const COOKIE_BYTES: usize = 8;

impl Flood {
    /// Gets the cookies that the flood needs, and starts it.
    ///
    /// # Errors
    /// [`LabError`] when the server gives none.
    pub(super) fn start(
        job: FloodJob,
        server_tun: &Tun,
        server: SocketAddrV4,
        request: &[u8],
        jar: &CookieJar,
        processors: Processors,
    ) -> Result<Self, LabError> {
        let mut attacker = Attacker {
            tun: server_tun.try_clone()?,
            server,
            request: request.to_vec(),
            random: Stream::new(0, Purpose::Flood, &[job.addresses.into()]),
            cookies: Vec::new(),
        };
        if job.kind == Kind::Valid {
            attacker.fetch_cookies(job.addresses, jar)?;
        }
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("flood".to_owned())
            .spawn(move || {
                let _ = meter::stay_on(processors.server);
                scheduling::become_relay(false);
                attacker.flood(job, &theirs)
            })
            .map_err(|error| LabError::system("starting the flood", error))?;
        Ok(Self { shared, thread })
    }

    /// The counts so far.
    pub(super) fn sent(&self) -> Sent {
        Sent {
            syns: self.shared.syns.load(Ordering::Relaxed),
            receiving: self.shared.receiving.load(Ordering::Relaxed),
        }
    }

    /// Ends the flood.
    ///
    /// # Errors
    /// [`LabError`] when it stopped early.
    pub(super) fn finish(self) -> Result<(), LabError> {
        self.shared.stop.store(true, Ordering::SeqCst);
        let died = |_| LabError::bug("the flood died");
        self.thread.join().map_err(died)?
    }
}

struct Attacker {
    tun: Tun,
    server: SocketAddrV4,
    request: Vec<u8>,
    random: Stream,
    cookies: Vec<(Ipv4Addr, Vec<u8>)>,
}

impl Attacker {
    /// Requests a cookie from each address in turn, and resets every connection.
    fn fetch_cookies(&mut self, addresses: u16, jar: &CookieJar) -> Result<(), LabError> {
        let sources: Vec<_> = (0..addresses).map(spoofed_address).collect();
        for some in sources.chunks(ASKED_AT_ONCE) {
            lock(jar).extend(some.iter().map(|source| (*source, None)));
            let asked: Vec<_> = some
                .iter()
                .map(|source| (self.port_of(*source), self.random.next_u64() as u32))
                .collect();
            for (source, sequence) in &asked {
                self.send(&syn(*source, self.server, *sequence, Some(&[]), &[])?)?;
            }
            let found = wait_for_cookies(some, jar)?;
            for (source, sequence) in &asked {
                self.send(&take_back(*source, self.server, *sequence)?)?;
            }
            self.cookies.extend(some.iter().copied().zip(found));
        }
        Ok(())
    }

    fn flood(&mut self, job: FloodJob, shared: &Shared) -> Result<(), LabError> {
        let (began, mut sent) = (clock::now(), 0_u64);
        while !shared.stop.load(Ordering::Relaxed) {
            let due = ((clock::now() - began) as f64 / 1e9 * job.rate) as u64;
            let packets = (sent..due)
                .map(|_| self.packet(job.kind))
                .collect::<Result<Vec<_>, _>>()?;
            let before = clock::thread_cpu();
            packets.iter().try_for_each(|packet| self.send(packet))?;
            shared
                .receiving
                .fetch_add(clock::thread_cpu() - before, Ordering::Relaxed);
            shared.syns.store(due, Ordering::Relaxed);
            sent = due;
            std::thread::sleep(Duration::from_nanos(REST_NS));
        }
        Ok(())
    }

    fn packet(&mut self, kind: Kind) -> Result<Frame, LabError> {
        let spoofed = spoofed_address(self.random.next_u64() as u16);
        let (who, cookie) = match kind {
            Kind::Plain => (spoofed, None),
            Kind::Forged => (
                spoofed,
                Some(
                    std::iter::repeat_with(|| self.random.next_u64() as u8)
                        .take(COOKIE_BYTES)
                        .collect(),
                ),
            ),
            Kind::Valid => {
                let (who, cookie) = &self.cookies[self.random.next_below(self.cookies.len() as u64) as usize];
                (*who, Some(cookie.clone()))
            }
        };
        let (source, sequence) = (self.port_of(who), self.random.next_u64() as u32);
        let data = if cookie.is_some() {
            self.request.as_slice()
        } else {
            &[]
        };
        syn(source, self.server, sequence, cookie.as_deref(), data)
    }

    fn port_of(&mut self, source: Ipv4Addr) -> SocketAddrV4 {
        let unreserved = u64::from(u16::MAX - FIRST_UNRESERVED) + 1;
        let port = FIRST_UNRESERVED + self.random.next_below(unreserved) as u16;
        SocketAddrV4::new(source, port)
    }

    fn send(&self, packet: &Frame) -> Result<(), LabError> {
        self.tun
            .write(packet)
            .map_err(|error| LabError::system("sending a SYN of the flood", error))
    }
}

fn wait_for_cookies(sources: &[Ipv4Addr], jar: &CookieJar) -> Result<Vec<Vec<u8>>, LabError> {
    let deadline = clock::now() + COOKIE_TIMEOUT.as_nanos() as u64;
    loop {
        let found: Option<Vec<_>> = {
            let jar = lock(jar);
            sources
                .iter()
                .map(|source| jar.get(source).cloned().flatten())
                .collect()
        };
        if let Some(found) = found {
            return Ok(found);
        }
        if clock::now() > deadline {
            return Err(LabError::StressedServer {
                problem: ServerProblem::NoCookies,
                printed: String::new(),
            });
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
