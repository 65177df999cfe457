//! Bodies: recorded ones from files, whole or in part, with or without a length in the header.

use std::convert::Infallible;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::turns::{Turn, Unwritten};
use crate::LabError;

/// Files of at least this size, bytes, are mapped instead of read: the kernel loads a part when it is sent.
const MAPPED: u64 = 256 * 1024;
/// Largest chunk, bytes; servers' buffers are about as large.
const CHUNK: usize = 16 * 1024;

/// Opens a recorded body.
pub(super) fn open(file: &Path) -> Result<Bytes, LabError> {
    read(file).map_err(|error| LabError::Unreadable {
        file: file.to_owned(),
        problem: error,
    })
}

fn read(file: &Path) -> std::io::Result<Bytes> {
    let opened = File::open(file)?;
    if opened.metadata()?.len() < MAPPED {
        return std::fs::read(file).map(Bytes::from);
    }
    // SAFETY: the map is private and only read. A file that shrinks meanwhile ends this process with a SIGBUS, and
    // the load with an error; nothing is ever read beyond the map.
    let map = unsafe { memmap2::Mmap::map(&opened)? };
    Ok(Bytes::from_owner(map))
}

/// The body of a response that is being sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    rest: Bytes,
    /// Whether it is sent in chunks, without its length.
    chunked: bool,
    /// Its place in the order of bodies, on a connection where bodies wait for each other.
    turn: Option<Turn>,
}

/// A part of a body that is not written yet.
struct Piece {
    bytes: Bytes,
    /// Dropped when the part is written.
    _unwritten: Unwritten,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Outgoing {
    /// A body of known length.
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self {
            rest: bytes,
            chunked: false,
            turn: None,
        }
    }

    /// A body that HTTP/1.1 sends chunked.
    pub(super) fn chunked(bytes: Bytes) -> Self {
        Self {
            rest: bytes,
            chunked: true,
            turn: None,
        }
    }

    /// From now on the body waits for its turn.
    pub(super) fn wait_for(&mut self, turn: Turn) {
        self.turn = Some(turn);
    }

    /// All that is still to be sent.
    pub(super) fn into_bytes(self) -> Bytes {
        self.rest
    }

    /// Bytes still to be sent.
    pub(super) fn len(&self) -> u64 {
        self.rest.len() as u64
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let unwritten = match &mut self.turn {
            Some(turn) => Some(ready!(turn.poll(context))),
            None => None,
        };
        let is_cut = self.chunked || unwritten.is_some();
        let most = if is_cut { CHUNK } else { usize::MAX };
        let next = most.min(self.rest.len());
        let part = self.rest.split_to(next);
        if self.rest.is_empty() {
            self.turn = None;
        }
        let part = match unwritten {
            Some(unwritten) => Bytes::from_owner(Piece {
                bytes: part,
                _unwritten: unwritten,
            }),
            None => part,
        };
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        !self.chunked && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.chunked {
            SizeHint::default()
        } else {
            SizeHint::with_exact(self.rest.len() as u64)
        }
    }
}

/// The part of a body that a `Range` field asks for (RFC 9110, section 14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it: the field is missing, or may be ignored.
    Whole,
    /// These bytes.
    Bytes(Range<usize>),
    /// A range outside the body.
    Beyond,
}

impl Part {
    /// Parses a `Range` field for a body of `length` bytes. The answer to several ranges is the whole body, as
    /// section 14.2 allows.
    pub(super) fn of(field: &str, length: usize) -> Self {
        let Some((first, last)) = field
            .strip_prefix("bytes=")
            .and_then(|text| text.trim().split_once('-'))
        else {
            return Self::Whole;
        };
        let (first, last) = (first.parse::<usize>(), last.parse::<usize>());
        match (first, last) {
            (Ok(first), _) if first >= length => Self::Beyond,
            (Ok(first), Ok(last)) if first <= last => Self::Bytes(first..last.saturating_add(1).min(length)),
            (Ok(first), Err(_)) if field.ends_with('-') => Self::Bytes(first..length),
            (Err(_), Ok(0)) => Self::Beyond,
            (Err(_), Ok(last)) if field.starts_with("bytes=-") && length > 0 => {
                Self::Bytes(length.saturating_sub(last)..length)
            }
            _ => Self::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_the_standard_says() {
        for (field, part) in [
            ("bytes=0-0", Part::Bytes(0..1)),
            ("bytes=2-", Part::Bytes(2..10)),
            ("bytes=-3", Part::Bytes(7..10)),
            ("bytes=-30", Part::Bytes(0..10)),
            ("bytes=5-50", Part::Bytes(5..10)),
            ("bytes=10-", Part::Beyond),
            ("bytes=-0", Part::Beyond),
            ("bytes=5-2", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=", Part::Whole),
            ("bytes=x-y", Part::Whole),
            ("bytes=-", Part::Whole),
            ("seconds=0-1", Part::Whole),
        ] {
            assert_eq!(Part::of(field, 10), part, "{field}");
        }
    }

    #[test]
    fn the_end_of_an_empty_body_is_all_of_it() {
        assert_eq!(Part::of("bytes=-3", 0), Part::Whole);
        assert_eq!(Part::of("bytes=0-", 0), Part::Beyond);
    }

    #[test]
    fn a_large_file_is_mapped_and_a_small_one_read() {
        let folder = std::env::temp_dir().join(format!("firstflight-body-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for size in [0, 10, MAPPED as usize, MAPPED as usize + 1] {
            let file = folder.join(size.to_string());
            std::fs::write(&file, vec![7; size]).unwrap();
            let body = open(&file).unwrap();
            assert_eq!(body.len(), size);
            assert!(body.iter().all(|&byte| byte == 7));
        }
        let missing = open(&folder.join("none")).unwrap_err();
        assert!(missing.to_string().contains("none"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
