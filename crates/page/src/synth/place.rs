//! Places the pieces of a body at the recorded bytes, with filler between them.

/// A piece of a body and the byte at which it should end.
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) end: usize,
}

/// Places `pieces` in order in `size` bytes. Each ends at its `end`, or as near to it as its neighbours allow. They
/// must fit. `filler(n)` makes `n` bytes without meaning.
pub(super) fn place(pieces: &[Piece], size: usize, filler: impl Fn(usize) -> String) -> Vec<u8> {
    let mut following: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    let mut out = String::with_capacity(size);
    for piece in pieces {
        let earliest = out.len() + piece.text.len();
        following -= piece.text.len();
        let end = piece.end.min(size - following).max(earliest);
        out.push_str(&filler(end - earliest));
        out.push_str(&piece.text);
    }
    out.push_str(&filler(size - out.len()));
    out.into_bytes()
}

/// `n` bytes between `open` and `close`, or spaces if those do not fit.
pub(super) fn comment(open: &str, close: &str, n: usize) -> String {
    match n.checked_sub(open.len() + close.len()) {
        Some(inside) => format!("{open}{}{close}", ".".repeat(inside)),
        None => " ".repeat(n),
    }
}
