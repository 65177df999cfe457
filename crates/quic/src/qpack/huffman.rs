//! The Huffman code of HPACK and QPACK (RFC 7541, section 5.2).
//!
//! It is canonical: codes of equal length count up in the order of bytes, and longer ones go on where shorter ones end.
//! So the lengths of its codes say all.

use std::sync::LazyLock;

use super::tables::CODE_BITS;

/// The end of a string, which no string may contain.
const END: usize = 256;
/// The longest code, bits.
const LONGEST: usize = 30;

static CODES: LazyLock<Codes> = LazyLock::new(Codes::new);

struct Codes {
    /// The code of each byte.
    of_symbol: [u32; END + 1],
    /// Bytes in the order of their codes.
    ordered: Vec<usize>,
    /// By length: the first code, how many there are, and where the first stands in that order.
    lengths: [(u32, u32, usize); LONGEST + 1],
}

impl Codes {
    fn new() -> Self {
        let mut ordered: Vec<usize> = (0..=END).collect();
        ordered.sort_by_key(|&symbol| (CODE_BITS[symbol], symbol));
        let (mut codes, mut lengths) = ([0; END + 1], [(0, 0, 0); LONGEST + 1]);
        let (mut next, mut bits) = (0_u32, 0);
        for (place, &symbol) in ordered.iter().enumerate() {
            next <<= CODE_BITS[symbol] - bits;
            bits = CODE_BITS[symbol];
            let of_length = &mut lengths[usize::from(bits)];
            if of_length.1 == 0 {
                *of_length = (next, 0, place);
            }
            of_length.1 += 1;
            codes[symbol] = next;
            next += 1;
        }
        Self {
            of_symbol: codes,
            ordered,
            lengths,
        }
    }
}

/// Bytes of `text` in this code.
pub(super) fn bytes(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&byte| usize::from(CODE_BITS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends `text` in this code.
pub(super) fn encode(text: &[u8], to: &mut Vec<u8>) {
    let (mut pending, mut bits) = (0_u64, 0);
    for &byte in text {
        let length = CODE_BITS[usize::from(byte)];
        pending = pending << length | u64::from(CODES.of_symbol[usize::from(byte)]);
        bits += length;
        while bits >= 8 {
            bits -= 8;
            to.push((pending >> bits) as u8);
        }
    }
    if bits > 0 {
        // Padded with the first bits of the end's code, which are ones.
        to.push((pending << (8 - bits)) as u8 | u8::MAX >> bits);
    }
}

/// The text of `coded`; `None` if it is no code.
pub(super) fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(coded.len() * 2);
    let (mut code, mut length) = (0_u32, 0);
    for bit in coded
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
    {
        code = code << 1 | u32::from(bit);
        length += 1;
        let (first, count, place) = CODES.lengths[length];
        let offset = code.wrapping_sub(first);
        if offset < count {
            let symbol = CODES.ordered[place + offset as usize];
            if symbol == END {
                return None;
            }
            text.push(symbol as u8);
            (code, length) = (0, 0);
        }
    }
    let is_padding = length < 8 && code == (1 << length) - 1;
    is_padding.then_some(text)
}
