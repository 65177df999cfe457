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

/// Packets read from one side before the relay turns to the other side and to departures.
const BATCH: usize = 32;

const BYPASS: u8 = 0;
const SHAPED: u8 = 1;
const HASTENED: u8 = 2;
const STOPPED: u8 = 3;

/// The two ends that the relay connects.
#[derive(Debug)]
pub struct Wire {
    /// The client's device.
    pub client: Tun,
    /// The servers' device.
    pub servers: Tun,
    /// Number of hosts. It tells their addresses from those of the lab's services.
    pub hosts: usize,
    /// The addresses of both ends.
    pub block: Block,
    /// Largest packet that the kernel hands over, bytes.
    pub largest_packet: usize,
    /// Whether the client is behind a NAT that changes its address when the path is shaped.
    pub changes_nat: bool,
}

impl Wire {
    /// A wire between a client and one server, without offloads.
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

/// What the relay records besides one ledger entry per connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keep {
    /// Every packet, for a capture.
    pub packets: bool,
    /// When each byte of each connection crossed.
    pub times: bool,
}

/// One end of the relay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Near,
    Far,
}

impl Wire {
    /// A packet as the NAT changes it before the path is shaped; `None` if it stays the same.
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
    /// Stops when the relay ends.
    awake: Option<Awake>,
}

#[derive(Debug)]
struct Control {
    state: AtomicU8,
    wake: EventFd,
}

impl Relay {
    /// Starts the relay. At first packets cross at once, and unrecorded: the lab fetches cookies and tries its
    /// services.
    ///
    /// The thread inherits the scheduling policy of the calling thread, which must still be real-time if
    /// `realtime`.
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

    /// From now on packets cross the path as described, and are recorded.
    pub fn shape(&self) {
        self.control.set(SHAPED);
    }

    /// From now on the relay delivers packets in order, without delay. The measurement is over, and what is under
    /// way only has to arrive.
    pub fn hasten(&self) {
        self.control.set(HASTENED);
    }

    /// Ends the relay and returns its report.
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

/// The connections that crossed the shaped path, with the path's handles.
#[derive(Default)]
struct Flows {
    /// Those in the ledger, by their number there.
    known: Vec<Flow>,
    /// Other UDP connections.
    udp: HashMap<ConnectionKey, Flow>,
}

impl Flows {
    /// The flow of connection `number` of the ledger, which numbers connections by their first packets.
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

    /// The flow of a packet whose connection is not in the ledger.
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
    /// The packet that was read last.
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

    /// Waits until it is time to look. Returns whether the client's and the servers' devices may have packets.
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

    /// Sleeps until a packet comes, `longest` ns have passed, or the relay gets a message.
    fn poll(&mut self, longest: Option<u64>) -> [bool; 2] {
        let mut fds = [
            PollFd::new(self.wire.client.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.wire.servers.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.control.wake.as_fd(), PollFlags::POLLIN),
        ];
        // After an interrupted or failed wait the relay looks again.
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

    /// Reads packets from one side; `true` if there may be more.
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
        // The kernel searches for IPv6 neighbours and routers, which do not exist here.
        if far_end.is_ipv6() && !is_origin(far_end) {
            return;
        }
        // Checked for each packet, after reading it: a SYN sent after `shape` must not cross unrecorded.
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
                // The middlebox is behind the client's link, so the segment crosses that link once.
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

    /// Enters the last packet read into the ledger. Returns its flow, and the action of a rule or middlebox.
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

    /// Sends the last packet read on the path, as a packet of `flow` and of `bytes`.
    fn carry(&mut self, now: u64, direction: Direction, flow: Flow, bytes: u32) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.copy_from(&self.frame);
        let ecn = packet::ecn(copy.packet());
        self.network
            .carry(now, direction, flow, Packet { bytes, ecn }, copy);
        self.note_drops();
    }

    /// Enters the packets that the path has dropped into the ledger.
    fn note_drops(&mut self) {
        while let Some(drop) = self.network.next_drop() {
            if let Some(datagram) = Datagram::parse(drop.payload.packet()) {
                self.report.ledger.datagram_dropped(drop.direction, &datagram);
            }
            self.spare.push(drop.payload);
        }
    }

    /// Packets due by this time are delivered now.
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
