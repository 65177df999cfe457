//! The driver of the loader: sockets, an epoll loop, and the clock.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use firstflight_load::{MAX_EARLY_DATA, Priorities, head, promise};
use firstflight_loader::{Command, Config, ConnId, Event, LoadRecord, Loader, Nanos};
use firstflight_page::Page;
use firstflight_path::Protocol;
use firstflight_quic::{ClientEvent, request_block};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::connection::{Connection, Received};
use super::quic::{Quic, QuicConfig};
use super::tls::{Session, Tls};
use super::{Failure, http};
use crate::ledger::ConnectionKey;
use crate::witness::TcpInfo;
use crate::{LabError, clock};

/// The epoll token of the timer.
const TIMER: u64 = u64::MAX;
/// Bytes read at once: the size of a socket buffer.
const READ_BYTES: usize = 256 * 1024;

/// The result of one load, with what its sockets reported.
#[derive(Debug)]
pub struct Loaded {
    /// Navigation start, monotonic ns.
    pub started: u64,
    /// The loader's record.
    pub record: LoadRecord,
    /// What each connection's socket reported at its close, by connection.
    pub sockets: HashMap<u32, SocketFacts>,
    /// Bytes of header and body received per resource.
    pub wire_bytes: Vec<u64>,
}

/// What a socket reported.
#[derive(Debug, Clone, Copy)]
pub struct SocketFacts {
    /// Its protocol.
    pub protocol: Protocol,
    /// The ledger's key of the connection.
    pub key: Option<ConnectionKey>,
    /// Its `TCP_INFO`.
    pub info: Option<TcpInfo>,
    /// What this end reports of TLS and of its first request.
    pub client: promise::Client,
}

/// Loads `page` once, in the calling thread's network namespace. `resolve` gives each host's address. Https origins
/// use `quic` if it is given, otherwise `tls`. `priorities`: whether requests state their priority.
///
/// # Errors
/// [`LabError`] when the kernel refuses an epoll instance or a timer; a page's own failures are in the record.
pub fn load(
    page: &Page,
    config: Config,
    priorities: Priorities,
    tls: Option<Tls>,
    quic: Option<QuicConfig>,
    resolve: impl Fn(&str) -> Option<IpAddr>,
) -> Result<Loaded, LabError> {
    let requests = page
        .resources
        .iter()
        .map(|resource| {
            let authority = resource.origin().map(|origin| origin.authority());
            head::request(resource, &authority.unwrap_or_default()).into_bytes()
        })
        .collect();
    let epoll =
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|errno| LabError::system("epoll", errno))?;
    let timer = TimerFd::new(
        ClockId::CLOCK_MONOTONIC,
        TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK,
    )
    .map_err(|errno| LabError::system("timerfd", errno))?;
    epoll
        .add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))
        .map_err(|errno| LabError::system("epoll", errno))?;
    let started = clock::now();
    let loader = Loader::new(page, config, started);
    let servers = loader
        .origins()
        .iter()
        .map(|origin| resolve(&origin.host).map(|address| SocketAddr::new(address, origin.port)));
    let servers = servers.collect();
    let mut driver = Driver {
        page,
        loader,
        priorities,
        servers,
        tls,
        quic_config: quic,
        requests,
        epoll,
        timer,
        connections: HashMap::new(),
        quic: HashMap::new(),
        unflushed: Vec::new(),
        carried: HashMap::new(),
        sockets: HashMap::new(),
        wire_bytes: vec![0; page.resources.len()],
        buffer: vec![0; READ_BYTES],
    };
    driver.run()?;
    Ok(driver.finish(started))
}

struct Driver<'a> {
    page: &'a Page,
    loader: Loader,
    priorities: Priorities,
    servers: Vec<Option<SocketAddr>>,
    tls: Option<Tls>,
    quic_config: Option<QuicConfig>,
    /// The request of each resource, as bytes.
    requests: Vec<Vec<u8>>,
    epoll: Epoll,
    timer: TimerFd,
    connections: HashMap<u32, Connection>,
    /// QUIC connections, and those that may have something to send.
    quic: HashMap<u32, Quic>,
    unflushed: Vec<u32>,
    /// The resource each connection carries.
    carried: HashMap<u32, usize>,
    sockets: HashMap<u32, SocketFacts>,
    wire_bytes: Vec<u64>,
    buffer: Vec<u8>,
}

