//! Reads the first bytes of a TLS client's stream: its `ClientHello` (RFC 8446, section 4.1.2), and early data
//! behind it.

/// The named group X25519MLKEM768.
pub const X25519_MLKEM768: u16 = 0x11ec;

/// TLS content type, message type and extension types.
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const VERSIONS: u16 = 43;
const PSK_MODES: u16 = 45;
const KEY_SHARE: u16 = 51;
/// TLS 1.3 in `supported_versions`.
const TLS13: [u8; 2] = [3, 4];
/// Bytes of a handshake message's header: type and length.
const HEADER: u32 = 4;
/// Bytes of a `ClientHello` before its session identifier: version and random.
const FIXED: usize = 2 + 32;

/// Whether a stream can begin with a `ClientHello`.
pub fn may_begin(stream: &[u8]) -> bool {
    stream.first().is_none_or(|first| *first == HANDSHAKE)
}

/// Whether a stream begins with a handshake record that goes on beyond `beginning`.
pub fn is_cut(beginning: &[u8]) -> bool {
    match beginning {
        [HANDSHAKE, _, _, high, low, rest @ ..] => {
            usize::from(u16::from_be_bytes([*high, *low])) > rest.len()
        }
        _ => false,
    }
}

/// The contents of a `ClientHello`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an extension that is there or not"
)]
pub struct ClientHello {
    /// The groups of its key shares (section 4.2.8).
    pub key_shares: Vec<u16>,
    /// Whether it offers to resume a session of TLS 1.3 (section 4.2.11).
    pub offers_session: bool,
    /// Whether it announces early data (section 4.2.10).
    pub offers_early_data: bool,
    /// Whether it offers TLS 1.3 (section 4.2.1).
    pub offers_tls13: bool,
    /// Whether it can resume TLS 1.3 sessions: a server sends no ticket without key exchange modes (section 4.2.9).
    pub can_resume: bool,
    /// Its size without record headers, bytes.
    pub message_bytes: u32,
}

impl ClientHello {
    /// Reads a `ClientHello`; `None` if `stream` does not begin with a whole one.
    pub fn read(stream: &[u8]) -> Option<Self> {
        Self::of_message(&handshake(stream))
    }

    /// As [`Self::read`], for a message without records around it, as QUIC carries it (RFC 9001, section 4).
    pub fn of_message(message: &[u8]) -> Option<Self> {
        let (kind, rest) = message.split_first()?;
        if *kind != CLIENT_HELLO {
            return None;
        }
        let mut fields = Fields(Fields(rest).field(3)?);
        fields.skip(FIXED)?;
        let _session = fields.field(1)?;
        let _cipher_suites = fields.field(2)?;
        let _compression = fields.field(1)?;
        let mut hello = Self {
            message_bytes: HEADER + Fields(rest).length(3)?,
            ..Self::default()
        };
        let mut extensions = Fields(fields.field(2).unwrap_or_default());
        while let Some(kind) = extensions.number() {
            let data = extensions.field(2)?;
            match kind {
                KEY_SHARE => hello.key_shares = shares(data)?,
                PRE_SHARED_KEY => hello.offers_session = true,
                EARLY_DATA => hello.offers_early_data = true,
                PSK_MODES => hello.can_resume = true,
                VERSIONS => hello.offers_tls13 = offers_tls13(data),
                _ => {}
            }
        }
        Some(hello)
    }

    /// Whether it has a key share for X25519MLKEM768.
    pub fn is_post_quantum(&self) -> bool {
        self.key_shares.contains(&X25519_MLKEM768)
    }
}

/// Bytes of application-data records in what a client sends before the server answers, as far as `stream` has them.
/// In TLS 1.3 these can only be early data.
pub fn early_data_bytes(stream: &[u8]) -> u32 {
    let mut bytes = 0;
    let mut rest = stream;
    while let [kind, _, _, high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
        if *kind == APPLICATION_DATA {
            bytes += (rest.len() - after.len() + length) as u32;
        }
        rest = &after[length..];
    }
    bytes
}

/// Whether `supported_versions` lists TLS 1.3.
fn offers_tls13(extension: &[u8]) -> bool {
    let versions = extension.get(1..).unwrap_or_default();
    versions.chunks_exact(2).any(|version| version == TLS13)
}

fn shares(extension: &[u8]) -> Option<Vec<u16>> {
    let mut shares = Fields(Fields(extension).field(2)?);
    let mut groups = Vec::new();
    while let Some(group) = shares.number() {
        shares.field(2)?;
        groups.push(group);
    }
    Some(groups)
}

