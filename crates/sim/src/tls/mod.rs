//! TLS between a client and a server, as bytes: which flights cross, what each record adds to what it carries.
//!
//! TLS 1.3 (RFC 8446) and 1.2 (RFC 5246) as rustls speaks them at both ends of the lab; 0-RTT, which the lab has not,
//! where a job asks for it. Left out: a server that asks for another key share or refuses early data, rekeying, and
//! the time that cryptography takes (about a millisecond for a full handshake).

mod flights;
mod handshake;
mod records;

use firstflight_load::{TlsOptions, TlsVersion};

pub use flights::Flights;
pub(crate) use flights::Message;
use handshake::Handshake;
use records::{Content, Records};

/// Sessions that the client keeps of a host (`MAX_TLS13_TICKETS_PER_SERVER` in rustls).
const MAX_SESSIONS: u32 = 8;
/// Tickets that a server of TLS 1.3 gives out at once.
const TICKETS: u32 = 2;

/// The client's sessions with one host. One of TLS 1.3 is used once (RFC 8446, appendix C.4).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sessions(u32);

impl Sessions {
    /// As many as a client keeps.
    pub(crate) fn all() -> Self {
        Self(MAX_SESSIONS)
    }

    fn take(&mut self, version: TlsVersion) -> bool {
        let has_one = self.0 > 0;
        if version == TlsVersion::V1_3 {
            self.0 = self.0.saturating_sub(1);
        }
        has_one
    }

    fn gain(&mut self, more: u32) {
        self.0 = (self.0 + more).min(MAX_SESSIONS);
    }
}

/// Both ends of a connection's TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    handshake: Handshake,
    flights: Flights,
    up: Records,
    down: Records,
    /// Bytes that may go with the `ClientHello`.
    early_data: u64,
}

/// What came of bytes that arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// Bytes for the application.
    pub(crate) data: u64,
    /// Bytes to be written in answer.
    pub(crate) reply: u64,
    /// This end's handshake is done: it may send.
    pub(crate) is_ready: bool,
    sessions: u32,
}

impl Heard {
    /// Bytes that TLS has no part in.
    pub(crate) fn plain(data: u64) -> Self {
        Self {
            data,
            ..Self::default()
        }
    }

    /// Keeps the sessions that came with it.
    pub(crate) fn remember(&self, sessions: &mut Sessions) {
        sessions.gain(self.sessions);
    }
}

impl Tls {
    /// TLS with `host`, resuming one of `sessions` if there is one: with so many bytes of `early_data` at most.
    pub(crate) fn new(options: TlsOptions, host: &str, sessions: &mut Sessions, early_data: u64) -> Self {
        let is_resumed = sessions.take(options.version);
        let may_be_early = is_resumed && early_data > 0 && options.version == TlsVersion::V1_3;
        let flights = Flights::new(options, host, is_resumed);
        Self {
            handshake: Handshake::new(options.version, is_resumed),
            flights: if may_be_early {
                flights.with_early_data()
            } else {
                flights
            },
            up: Records::default(),
            down: Records::default(),
            early_data: if may_be_early { early_data } else { 0 },
        }
    }

    /// Begins: the bytes of the `ClientHello`.
    pub(crate) fn begin(&mut self) -> u64 {
        self.say(true, Message::ClientHello)
    }

    /// Whether the `ClientHello` is so long that it has a key share X25519MLKEM768.
    pub(crate) fn offers_post_quantum(&self) -> bool {
        self.flights.offers_post_quantum()
    }

    /// Whether data may go with the `ClientHello`.
    pub(crate) fn has_early_data(&self) -> bool {
        self.early_data > 0
    }

    /// Whether so much may.
    pub(crate) fn takes_early(&self, bytes: u64) -> bool {
        bytes <= self.early_data
    }

    /// The application hands over `bytes`, the client's if `up`: as many on the wire.
    pub(crate) fn seal(&mut self, up: bool, bytes: u64) -> u64 {
        let overhead = self.flights.record_overhead;
        self.stream(up).seal(bytes, overhead)
    }

    /// The server says that it will write no more: bytes.
    pub(crate) fn close(&mut self) -> u64 {
        self.say(false, Message::CloseNotify)
    }

    /// `bytes` have arrived, at the server if they went `up`.
    pub(crate) fn hear(&mut self, up: bool, bytes: u64) -> Heard {
        self.stream(up).arrive(bytes);
        let mut heard = Heard::default();
        while let Some(content) = self.stream(up).pop() {
            match content {
                Content::Data(bytes) => heard.data += bytes,
                Content::Message(message) => {
                    for answer in self.handshake.answer(message) {
                        heard.reply += self.say(!up, *answer);
                    }
                    heard.is_ready |= matches!(message, Message::ServerFinished | Message::ClientFinished);
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

    /// Lets both ends talk until the client may send: the sizes of the flights, the client's first.
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
        // The tickets of TLS 1.3 are one more, which no client waits for.
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
            assert_eq!([(); 3].map(|()| sessions.take(version)), left, "{version:?}");
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
