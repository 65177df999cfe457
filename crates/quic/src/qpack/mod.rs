//! QPACK (RFC 9204) without a dynamic table: encodes and decodes the header fields of HTTP/3.
//!
//! An encoder may leave the dynamic table empty, and a decoder without room for one forces its peer to. Chromium
//! and curl then send what this module encodes: indexed fields, names from the static table, and literals, with
//! Huffman codes if these are shorter.

mod huffman;
mod tables;

use bytes::Bytes;

use tables::STATIC;

/// A header field's name and value.
pub type Field = (Vec<u8>, Vec<u8>);

/// Why a header block cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QpackError {
    /// It ends in the middle of a field.
    #[error("a header block that is cut off")]
    CutOff,
    /// It refers to a dynamic table, which this end does not have.
    #[error("a header block that refers to a dynamic table")]
    Dynamic,
    /// It refers to an entry that the static table does not have.
    #[error("entry {0} of the static table, which has 99")]
    UnknownEntry(u64),
    /// A Huffman code or an integer is malformed.
    #[error("a string or an integer that cannot be decoded")]
    Undecodable,
}

/// First bits of an encoded field line (section 4.5), with the bit for the static table set.
const INDEXED: u8 = 0b1100_0000;
const NAME_REFERENCE: u8 = 0b0101_0000;
const LITERAL_NAME: u8 = 0b0010_0000;
/// The bit for a Huffman-coded string, before the prefix of its length.
const HUFFMAN_NAME: u8 = 0b0000_1000;
const HUFFMAN_VALUE: u8 = 0b1000_0000;

/// Encodes a header block.
pub fn encode<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Bytes {
    // Required Insert Count and Base (section 4.5.1): both are 0.
    let mut block = vec![0, 0];
    for (name, value) in fields {
        let entry = |entry: &(&str, &str)| entry.0.as_bytes() == name;
        let whole = |found: &(&str, &str)| entry(found) && found.1.as_bytes() == value;
        if let Some(index) = STATIC.iter().position(whole) {
            integer(&mut block, INDEXED, 6, index as u64);
            continue;
        }
        match STATIC.iter().position(entry) {
            Some(index) => integer(&mut block, NAME_REFERENCE, 4, index as u64),
            None => string(&mut block, LITERAL_NAME, HUFFMAN_NAME, 3, name),
        }
        string(&mut block, 0, HUFFMAN_VALUE, 7, value);
    }
    Bytes::from(block)
}

/// Decodes a header block.
///
/// # Errors
/// [`QpackError`] when it is malformed.
pub fn decode(block: &[u8]) -> Result<Vec<Field>, QpackError> {
    let mut rest = Reader(block);
    if rest.integer(8)? != 0 {
        return Err(QpackError::Dynamic);
    }
    rest.integer(7)?;
    let mut fields = Vec::new();
    while let Some(&first) = rest.0.first() {
        fields.push(if first & 0b1000_0000 != 0 {
            let (name, value) = rest.static_entry(first, 0b0100_0000, 6)?;
            (name.into(), value.into())
        } else if first & 0b0100_0000 != 0 {
            let (name, _) = rest.static_entry(first, 0b0001_0000, 4)?;
            (name.into(), rest.string(HUFFMAN_VALUE, 7)?)
        } else if first & LITERAL_NAME != 0 {
            (rest.string(HUFFMAN_NAME, 3)?, rest.string(HUFFMAN_VALUE, 7)?)
        } else {
            return Err(QpackError::Dynamic);
        });
    }
    Ok(fields)
}

/// Appends `value` with a prefix of `prefix` bits, below the bits of `first` (RFC 7541, section 5.1).
fn integer(block: &mut Vec<u8>, first: u8, prefix: u8, value: u64) {
    let most = (1 << prefix) - 1;
    if value < most {
        return block.push(first | value as u8);
    }
    block.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        block.push(rest as u8 | 128);
        rest >>= 7;
    }
    block.push(rest as u8);
}

