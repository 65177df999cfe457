//! The wire between clients and server: one thread per direction, each a delay.
//!
//! A write to a TUN device runs the kernel's receiving side in the same system call, on the same processor. So the
//! thread towards the server stands for its network card's interrupts, and the time of its writes is what the
//! server's kernel spends on receiving.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use firstflight_path::Direction;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use serde::Serialize;

use super::meter::{self, Processors};
use crate::net::CLIENT;
use crate::packet::{self, Segment};
use crate::relay::{Lateness, LatenessSummary, Pace, Rest};
use crate::tun::{Frame, Tun};
use crate::{LabError, clock, scheduling};

/// Packets read before departures get their turn.
const BATCH: usize = 64;
/// Longest pause of a thread before it checks whether it must end, ns.
const LONGEST_REST_NS: u64 = 20_000_000;
const LARGEST_PACKET: usize = 1_500;

/// Counts of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Bytes, IP headers included.
    pub bytes: u64,
    /// SYNs; towards the client, SYN-ACKs.
    pub syns: u64,
    /// SYNs with a cookie request.
    pub cookie_requests: u64,
    /// SYNs with a cookie and data.
    pub syns_with_data: u64,
    /// Resets.
    pub resets: u64,
    /// Packets to addresses other than the client's, which are dropped.
    pub strangers_packets: u64,
    /// Bytes of these packets.
    pub strangers_bytes: u64,
}

impl Tally {
    fn count(&mut self, segment: &Segment) {
        self.packets += 1;
        self.bytes += u64::from(segment.packet_bytes);
        self.syns += u64::from(segment.flags.syn);
        self.resets += u64::from(segment.flags.rst);
        match segment.cookie_bytes {
            Some(0) => self.cookie_requests += 1,
            Some(_) => self.syns_with_data += u64::from(segment.payload_bytes > 0),
            None => {}
        }
    }

    /// The increase since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            syns: self.syns - earlier.syns,
            cookie_requests: self.cookie_requests - earlier.cookie_requests,
            syns_with_data: self.syns_with_data - earlier.syns_with_data,
            resets: self.resets - earlier.resets,
            strangers_packets: self.strangers_packets - earlier.strangers_packets,
            strangers_bytes: self.strangers_bytes - earlier.strangers_bytes,
        }
    }
}

/// Cookies that the flood's addresses requested; `None` until they have come.
pub(super) type CookieJar = Arc<Mutex<HashMap<Ipv4Addr, Option<Vec<u8>>>>>;

/// One direction's counts, at the last update of its thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Carried {
    pub(super) tally: Tally,
    /// Processor time of the writes: what the kernel of the far end spent on receiving, ns.
    pub(super) receiving: u64,
    pub(super) lateness: Lateness,
    /// Packets that a device refused.
    pub(super) refused: u64,
}

/// A running wire.
#[derive(Debug)]
pub(super) struct Wire {
    stop: Arc<AtomicBool>,
    carried: [Arc<Mutex<Carried>>; 2],
    threads: [JoinHandle<()>; 2],
}

impl Wire {
    /// Starts both directions. Of what the server sends to the flood's addresses only the cookies are kept, in
    /// `jar`.
    pub(super) fn start(
        [client, server]: [&Tun; 2],
        rtt: Duration,
        processors: Processors,
        realtime: bool,
        jar: &CookieJar,
    ) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let carried = [(); 2].map(|()| Arc::new(Mutex::new(Carried::default())));
        let [up, down] = [
            (Direction::Up, client, server, processors.server),
            (Direction::Down, server, client, processors.clients),
        ]
        .map(|(direction, from, to, processor)| {
            let shared = Arc::clone(&carried[usize::from(direction == Direction::Down)]);
            let (stop, jar) = (Arc::clone(&stop), Arc::clone(jar));
            let ends = from.try_clone().and_then(|from| Ok((from, to.try_clone()?)));
            ends.and_then(|(from, to)| {
                let mut way = Carrier::new(direction, from, to, rtt / 2, shared, jar);
                let work = move || way.run(processor, realtime, &stop);
                let thread = std::thread::Builder::new().name("wire".to_owned());
                thread
                    .spawn(work)
                    .map_err(|error| LabError::system("starting the wire", error))
            })
        });
        Ok(Self {
            stop,
            carried,
            threads: [up?, down?],
        })
    }

    /// The counts so far, up and down.
    pub(super) fn carried(&self) -> [Carried; 2] {
        self.carried.each_ref().map(|carried| lock(carried).clone())
    }

    /// Ends both directions.
    pub(super) fn finish(self) -> Result<(), LabError> {
        self.stop.store(true, Ordering::SeqCst);
        let died = |_| LabError::bug("the wire died");
        self.threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(died))
    }
}

