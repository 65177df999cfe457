//! Bodies without references: JSON, XML, text, bytes.

use super::place::comment;

/// A JSON string; `0` if there is room for one byte only.
pub(super) fn json(size: usize) -> Vec<u8> {
    match size {
        0 => Vec::new(),
        1 => b"0".to_vec(),
        _ => comment("\"", "\"", size).into_bytes(),
    }
}

/// An XML document of one element; spaces if not even `<x/>` fits.
pub(super) fn xml(size: usize) -> Vec<u8> {
    match size {
        0..4 => vec![b' '; size],
        4..7 => format!("<x{}/>", " ".repeat(size - 4)).into_bytes(),
        _ => comment("<x>", "</x>", size).into_bytes(),
    }
}

pub(super) fn text(size: usize) -> Vec<u8> {
    vec![b'.'; size]
}

/// `magic` and zeros.
pub(super) fn bytes(magic: &[u8], size: usize) -> Vec<u8> {
    let mut out = magic[..magic.len().min(size)].to_vec();
    out.resize(size, 0);
    out
}
