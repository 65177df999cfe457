//! TLS between a client and a server, as sizes: the flights, and what each record adds to its content.
//!
//! TLS 1.3 (RFC 8446) with early data, and 1.2 (RFC 5246), as rustls uses them at both ends of the lab. Left out: a
//! server that asks for another key share, rekeying, and the time of cryptography (about a millisecond for a full
//! handshake).

mod flights;
mod handshake;
mod records;

use firstflight_load::ledger::Hello;
use firstflight_load::promise::{EarlyData, Secured};
use firstflight_load::{TlsOptions, TlsVersion};
use firstflight_path as path;
use firstflight_tcp::Segment;

pub(crate) use flights::Message;
pub use flights::{Flights, Session, quic_lengths};
use handshake::Handshake;
use records::{Content, Records};

/// Sessions that the client keeps per host (`MAX_TLS13_TICKETS_PER_SERVER` in rustls).
const MAX_SESSIONS: u32 = 8;
/// Tickets that a TLS 1.3 server sends at once.
const TICKETS: u32 = 2;

/// The client's sessions with one host. A TLS 1.3 session is used once (RFC 8446, appendix C.4), the newest first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sessions {
    good: u32,
    /// Sessions that the server has forgotten, which the client cannot know.
    stale: u32,
}

impl Sessions {
    /// As many sessions as a client keeps. `are_good`: whether the server knows them.
    pub(crate) fn all(are_good: bool) -> Self {
        let [good, stale] = if are_good {
            [MAX_SESSIONS, 0]
        } else {
            [0, MAX_SESSIONS]
        };
        Self { good, stale }
    }

    /// Uses one.
    pub(crate) fn take(&mut self, version: TlsVersion) -> Session {
        let (left, session) = match (self.good, self.stale) {
            (0, 0) => return Session::None,
            (0, _) => (&mut self.stale, Session::Refused),
            _ => (&mut self.good, Session::Resumed),
        };
        if version == TlsVersion::V1_3 {
            *left -= 1;
        }
        session
    }

    /// Keeps `more`.
    pub(crate) fn gain(&mut self, more: u32) {
        self.good = (self.good + more).min(MAX_SESSIONS);
        self.stale = self.stale.min(MAX_SESSIONS - self.good);
    }
}

/// Both ends of a connection's TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    version: TlsVersion,
    handshake: Handshake,
    flights: Flights,
    session: Session,
    up: Records,
    down: Records,
    /// Largest amount of early data, bytes.
    early_data: u64,
    /// Bytes of early data that were sent, and their size on the wire.
    sent_early: [u64; 2],
    /// Whether the server has received the `ClientHello`.
    is_answered: bool,
    /// Whether the client has received the server's `Finished`, after which data is not early.
    is_done: bool,
    /// Whether the server has received the client's `Finished`.
    is_confirmed: bool,
}

/// The result of bytes that arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// Bytes for the application.
    pub(crate) data: u64,
    /// Bytes to write in answer.
    pub(crate) reply: u64,
    /// Whether this end may send now: its handshake is done, or the server accepts early data.
    pub(crate) is_ready: bool,
    sessions: u32,
}

impl Heard {
    /// Bytes on a connection without TLS.
    pub(crate) fn plain(data: u64) -> Self {
        Self {
            data,
            ..Self::default()
        }
    }

    /// Adds the sessions that came with it.
    pub(crate) fn remember(&self, sessions: &mut Sessions) {
        sessions.gain(self.sessions);
    }
}

impl Tls {
    /// TLS with `host`, resuming one of `sessions` if there is one, with at most `early_data` bytes of early data.
    pub(crate) fn new(options: TlsOptions, host: &str, sessions: &mut Sessions, early_data: u64) -> Self {
        let session = sessions.take(options.version);
        let does_early_data = early_data > 0 && options.version == TlsVersion::V1_3;
        let may_be_early = does_early_data && session != Session::None;
        let flights = Flights::new(options, host, session);
        Self {
            version: options.version,
            handshake: Handshake::new(options.version, session == Session::Resumed, may_be_early),
            flights: if does_early_data {
                flights.with_early_data(session)
            } else {
                flights
            },
            session,
            up: Records::default(),
            down: Records::default(),
            early_data: if may_be_early { early_data } else { 0 },
            sent_early: [0; 2],
            is_answered: false,
            is_done: false,
            is_confirmed: false,
        }
    }

