//! The relay's loop.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use firstflight_path::{
    Action, Direction, Drops, Ecn, Flow, Header, Hello, IpVersion, Network, Packet, PathConfig, Protocol,
};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;

use super::pace::{Pace, Rest};
use super::{Capture, Lateness, RelayReport, Timing, mangle};
use crate::ledger::{ConnectionKey, Ledger};
use crate::net::{AddressPlan, Block, is_origin};
use crate::packet::{self, Datagram, Segment};
use crate::scheduling::{self, Awake, Scheduling};
use crate::tun::{Frame, Offload, Tun};
use crate::{LabError, clock};

/// Packets read from one side before the other side and the departures get their turn.
const BATCH: usize = 32;

const BYPASS: u8 = 0;
const SHAPED: u8 = 1;
const HASTENED: u8 = 2;
const STOPPED: u8 = 3;

/// What the relay stands between.
#[derive(Debug)]
pub struct Wire {
    /// The client's device.
    pub client: Tun,
    /// The servers' device.
    pub servers: Tun,
    /// How many hosts there are, to tell their addresses from the services'.
    pub hosts: usize,
    /// The addresses of both ends.
    pub block: Block,
    /// Largest packet the kernel hands over, bytes.
    pub largest_packet: usize,
    /// The client is behind a NAT, which had another address until the path was shaped.
    pub changes_nat: bool,
}

impl Wire {
    /// Between a client and one server, whose kernels leave nothing to the relay.
    pub fn of_one_host(ip: IpVersion, client: Tun, servers: Tun) -> Self {
        Self {
            client,
            servers,
            hosts: 1,
            block: Block::of(ip),
            largest_packet: Offload::None.largest_packet(),
            changes_nat: false,
        }
    }
}

/// What a relay keeps beyond one entry per connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keep {
    /// Every packet, for a capture.
    pub packets: bool,
    /// When each byte of each connection passed.
    pub times: bool,
}

/// Where a packet comes from, where it goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Near,
    Far,
}

impl Wire {
    /// A packet as the NAT makes it until the path is shaped; `None` if it stays as it is.
    fn before_shaping(&self, direction: Direction, packet: &[u8]) -> Option<Vec<u8>> {
        let Block { client, former, .. } = self.block;
        let (from, to) = match direction {
            Direction::Up => (client, former),
            Direction::Down => (former, client),
        };
        if self.changes_nat {
            mangle::readdress(packet, from, to)
        } else {
            None
        }
    }

    fn device(&self, direction: Direction, end: End) -> &Tun {
        let at_servers = (direction == Direction::Up) == (end == End::Far);
        if at_servers { &self.servers } else { &self.client }
    }
}

/// A running relay.
#[derive(Debug)]
pub struct Relay {
    control: Arc<Control>,
    thread: JoinHandle<RelayReport>,
    /// Ends with the relay.
    awake: Option<Awake>,
}

#[derive(Debug)]
struct Control {
    state: AtomicU8,
    wake: EventFd,
}

impl Relay {
    /// Starts the relay. At first packets cross at once, unseen: cookies are fetched, services are tried.
    ///
    /// The calling thread's scheduling policy is inherited: it must still be real-time when `realtime`.
    ///
    /// # Errors
    /// [`LabError`] when the path is impossible or the thread cannot be started.
    pub fn start(
        wire: Wire,
        path: &PathConfig,
        keep: Keep,
        timing: Timing,
        realtime: bool,
    ) -> Result<Self, LabError> {
        let network = Network::new(&timing.corrected(path))?;
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(|errno| LabError::system("eventfd", errno))?;
        let control = Arc::new(Control {
            state: AtomicU8::new(BYPASS),
            wake,
        });
        let theirs = Arc::clone(&control);
        let awake = timing.keep_awake.then(Awake::keep);
        let taken_out_ms = timing.taken_out_ms(path.rtt_ms);
        let thread = std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || {
                let scheduling = scheduling::become_relay(realtime);
                let report = Loop::new(wire, network, keep, scheduling, &theirs).run();
                RelayReport {
                    taken_out_ms,
                    ..report
                }
            })
            .map_err(|error| LabError::system("starting the relay", error))?;
        Ok(Self {
            control,
            thread,
            awake,
        })
    }

    /// From now on packets cross the path as described, and are seen.
    pub fn shape(&self) {
        self.control.set(SHAPED);
    }

    /// From now on packets arrive in their order as soon as the relay has them: the measurement is over, and
    /// what is under way is only to be seen through.
    pub fn hasten(&self) {
        self.control.set(HASTENED);
    }

    /// Ends the relay and takes what it saw.
    ///
    /// # Errors
    /// [`LabError`] when the relay has died.
    pub fn finish(self) -> Result<RelayReport, LabError> {
        self.control.set(STOPPED);
        let report = self.thread.join().map_err(|_| LabError::bug("the relay died"))?;
        Ok(RelayReport {
            kept_awake: self.awake.as_ref().map_or(0, Awake::processors),
            ..report
        })
    }
}

