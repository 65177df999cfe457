//! One flow on this kernel: client, server and path in one loop.
//!
//! One thread carries the packets and is both applications. So a packet's arrival, the application's reaction and
//! what the kernel sends next follow each other without a wake-up in between. The machine's scheduling only adds
//! how late the thread wakes up for a packet or for a timer of the kernel.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use firstflight_path::{Direction, Ecn};
use firstflight_replay::{Case, Closes, Flow, Info, PHASES, Packet, Path, Sent, TfoOption, Trace};
use firstflight_tcp::SendMemory;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use crate::packet::{self, parse};
use crate::relay::mark;
use crate::tun::{Frame, Tun};
use crate::witness::TcpInfo;
use crate::{LabError, client, clock, net};

/// A connection that has ended is observed for this long, ns, because retransmissions may follow.
const QUIET: u64 = 300_000_000;
/// A connection that does not end is observed for this long, ns.
const LONGEST: u64 = 20_000_000_000;
/// How long before a packet is due the thread stops sleeping, ns.
const WATCH: u64 = 60_000;
/// Bytes that applications read or write at once.
const PIECE: usize = 1 << 20;
/// What applications write. Allocating it later would delay each connection's first packets.
static ZEROS: [u8; PIECE] = [0; PIECE];

/// The two ends of the wire.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) client: Tun,
    pub(super) servers: Tun,
}

/// The read buffer of both applications, for any connection.
pub(super) fn read_buffer() -> Vec<u8> {
    vec![1; PIECE]
}

/// What a kernel did, and the largest lateness of the path, ns.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) trace: Trace,
    pub(super) start: u64,
    pub(super) late: u64,
}

pub(super) struct Connection<'a> {
    flow: &'a Flow,
    wire: &'a Wire,
    path: Path,
    /// Packets on their way, by arrival time, index in the trace, and number of the copy.
    in_flight: BTreeMap<(u64, usize, usize), (Frame, bool)>,
    listener: &'a TcpListener,
    client: End,
    server: Option<End>,
    /// When the server's response is due.
    due: Option<u64>,
    port: u16,
    frame: Frame,
    buffer: &'a mut [u8],
    trace: Trace,
    /// Each side's initial sequence number.
    first: [Option<u32>; 2],
    /// The window scale shift of each side.
    window_shift: [u8; 2],
    /// When the SYN left: on `connect` or, with a cookie, on the first write.
    start: u64,
    last: u64,
    late: u64,
}

/// The application at one end.
struct End {
    stream: TcpStream,
    /// Bytes still to write.
    unsent: usize,
    /// Whether the kernel accepted only a part of a write.
    waits_for_room: bool,
    /// Number of exchanges that have ended at this end.
    exchange: usize,
    received: u64,
    is_over: bool,
    has_closed: bool,
}

impl<'a> Connection<'a> {
    /// Connects to `listener` across `wire`, as `case` says.
    pub(super) fn open(
        case: &'a Case,
        wire: &'a Wire,
        listener: &'a TcpListener,
        buffer: &'a mut [u8],
    ) -> Result<Self, LabError> {
        let failed = |error: io::Error| LabError::system("connecting across the wire", error);
        let address = match listener.local_addr().map_err(failed)? {
            std::net::SocketAddr::V4(address) => address,
            std::net::SocketAddr::V6(_) => return Err(LabError::bug("an IPv6 listener")),
        };
        let path =
            Path::new(&case.flow, &case.script).map_err(|error| LabError::malformed("the flow", error))?;
        // Remove packets of an earlier connection.
        let mut frame = Frame::with_room(1_500);
        while wire.client.read(&mut frame) || wire.servers.read(&mut frame) {}
        let (stream, waits_for_data) = client::connect(address.into()).map_err(failed)?;
        let connected = clock::now();
        let port = stream.local_addr().map_err(failed)?.port();
        let mut client = End::new(stream);
        client.unsent = case
            .flow
            .exchanges
            .first()
            .map_or(0, |exchange| exchange.up as usize);
        let mut connection = Self {
            flow: &case.flow,
            wire,
            path,
            in_flight: BTreeMap::new(),
            listener,
            client,
            server: None,
            due: None,
            port,
            frame,
            buffer,
            trace: Trace::default(),
            first: [None; 2],
            window_shift: [0; 2],
            start: connected,
            last: clock::now(),
            late: 0,
        };
        if waits_for_data {
            connection.run_client();
            connection.start = clock::now();
        }
        Ok(connection)
    }

