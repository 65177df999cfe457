//! Two sockets on a virtual clock, over a link that delays every segment and loses those that a test names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use firstflight_tcp::{Answer, Early, FastOpen, Key, Segment, Settings, Socket};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// One way.
const DELAY: u64 = 50 * MS;
const RTT: u64 = 2 * DELAY;
/// The server's key.
const KEY: Key = 7;
const MSS: u64 = 1_448;

/// Whether the link loses a segment, of which its sender sent so many before.
type Loses = Box<dyn Fn(&Segment, usize) -> bool>;

/// A client that asks for `request` bytes and a server that answers with `response`.
struct Pair {
    client: Socket,
    server: Option<Socket>,
    request: u64,
    response: u64,
    /// Segments on their way: when they arrive, and their number among those sent.
    link: BinaryHeap<Reverse<(u64, usize)>>,
    sent: Vec<(u64, Segment)>,
    loses: Loses,
    now: u64,
    /// What has arrived: of the request, and of the response.
    arrived: [u64; 2],
    has_asked: bool,
}

impl Pair {
    /// A pair whose link loses the segments of which `loses` says so.
    fn new(response: u64, loses: impl Fn(&Segment, usize) -> bool + 'static) -> Self {
        Self {
            client: Socket::client(0, Settings::default()),
            server: None,
            request: 300,
            response,
            link: BinaryHeap::new(),
            sent: Vec::new(),
            loses: Box::new(loses),
            now: 0,
            arrived: [0; 2],
            has_asked: false,
        }
    }

    /// Connects, with the request in the SYN if there is a cookie, and runs until the response is there: when.
    fn load(&mut self, cookie: Option<Key>) -> Option<u64> {
        if let Some(key) = cookie {
            self.has_asked = true;
            let taken = self
                .client
                .connect_with_data(0, FastOpen::Cookie(key), self.request);
            assert_eq!(taken, self.request, "the request fits into the SYN");
        } else {
            self.client.connect(0, FastOpen::Absent);
        }
        while self.arrived[1] < self.response {
            self.transmit();
            let arrival = self.link.peek().map(|Reverse((at, _))| *at);
            let server = self.server.as_ref().and_then(Socket::next_timeout);
            let timers = [self.client.next_timeout(), server].into_iter().flatten();
            self.now = timers.chain(arrival).min()?;
            if arrival == Some(self.now) {
                self.deliver();
            } else {
                self.client.handle_timeout(self.now);
                if let Some(server) = &mut self.server {
                    server.handle_timeout(self.now);
                }
            }
            self.run_applications();
        }
        Some(self.now)
    }

    fn transmit(&mut self) {
        let (client, server) = (&mut self.client, &mut self.server);
        let mut next = || client.poll().or_else(|| server.as_mut()?.poll());
        while let Some(segment) = next() {
            let before = self
                .sent
                .iter()
                .filter(|(_, other)| other.up == segment.up)
                .count();
            if !(self.loses)(&segment, before) {
                self.link.push(Reverse((self.now + DELAY, self.sent.len())));
            }
            self.sent.push((self.now, segment));
        }
    }

    fn deliver(&mut self) {
        let Some(Reverse((_, number))) = self.link.pop() else {
            return;
        };
        let segment = self.sent[number].1;
        match &mut self.server {
            _ if !segment.up => self.client.handle(self.now, &segment),
            Some(server) => server.handle(self.now, &segment),
            None => {
                let is_valid = segment.fast_open == FastOpen::Cookie(KEY);
                let answer = Answer {
                    early: is_valid.then_some(Early::WITHOUT_LIMIT),
                    grants: (!is_valid && segment.fast_open != FastOpen::Absent).then_some(KEY),
                };
                self.server = Some(Socket::accept(self.now, &segment, answer, Settings::default()));
            }
        }
    }

    fn run_applications(&mut self) {
        if self.client.is_established() && !self.has_asked {
            self.has_asked = true;
            self.client.write(self.now, self.request);
        }
        self.arrived[1] += self.client.read_all(self.now);
        if let Some(server) = &mut self.server {
            let before = self.arrived[0];
            self.arrived[0] += server.read_all(self.now);
            if before < self.request && self.arrived[0] == self.request {
                server.write(self.now, self.response);
            }
        }
    }

    /// Segments with data that the server sent, in order: when, and where they begin.
    fn answers(&self) -> Vec<(u64, u64)> {
        let data = self
            .sent
            .iter()
            .filter(|(_, segment)| !segment.up && segment.len > 0);
        data.map(|(at, segment)| (*at, segment.seq)).collect()
    }
}

