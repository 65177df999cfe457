//! What a program says, however much: its beginning, its end, and how much lay between.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// How much of the beginning is kept, and how much of the end, bytes.
const HEAD: usize = 1_000;
const TAIL: usize = 1_000;

/// Output of bounded size, shared with the thread that reads it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Said {
    /// Reads a stream to its end, so that no pipe fills up.
    pub(crate) fn listen(&self, mut stream: impl Read + Send + 'static) -> JoinHandle<()> {
        let said = self.clone();
        thread::spawn(move || {
            let mut chunk = [0; 4_096];
            while let Ok(length @ 1..) = stream.read(&mut chunk) {
                said.hear(&chunk[..length]);
            }
        })
    }

    fn hear(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - kept.head.len()));
        kept.head.extend_from_slice(head);
        kept.tail.extend(rest);
        let excess = kept.tail.len().saturating_sub(TAIL);
        kept.tail.drain(..excess);
        kept.left_out += excess as u64;
    }

    /// All of it on one line; in place of what was left out, how much that was.
    pub(crate) fn line(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = kept.head.clone();
        if kept.left_out > 0 {
            bytes.extend(format!(" [{} bytes left out] ", kept.left_out).bytes());
        }
        bytes.extend(&kept.tail);
        let text = String::from_utf8_lossy(&bytes);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(chunks: &[&[u8]]) -> Said {
        let said = Said::default();
        for chunk in chunks {
            said.hear(chunk);
        }
        said
    }

    #[test]
    fn a_little_is_kept_whole_on_one_line() {
        assert_eq!(said(&[b"one\ntwo", b"  three\n"]).line(), "one two three");
        assert_eq!(said(&[]).line(), "");
    }

    #[test]
    fn of_much_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let middle = vec![b'-'; 1_000_000];
        let line = said(&[b"begin", &middle, b"end"]).line();
        assert!(line.starts_with("begin-"), "{line}");
        assert!(line.ends_with("-end"), "{line}");
        assert!(
            line.contains(&format!(" [{} bytes left out] ", 1_000_008 - HEAD - TAIL)),
            "{line}"
        );
        assert!(line.len() < HEAD + TAIL + 50);
    }
}