    /// Carries packets until the connection has ended and is quiet.
    pub(super) fn run(mut self) -> Result<Outcome, LabError> {
        let began = clock::now();
        self.run_client();
        let quiet = QUIET + 2 * self.flow.rtt;
        loop {
            self.take_all();
            let now = clock::now();
            let quiet_until = self.last + quiet;
            let is_over = self.is_over() && self.in_flight.is_empty();
            if now > began + LONGEST || (is_over && now > quiet_until) {
                break;
            }
            let events = [
                self.next_arrival(),
                self.due,
                Some(if is_over { quiet_until + 1 } else { began + LONGEST }),
            ];
            self.wait(events.into_iter().flatten().min().unwrap_or(now));
            while self.next_arrival().is_some_and(|at| at <= clock::now()) {
                self.deliver()?;
                self.take_all();
                self.run_client();
                self.run_server();
                self.take_all();
            }
            self.run_client();
            self.run_server();
        }
        if self.trace.sent.is_empty() {
            return Err(LabError::bug("the client sent no SYN"));
        }
        self.trace.end = clock::now() - self.start;
        for end in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            end.abort();
        }
        Ok(Outcome {
            trace: self.trace,
            start: self.start,
            late: self.late,
        })
    }

    fn is_over(&self) -> bool {
        let all = self.flow.exchanges.len();
        let is_done = self.client.exchange == all;
        match self.flow.close {
            Closes::Nobody => is_done,
            Closes::Client | Closes::Server => {
                self.client.has_closed && self.server.as_ref().is_some_and(|server| server.has_closed)
            }
        }
    }

    /// Sleeps until a packet comes, or until shortly before `until`; then watches the clock.
    fn wait(&mut self, until: u64) {
        let left = until.saturating_sub(clock::now());
        if left > WATCH {
            let mut fds = [
                PollFd::new(self.wire.client.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.wire.servers.as_fd(), PollFlags::POLLIN),
            ];
            let timeout = TimeSpec::from_duration(Duration::from_nanos(left - WATCH));
            // After an interrupted wait the loop looks again.
            if ppoll(&mut fds, Some(timeout), None).is_ok_and(|ready| ready > 0) {
                return;
            }
        }
        while clock::now() < until {
            if self.take_all() {
                return;
            }
        }
    }

    /// Puts the packets of both kernels on the path. Returns whether there were any.
    fn take_all(&mut self) -> bool {
        let mut any = false;
        for direction in [Direction::Up, Direction::Down] {
            let mut frame = std::mem::take(&mut self.frame);
            let wire = self.wire;
            let tun = if direction == Direction::Up {
                &wire.client
            } else {
                &wire.servers
            };
            while tun.read(&mut frame) {
                any |= self.take(direction, &frame);
            }
            self.frame = frame;
        }
        any
    }

    fn take(&mut self, direction: Direction, frame: &Frame) -> bool {
        let now = clock::now();
        let Some((_, tcp, payload)) = parse(frame.packet()) else {
            return false;
        };
        let up = direction == Direction::Up;
        let port = if up { tcp.source_port } else { tcp.destination_port };
        if port != self.port {
            return false;
        }
        let mine = *self.first[usize::from(up)].get_or_insert(tcp.sequence_number);
        let theirs = self.first[usize::from(!up)].unwrap_or_default();
        let relative = |number: u32, first: u32| u64::from(number.wrapping_sub(first));
        let flags = [
            (tcp.syn, 'S'),
            (tcp.fin, 'F'),
            (tcp.rst, 'R'),
            (tcp.psh, 'P'),
            (tcp.ack, '.'),
            (tcp.ece, 'E'),
            (tcp.cwr, 'W'),
        ];
        let options = tcp.options.as_slice();
        let shift = &mut self.window_shift[usize::from(up)];
        let window = u64::from(tcp.window_size) << if tcp.syn { 0 } else { *shift };
        if let Some(offered) = packet::window_shift(options) {
            *shift = offered;
        }
        let cookie = packet::options(options).find_map(|option| option.any_cookie());
        let end = if up {
            Some(&self.client)
        } else {
            self.server.as_ref()
        };
        self.trace.sent.push(Sent {
            at: now.saturating_sub(self.start),
            direction,
            packet: Packet {
                flags: flags
                    .iter()
                    .filter(|(is_set, _)| *is_set)
                    .map(|(_, letter)| letter)
                    .collect(),
                seq: relative(tcp.sequence_number, mine),
                len: payload.len() as u32,
                ack: if tcp.ack {
                    relative(tcp.acknowledgment_number, theirs)
                } else {
                    0
                },
                sacks: packet::sacks(options)
                    .map(|(from, to)| (relative(from, theirs), relative(to, theirs)))
                    .collect(),
                fast_open: cookie.map(|cookie| match cookie {
                    [] => TfoOption::Request,
                    _ => TfoOption::Cookie,
                }),
                ecn: packet::ecn(frame.packet()),
            },
            window: Some(window),
            arrived: Vec::new(),
            is_marked: false,
            info: end.and_then(End::info),
        });
        self.last = now;
        let place = self.trace.sent.len() - 1;
        let fate = self.path.send(now, direction, frame.packet().len() as u32);
        for (copy, at) in fate.arrivals.into_iter().enumerate() {
            self.in_flight
                .insert((at, place, copy), (frame.clone(), fate.is_marked));
        }
        true
    }

    fn next_arrival(&self) -> Option<u64> {
        self.in_flight.keys().next().map(|(at, ..)| *at)
    }

    fn deliver(&mut self) -> Result<(), LabError> {
        let Some(((at, place, _), (mut frame, is_marked))) = self.in_flight.pop_first() else {
            return Ok(());
        };
        let now = clock::now();
        self.late = self.late.max(now.saturating_sub(at));
        let sent = &mut self.trace.sent[place];
        let up = sent.direction == Direction::Up;
        if is_marked && sent.packet.ecn == Ecn::Capable {
            mark(frame.packet_mut());
            sent.is_marked = true;
        }
        self.last = now;
        let tun = if up { &self.wire.servers } else { &self.wire.client };
        tun.write(&frame)
            .map_err(|error| LabError::system("writing to the TUN device", error))?;
        // TCP gets the packet during the call, which returns after the kernel has handled it.
        let handled = u64::midpoint(now, clock::now());
        sent.arrived.push(handled.saturating_sub(self.start));
        Ok(())
    }

    fn run_client(&mut self) {
        let client = &mut self.client;
        loop {
            client.write();
            client.read(self.buffer);
            let Some(current) = self.flow.exchanges.get(client.exchange) else {
                break;
            };
            if client.received < current.down || client.unsent > 0 {
                break;
            }
            client.received -= current.down;
            client.exchange += 1;
            if let Some(next) = self.flow.exchanges.get(client.exchange) {
                client.unsent = next.up as usize;
            }
        }
        let is_done = client.exchange == self.flow.exchanges.len();
        if (is_done && self.flow.close == Closes::Client) || client.is_over {
            client.close();
        }
    }

    fn run_server(&mut self) {
        if self.server.is_none()
            && let Ok((stream, _)) = self.listener.accept()
        {
            // Neither call fails on a socket that was just accepted.
            let _ = (stream.set_nonblocking(true), stream.set_nodelay(true));
            self.server = Some(End::new(stream));
        }
        let Some(server) = &mut self.server else { return };
        server.read(self.buffer);
        server.write();
        while let Some(current) = self.flow.exchanges.get(server.exchange) {
            let now = clock::now();
            if self.due.is_none() && server.received >= current.up && server.unsent == 0 {
                server.received -= current.up;
                self.due = Some(now + current.wait);
            }
            if self.due.is_none_or(|due| due > now) {
                break;
            }
            self.due = None;
            server.exchange += 1;
            server.unsent = current.down as usize;
            server.write();
        }
        let is_done = server.exchange == self.flow.exchanges.len();
        if (is_done && self.flow.close == Closes::Server) || server.is_over {
            server.close();
        }
    }
}