/// The content of the handshake records at the start of a stream, as far as it has arrived.
fn handshake(stream: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let mut rest = stream;
    while let [HANDSHAKE, _, _, high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
        message.extend_from_slice(&after[..length]);
        rest = &after[length..];
    }
    message
}

/// A cursor over bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn skip(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(front)
    }

    fn number(&mut self) -> Option<u16> {
        self.skip(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Reads a field with a length prefix of `width` bytes.
    fn field(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.length(width)?;
        self.skip(length as usize)
    }

    /// Reads a length of `width` bytes.
    fn length(&mut self, width: usize) -> Option<u32> {
        let bytes = self.skip(width)?;
        Some(
            bytes
                .iter()
                .fold(0, |length, byte| length << 8 | u32::from(*byte)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X25519: u16 = 0x1d;

    fn behind_its_length(width: usize, field: &[u8]) -> Vec<u8> {
        let length = (field.len() as u32).to_be_bytes();
        [&length[4 - width..], field].concat()
    }

    /// A `ClientHello` with these key shares and further extensions, in records of at most `record_bytes`.
    fn hello(groups: &[u16], others: &[u16], record_bytes: usize) -> Vec<u8> {
        let share = |group: &u16| [&group.to_be_bytes()[..], &behind_its_length(2, &[7; 40])].concat();
        let shares: Vec<u8> = groups.iter().flat_map(share).collect();
        let extension =
            |kind: u16, data: &[u8]| [&kind.to_be_bytes()[..], &behind_its_length(2, data)].concat();
        let others = others.iter().flat_map(|kind| extension(*kind, &[1]));
        let extensions = [
            extension(0x2b, &[2, 3, 4]),
            extension(KEY_SHARE, &behind_its_length(2, &shares)),
            others.collect(),
        ];
        let body = [
            vec![3; FIXED],
            behind_its_length(1, &[9; 32]),
            behind_its_length(2, &[0x13, 0x01]),
            behind_its_length(1, &[0]),
            behind_its_length(2, &extensions.concat()),
        ];
        let message = [vec![CLIENT_HELLO], behind_its_length(3, &body.concat())].concat();
        let record = |part: &[u8]| [&[HANDSHAKE, 3, 1][..], &behind_its_length(2, part)].concat();
        message.chunks(record_bytes).flat_map(record).collect()
    }

    #[test]
    fn the_groups_of_the_key_shares_are_read_in_a_whole_hello_only() {
        for groups in [&[X25519_MLKEM768, X25519][..], &[X25519], &[]] {
            for record_bytes in [16_384, 50] {
                let stream = hello(groups, &[], record_bytes);
                let read = |stream: &[u8]| ClientHello::read(stream).map(|hello| hello.key_shares);
                assert_eq!(read(&stream).as_deref(), Some(groups));
                let longer = [&stream[..], &[23, 3, 3, 0, 1, 0]].concat();
                assert_eq!(read(&longer).as_deref(), Some(groups));
                for length in 0..stream.len() {
                    assert_eq!(read(&stream[..length]), None, "{length}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_hello_has_none_and_no_bytes_make_it_panic() {
        let request = b"GET / HTTP/1.1\r\n";
        assert_eq!((ClientHello::read(request), may_begin(request)), (None, false));
        let stream = hello(&[X25519_MLKEM768], &[EARLY_DATA], 16_384);
        for at in 0..stream.len() {
            let mut flipped = stream.clone();
            flipped[at] ^= 0xff;
            let _ = (ClientHello::read(&flipped), early_data_bytes(&flipped));
        }
    }

    #[test]
    fn a_session_and_early_data_are_seen_where_they_are_offered() {
        for others in [&[][..], &[PRE_SHARED_KEY], &[EARLY_DATA, PRE_SHARED_KEY]] {
            let stream = hello(&[X25519], others, 16_384);
            let read = ClientHello::read(&stream).unwrap_or_default();
            assert_eq!((read.offers_tls13, read.can_resume), (true, false));
            assert_eq!(read.message_bytes as usize + 5, stream.len());
            let seen = (read.offers_session, read.offers_early_data);
            assert_eq!(seen, (!others.is_empty(), others.len() == 2));
            assert_eq!(early_data_bytes(&stream), 0);
            let change_cipher_spec = [20, 3, 3, 0, 1, 1];
            let early = [&stream[..], &change_cipher_spec, &[23, 3, 3, 0, 4, 1, 2, 3, 4]].concat();
            assert_eq!(early_data_bytes(&early), 9);
            assert_eq!(early_data_bytes(&early[..early.len() - 1]), 8);
        }
    }
}