    /// Begins the handshake. Returns the size of the `ClientHello`, and of what precedes early data.
    pub(crate) fn begin(&mut self) -> u64 {
        let hello = self.say(true, Message::ClientHello);
        if self.has_early_data() {
            hello + self.say(true, Message::ChangeCipherSpec)
        } else {
            hello
        }
    }

    /// The contents of the `ClientHello`, and the early data behind it.
    pub(crate) fn hello(&self) -> Hello {
        Hello {
            offers_session: self.version == TlsVersion::V1_3 && self.session != Session::None,
            offers_early_data: self.has_early_data(),
            early_data_bytes: self.sent_early[1] as u32,
        }
    }

    /// The parts of the `ClientHello` in a client's segment before the server's answer.
    pub(crate) fn hello_in(&self, segment: &Segment) -> path::Hello {
        if !segment.up || segment.len == 0 {
            return path::Hello::default();
        }
        // A SYN takes one sequence number.
        let start = segment.seq + u64::from(segment.syn) - 1;
        let end = start + u64::from(segment.len);
        path::Hello {
            is_cut: start == 0 && end < self.flights.client_hello,
            offers_early_data: self.hello().offers_early_data && end >= self.flights.client_hello,
        }
    }

    /// What the server reports of TLS once it has answered the `ClientHello`, or the client once it has that
    /// answer.
    pub(crate) fn secured(&self, at_client: bool) -> Option<Secured> {
        let is_known = if at_client { self.is_done } else { self.is_answered };
        is_known.then(|| Secured {
            version: self.version,
            is_resumed: self.session == Session::Resumed,
            early_data: match self.sent_early[0] {
                _ if self.rejects_early_data() => EarlyData::Rejected,
                0 => EarlyData::None,
                _ => EarlyData::Accepted,
            },
        })
    }

    /// Whether the server rejects early data.
    pub(crate) fn rejects_early_data(&self) -> bool {
        self.has_early_data() && self.session == Session::Refused
    }

    /// Whether the `ClientHello` has a key share for X25519MLKEM768.
    pub(crate) fn offers_post_quantum(&self) -> bool {
        self.flights.offers_post_quantum()
    }

    /// Whether early data is possible.
    pub(crate) fn has_early_data(&self) -> bool {
        self.early_data > 0
    }

    /// Whether this much more early data is possible.
    pub(crate) fn takes_early(&self, bytes: u64) -> bool {
        self.sent_early[0] + bytes <= self.early_data
    }

    /// The application writes `bytes`; `up`: at the client. Returns their size on the wire.
    pub(crate) fn seal(&mut self, up: bool, bytes: u64) -> u64 {
        let overhead = self.flights.record_overhead;
        let wire = self.stream(up).seal(bytes, overhead);
        if up && !self.is_done {
            self.sent_early[0] += bytes;
            self.sent_early[1] += wire;
        }
        wire
    }

    /// The server's `close_notify`. Returns its size.
    pub(crate) fn close(&mut self) -> u64 {
        self.say(false, Message::CloseNotify)
    }

    /// `bytes` have arrived; `up`: at the server.
    pub(crate) fn hear(&mut self, up: bool, bytes: u64) -> Heard {
        self.stream(up).arrive(bytes);
        let mut heard = Heard::default();
        while let Some(content) = self.stream(up).pop() {
            match content {
                // The server skips data that it cannot decrypt.
                Content::Data(_) if up && self.rejects_early_data() && !self.is_confirmed => {}
                Content::Data(bytes) => heard.data += bytes,
                Content::Message(message) => {
                    self.is_answered |= message == Message::ClientHello;
                    self.is_done |= message == Message::ServerFinished;
                    self.is_confirmed |= message == Message::ClientFinished;
                    for answer in self.handshake.answer(message) {
                        heard.reply += self.say(!up, *answer);
                    }
                    heard.is_ready |= match message {
                        Message::ClientHello => self.has_early_data() && !self.rejects_early_data(),
                        Message::ServerFinished | Message::ClientFinished => true,
                        _ => false,
                    };
                    heard.sessions += self.handshake.sessions(message);
                }
            }
        }
        heard
    }