fn string(block: &mut Vec<u8>, first: u8, huffman: u8, prefix: u8, text: &[u8]) {
    let coded = huffman::bytes(text);
    if coded < text.len() {
        integer(block, first | huffman, prefix, coded as u64);
        huffman::encode(text, block);
    } else {
        integer(block, first, prefix, text.len() as u64);
        block.extend_from_slice(text);
    }
}

/// A cursor over a header block.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn integer(&mut self, prefix: u8) -> Result<u64, QpackError> {
        let most = u64::from(u8::MAX >> (8 - prefix));
        let mut value = u64::from(self.byte()?) & most;
        if value < most {
            return Ok(value);
        }
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value += u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(QpackError::Undecodable)
    }

    fn byte(&mut self) -> Result<u8, QpackError> {
        let (&first, rest) = self.0.split_first().ok_or(QpackError::CutOff)?;
        self.0 = rest;
        Ok(first)
    }

    fn static_entry(
        &mut self,
        first: u8,
        is_static: u8,
        prefix: u8,
    ) -> Result<(&'static str, &'static str), QpackError> {
        if first & is_static == 0 {
            return Err(QpackError::Dynamic);
        }
        let index = self.integer(prefix)?;
        let entry = STATIC.get(usize::try_from(index).unwrap_or(usize::MAX));
        entry.copied().ok_or(QpackError::UnknownEntry(index))
    }

    fn string(&mut self, huffman: u8, prefix: u8) -> Result<Vec<u8>, QpackError> {
        let is_coded = self.0.first().is_some_and(|first| first & huffman != 0);
        let length = usize::try_from(self.integer(prefix)?).unwrap_or(usize::MAX);
        let (text, rest): (&'a [u8], _) = self.0.split_at_checked(length).ok_or(QpackError::CutOff)?;
        self.0 = rest;
        if is_coded {
            huffman::decode(text).ok_or(QpackError::Undecodable)
        } else {
            Ok(text.to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_standard_is_encoded_and_read() {
        // RFC 9204, appendix B.1, except that the string is not Huffman-coded there.
        let block = encode([(&b":path"[..], &b"/index.html"[..])]);
        assert_eq!(
            decode(&block),
            Ok(vec![(b":path".to_vec(), b"/index.html".to_vec())])
        );
        let plain = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(decode(plain), decode(&block));
        // RFC 7541, appendix C.4.1.
        let block = encode([(&b":authority"[..], &b"www.example.com"[..])]);
        let coded = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(block, [&[0, 0, 0x50, 0x8c][..], &coded].concat());
    }

    #[test]
    fn a_dynamic_table_and_what_is_cut_off_are_refused() {
        assert_eq!(decode(&[2, 0, 0x80]), Err(QpackError::Dynamic));
        assert_eq!(decode(&[0, 0, 0x80]), Err(QpackError::Dynamic));
        assert_eq!(decode(&[0, 0, 0xff, 99]), Err(QpackError::UnknownEntry(162)));
        let block = encode([(&b"location"[..], &b"https://a.test/"[..]), (b"p", b"pppp")]);
        for length in [0, 1, 3, 4, block.len() - 1] {
            assert_eq!(decode(&block[..length]), Err(QpackError::CutOff), "{length}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            fields in vec((vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..400)), 0..6)
        ) {
            let block = encode(fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice())));
            prop_assert_eq!(decode(&block), Ok(fields));
        }

        #[test]
        fn huffman_codes_are_read_as_one_bit_at_a_time(coded in vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(huffman::decode(&coded), huffman::decode_bit_by_bit(&coded));
        }

        #[test]
        fn codes_of_any_text_cut_anywhere_are_too(text in vec(any::<u8>(), 0..40), cut in 0_usize..60) {
            let mut coded = Vec::new();
            huffman::encode(&text, &mut coded);
            coded.truncate(coded.len().saturating_sub(cut));
            prop_assert_eq!(huffman::decode(&coded), huffman::decode_bit_by_bit(&coded));
        }

        #[test]
        fn no_bytes_make_it_panic(block in vec(any::<u8>(), 0..200)) {
            let _ = decode(&block);
        }
    }
}
