//! One request on one connection, from its assignment to the end of the response, or to failure.

use crate::loader::Loader;
use crate::plan::Planned;
use crate::pool::State;
use crate::record::RequestRecord;
use crate::timers::Timer;
use crate::{Command, ConnId, NANOS_PER_MS, Nanos, Quic, TOO_EARLY};

impl Loader {
    /// A connection was given a request. Its connect times are the part of the handshake that the request itself
    /// waited for, as in HAR's `timings.connect` and W3C Resource Timing's `connectStart`. On a shared connection
    /// every request has them that waited for the opening.
    pub(crate) fn on_assigned(&mut self, conn: ConnId, resource: usize) {
        let (start, record) = (self.start, &mut self.records[resource]);
        record.conn = Some(conn);
        if let Some(connection) = self.pool.get_mut(conn)
            && let writable = connection.writable.map(|at| at.saturating_sub(start))
            && (connection.requests == 1 || (connection.is_shared() && record.queued < writable))
        {
            let opened = Some(connection.opened.saturating_sub(start));
            [record.connect_start, record.connect_end] = [opened, writable].map(|at| record.queued.max(at));
        }
        self.watch(conn);
    }

    /// A connection's handshake is done. It may still have to wait for the certificate to be verified.
    pub(crate) fn on_writable(&mut self, conn: ConnId, now: Nanos) {
        let verified = self.verified_at(conn, now);
        if verified > now {
            self.timers.set(verified, Timer::Verified(conn));
        } else {
            self.on_ready(conn, now);
        }
    }

    fn verified_at(&mut self, conn: ConnId, now: Nanos) -> Nanos {
        let Some(connection) = self.pool.get_mut(conn) else {
            return now;
        };
        let origin = connection.origin;
        if !self.config.verifies || !self.plan.origins[origin].secure {
            return now;
        }
        let host = self.plan.host_of[origin];
        let length = self.plan.verifying[host];
        *self.verified[host].get_or_insert(now.saturating_add(length))
    }

    /// A connection can take a request.
    pub(crate) fn on_ready(&mut self, conn: ConnId, now: Nanos) {
        let Some(connection) = self.pool.get_mut(conn) else {
            return;
        };
        if connection.state != State::Connecting {
            return;
        }
        let (origin, is_quic) = (connection.origin, connection.quic.is_some());
        connection.writable = Some(now);
        if !is_quic && let Some(other) = self.pool.over_quic(origin) {
            if self.is_established(other) {
                self.commands.push_back(Command::Close { conn });
                return self.drop_connection(conn, now);
            }
            self.commands.push_back(Command::Close { conn: other });
            self.leave_quic(other, now);
        }
        self.release(conn, now);
    }

    fn is_established(&mut self, conn: ConnId) -> bool {
        let connection = self.pool.get_mut(conn);
        connection.is_some_and(|connection| connection.quic == Some(true))
    }

    /// The head start of a QUIC connection is over: opens a TCP connection if its handshake is not done.
    pub(crate) fn race(&mut self, conn: ConnId, now: Nanos) {
        let Some(connection) = self.pool.get_mut(conn) else {
            return;
        };
        let (origin, state) = (connection.origin, connection.state);
        if state != State::Closed && !self.is_established(conn) {
            let command = self.pool.connect(origin, false, now);
            if let Command::Open { conn, .. } = command {
                self.watch(conn);
            }
            self.commands.push_back(command);
        }
    }

    /// QUIC does not work with an origin. The requests of the connection wait for one over TCP.
    fn leave_quic(&mut self, conn: ConnId, now: Nanos) {
        let Some(connection) = self.pool.get_mut(conn) else {
            return;
        };
        let origin = connection.origin;
        self.pool.close(conn, now);
        self.pool.fall_back(origin);
        for resource in 0..self.records.len() {
            let record = &mut self.records[resource];
            if record.conn == Some(conn) && record.end.is_none() && record.error.is_none() {
                (record.conn, record.sent) = (None, None);
                record.retries += 1;
                self.wait(resource, now);
            }
        }
    }

