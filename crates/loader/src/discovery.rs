//! Discovery of resources, from the moment that one is found to the moment that it is settled.
//!
//! The initiator of a resource discovers it. The resource may then wait until another is settled, and for a delay
//! of its own. It is queued, transferred and processed, and is settled when nothing of it is left to do. A failed
//! resource discovers nothing more, and nothing waits for resources that it would have discovered.

use std::ops::Range;
use std::sync::Arc;

use crate::loader::Loader;
use crate::pool::Waiting;
use crate::timers::Timer;
use crate::{Command, Http2, Nanos, OriginId, Quic, RACE};

/// The state of a resource.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    /// Children that the parser has found so far.
    met: usize,
    /// Whether it was discovered, and waits until another resource is settled.
    held: bool,
    /// Its place in the order of discovery.
    order: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Unknown,
    /// Waits for another resource, or is delayed, queued, in transfer or in processing.
    Pending,
    Settled,
    /// Will never be discovered.
    Lost,
}

impl Loader {
    /// The page turns out to need a resource.
    pub(crate) fn discover(&mut self, resource: usize, now: Nanos) {
        self.progress[resource].phase = Phase::Pending;
        let planned = &self.plan.resources[resource];
        self.outstanding.add(planned.blocks_load);
        let waits = |after: usize| matches!(self.progress[after].phase, Phase::Unknown | Phase::Pending);
        if planned.after.is_some_and(waits) {
            self.progress[resource].held = true;
        } else {
            self.delay(resource, now);
        }
    }

    /// A discovered resource waits for no other resource any more; its own delay starts.
    fn delay(&mut self, resource: usize, now: Nanos) {
        let planned = &self.plan.resources[resource];
        if planned.delay == 0 {
            self.queue(resource, now);
        } else {
            self.timers
                .set(now.saturating_add(planned.delay), Timer::Request(resource));
        }
    }

    /// A discovered resource joins its origin's queue.
    pub(crate) fn queue(&mut self, resource: usize, now: Nanos) {
        self.records[resource].queued = Some(self.since_start(now));
        self.progress[resource].order = self.queued;
        self.queued += 1;
        self.wait(resource, now);
    }

    /// Puts a request into its origin's queue, by priority and order of discovery.
    pub(crate) fn wait(&mut self, resource: usize, now: Nanos) {
        let origin = self.enqueue(resource);
        if self.is_resolved(origin, now) {
            self.serve(origin, now);
        }
    }

    /// Puts a request into its origin's queue, without serving the queue. Returns the origin.
    pub(crate) fn enqueue(&mut self, resource: usize) -> OriginId {
        let planned = &self.plan.resources[resource];
        let origin = if self.config.http2 == Http2::Recorded && self.config.quic == Quic::Never {
            self.plan.carriers[planned.origin]
        } else {
            planned.origin
        };
        self.pool.wait(
            origin,
            Waiting {
                rank: planned.rank,
                order: self.progress[resource].order,
                resource,
            },
        );
        origin
    }

    /// A redirect is followed when the header arrives, without the body (Fetch Standard, "HTTP-redirect fetch").
    pub(crate) fn follow_redirects(&mut self, resource: usize, now: Nanos) {
        self.discover_all(self.plan.resources[resource].redirects.clone(), now);
    }

    /// The parser finds every reference in the bytes that have arrived. A script that blocks the parser hides none,
    /// because Blink's `HTMLPreloadScanner` reads ahead of the parser.
    pub(crate) fn meet(&mut self, resource: usize, now: Nanos) {
        let arrived = self.records[resource].body_bytes;
        let parsed = self.plan.resources[resource].parsed.clone();
        while let Some(&child) = self.plan.children[parsed.clone()].get(self.progress[resource].met)
            && self.plan.resources[child].at_byte <= arrived
        {
            self.progress[resource].met += 1;
            self.discover(child, now);
        }
    }

    /// The response is complete, and as the page says.
    pub(crate) fn on_arrived(&mut self, resource: usize, now: Nanos) {
        let planned = &self.plan.resources[resource];
        if planned.is_processed {
            self.main_thread.submit(now, resource, planned.cpu);
        } else {
            self.settle(resource, now);
        }
    }

    /// The main thread has processed a resource. Whatever its style sheet or script requests is now discovered.
    pub(crate) fn on_processed(&mut self, resource: usize, now: Nanos) {
        self.discover_all(self.plan.resources[resource].requested.clone(), now);
        self.settle(resource, now);
    }

    /// The resource fails, unless it is settled or was never needed. The load goes on without it and without what
    /// it would have discovered. If the document fails, the load fails.
    pub(crate) fn fail(&mut self, resource: usize, error: &str, now: Nanos) {
        if self.progress[resource].phase != Phase::Pending {
            return;
        }
        let error = self.records[resource]
            .error
            .get_or_insert_with(|| error.to_owned());
        if self.plan.resources[resource].is_navigation {
            self.failed
                .get_or_insert_with(|| format!("the document failed: {error}"));
        }
        self.settle(resource, now);
        self.lose_undiscovered(resource, now);
    }

    /// Notes for each resource that was never discovered why it has no request.
    pub(crate) fn name_undiscovered(&mut self) {
        for (record, progress) in self.records.iter_mut().zip(&self.progress) {
            if matches!(progress.phase, Phase::Unknown | Phase::Lost) {
                let initiator = record.initiator.unwrap_or_default();
                record.error = Some(format!(
                    "never discovered: resource {initiator} did not get that far"
                ));
            }
        }
    }

    /// Lets the pool serve the requests that wait for `origin`.
    pub(crate) fn serve(&mut self, origin: usize, now: Nanos) {
        while let Some(command) = self.pool.next(origin, now) {
            match command {
                Command::Open { conn, quic, .. } => {
                    self.watch(conn);
                    if quic && self.config.quic == Quic::WhereItWorks {
                        self.timers.set(now.saturating_add(RACE), Timer::Race(conn));
                    }
                }
                Command::Send { conn, request } => self.on_assigned(conn, request),
                Command::Close { .. } => {}
            }
            self.commands.push_back(command);
        }
    }

    fn discover_all(&mut self, children: Range<usize>, now: Nanos) {
        for at in children {
            self.discover(self.plan.children[at], now);
        }
    }

    /// Marks what a failed resource has not discovered as never discovered.
    fn lose_undiscovered(&mut self, failed: usize, now: Nanos) {
        let mut ended = vec![failed];
        while let Some(parent) = ended.pop() {
            let planned = &self.plan.resources[parent];
            let ranges = [&planned.redirects, &planned.parsed, &planned.requested];
            let children: Vec<_> = ranges
                .into_iter()
                .flat_map(|range| self.plan.children[range.clone()].iter().copied())
                .filter(|&child| self.progress[child].phase == Phase::Unknown)
                .collect();
            for &child in &children {
                self.progress[child].phase = Phase::Lost;
                self.release_followers(child, now);
            }
            ended.extend(children);
        }
    }

    /// Resources that waited for `resource` go on.
    fn release_followers(&mut self, resource: usize, now: Nanos) {
        let plan = Arc::clone(&self.plan);
        for &follower in &plan.resources[resource].followers {
            if std::mem::take(&mut self.progress[follower].held)
                && self.progress[follower].phase == Phase::Pending
            {
                self.delay(follower, now);
            }
        }
    }

    fn settle(&mut self, resource: usize, now: Nanos) {
        self.progress[resource].phase = Phase::Settled;
        self.release_followers(resource, now);
        self.outstanding
            .remove(self.plan.resources[resource].blocks_load, now);
        self.end = now;
    }
}