impl Driver<'_> {
    fn run(&mut self) -> Result<(), LabError> {
        let mut events = [EpollEvent::empty(); 64];
        self.obey()?;
        while !self.loader.is_done() {
            self.set_timer()?;
            let count = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Ok(count) => count,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(LabError::system("epoll_wait", errno)),
            };
            for event in &events[..count] {
                match event.data() {
                    TIMER => drop(self.timer.wait()),
                    connection => self.on_ready(connection as u32, event.events())?,
                }
                self.obey()?;
            }
            self.handle_quic_timeouts()?;
            self.loader.handle_timeout(clock::now());
            self.obey()?;
        }
        Ok(())
    }

    fn set_timer(&mut self) -> Result<(), LabError> {
        let of_quic = self.quic.values_mut().filter_map(Quic::next_timeout);
        let Some(at) = of_quic.chain(self.loader.next_timeout()).min() else {
            return self
                .timer
                .unset()
                .map_err(|errno| LabError::system("timerfd", errno));
        };
        // A timer set to zero is off; a time long past fires at once.
        let at = TimeSpec::from_duration(std::time::Duration::from_nanos(at.max(1)));
        self.timer
            .set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .map_err(|errno| LabError::system("timerfd", errno))
    }

    fn obey(&mut self) -> Result<(), LabError> {
        while let Some(command) = self.loader.poll() {
            match command {
                Command::Open { conn, origin, quic } => self.open(conn, origin, quic)?,
                Command::Send { conn, request } => self.send(conn, request)?,
                Command::Close { conn } => self.close(conn.0),
            }
        }
        // Everything that a connection sends at one moment shares its datagrams.
        for id in std::mem::take(&mut self.unflushed) {
            let flushed = self.quic.get_mut(&id).map(Quic::flush);
            if let Some(Err(error)) = flushed {
                self.fail(id, &error.into())?;
            }
        }
        Ok(())
    }

    fn open(&mut self, conn: ConnId, origin: usize, quic: bool) -> Result<(), LabError> {
        if let (true, Some(config), Some(server)) = (quic, &self.quic_config, self.servers[origin]) {
            let opened = Quic::open(config, conn.0, server, &self.loader.origins()[origin].host);
            return self.open_quic(conn, opened);
        }
        let opened = match self.servers[origin] {
            None => Err(Failure::UnknownHost),
            Some(server) => self.connect(server, origin).map_err(Failure::from),
        };
        match opened {
            Err(failure) => self.fail(conn.0, &failure)?,
            Ok(connection) => {
                let ready = connection.writable && connection.takes_request();
                // A socket whose SYN waits for data reports a hang-up, so it is watched only after its first write.
                if !ready {
                    watch(&self.epoll, &connection, conn)?;
                }
                self.connections.insert(conn.0, connection);
                if ready {
                    self.loader.handle(clock::now(), Event::Writable(conn));
                }
            }
        }
        Ok(())
    }

    fn open_quic(&mut self, conn: ConnId, opened: io::Result<Quic>) -> Result<(), LabError> {
        let quic = match opened {
            Ok(quic) => quic,
            Err(error) => return self.fail(conn.0, &error.into()),
        };
        watch(&self.epoll, &quic, conn)?;
        let awaits_request = quic.awaits_request();
        self.quic.insert(conn.0, quic);
        self.unflushed.push(conn.0);
        if awaits_request {
            self.loader.handle(clock::now(), Event::Writable(conn));
        }
        Ok(())
    }

    fn connect(&self, server: SocketAddr, origin: usize) -> io::Result<Connection> {
        let mut connection = Connection::open(server, self.session(origin)?)?;
        // With Fast Open the ClientHello goes into the SYN, so no request is needed first.
        if connection.writable && !connection.takes_request() {
            connection.flush()?;
        }
        Ok(connection)
    }

    fn session(&self, origin: usize) -> io::Result<Option<Session>> {
        let origin = &self.loader.origins()[origin];
        let tls = self.tls.as_ref().filter(|_| origin.secure);
        let config = tls.and_then(|tls| tls.of(&origin.host));
        config
            .map(|config| Session::new(config, &origin.host))
            .transpose()
    }

    fn send(&mut self, conn: ConnId, request: usize) -> Result<(), LabError> {
        if let Some(quic) = self.quic.get_mut(&conn.0) {
            let resource = &self.page.resources[request];
            let authority = resource.origin().map(|origin| origin.authority());
            let block = request_block(
                resource,
                &authority.unwrap_or_default(),
                self.priorities.of(resource),
            );
            quic.ask(request, block, head::is_safe(&resource.method));
            return self.tell_of_quic(conn);
        }
        let method = &self.page.resources[request].method;
        let (is_safe, head_only) = (head::is_safe(method), method == "HEAD");
        let Some(connection) = self.connections.get_mut(&conn.0) else {
            return Ok(());
        };
        let bytes = self.requests[request].clone();
        let may_be_early = is_safe && bytes.len() as u64 <= MAX_EARLY_DATA;
        let asked = connection.http2(may_be_early).and_then(|http2| {
            let resource = &self.page.resources[request];
            let asked = http2.map(|http2| http2.ask(request, resource, self.priorities.of(resource)));
            asked.transpose()
        });
        match asked {
            Err(failure) => return self.fail(conn.0, &failure),
            Ok(Some(())) => {
                self.loader
                    .handle(clock::now(), Event::RequestSent { conn, request });
                self.advance(conn.0)?;
                let connection = self.connections.get(&conn.0);
                return connection.map_or(Ok(()), |connection| watch(&self.epoll, connection, conn));
            }
            Ok(None) => {}
        }
        self.carried.insert(conn.0, request);
        let sent = connection.send(bytes, may_be_early, head_only);
        watch(&self.epoll, connection, conn)?;
        match sent {
            Ok(true) => self
                .loader
                .handle(clock::now(), Event::RequestSent { conn, request }),
            Ok(false) => {}
            Err(error) => self.fail(conn.0, &error.into())?,
        }
        Ok(())
    }

    fn on_ready(&mut self, id: u32, ready: EpollFlags) -> Result<(), LabError> {
        let conn = ConnId(id);
        if let Some(quic) = self.quic.get_mut(&id) {
            if let Err(error) = quic.receive(&mut self.buffer) {
                return self.fail(id, &error.into());
            }
            return self.tell_of_quic(conn);
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        if ready.intersects(EpollFlags::EPOLLOUT | EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
            if let Err(error) = connection.outcome() {
                return self.fail(id, &error.into());
            }
            if !connection.writable && connection.takes_request() {
                connection.writable = true;
                self.loader.handle(clock::now(), Event::Writable(conn));
            } else if connection.has_unsent() {
                match connection.flush() {
                    Ok(true) => {
                        if let Some(&request) = self.carried.get(&id) {
                            self.loader
                                .handle(clock::now(), Event::RequestSent { conn, request });
                        }
                    }
                    Ok(false) => {}
                    Err(error) => return self.fail(id, &error.into()),
                }
            }
        }
        let comes = EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if connection.http2.is_some() || ready.intersects(comes) {
            self.receive(id)?;
        }
        Ok(())
    }

    /// Handles the timeouts of QUIC connections.
    fn handle_quic_timeouts(&mut self) -> Result<(), LabError> {
        let now = clock::now();
        let is_due =
            |(id, quic): (&u32, &mut Quic)| quic.next_timeout().is_some_and(|at| at <= now).then_some(*id);
        for id in self.quic.iter_mut().filter_map(is_due).collect::<Vec<_>>() {
            if let Some(quic) = self.quic.get_mut(&id) {
                quic.handle_timeout();
            }
            self.tell_of_quic(ConnId(id))?;
        }
        Ok(())
    }

    /// Passes the events of a QUIC connection to the loader.
    fn tell_of_quic(&mut self, conn: ConnId) -> Result<(), LabError> {
        self.unflushed.push(conn.0);
        while let Some(event) = self.quic.get_mut(&conn.0).and_then(Quic::poll) {
            if let ClientEvent::Failed { error } = event {
                return self.fail(conn.0, &Failure::Quic(error));
            }
            event.tell(clock::now(), conn, &mut self.loader, &mut self.wire_bytes);
        }
        Ok(())
    }

    /// Reads until nothing is left, because epoll is edge-triggered.
    fn receive(&mut self, id: u32) -> Result<(), LabError> {
        let conn = ConnId(id);
        loop {
            let Some(connection) = self.connections.get_mut(&id) else {
                return Ok(());
            };
            if connection.http2.is_some() {
                return self.advance(id);
            }
            let progress = match connection.receive(&mut self.buffer) {
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::Ready) => {
                    self.loader.handle(clock::now(), Event::Writable(conn));
                    // A request that had to wait for the handshake.
                    if let Some(&request) = self.carried.get(&id) {
                        self.loader
                            .handle(clock::now(), Event::RequestSent { conn, request });
                    }
                    self.obey()?;
                    continue;
                }
                Ok(Received::Response(progress)) => progress,
                Err(failure) => return self.fail(id, &failure),
            };
            let Some(&request) = self.carried.get(&id) else {
                continue;
            };
            if progress.head.is_some() {
                self.wire_bytes[request] += connection.header_bytes();
            }
            if progress.end.is_some() {
                self.carried.remove(&id);
            }
            self.tell(clock::now(), conn, request, &progress);
            self.obey()?;
        }
    }

    /// Lets an HTTP/2 connection write and read.
    fn advance(&mut self, id: u32) -> Result<(), LabError> {
        let connection = self.connections.get_mut(&id);
        let Some(http2) = connection.and_then(|connection| connection.http2.as_mut()) else {
            return Ok(());
        };
        match http2.advance() {
            Ok(news) => {
                for (request, progress) in news {
                    self.tell(clock::now(), ConnId(id), request, &progress);
                }
            }
            Err(failure) => self.fail(id, &failure)?,
        }
        Ok(())
    }

    /// Tells the loader of the progress of the request on `conn`.
    fn tell(&mut self, now: Nanos, conn: ConnId, request: usize, progress: &http::Progress) {
        if let Some((status, location)) = &progress.head {
            let (status, location) = (*status, location.as_deref());
            self.loader.handle(
                now,
                Event::Head {
                    conn,
                    request,
                    status,
                    location,
                },
            );
        }
        if progress.body > 0 {
            self.wire_bytes[request] += progress.body;
            let bytes = progress.body;
            self.loader.handle(now, Event::Body { conn, request, bytes });
        }
        if let Some(reusable) = progress.end {
            let end = Event::End {
                conn,
                request,
                reusable,
            };
            self.loader.handle(now, end);
        }
    }

    /// Closes a connection and tells the loader why.
    ///
    /// # Errors
    /// [`LabError`] if this machine, not the page, is the cause.
    fn fail(&mut self, id: u32, failure: &Failure) -> Result<(), LabError> {
        if let Some(error) = failure.of_the_lab() {
            return Err(error);
        }
        self.close(id);
        let (conn, error) = (ConnId(id), failure.to_string());
        self.loader
            .handle(clock::now(), Event::Failed { conn, error: &error });
        Ok(())
    }

    fn close(&mut self, id: u32) {
        if let Some(mut quic) = self.quic.remove(&id) {
            let facts = SocketFacts {
                protocol: Protocol::Udp,
                key: quic.key(),
                info: None,
                client: quic.told(),
            };
            quic.close();
            self.sockets.insert(id, facts);
        }
        if let Some(connection) = self.connections.remove(&id) {
            self.sockets.insert(
                id,
                SocketFacts {
                    protocol: Protocol::Tcp,
                    key: connection.key(),
                    info: connection.tcp_info(),
                    client: promise::Client {
                        tls: connection.secured(),
                        may_be_early: connection.may_be_early,
                    },
                },
            );
        }
    }

    fn finish(mut self, started: u64) -> Loaded {
        let open = self.connections.keys().chain(self.quic.keys());
        for id in open.copied().collect::<Vec<_>>() {
            self.close(id);
        }
        let record = self.loader.finish(clock::now());
        Loaded {
            started,
            record,
            sockets: self.sockets,
            wire_bytes: self.wire_bytes,
        }
    }
}

/// Adds a connection to epoll, edge-triggered. A connection that was already added stays.
fn watch(epoll: &Epoll, connection: impl AsFd, conn: ConnId) -> Result<(), LabError> {
    let interest = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
    match epoll.add(connection, EpollEvent::new(interest, u64::from(conn.0))) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(LabError::system("watching a connection (epoll_ctl)", errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_descriptors_or_memory_is_no_failure_of_the_page() {
        for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM] {
            assert!(Failure::Socket(errno.into()).of_the_lab().is_some(), "{errno}");
        }
        for errno in [Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::ETIMEDOUT] {
            assert!(Failure::Socket(errno.into()).of_the_lab().is_none(), "{errno}");
        }
    }

    #[test]
    fn a_connection_is_watched_once_and_one_that_cannot_be_is_an_error() {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).expect("an epoll instance");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        watch(&epoll, &socket, ConnId(1)).expect("a socket can be watched");
        watch(&epoll, &socket, ConnId(1)).expect("one that is watched stays so");
        // The kernel refuses regular files (EPERM).
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        let error = watch(&epoll, &file, ConnId(2)).expect_err("a file has no edges");
        assert!(error.to_string().contains("epoll_ctl"), "{error}");
    }
}
