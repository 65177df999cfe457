//! HTTP/3 frames (RFC 9114, section 7) on request streams and control streams.

use bytes::{BufMut, Bytes, BytesMut};
use quinn_proto::VarInt;
use quinn_proto::coding::Codec;

/// Types of frames, and of unidirectional streams (section 6.2).
const DATA: u32 = 0x0;
const HEADERS: u32 = 0x1;
const SETTINGS: u32 = 0x4;
const CONTROL: u32 = 0x0;
/// The setting of the largest accepted header block (section 7.2.4.1), and its value.
const MAX_FIELD_SECTION_SIZE: u32 = 0x6;
const LONGEST_HEADERS: u32 = 64 * 1024;

/// The error code of a connection closed without an error (section 8.1).
pub(crate) const NO_ERROR: u32 = 0x100;
/// The error code for a stream whose request is malformed or has no header fields.
pub(crate) const MALFORMED: u32 = 0x10e;

/// Largest size of a frame's type and length.
const LONGEST_FRAME_HEADER: usize = 16;

/// Why a stream of frames cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("header fields of more than {LONGEST_HEADERS} bytes")]
    TooLong,
    #[error("data before header fields")]
    DataFirst,
}

fn varint(to: &mut BytesMut, value: u64) {
    // Lengths of bodies are far below 2^62.
    VarInt::from_u64(value).unwrap_or(VarInt::MAX).encode(to);
}

/// The content of a control stream, which never carries more.
pub(crate) fn control() -> Bytes {
    let mut settings = BytesMut::new();
    varint(&mut settings, MAX_FIELD_SECTION_SIZE.into());
    varint(&mut settings, LONGEST_HEADERS.into());
    let mut stream = BytesMut::new();
    varint(&mut stream, CONTROL.into());
    varint(&mut stream, SETTINGS.into());
    varint(&mut stream, settings.len() as u64);
    stream.put(settings);
    stream.freeze()
}

/// A HEADERS frame.
pub(crate) fn headers(block: &[u8]) -> Bytes {
    let mut frame = frame(HEADERS, block.len() as u64);
    frame.put(block);
    frame.freeze()
}

/// The header of a DATA frame for this many bytes of a body.
pub(crate) fn data(bytes: u64) -> Bytes {
    frame(DATA, bytes).freeze()
}

fn frame(kind: u32, bytes: u64) -> BytesMut {
    let mut frame = BytesMut::new();
    varint(&mut frame, kind.into());
    varint(&mut frame, bytes);
    frame
}

/// A part of the content of a request stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A header block.
    Headers(Bytes),
    /// This many more bytes of the body.
    Data(u64),
}

/// The parser of one direction of a stream.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The beginning of a frame header or of a header block that is not complete yet.
    pending: BytesMut,
    /// The type of the current frame, and how many bytes of its payload are still to come.
    current: Option<(u64, u64)>,
    has_headers: bool,
}

impl Frames {
    /// Parses the next `bytes`, and passes the parts to `found`.
    ///
    /// # Errors
    /// [`FrameError`] when they break the protocol.
    pub(crate) fn take(&mut self, bytes: &[u8], mut found: impl FnMut(Part)) -> Result<(), FrameError> {
        let mut rest = bytes;
        loop {
            let Some((kind, left)) = self.current else {
                if rest.is_empty() {
                    return Ok(());
                }
                rest = self.begin(rest);
                self.end_empty(&mut found)?;
                continue;
            };
            let (payload, after) = rest.split_at(rest.len().min(left as usize));
            rest = after;
            let left = left - payload.len() as u64;
            self.current = Some((kind, left));
            match kind {
                kind if kind == u64::from(DATA) => {
                    if !self.has_headers {
                        return Err(FrameError::DataFirst);
                    }
                    if !payload.is_empty() {
                        found(Part::Data(payload.len() as u64));
                    }
                }
                kind if kind == u64::from(HEADERS) => {
                    if self.pending.len() as u64 + left + payload.len() as u64 > u64::from(LONGEST_HEADERS) {
                        return Err(FrameError::TooLong);
                    }
                    self.pending.put(payload);
                    if left == 0 {
                        self.has_headers = true;
                        found(Part::Headers(self.pending.split().freeze()));
                    }
                }
                // Unknown frames are skipped (section 9).
                _ => {}
            }
            if left == 0 {
                self.current = None;
            } else if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Parses a frame's type and length, as far as they have come. Returns the remaining bytes.
    fn begin<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while self.current.is_none()
            && let Some((&first, rest)) = bytes.split_first()
        {
            self.pending.put_u8(first);
            bytes = rest;
            let mut header = &self.pending[..];
            if let (Ok(kind), Ok(length)) = (VarInt::decode(&mut header), VarInt::decode(&mut header)) {
                self.current = Some((kind.into_inner(), length.into_inner()));
                self.pending.clear();
            }
            debug_assert!(self.pending.len() < LONGEST_FRAME_HEADER);
        }
        bytes
    }

    /// Ends a frame that has no payload.
    fn end_empty(&mut self, found: &mut impl FnMut(Part)) -> Result<(), FrameError> {
        let Some((kind, 0)) = self.current else {
            return Ok(());
        };
        self.current = None;
        if kind == u64::from(HEADERS) {
            self.has_headers = true;
            found(Part::Headers(Bytes::new()));
        }
        if kind == u64::from(DATA) && !self.has_headers {
            return Err(FrameError::DataFirst);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(stream: &[u8], cut: usize) -> Result<(Vec<Bytes>, u64), FrameError> {
        let mut frames = Frames::default();
        let (mut blocks, mut body) = (Vec::new(), 0);
        for bytes in [&stream[..cut], &stream[cut..]] {
            frames.take(bytes, |part| match part {
                Part::Headers(block) => blocks.push(block),
                Part::Data(bytes) => body += bytes,
            })?;
        }
        Ok((blocks, body))
    }

    #[test]
    fn a_response_is_read_however_it_is_cut_and_unknown_frames_are_skipped() {
        let unknown = [&[0x21, 3][..], b"???"].concat();
        let block = [7; 100];
        let stream = [
            &unknown,
            &headers(&block)[..],
            &data(300),
            &[1; 300],
            &unknown,
            &data(0),
            &data(2),
            &[2; 2],
        ]
        .concat();
        for cut in 0..stream.len() {
            let (blocks, body) = parts(&stream, cut).unwrap();
            assert_eq!(
                (blocks.len(), &blocks[0][..], body),
                (1, &block[..], 302),
                "{cut}"
            );
        }
    }

    #[test]
    fn data_without_headers_and_endless_headers_are_refused() {
        assert_eq!(parts(&data(1), 0), Err(FrameError::DataFirst));
        let endless = frame(HEADERS, 1 << 40);
        assert_eq!(parts(&[&endless[..], &[1]].concat(), 1), Err(FrameError::TooLong));
    }
}