/// Loses the segment of the server that begins with its byte `offset`, the first `times` times.
fn response_byte(offset: u64, times: usize) -> impl Fn(&Segment, usize) -> bool {
    let seen = std::cell::Cell::new(0);
    move |segment, _| {
        let is_it = !segment.up && segment.len > 0 && segment.seq == 1 + offset;
        seen.set(seen.get() + usize::from(is_it));
        is_it && seen.get() <= times
    }
}

#[test]
fn a_handshake_costs_a_round_trip_and_fast_open_saves_it() {
    assert_eq!(Pair::new(1_000, |_, _| false).load(None), Some(2 * RTT));
    assert_eq!(Pair::new(1_000, |_, _| false).load(Some(KEY)), Some(RTT));
}

#[test]
fn data_that_a_server_refuses_goes_again_with_the_end_of_the_handshake() {
    let mut pair = Pair::new(1_000, |_, _| false);
    assert_eq!(pair.load(Some(KEY + 1)), Some(2 * RTT));
    assert_eq!(pair.client.granted_cookie(), Some(KEY));
    let up: Vec<_> = pair.sent.iter().filter(|(_, segment)| segment.up).collect();
    assert_eq!((up[1].0, up[1].1.seq, up[1].1.len), (RTT, 1, 300));
}

#[test]
fn a_lost_syn_goes_again_after_a_second_without_cookie_and_data() {
    let mut pair = Pair::new(1_000, |segment, before| segment.up && before == 0);
    let took = pair.load(Some(KEY)).expect("it is repaired");
    let (at, again) = pair.sent[1];
    assert!((1_000 * MS..=1_036 * MS).contains(&at), "{at}");
    assert!(again.syn && again.len == 0 && again.fast_open == FastOpen::Absent);
    assert_eq!(took, at + 2 * RTT);
}

#[test]
fn a_loss_within_a_flight_is_repaired_one_round_trip_later() {
    let mut pair = Pair::new(10 * MSS, response_byte(2 * MSS, 1));
    pair.load(None);
    let again: Vec<_> = pair
        .answers()
        .into_iter()
        .filter(|(_, seq)| *seq == 1 + 2 * MSS)
        .collect();
    let [(first, _), (second, _)] = again[..] else {
        panic!("twice: {again:?}")
    };
    assert_eq!(second - first, RTT);
}

#[test]
fn a_lost_tail_is_probed_before_the_retransmission_timeout() {
    let (last_but_one, last) = (response_byte(2 * MSS, 1), response_byte(3 * MSS, 1));
    let mut pair = Pair::new(4 * MSS, move |segment, before| {
        last_but_one(segment, before) | last(segment, before)
    });
    pair.load(None);
    let [.., (tail_at, tail), (probed_at, probe), (again_at, again)] = pair.answers()[..] else {
        panic!("a tail, its probe, and what the probe showed to be lost")
    };
    assert_eq!([tail, probe, again], [1 + 3 * MSS, 1 + 3 * MSS, 1 + 2 * MSS]);
    // The timer starts with the acknowledgment of what came before: two round trips, and the wheel's slack.
    let waited = probed_at - tail_at - RTT;
    assert!((2 * RTT..RTT + 200 * MS).contains(&waited), "{waited}");
    assert_eq!(again_at, probed_at + RTT);
}

#[test]
fn a_flight_that_is_lost_whole_waits_for_the_retransmission_timeout() {
    let mut pair = Pair::new(6 * MSS, |segment, before| {
        !segment.up && (1..=7).contains(&before)
    });
    let took = pair.load(None).expect("it is repaired");
    assert!(took >= 2 * RTT + RTT + 200 * MS, "{took}");
    let again = pair.answers().into_iter().skip(6).find(|(_, seq)| *seq == 1);
    assert!(again.is_some_and(|(at, _)| at > 2 * RTT), "{again:?}");
}

proptest! {
    #[test]
    fn whatever_the_link_loses_every_byte_arrives_once(
        lost in proptest::collection::hash_set((any::<bool>(), 0..60_usize), 0..25),
        response in 1..60_000_u64,
        cookie in prop::option::of(KEY..KEY + 2),
    ) {
        let mut pair = Pair::new(response, move |segment, before| lost.contains(&(segment.up, before)));
        let took = pair.load(cookie);
        prop_assert!(took.is_some() || pair.client.is_dead(), "a load ends or is given up");
        if took.is_some() {
            prop_assert_eq!(pair.arrived, [pair.request, response]);
        }
    }
}
