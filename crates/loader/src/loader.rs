//! The loader: handles events and timeouts, queues commands, ends the load.

use std::collections::VecDeque;
use std::sync::Arc;

use firstflight_page::{Origin, Page};

use crate::discovery::Progress;
use crate::load_event::{MainThread, Outstanding};
use crate::lookup::Lookup;
use crate::pool::{Pool, State};
use crate::timers::{Timer, Timers};
use crate::{Command, Config, ConnId, ConnectionRecord, Event, LoadRecord, Nanos, Plan, RequestRecord};

/// One load of one page. See the [crate] documentation for how to drive it.
#[derive(Debug)]
pub struct Loader {
    pub(crate) plan: Arc<Plan>,
    pub(crate) config: Config,
    pub(crate) start: Nanos,
    pub(crate) progress: Vec<Progress>,
    pub(crate) records: Vec<RequestRecord>,
    pub(crate) pool: Pool,
    /// By host.
    pub(crate) lookups: Vec<Lookup>,
    /// By host: when its certificate is verified; `None` before its first handshake is done.
    pub(crate) verified: Vec<Option<Nanos>>,
    pub(crate) main_thread: MainThread,
    pub(crate) timers: Timers,
    pub(crate) outstanding: Outstanding,
    pub(crate) commands: VecDeque<Command>,
    /// Requests queued so far: the order of discovery.
    pub(crate) queued: u32,
    pub(crate) failed: Option<String>,
    /// When the last resource was settled.
    pub(crate) end: Nanos,
}

impl Loader {
    /// Starts to load `page`: navigation start is `now`.
    ///
    /// # Panics
    /// On a page that [`Page::validate`] refuses.
    pub fn new(page: &Page, config: Config, now: Nanos) -> Self {
        Self::with_plan(Arc::new(Plan::new(page)), config, now)
    }

    /// As [`Loader::new`], for a page that is loaded many times.
    pub fn with_plan(plan: Arc<Plan>, config: Config, now: Nanos) -> Self {
        let record = |resource| RequestRecord {
            resource,
            initiator: plan.resources[resource].initiator,
            ..RequestRecord::default()
        };
        let mut loader = Self {
            config,
            start: now,
            progress: vec![Progress::default(); plan.resources.len()],
            records: (0..plan.resources.len()).map(record).collect(),
            pool: Pool::new(&config, &plan),
            lookups: vec![Lookup::NotBegun; plan.lookups.len()],
            verified: vec![None; plan.verifying.len()],
            main_thread: MainThread::default(),
            timers: Timers::default(),
            outstanding: Outstanding::default(),
            commands: VecDeque::new(),
            queued: 0,
            failed: None,
            end: now,
            plan,
        };
        loader
            .timers
            .set(now.saturating_add(config.load_timeout), Timer::Load);
        loader.discover(0, now);
        loader
    }

    /// Handles an event at `now`, after everything that was due by then.
    pub fn handle(&mut self, now: Nanos, event: Event<'_>) {
        self.handle_timeout(now);
        match event {
            Event::Writable(conn) => self.on_writable(conn, now),
            Event::Established(conn) => self.pool.establish(conn),
            Event::Failed { conn, error } => self.on_failed(conn, error, now),
            Event::RequestSent { conn, request } if self.progresses(conn, request, now) => {
                self.on_sent(request, now);
            }
            Event::Head {
                conn,
                request,
                status,
                location,
            } if self.progresses(conn, request, now) => self.on_head(request, status, location, now),
            Event::Body { conn, request, bytes } if self.progresses(conn, request, now) => {
                self.on_body(request, bytes, now);
            }
            Event::End {
                conn,
                request,
                reusable,
            } if self.progresses(conn, request, now) => self.on_end(conn, request, reusable, now),
            Event::RequestSent { .. } | Event::Head { .. } | Event::Body { .. } | Event::End { .. } => {}
        }
        self.handle_timeout(now);
    }

    /// Handles everything that is due at `now`, each at its own due time. So a late call adds no delay to what the
    /// loader times itself.
    pub fn handle_timeout(&mut self, now: Nanos) {
        while let Some(at) = self.next_timeout()
            && at <= now
        {
            if self.main_thread.next() == Some(at) {
                self.end_task();
            } else {
                self.fire();
            }
        }
    }

    /// When to call [`Loader::handle_timeout`] if no event comes before. It is never too late, but there may be
    /// nothing to do then. `None` once the load is done.
    pub fn next_timeout(&self) -> Option<Nanos> {
        if self.is_done() {
            return None;
        }
        match (self.main_thread.next(), self.timers.next()) {
            (Some(task), Some(timer)) => Some(task.min(timer)),
            (task, timer) => task.or(timer),
        }
    }

    /// The next command. Call until `None` after every other call.
    pub fn poll(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Whether every discovered resource has ended or failed, whether it blocks the load event or not.
    pub fn is_done(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// The page's origins, in order of first use.
    pub fn origins(&self) -> &[Origin] {
        &self.plan.origins
    }

    /// Ends the load and returns its record. Unfinished requests have failed.
    pub fn finish(mut self, now: Nanos) -> LoadRecord {
        if !self.is_done() {
            self.stop("the load was stopped", now);
        }
        self.name_undiscovered();
        let since = |at: Nanos| self.since_start(at);
        let connection = |(index, connection): (usize, &crate::pool::Connection)| ConnectionRecord {
            conn: ConnId(index as u32),
            origin: connection.origin,
            opened: since(connection.opened),
            writable: connection.writable.map(since),
            closed: connection.closed.map(since),
            requests: connection.requests,
        };
        let load_event = self.outstanding.load_event().filter(|_| self.failed.is_none());
        LoadRecord {
            plt: load_event.map(since),
            first_byte: self.records[self.plan.document].first_byte,
            end: since(self.end),
            connections: self
                .pool
                .connections()
                .iter()
                .enumerate()
                .map(connection)
                .collect(),
            failed: self.failed,
            requests: self.records,
        }
    }

    /// Time since navigation start.
    pub(crate) fn since_start(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.start)
    }

    fn end_task(&mut self) {
        if let Some((at, resource)) = self.main_thread.pop() {
            self.on_processed(resource, at);
        }
    }

    fn fire(&mut self) {
        match self.timers.pop() {
            Some((at, Timer::Request(resource))) => self.queue(resource, at),
            Some((at, Timer::Lookup(host))) => self.on_resolved(host, at),
            Some((at, Timer::Verified(conn))) => self.on_ready(conn, at),
            Some((at, Timer::Stall(conn))) => self.check_stall(conn, at),
            Some((at, Timer::Race(conn))) => self.race(conn, at),
            Some((at, Timer::Load)) => self.stop("the load timed out", at),
            None => {}
        }
    }

    /// Ends the load: all unfinished requests fail, and all connections are closed.
    fn stop(&mut self, error: &str, now: Nanos) {
        let ms = self.since_start(now) / crate::NANOS_PER_MS;
        let error = format!("{error} after {ms} ms");
        if self.outstanding.load_event().is_none() {
            self.failed.get_or_insert_with(|| error.clone());
        }
        // Backwards, so that no resource is requested because the one that it waits for has failed.
        for resource in (0..self.records.len()).rev() {
            self.fail(resource, &error, now);
        }
        for index in 0..self.pool.connections().len() {
            let conn = ConnId(index as u32);
            if self.pool.connections()[index].state != State::Closed {
                self.pool.close(conn, now);
                self.commands.push_back(Command::Close { conn });
            }
        }
    }
}
