//! The Huffman code of HPACK and QPACK (RFC 7541, section 5.2).
//!
//! The code is canonical: codes of equal length count up in the order of bytes, and longer ones continue where
//! shorter ones end. So the code lengths determine it.

use std::sync::LazyLock;

use super::tables::CODE_BITS;

/// The end of a string, which no string may contain.
const END: usize = 256;
/// The longest code, bits.
const LONGEST: usize = 30;
/// Codes of at most this many bits are in a lookup table: letters, digits, and most other characters of URLs.
const SHORT: usize = 10;

static CODES: LazyLock<Codes> = LazyLock::new(Codes::new);

struct Codes {
    /// The code of each byte.
    of_symbol: [u32; END + 1],
    /// Bytes in order of their codes.
    ordered: Vec<usize>,
    /// By length: the first code, the number of codes, and the index of the first in `ordered`.
    lengths: [(u32, u32, usize); LONGEST + 1],
    /// By the next bits: the byte whose code they begin with, and the code's bits; 0 if it has more than [`SHORT`].
    short: [(u8, u8); 1 << SHORT],
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
        let mut short = [(0, 0); 1 << SHORT];
        for &symbol in &ordered {
            let bits = CODE_BITS[symbol];
            if usize::from(bits) <= SHORT {
                let free = SHORT - usize::from(bits);
                let first = (codes[symbol] as usize) << free;
                // The code of END is longer.
                short[first..first + (1 << free)].fill((symbol as u8, bits));
            }
        }
        Self {
            of_symbol: codes,
            ordered,
            lengths,
            short,
        }
    }
}

/// Encoded size of `text`, bytes.
pub(super) fn bytes(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&byte| usize::from(CODE_BITS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends `text`, encoded.
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
        // Padded with the first bits of END's code, which are ones.
        to.push((pending << (8 - bits)) as u8 | u8::MAX >> bits);
    }
}

/// Decodes `coded`; `None` if it is malformed.
pub(super) fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let table = &*CODES;
    let mut text = Vec::with_capacity(coded.len() * 2);
    // The bits that are not read yet, followed by zeros.
    let (mut window, mut bits) = (0_u64, 0);
    let mut rest = coded;
    loop {
        while bits <= 56
            && let Some((&byte, after)) = rest.split_first()
        {
            window |= u64::from(byte) << (56 - bits);
            bits += 8;
            rest = after;
        }
        let (symbol, length) = table.next(window)?;
        if length > bits {
            break;
        }
        text.push(symbol);
        window <<= length;
        bits -= length;
    }
    // Padding is the beginning of END's code, and shorter than a byte.
    let is_padding = bits < 8 && window == !(u64::MAX >> bits);
    is_padding.then_some(text)
}

impl Codes {
    /// The byte whose code `window` begins with, and the code's bits; `None` for END.
    fn next(&self, window: u64) -> Option<(u8, u32)> {
        let (symbol, length) = self.short[(window >> (64 - SHORT)) as usize];
        if length > 0 {
            return Some((symbol, length.into()));
        }
        for length in SHORT + 1..=LONGEST {
            let (first, count, place) = self.lengths[length];
            let offset = ((window >> (64 - length)) as u32).wrapping_sub(first);
            if offset < count {
                let symbol = self.ordered[place + offset as usize];
                return (symbol != END).then_some((symbol as u8, length as u32));
            }
        }
        None
    }
}

/// Decodes like [`decode`], but by the definition: one bit at a time.
#[cfg(test)]
pub(super) fn decode_bit_by_bit(coded: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
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
