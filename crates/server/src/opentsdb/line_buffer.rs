//! Cuts what a client sends into lines.
//!
//! Invariant: it holds at most one read and the longest line; the rest of a longer line is discarded.

use bytes::{Buf, BytesMut};

/// The longest line, bytes.
pub(super) const LINE_BYTES_MAX: usize = 16 << 10;

/// A line, or where one would have been.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReceivedLine {
    /// A line, without its end.
    Line(BytesMut),
    /// A line that was too long.
    TooLong,
}

/// Room for the first read, and for those of clients that fill it.
const READ_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes that are not cut yet.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    bytes: BytesMut,
    /// The room that the next read gets.
    read_bytes: usize,
    /// Whether the end of a line that was too long is still to come.
    discards: bool,
}

impl LineBuffer {
    /// Where to read more bytes into.
    pub(super) fn bytes(&mut self) -> &mut BytesMut {
        self.bytes.reserve(self.read_bytes.max(READ_BYTES_MIN));
        &mut self.bytes
    }

    /// Notes how many bytes were read.
    pub(super) fn note_read(&mut self, bytes: usize) {
        self.read_bytes = (2 * bytes).clamp(READ_BYTES_MIN, READ_BYTES_MAX);
    }

    /// Whether a part of a line waits for the rest.
    pub(super) fn has_part(&self) -> bool {
        self.discards || !self.bytes.is_empty()
    }

    /// The next line that is complete, or known to be too long.
    pub(super) fn next_line(&mut self) -> Option<ReceivedLine> {
        loop {
            let end = self.bytes.iter().position(|byte| *byte == b'\n');
            let Some(end) = end else {
                if self.discards {
                    self.bytes.clear();
                } else if self.bytes.len() > LINE_BYTES_MAX {
                    self.bytes.clear();
                    self.discards = true;
                    return Some(ReceivedLine::TooLong);
                }
                return None;
            };
            let line = self.bytes.split_to(end);
            self.bytes.advance(1);
            if std::mem::take(&mut self.discards) {
                continue;
            }
            if line.len() > LINE_BYTES_MAX {
                return Some(ReceivedLine::TooLong);
            }
            return Some(ReceivedLine::Line(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines of bytes that come in parts.
    fn lines(parts: &[&[u8]]) -> (Vec<Option<Vec<u8>>>, bool) {
        let mut buffer = LineBuffer::default();
        let mut lines = Vec::new();
        for part in parts {
            buffer.bytes().extend_from_slice(part);
            while let Some(line) = buffer.next_line() {
                lines.push(match line {
                    ReceivedLine::Line(line) => Some(line.to_vec()),
                    ReceivedLine::TooLong => None,
                });
            }
        }
        (lines, buffer.has_part())
    }

    #[test]
    fn lines_end_wherever_reads_end() {
        let (cut, has_part) = lines(&[b"put a", b" b\nversion\n\n", b"half"]);
        let expected = [b"put a b".to_vec(), b"version".to_vec(), Vec::new()];
        assert_eq!(cut, expected.map(Some));
        assert!(has_part);
    }

    #[test]
    fn a_long_line_is_told_once_and_the_next_one_is_read() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let (cut, has_part) = lines(&[&long, &long, b"x\nversion\n"]);
        assert_eq!(cut, [None, Some(b"version".to_vec())]);
        assert!(!has_part);
        let whole = [&long[..], b"\nversion\n"].concat();
        assert_eq!(lines(&[&whole]).0, [None, Some(b"version".to_vec())]);
    }

    proptest! {
        #[test]
        fn parts_make_no_difference(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            at in 0_usize..200,
        ) {
            let at = at.min(bytes.len());
            let (first, second) = bytes.split_at(at);
            prop_assert_eq!(lines(&[&bytes]), lines(&[first, second]));
        }
    }
}