    pub(crate) fn on_sent(&mut self, resource: usize, now: Nanos) {
        let sent = self.since_start(now);
        self.records[resource].sent.get_or_insert(sent);
    }

    pub(crate) fn on_head(&mut self, resource: usize, status: u16, location: Option<&str>, now: Nanos) {
        let since = self.since_start(now);
        let record = &mut self.records[resource];
        if record.status.is_some() {
            return;
        }
        record.first_byte.get_or_insert(since);
        record.status = Some(status);
        let planned = &self.plan.resources[resource];
        if is_too_early(status, planned) {
            // The request is queued again when this response has ended.
            return;
        }
        if status != planned.status {
            record.error = Some(format!("status {status}, the page has {}", planned.status));
        } else if !planned.redirects.is_empty() && location.is_none() {
            record.error = Some(format!("status {status} without Location: it redirects nowhere"));
        } else {
            self.follow_redirects(resource, now);
            self.meet(resource, now);
        }
    }

    pub(crate) fn on_body(&mut self, resource: usize, bytes: u64, now: Nanos) {
        let since = self.since_start(now);
        let record = &mut self.records[resource];
        record.first_byte.get_or_insert(since);
        record.body_bytes = record.body_bytes.saturating_add(bytes);
        if record.status.is_some() && record.error.is_none() {
            self.meet(resource, now);
        }
    }

    pub(crate) fn on_end(&mut self, conn: ConnId, resource: usize, reusable: bool, now: Nanos) {
        let since = self.since_start(now);
        let (record, planned) = (&mut self.records[resource], &self.plan.resources[resource]);
        if record.status.is_some_and(|status| is_too_early(status, planned)) {
            *record = RequestRecord {
                conn: None,
                sent: None,
                first_byte: None,
                status: None,
                body_bytes: 0,
                retries: record.retries + 1,
                ..record.clone()
            };
            self.enqueue(resource);
        } else {
            record.end = Some(since);
            match self.mismatch(resource) {
                Some(error) => self.fail(resource, &error, now),
                None => self.on_arrived(resource, now),
            }
        }
        if let Some(origin) = self.pool.end_stream(conn) {
            self.serve(origin, now);
        } else if reusable && self.config.keep_alive {
            self.release(conn, now);
        } else {
            self.commands.push_back(Command::Close { conn });
            self.drop_connection(conn, now);
        }
    }

    /// A closed connection fails its request, or the first waiting request if it was still being opened (Chromium's
    /// `TransportClientSocketPool::OnConnectJobComplete`). But a request on a *reused* connection that closed
    /// before the first byte of the response is sent again: the server may have closed it just as the request left
    /// (RFC 9112, section 9.3.1). No limit is needed, because every try uses up a reused connection (Chromium's
    /// `HttpNetworkTransaction::ShouldResendRequest`).
    pub(crate) fn on_failed(&mut self, conn: ConnId, error: &str, now: Nanos) {
        let Some(connection) = self.pool.get_mut(conn) else {
            return;
        };
        let falls_back = connection.quic == Some(false) && self.config.quic == Quic::WhereItWorks;
        match connection.state {
            State::Closed => return,
            _ if falls_back => {
                let origin = connection.origin;
                self.leave_quic(conn, now);
                return self.serve(origin, now);
            }
            State::Idle => {}
            State::Connecting => self.fail_connecting(conn, error, now),
            State::Busy(resource)
                if connection.requests > 1 && self.records[resource].first_byte.is_none() =>
            {
                let record = &mut self.records[resource];
                (record.conn, record.sent) = (None, None);
                record.retries += 1;
                self.pool.close(conn, now);
                self.wait(resource, now);
            }
            State::Busy(resource) => self.fail(resource, error, now),
            State::Shared(_) => self.fail_carried(conn, error, now),
        }
        self.drop_connection(conn, now);
    }

    /// A failed HTTP/2 or HTTP/3 connection fails all its requests.
    fn fail_carried(&mut self, conn: ConnId, error: &str, now: Nanos) {
        for resource in 0..self.records.len() {
            let record = &self.records[resource];
            if record.conn == Some(conn) && record.end.is_none() {
                self.fail(resource, error, now);
            }
        }
    }