/// Ignores poisoning: the data are counts, so a thread that panicked left them consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One direction.
struct Carrier {
    direction: Direction,
    from: Tun,
    to: Tun,
    delay: u64,
    /// Packets on their way with the times they are due, in this order.
    under_way: VecDeque<(u64, Frame)>,
    spare: Vec<Frame>,
    /// The packet that was read last.
    frame: Frame,
    pace: Pace,
    carried: Arc<Mutex<Carried>>,
    jar: CookieJar,
}

impl Carrier {
    fn new(
        direction: Direction,
        from: Tun,
        to: Tun,
        delay: Duration,
        carried: Arc<Mutex<Carried>>,
        jar: CookieJar,
    ) -> Self {
        Self {
            direction,
            from,
            to,
            delay: delay.as_nanos() as u64,
            under_way: VecDeque::new(),
            spare: Vec::new(),
            frame: Frame::with_room(LARGEST_PACKET),
            pace: Pace::default(),
            carried,
            jar,
        }
    }

    fn run(&mut self, processor: usize, realtime: bool, stop: &AtomicBool) {
        // If it may not choose a processor, the system does.
        let _ = meter::stay_on(processor);
        scheduling::become_relay(realtime);
        let mut backlog = false;
        while !stop.load(Ordering::Relaxed) {
            self.deliver_due();
            backlog = (backlog || self.rest()) && self.read_batch();
        }
    }

    /// Waits until it is time to look. Returns whether packets may have come.
    fn rest(&mut self) -> bool {
        let due = self.under_way.front().map(|(due, _)| *due);
        let longest = match self.pace.rest(clock::now(), due) {
            Rest::Watch => 0,
            Rest::Sleep(longest) => longest.unwrap_or(LONGEST_REST_NS).min(LONGEST_REST_NS),
            Rest::Nap(time) => {
                std::thread::sleep(Duration::from_nanos(time));
                return true;
            }
        };
        let mut fds = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
        let longest = TimeSpec::from_duration(Duration::from_nanos(longest));
        // After an interrupted or failed wait the loop looks again.
        let _ = ppoll(&mut fds, Some(longest), None);
        fds[0].any() == Some(true)
    }

    /// Reads packets; `true` if there may be more.
    fn read_batch(&mut self) -> bool {
        let carried = Arc::clone(&self.carried);
        let mut carried = lock(&carried);
        for _ in 0..BATCH {
            if !self.from.read(&mut self.frame) {
                return false;
            }
            self.take(&mut carried.tally);
        }
        true
    }

    fn take(&mut self, tally: &mut Tally) {
        let now = clock::now();
        self.pace.count();
        let packet = self.frame.packet();
        // Only TCP is carried here.
        let Some(segment) = Segment::parse(packet) else {
            return;
        };
        if self.direction == Direction::Down
            && let IpAddr::V4(spoofed) = segment.destination.0
            && spoofed != CLIENT
        {
            tally.strangers_packets += 1;
            tally.strangers_bytes += u64::from(segment.packet_bytes);
            keep_cookie(&self.jar, spoofed, packet);
            return;
        }
        tally.count(&segment);
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.copy_from(&self.frame);
        self.under_way.push_back((now + self.delay, copy));
    }

    fn is_due(&self) -> bool {
        self.under_way
            .front()
            .is_some_and(|(due, _)| *due <= clock::now())
    }

    fn deliver_due(&mut self) {
        if !self.is_due() {
            return;
        }
        let carried = Arc::clone(&self.carried);
        let mut carried = lock(&carried);
        let before = clock::thread_cpu();
        while self.is_due() {
            let Some((due, packet)) = self.under_way.pop_front() else {
                break;
            };
            carried.lateness.record(due, clock::now());
            carried.refused += u64::from(self.to.write(&packet).is_err());
            self.pace.count();
            self.spare.push(packet);
        }
        carried.receiving += clock::thread_cpu() - before;
    }
}

/// Keeps the cookie of a SYN-ACK if its addressee has requested one.
fn keep_cookie(jar: &CookieJar, spoofed: Ipv4Addr, packet: &[u8]) {
    let mut jar = lock(jar);
    let Some(place) = jar.get_mut(&spoofed) else {
        return;
    };
    let Some((_, tcp, _)) = packet::parse(packet) else {
        return;
    };
    if let Some(cookie) = packet::options(tcp.options.as_slice()).find_map(|option| option.any_cookie()) {
        *place = Some(cookie.to_vec());
    }
}

/// The lateness of a wire.
pub(super) fn lateness(carried: &[Carried; 2]) -> [LatenessSummary; 2] {
    carried.each_ref().map(|carried| carried.lateness.summary())
}