impl Control {
    fn set(&self, state: u8) {
        self.state.store(state, Ordering::SeqCst);
        // An eventfd's counter cannot overflow from a handful of writes.
        let _ = self.wake.write(1);
    }
}

/// A packet of `bytes` whose sender does not use ECN: a SYN, or a reset.
fn plain(bytes: u32) -> Packet {
    let ecn = Ecn::NotCapable;
    Packet { bytes, ecn }
}

/// The connections that crossed the shaped path, as the path numbers them.
#[derive(Default)]
struct Flows {
    /// Those that are in the ledger, by its number.
    known: Vec<Flow>,
    /// Others of UDP.
    udp: HashMap<ConnectionKey, Flow>,
}

impl Flows {
    /// The flow of connection `number` of the ledger, which counts first packets.
    fn of_connection(
        &mut self,
        network: &mut Network<Frame>,
        protocol: Protocol,
        number: usize,
        origin: usize,
    ) -> Flow {
        if self.known.len() == number {
            self.known.push(network.open(protocol, origin));
        }
        self.known[number]
    }

    /// The flow of a packet that belongs to no connection of the ledger.
    fn of_other(
        &mut self,
        network: &mut Network<Frame>,
        direction: Direction,
        packet: &[u8],
        origin: usize,
    ) -> Flow {
        let Some(datagram) = Datagram::parse(packet) else {
            return network.unconnected(origin);
        };
        let open = || network.open(Protocol::Udp, origin);
        *self.udp.entry(datagram.key(direction)).or_insert_with(open)
    }
}

struct Loop<'a> {
    wire: Wire,
    network: Network<Frame>,
    flows: Flows,
    control: &'a Control,
    spare: Vec<Frame>,
    /// What was read last.
    frame: Frame,
    pace: Pace,
    report: RelayReport,
}

impl<'a> Loop<'a> {
    fn new(
        wire: Wire,
        network: Network<Frame>,
        keep: Keep,
        scheduling: Scheduling,
        control: &'a Control,
    ) -> Self {
        let report = RelayReport {
            ledger: if keep.times {
                Ledger::with_times()
            } else {
                Ledger::default()
            },
            capture: keep.packets.then(Capture::default),
            lateness: Lateness::default(),
            drops: Drops::default(),
            duplicated: 0,
            marked: 0,
            refused: 0,
            scheduling,
            kept_awake: 0,
            taken_out_ms: 0.0,
            cpu: 0,
            wall: clock::now(),
        };
        let frame = Frame::with_room(wire.largest_packet);
        Self {
            wire,
            network,
            flows: Flows::default(),
            control,
            spare: Vec::new(),
            frame,
            pace: Pace::default(),
            report,
        }
    }

    fn run(mut self) -> RelayReport {
        let mut backlog = false;
        while self.control.state.load(Ordering::SeqCst) != STOPPED {
            self.deliver_due();
            let [up, down] = if backlog { [true, true] } else { self.wait() };
            backlog = up && self.read_batch(Direction::Up);
            backlog |= down && self.read_batch(Direction::Down);
        }
        self.report.drops = self.network.drops();
        self.report.duplicated = self.network.duplicated();
        self.report.marked = self.network.marked();
        self.report.cpu = clock::thread_cpu();
        self.report.wall = clock::now() - self.report.wall;
        self.report
    }

