//! The key shares that a client offers, read in the first bytes of its stream (RFC 8446, sections 4.1.2 and 4.2.8).

/// X25519MLKEM768 among TLS's named groups.
pub const X25519_MLKEM768: u16 = 0x11ec;

/// Types of a record, a message and an extension.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const KEY_SHARE: u16 = 51;
/// A `ClientHello` ahead of its session identifier: its version and its random number.
const FIXED: usize = 2 + 32;

/// Whether a stream can begin with a `ClientHello`.
pub fn may_begin(stream: &[u8]) -> bool {
    stream.first().is_none_or(|first| *first == HANDSHAKE)
}

/// The groups of the key shares in a `ClientHello`, none where it has none; `None` where `stream` does not begin with
/// a whole one.
pub fn key_shares(stream: &[u8]) -> Option<Vec<u16>> {
    let message = handshake(stream);
    let (kind, rest) = message.split_first()?;
    if *kind != CLIENT_HELLO {
        return None;
    }
    let mut hello = Fields(Fields(rest).field(3)?);
    hello.skip(FIXED)?;
    let _session = hello.field(1)?;
    let _cipher_suites = hello.field(2)?;
    let _compression = hello.field(1)?;
    let Some(extensions) = hello.field(2) else {
        return Some(Vec::new());
    };
    let mut extensions = Fields(extensions);
    while let Some(kind) = extensions.number() {
        let data = extensions.field(2)?;
        if kind == KEY_SHARE {
            return shares(data);
        }
    }
    Some(Vec::new())
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

/// What the handshake records at the start of a stream carry, as far as they are there.
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

/// Bytes that are read from the front.
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

    /// A field behind its length, which takes `width` bytes.
    fn field(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.skip(width)?;
        let length = length
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.skip(length)
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

    /// A `ClientHello` with these key shares, in records of at most `record_bytes`.
    fn hello(groups: &[u16], record_bytes: usize) -> Vec<u8> {
        let share = |group: &u16| [&group.to_be_bytes()[..], &behind_its_length(2, &[7; 40])].concat();
        let shares: Vec<u8> = groups.iter().flat_map(share).collect();
        let extension =
            |kind: u16, data: &[u8]| [&kind.to_be_bytes()[..], &behind_its_length(2, data)].concat();
        let extensions = [
            extension(0x2b, &[2, 3, 4]),
            extension(KEY_SHARE, &behind_its_length(2, &shares)),
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
                let stream = hello(groups, record_bytes);
                assert_eq!(key_shares(&stream).as_deref(), Some(groups));
                let longer = [&stream[..], &[23, 3, 3, 0, 1, 0]].concat();
                assert_eq!(key_shares(&longer).as_deref(), Some(groups));
                for length in 0..stream.len() {
                    assert_eq!(key_shares(&stream[..length]), None, "{length}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_hello_has_none_and_no_bytes_make_it_panic() {
        let request = b"GET / HTTP/1.1\r\n";
        assert_eq!((key_shares(request), may_begin(request)), (None, false));
        let stream = hello(&[X25519_MLKEM768], 16_384);
        for at in 0..stream.len() {
            let mut flipped = stream.clone();
            flipped[at] ^= 0xff;
            let _ = key_shares(&flipped);
        }
    }
}
