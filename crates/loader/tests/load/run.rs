//! Drives a loader over a [`Network`]: carries out its commands, and checks them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use firstflight_loader::{Command, Config, ConnId, Event, Loader, Nanos, OriginId};
use firstflight_page::Page;

use crate::network::{Fault, MS, Network, Outcome};

/// Navigation starts at an odd time, because the times of records must be relative to it.
const START: Nanos = 12_345_678_901;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Writable,
    Sent,
    Head(usize),
    Body(u64),
    End,
    Failed(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Socket {
    Connecting,
    Idle,
    Busy,
    Closed,
}

struct Connection {
    origin: OriginId,
    socket: Socket,
    requests: u32,
    /// The request that it carries, or carried last.
    request: usize,
}

pub(crate) struct Run<'a> {
    network: &'a Network,
    page: &'a Page,
    now: Nanos,
    loader: Loader,
    queue: BinaryHeap<Reverse<(Nanos, u64, ConnId, Happening)>>,
    happened: u64,
    sockets: Vec<Connection>,
    commands: Vec<(Nanos, Command)>,
    peak_per_origin: usize,
    peak: usize,
}

impl<'a> Run<'a> {
    pub(crate) fn new(network: &'a Network, page: &'a Page, config: Config) -> Self {
        Self {
            network,
            page,
            now: START,
            loader: Loader::new(page, config, START),
            queue: BinaryHeap::new(),
            happened: 0,
            sockets: Vec::new(),
            commands: Vec::new(),
            peak_per_origin: 0,
            peak: 0,
        }
    }

    pub(crate) fn outcome(mut self) -> Outcome {
        self.run();
        let Self {
            loader,
            now,
            commands,
            peak_per_origin,
            peak,
            ..
        } = self;
        Outcome {
            record: loader.finish(now),
            commands,
            peak_per_origin,
            peak,
        }
    }

    fn run(&mut self) {
        loop {
            while let Some(command) = self.loader.poll() {
                self.commands.push((self.now - START, command));
                self.carry_out(command);
            }
            if self.loader.is_done() {
                return;
            }
            let timeout = self
                .loader
                .next_timeout()
                .expect("a load that is not done waits for something");
            match self.queue.peek() {
                Some(Reverse((at, ..))) if *at <= timeout.saturating_add(self.network.late) => self.step(),
                _ => {
                    self.now = timeout + self.network.late;
                    self.loader.handle_timeout(self.now);
                }
            }
        }
    }

    fn step(&mut self) {
        let Some(Reverse((at, _, conn, happening))) = self.queue.pop() else {
            return;
        };
        self.now = at;
        let connection = &mut self.sockets[conn.0 as usize];
        if connection.socket == Socket::Closed {
            return;
        }
        let (reusable, request) = (!self.network.closes, connection.request);
        match happening {
            Happening::Writable => connection.socket = Socket::Idle,
            Happening::End if reusable => connection.socket = Socket::Idle,
            Happening::Failed(_) => connection.socket = Socket::Closed,
            _ => {}
        }
        let event = match happening {
            Happening::Writable => Event::Writable(conn),
            Happening::Sent => Event::RequestSent { conn, request },
            Happening::Head(resource) => self.head(conn, resource),
            Happening::Body(bytes) => Event::Body { conn, request, bytes },
            Happening::End => Event::End {
                conn,
                request,
                reusable,
            },
            Happening::Failed(error) => Event::Failed { conn, error },
        };
        self.loader.handle(at, event);
    }

    fn head(&self, conn: ConnId, resource: usize) -> Event<'static> {
        let fault = self.network.faults.get(&resource);
        let status = match fault {
            Some(&Fault::Status(status)) => status,
            _ => self.page.resources[resource].status,
        };
        let redirects = (300..400).contains(&status) && fault != Some(&Fault::NoLocation);
        Event::Head {
            conn,
            request: resource,
            status,
            location: redirects.then_some("/"),
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Open { conn, origin, .. } => self.open(conn, origin),
            Command::Send { conn, request } => self.send(conn, request),
            Command::Close { conn } => {
                let connection = &mut self.sockets[conn.0 as usize];
                assert_ne!(connection.socket, Socket::Closed, "{conn:?} is closed once");
                connection.socket = Socket::Closed;
            }
        }
    }

    fn open(&mut self, conn: ConnId, origin: OriginId) {
        assert_eq!(
            conn.0 as usize,
            self.sockets.len(),
            "connections are named in order of opening"
        );
        self.sockets.push(Connection {
            origin,
            socket: Socket::Connecting,
            requests: 0,
            request: 0,
        });
        let open = self
            .sockets
            .iter()
            .filter(|connection| connection.socket != Socket::Closed);
        self.peak = self.peak.max(open.clone().count());
        self.peak_per_origin = self
            .peak_per_origin
            .max(open.filter(|other| other.origin == origin).count());
        if self.network.silent.contains(&origin) {
        } else if self.network.refusing.contains(&origin) {
            self.plan(self.network.rtt, conn, Happening::Failed("refused"));
        } else {
            self.plan(
                if self.network.tfo { 0 } else { self.network.rtt },
                conn,
                Happening::Writable,
            );
        }
    }

    fn send(&mut self, conn: ConnId, request: usize) {
        let connection = &mut self.sockets[conn.0 as usize];
        assert_eq!(
            connection.socket,
            Socket::Idle,
            "{conn:?} can take request {request}"
        );
        connection.socket = Socket::Busy;
        connection.requests += 1;
        connection.request = request;
        let is_dead = self
            .network
            .dies_after
            .is_some_and(|responses| connection.requests > responses);
        self.plan(0, conn, Happening::Sent);
        if is_dead {
            return self.plan(self.network.rtt, conn, Happening::Failed("reset"));
        }
        self.respond(conn, request);
    }

    fn respond(&mut self, conn: ConnId, request: usize) {
        let resource = &self.page.resources[request];
        let fault = self.network.faults.get(&request);
        let (body, end) = match fault {
            Some(Fault::NeverAnswers) => return,
            Some(Fault::Resets) => return self.plan(self.network.rtt, conn, Happening::Failed("reset")),
            Some(&Fault::ResetsAfter(bytes)) => (bytes, Happening::Failed("reset")),
            Some(&Fault::Ends(bytes)) => (bytes, Happening::End),
            _ => (resource.body_bytes, Happening::End),
        };
        let mut delay = self.network.rtt + (resource.server_ms * MS as f64) as Nanos;
        self.plan(delay, conn, Happening::Head(request));
        let mut left = body;
        while left > 0 {
            let bytes = left.min(self.network.chunk);
            left -= bytes;
            delay += bytes * self.network.per_byte;
            self.plan(delay, conn, Happening::Body(bytes));
        }
        self.plan(delay, conn, end);
    }

    fn plan(&mut self, delay: Nanos, conn: ConnId, happening: Happening) {
        self.happened += 1;
        self.queue
            .push(Reverse((self.now + delay, self.happened, conn, happening)));
    }
}