    /// Rests until it is time to look; returns whether packets may have come from the client and the servers.
    fn wait(&mut self) -> [bool; 2] {
        match self.pace.rest(clock::now(), self.network.next_event()) {
            Rest::Watch => self.poll(Some(0)),
            Rest::Sleep(longest) => self.poll(longest),
            Rest::Nap(time) => {
                std::thread::sleep(Duration::from_nanos(time));
                [true, true]
            }
        }
    }

    /// Sleeps until a packet comes, `longest` ns have passed, or the relay is told something.
    fn poll(&mut self, longest: Option<u64>) -> [bool; 2] {
        let mut fds = [
            PollFd::new(self.wire.client.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.wire.servers.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.control.wake.as_fd(), PollFlags::POLLIN),
        ];
        // An interrupted or failed wait only means looking again.
        let _ = ppoll(
            &mut fds,
            longest.map(|time| TimeSpec::from_duration(Duration::from_nanos(time))),
            None,
        );
        if fds[2].any() == Some(true) {
            let _ = self.control.wake.read();
        }
        [fds[0].any() == Some(true), fds[1].any() == Some(true)]
    }

    /// Reads what has come from one side; `true` when there may be more.
    fn read_batch(&mut self, direction: Direction) -> bool {
        for _ in 0..BATCH {
            if !self.wire.device(direction, End::Near).read(&mut self.frame) {
                return false;
            }
            self.on_packet(direction);
        }
        true
    }

    fn on_packet(&mut self, direction: Direction) {
        let now = clock::now();
        self.pace.count();
        let packet = self.frame.packet();
        let Some((source, destination)) = packet::endpoints(packet) else {
            return;
        };
        let far_end = if direction == Direction::Up {
            destination
        } else {
            source
        };
        // A kernel looks for neighbours and routers of IPv6, which are not there.
        if far_end.is_ipv6() && !is_origin(far_end) {
            return;
        }
        // Asked for each packet, after reading it: a SYN sent after `shape` must not cross unseen.
        if self.control.state.load(Ordering::SeqCst) == BYPASS {
            let device = self.wire.device(direction, End::Far);
            let written = match self.wire.before_shaping(direction, packet) {
                Some(readdressed) => device.write(&Frame::new(&readdressed)),
                None => device.write(&self.frame),
            };
            self.report.refused += u64::from(written.is_err());
            return;
        }
        let origin = AddressPlan::index(self.wire.hosts, far_end);
        let (flow, action) = self.meet(direction, now, origin);
        let packet = self.frame.packet();
        if let (Direction::Up, Some(capture)) = (direction, &mut self.report.capture) {
            capture.keep(now, packet);
        }
        let bytes = packet.len() as u32;
        match action {
            None => self.carry(now, direction, flow, bytes),
            Some(Action::Drop) => {}
            Some(Action::Duplicate) => {
                self.carry(now, direction, flow, bytes);
                // The box is behind the client's link, which carries the segment once.
                self.carry(now, direction, flow, 0);
            }
            Some(Action::Reset) => {
                let back = match direction {
                    Direction::Up => Direction::Down,
                    Direction::Down => Direction::Up,
                };
                if let Some(reset) = mangle::reset(packet) {
                    let bytes = reset.len() as u32;
                    self.network
                        .carry(now, back, flow, plain(bytes), Frame::new(&reset));
                }
            }
            Some(action @ (Action::StripOption | Action::StripData)) => {
                if let Some(stripped) = mangle::strip(packet, action) {
                    self.network
                        .carry(now, direction, flow, plain(bytes), Frame::new(&stripped));
                }
            }
        }
    }