    fn say(&mut self, up: bool, message: Message) -> u64 {
        let bytes = self.flights.bytes(message);
        self.stream(up).push(bytes, Content::Message(message));
        bytes
    }

    fn stream(&mut self, up: bool) -> &mut Records {
        if up { &mut self.up } else { &mut self.down }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the handshake until the client may send. Returns the sizes of the flights, the client's first.
    fn flights(tls: &mut Tls, sessions: &mut Sessions) -> Vec<u64> {
        let (mut up, mut sizes) = (true, vec![tls.begin()]);
        while let Some(&bytes) = sizes.last()
            && bytes > 0
        {
            let heard = tls.hear(up, bytes);
            heard.remember(sessions);
            sizes.push(heard.reply);
            up = !up;
        }
        sizes.pop();
        sizes
    }

    fn options(version: TlsVersion) -> TlsOptions {
        TlsOptions {
            post_quantum: false,
            version,
            ..TlsOptions::default()
        }
    }

    #[test]
    fn a_handshake_has_as_many_flights_as_its_version_says() {
        // TLS 1.3 has one flight more, the tickets, for which no client waits.
        for (version, full, resumed) in [(TlsVersion::V1_3, 4, 4), (TlsVersion::V1_2, 4, 3)] {
            let mut sessions = Sessions::default();
            let mut talk = || {
                flights(
                    &mut Tls::new(options(version), "a.test", &mut sessions.clone(), 0),
                    &mut sessions,
                )
            };
            let (first, second) = (talk(), talk());
            assert_eq!((first.len(), second.len()), (full, resumed), "{version:?}");
            assert!(
                second[1] < first[1] && second[0] > first[0],
                "{first:?} {second:?}"
            );
        }
    }

    #[test]
    fn a_ticket_is_used_once_and_a_session_of_tls_1_2_again() {
        for (version, left) in [
            (TlsVersion::V1_3, [true, true, false]),
            (TlsVersion::V1_2, [true; 3]),
        ] {
            let mut sessions = Sessions::default();
            flights(
                &mut Tls::new(options(version), "a.test", &mut Sessions::default(), 0),
                &mut sessions,
            );
            let taken = [(); 3].map(|()| sessions.take(version) == Session::Resumed);
            assert_eq!(taken, left, "{version:?}");
        }
    }

    #[test]
    fn early_data_is_taken_with_a_session_that_the_server_knows_and_with_no_other() {
        for (are_good, outcome) in [(true, EarlyData::Accepted), (false, EarlyData::Rejected)] {
            let mut sessions = Sessions::all(are_good);
            let mut tls = Tls::new(options(TlsVersion::V1_3), "a.test", &mut sessions, 16_384);
            let hello = tls.begin();
            let early = tls.seal(true, 400);
            let heard = tls.hear(true, hello + early);
            assert_eq!(heard.data, if are_good { 400 } else { 0 });
            let answer = tls.hear(false, heard.reply);
            assert!(answer.is_ready);
            let last = tls.hear(true, answer.reply);
            last.remember(&mut sessions);
            let secured = tls.secured(false).unwrap();
            assert_eq!(tls.secured(true), Some(secured));
            assert_eq!((secured.early_data, secured.is_resumed), (outcome, are_good));
            assert_eq!(u64::from(tls.hello().early_data_bytes), early);
            // A new session is used before a stale one.
            assert_eq!(tls.hear(false, last.reply).sessions, TICKETS);
        }
    }

    #[test]
    fn data_is_there_when_its_record_is_whole() {
        let mut tls = Tls::new(options(TlsVersion::V1_3), "a.test", &mut Sessions::default(), 0);
        let wire = tls.seal(false, 20_000);
        assert_eq!(wire, 20_000 + 2 * 22);
        assert_eq!(tls.hear(false, 16_384 + 21).data, 0);
        assert_eq!(tls.hear(false, 1).data, 16_384);
        assert_eq!(tls.hear(false, wire - 16_384 - 22).data, 20_000 - 16_384);
    }
}
