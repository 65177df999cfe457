//! The chunked transfer coding (RFC 9112, section 7.1), as far as it is needed to count the body.

/// Largest number of hexadecimal digits in a chunk's size; more would not fit 64 bits.
const MAX_DIGITS: u32 = 15;

/// Why bytes are not a chunked body.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChunkError {
    #[error("a chunk without a size")]
    NoSize,
    #[error("not the size of a chunk")]
    BadSize,
    #[error("{0} bytes after the last chunk")]
    After(usize),
}

/// The parser of a chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    state: State,
}

#[derive(Debug)]
enum State {
    /// In the line that begins a chunk.
    Size {
        bytes: u64,
        digits: u32,
        extension: bool,
    },
    /// In a chunk: `left` bytes are still to come, the end of its line included.
    Data {
        left: u64,
    },
    /// In the trailer: whether the current line has any byte.
    Trailer {
        filled: bool,
    },
    End,
}

impl Default for State {
    fn default() -> Self {
        Self::Size {
            bytes: 0,
            digits: 0,
            extension: false,
        }
    }
}

impl Chunked {
    /// Parses the next `bytes`. Returns how many belong to the body, and whether the body is complete.
    ///
    /// # Errors
    /// [`ChunkError`] when these are no chunks, or something follows the last.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(u64, bool), ChunkError> {
        let mut body = 0;
        let mut rest = bytes;
        while let Some((&first, after)) = rest.split_first() {
            match &mut self.state {
                State::Data { left } => {
                    let next = (*left).min(rest.len() as u64);
                    // The end of the chunk's line does not belong to the body.
                    body += next.min(left.saturating_sub(2));
                    *left -= next;
                    rest = &rest[next as usize..];
                    if *left == 0 {
                        self.state = State::default();
                    }
                    continue;
                }
                State::Size { .. } => self.take_size(first)?,
                State::Trailer { filled: false } if first == b'\n' => self.state = State::End,
                State::Trailer { .. } if first == b'\r' => {}
                State::Trailer { filled } => *filled = first != b'\n',
                State::End => return Err(ChunkError::After(rest.len())),
            }
            rest = after;
        }
        Ok((body, matches!(self.state, State::End)))
    }

    fn take_size(&mut self, byte: u8) -> Result<(), ChunkError> {
        let State::Size {
            bytes,
            digits,
            extension,
        } = &mut self.state
        else {
            return Ok(());
        };
        match (char::from(byte).to_digit(16), byte) {
            (_, b'\n') if *digits == 0 => return Err(ChunkError::NoSize),
            (_, b'\n') if *bytes == 0 => self.state = State::Trailer { filled: false },
            (_, b'\n') => self.state = State::Data { left: *bytes + 2 },
            _ if *extension => {}
            (Some(digit), _) if *digits < MAX_DIGITS => {
                *bytes = *bytes * 16 + u64::from(digit);
                *digits += 1;
            }
            (None, b';' | b'\r' | b' ') => *extension = true,
            _ => return Err(ChunkError::BadSize),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"4\r\nbody\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n";

    #[test]
    fn a_body_is_counted_however_it_is_cut() {
        for cut in 0..WHOLE.len() {
            let mut chunked = Chunked::default();
            let (first, early) = chunked.take(&WHOLE[..cut]).unwrap();
            let (second, done) = chunked.take(&WHOLE[cut..]).unwrap();
            assert_eq!((first + second, early, done), (14, false, true), "cut at {cut}");
        }
    }

    #[test]
    fn noise_is_an_error() {
        for text in [
            "x\r\n",
            "\r\n",
            "0\r\n\r\nmore",
            "fffffffffffffffff\r\n",
            "-1\r\n",
        ] {
            assert!(Chunked::default().take(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