impl End {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            unsent: 0,
            waits_for_room: false,
            exchange: 0,
            received: 0,
            is_over: false,
            has_closed: false,
        }
    }

    /// Writes as much as the kernel accepts. The rest waits until the kernel reports room, as in an event-driven
    /// server: that is when a third of the buffer is free.
    fn write(&mut self) {
        if self.unsent == 0 || (self.waits_for_room && !self.is_ready(PollFlags::POLLOUT)) {
            return;
        }
        match self.stream.write(&ZEROS[..self.unsent.min(PIECE)]) {
            Ok(written) => {
                self.unsent -= written;
                self.waits_for_room = self.unsent > 0;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.waits_for_room = true,
            Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
            // The connection is closed.
            Err(_) => self.is_over = true,
        }
        if self.is_over {
            self.unsent = 0;
        }
    }

    /// Reads what has come, and never from an empty socket.
    fn read(&mut self, buffer: &mut [u8]) {
        while !self.is_over && self.is_ready(PollFlags::POLLIN) {
            match self.stream.read(buffer) {
                Ok(0) => self.is_over = true,
                Ok(bytes) => self.received += bytes as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.is_over = true,
            }
        }
    }

    fn is_ready(&self, event: PollFlags) -> bool {
        let mut fds = [PollFd::new(self.stream.as_fd(), event)];
        let ready = poll(&mut fds, PollTimeout::ZERO);
        ready.is_ok_and(|ready| ready > 0) && fds[0].any() == Some(true)
    }

    /// Ends its stream once everything is written. The socket stays open, so that it can be asked.
    fn close(&mut self) {
        if self.unsent == 0 && !self.has_closed {
            self.has_closed = true;
            // A closed connection needs no FIN.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }

    fn info(&self) -> Option<Info> {
        let info = TcpInfo::of(&self.stream).ok()?;
        Some(Info {
            phase: PHASES.get(usize::from(info.phase))?,
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            rto: u64::from(info.rto_us) * 1_000,
            reordering_window: None,
        })
    }

    /// Makes dropping the socket send a reset.
    fn abort(&self) {
        use nix::sys::socket::{setsockopt, sockopt};
        let linger = nix::libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        let _ = setsockopt(&self.stream, sockopt::Linger, &linger);
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// The kernel's tick count at monotonic time 0, if the kernel shows it, which it does only to root.
pub(super) fn jiffies_at_zero() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/timer_list").ok()?;
    let number = |word: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(word))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(number("jiffies:")? - number("now at")? / 4_000_000)
}

/// Offset in `SO_MEMINFO` of the bytes queued for sending (`SK_MEMINFO_WMEM_QUEUED`).
const QUEUED: usize = 5 * size_of::<u32>();
/// Largest payload of a segment between client and servers, bytes.
const MAXIMUM_SEGMENT: i32 = 1_460;
/// Number of segments that fit into a new send buffer.
const ROOM: usize = 20;

/// What this kernel's send buffers reserve per segment, as measured on a connection over the loopback device.
pub(super) fn send_memory() -> io::Result<SendMemory> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    net::set_tcp_option(&listener, libc::TCP_MAXSEG, &MAXIMUM_SEGMENT)?;
    // With BBR the buffer would have half as much room again.
    setsockopt(&listener, sockopt::TcpCongestion, &"reno".into())?;
    let _client = TcpStream::connect(listener.local_addr()?)?;
    let (mut stream, _) = listener.accept()?;
    let size = getsockopt(&stream, sockopt::SndBuf)?;
    // Less than a full segment stays in the buffer.
    net::set_tcp_option(&stream, libc::TCP_CORK, &1)?;
    stream.write_all(&[0])?;
    let memory: [u8; 64] = net::option_bytes(&stream, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    let queued = u32::from_ne_bytes(std::array::from_fn(|byte| memory[QUEUED + byte]));
    Ok(SendMemory {
        segment: (size / ROOM) as u64,
        skb: u64::from(queued) - 1,
    })
}