    /// Enters what was read last into the ledger: its flow, and what is to be done to it.
    fn meet(&mut self, direction: Direction, now: u64, origin: usize) -> (Flow, Option<Action>) {
        let packet = self.frame.packet();
        let (ledger, network) = (&mut self.report.ledger, &mut self.network);
        let datagram = Datagram::parse(packet);
        if let Some(number) = datagram.and_then(|datagram| ledger.datagram_sent(direction, now, &datagram)) {
            let flow = self.flows.of_connection(network, Protocol::Udp, number, origin);
            let bytes = datagram.map_or(0, |datagram| datagram.payload.len() as u32);
            let header = Header::of_datagram(direction, origin, number as u32, bytes);
            let action = network.meet(now, &header);
            if let Some(action) = action {
                ledger.interfered(number, action);
            }
            return (flow, action);
        }
        let segment = Segment::parse(packet);
        let entered = segment.and_then(|segment| Some((ledger.sent(direction, now, &segment)?, segment)));
        let Some((connection, segment)) = entered else {
            return (self.flows.of_other(network, direction, packet, origin), None);
        };
        let hello = match direction {
            Direction::Up => ledger.read(connection, &segment, segment.payload(packet)),
            Direction::Down => Hello::default(),
        };
        let flow = self
            .flows
            .of_connection(network, Protocol::Tcp, connection, origin);
        let header = Header {
            protocol: Protocol::Tcp,
            direction,
            origin,
            connection: connection as u32,
            flags: segment.flags,
            payload_bytes: segment.payload_bytes,
            fast_open: segment.cookie_bytes.is_some(),
            takes_syn_data: ledger.takes_syn_data(connection, &segment),
            hello,
        };
        let action = network.meet(now, &header);
        if let Some(action) = action {
            ledger.interfered(connection, action);
        }
        (flow, action)
    }

    /// Puts what was read last on the path, as a packet of `flow` and of `bytes`.
    fn carry(&mut self, now: u64, direction: Direction, flow: Flow, bytes: u32) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.copy_from(&self.frame);
        let ecn = packet::ecn(copy.packet());
        self.network
            .carry(now, direction, flow, Packet { bytes, ecn }, copy);
        self.note_drops();
    }

    /// Enters what the path has dropped into the ledger.
    fn note_drops(&mut self) {
        while let Some(drop) = self.network.next_drop() {
            if let Some(datagram) = Datagram::parse(drop.payload.packet()) {
                self.report.ledger.datagram_dropped(drop.direction, &datagram);
            }
            self.spare.push(drop.payload);
        }
    }

    /// Until when packets are due.
    fn horizon(&self) -> u64 {
        if self.control.state.load(Ordering::SeqCst) == HASTENED {
            u64::MAX
        } else {
            clock::now()
        }
    }

    fn deliver_due(&mut self) {
        while let Some(arrival) = self.network.arrive(self.horizon()) {
            let now = clock::now();
            self.report.lateness.record(arrival.at, now);
            self.pace.count();
            let (direction, mut frame) = (arrival.direction, arrival.payload);
            if arrival.is_marked {
                mangle::mark(frame.packet_mut());
            }
            let written = self.wire.device(direction, End::Far).write(&frame);
            self.report.refused += u64::from(written.is_err());
            if direction == Direction::Down {
                if let Some(segment) = Segment::parse(frame.packet()) {
                    self.report.ledger.arrived(now, &segment);
                } else if let Some(datagram) = Datagram::parse(frame.packet()) {
                    self.report.ledger.datagram_arrived(now, &datagram);
                }
                if let Some(capture) = &mut self.report.capture {
                    capture.keep(now, frame.packet());
                }
            }
            self.spare.push(frame);
        }
        self.note_drops();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_crosses_before_the_path_is_shaped_keeps_its_length() {
        let ((client, clients_kernel), (servers, servers_kernel)) = (Tun::pair(), Tun::pair());
        let wire = Wire {
            client,
            servers,
            hosts: 1,
            block: Block::of(IpVersion::V4),
            largest_packet: 1_500,
            changes_nat: false,
        };
        let path = serde_json::from_str(
            r#"{"topology":"access","rtt_ms":20,"queue":{"packets":10},"loss":0,"seed":1}"#,
        );
        let relay = Relay::start(
            wire,
            &path.expect("a path"),
            Keep::default(),
            Timing::default(),
            false,
        )
        .expect("a relay");
        let builder = etherparse::PacketBuilder::ipv4([198, 18, 0, 1], [198, 19, 0, 1], 64).udp(1_024, 7);
        let mut packet = Vec::new();
        builder.write(&mut packet, b"?").expect("room in memory");
        clients_kernel
            .write(&Frame::new(&packet))
            .expect("a relay that reads");
        let mut received = Frame::with_room(4_096);
        let deadline = clock::now() + 10_000_000_000;
        while !servers_kernel.read(&mut received) {
            assert!(clock::now() < deadline, "no packet within ten seconds");
            std::thread::yield_now();
        }
        relay.finish().expect("a relay that lives");
        assert_eq!(received.packet(), packet);
    }
}