    /// A stall timer fired: fails the connection if it made no progress since then.
    pub(crate) fn check_stall(&mut self, conn: ConnId, now: Nanos) {
        let timeout = self.config.request_timeout;
        let Some(connection) = self.pool.get_mut(conn) else {
            return;
        };
        connection.is_watched = false;
        let state = connection.state;
        if matches!(state, State::Idle | State::Closed) {
            return;
        }
        if connection.progress.saturating_add(timeout) > now {
            return self.watch(conn);
        }
        let ms = timeout / NANOS_PER_MS;
        let stalled = format!("timed out: no progress for {ms} ms");
        match state {
            State::Busy(resource) => self.fail(resource, &stalled, now),
            State::Shared(_) => self.fail_carried(conn, &stalled, now),
            _ => self.fail_connecting(conn, &format!("timed out: no connection within {ms} ms"), now),
        }
        self.commands.push_back(Command::Close { conn });
        self.drop_connection(conn, now);
    }

    /// Makes sure that a stall timer is set. There is one per connection. Progress only updates a time, which the
    /// timer compares when it fires.
    pub(crate) fn watch(&mut self, conn: ConnId) {
        let timeout = self.config.request_timeout;
        let Some(connection) = self.pool.get_mut(conn) else {
            return;
        };
        if !connection.is_watched {
            connection.is_watched = true;
            self.timers
                .set(connection.progress.saturating_add(timeout), Timer::Stall(conn));
        }
    }

    /// How a complete response differs from the page's.
    fn mismatch(&self, resource: usize) -> Option<String> {
        let (record, planned) = (&self.records[resource], &self.plan.resources[resource]);
        if record.error.is_some() {
            return record.error.clone();
        }
        if record.status.is_none() {
            return Some("the response has no header".to_owned());
        }
        let (got, asked) = (record.body_bytes, planned.body_bytes);
        (got != asked).then(|| format!("body of {got} bytes, the page has {asked}"))
    }

    /// Notes progress of a request; `false` if the connection does not carry it.
    pub(crate) fn progresses(&mut self, conn: ConnId, request: usize, now: Nanos) -> bool {
        let Some(connection) = self.pool.get_mut(conn) else {
            return false;
        };
        let is_carried = match connection.state {
            State::Busy(resource) => resource == request,
            State::Shared(_) => self
                .records
                .get(request)
                .is_some_and(|record| record.conn == Some(conn) && record.end.is_none()),
            State::Connecting | State::Idle | State::Closed => false,
        };
        if is_carried {
            connection.progress = now;
        }
        is_carried
    }

    fn fail_connecting(&mut self, conn: ConnId, error: &str, now: Nanos) {
        let start = self.start;
        let Some(connection) = self.pool.get_mut(conn) else {
            return;
        };
        let (origin, opened) = (connection.origin, connection.opened.saturating_sub(start));
        let Some(resource) = self.pool.pop_waiting(origin) else {
            return;
        };
        let record = &mut self.records[resource];
        record.conn = Some(conn);
        record.connect_start = record.queued.max(Some(opened));
        self.fail(resource, error, now);
    }

    /// The connection can take a request. If none waits for its origin, its slot may serve another origin.
    fn release(&mut self, conn: ConnId, now: Nanos) {
        let origin = self.pool.make_idle(conn);
        self.serve(origin, now);
        self.serve_stalled(now);
    }

    /// The connection is closed, and its slot goes to the origin that needs it most.
    fn drop_connection(&mut self, conn: ConnId, now: Nanos) {
        let origin = self.pool.close(conn, now);
        self.pool.stall(origin);
        self.serve_stalled(now);
    }

    fn serve_stalled(&mut self, now: Nanos) {
        while let Some(origin) = self.pool.pop_stalled() {
            self.serve(origin, now);
        }
    }
}

/// Whether the server asks the client to repeat the request after the handshake (RFC 8470, section 5.2). The
/// handshake of the connection that carried this response is done by then.
fn is_too_early(status: u16, planned: &Planned) -> bool {
    status == TOO_EARLY && planned.status != TOO_EARLY
}
