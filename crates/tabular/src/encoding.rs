//! Detects the encoding of text, by a byte order mark, zero bytes, and invalid UTF-8.

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::io::{self, Read};

/// An encoding by its WHATWG name, such as `utf-8`, `latin1`, `windows-1252`, `utf-16le`.
pub fn named(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label(name.trim().as_bytes())
}

const BUFFER_BYTES: usize = 1 << 16;

/// First bytes of an export that show its encoding: its header or its layout.
pub const EXPORT_HEAD_BYTES: u64 = 64;

/// The encoding of an export that begins with `head`: UTF-8, as exports are written, or the UTF-16 into which
/// a program converted it.
pub fn of_export(head: &[u8]) -> &'static Encoding {
    let head = &head[..head.len().min(EXPORT_HEAD_BYTES as usize)];
    let marked = Encoding::for_bom(head).map(|(encoding, _)| encoding);
    marked.or_else(|| by_zero_bytes(head)).unwrap_or(UTF_8)
}

/// The encoding of everything that `reader` returns.
///
/// Text is UTF-8 unless it has a byte order mark of UTF-16, is half zero bytes, or has more invalid
/// bytes than valid multi-byte sequences.
///
/// # Errors
/// Errors of the reader.
pub fn detect(mut reader: impl Read) -> io::Result<&'static Encoding> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut kept = 0;
    let mut is_first = true;
    let (mut wide, mut wrong) = (0u64, 0u64);
    loop {
        let read = reader.read(&mut buffer[kept..])?;
        let filled = kept + read;
        if is_first && read > 0 {
            is_first = false;
            if let Some((encoding, _)) = Encoding::for_bom(&buffer[..filled]) {
                return Ok(encoding);
            }
            if let Some(encoding) = by_zero_bytes(&buffer[..filled]) {
                return Ok(encoding);
            }
        }
        let mut rest = &buffer[..filled];
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    wide += wide_in(text.as_bytes());
                    kept = 0;
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    wide += wide_in(good);
                    match error.error_len() {
                        Some(len) => {
                            wrong += 1;
                            rest = &bad[len..];
                        }
                        None => {
                            kept = bad.len();
                            break;
                        }
                    }
                }
            }
        }
        if read == 0 {
            wrong += u64::from(kept > 0);
            return Ok(if wrong > wide { WINDOWS_1252 } else { UTF_8 });
        }
        buffer.copy_within(filled - kept..filled, 0);
    }
}

/// Counts the multi-byte sequences in valid UTF-8.
fn wide_in(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte >= 0xC0).count() as u64
}

/// Detects UTF-16 without a byte order mark: in western text, every second byte is zero.
fn by_zero_bytes(bytes: &[u8]) -> Option<&'static Encoding> {
    let zeros = |first: usize| {
        let bytes = bytes.iter().skip(first).step_by(2);
        bytes.filter(|byte| **byte == 0).count() * 2
    };
    let half = bytes.len() / 2;
    if bytes.len() < 4 {
        None
    } else if zeros(1) > half && zeros(0) * 4 < half {
        Some(UTF_16LE)
    } else if zeros(0) > half && zeros(1) * 4 < half {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// A reader that converts text in any encoding to UTF-8 and drops a byte order mark. Invalid input
/// becomes U+FFFD. Lines that end with CR alone end with LF here.
pub struct Utf8<R> {
    inner: R,
    decoder: Decoder,
    raw: Vec<u8>,
    raw_at: usize,
    raw_len: usize,
    out: Vec<u8>,
    out_at: usize,
    out_len: usize,
    ended: bool,
    line_end: LineEnd,
    /// Whether a CR was held back, which precedes what is decoded next.
    holds_cr: bool,
}

/// How the lines of a text end: as its first one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    /// LF, or CR and LF.
    Lf,
    /// CR alone.
    Cr,
}

impl LineEnd {
    /// Puts LF in the place of CR, where lines end with that; `text` goes on where the last one ended.
    /// Returns whether its last byte must be held back: it is the first end of a line, a CR, and what
    /// follows is not known yet.
    fn translate(&mut self, text: &mut [u8], is_last: bool) -> bool {
        if *self == Self::Unknown
            && let Some(at) = memchr::memchr2(b'\r', b'\n', text)
        {
            let next = text.get(at + 1);
            if text[at] == b'\r' && next.is_none() && !is_last {
                return true;
            }
            let is_alone = text[at] == b'\r' && next != Some(&b'\n');
            *self = if is_alone { Self::Cr } else { Self::Lf };
        }
        if *self == Self::Cr {
            for byte in text.iter_mut().filter(|byte| **byte == b'\r') {
                *byte = b'\n';
            }
        }
        false
    }
}

impl<R: Read> Utf8<R> {
    /// Reads text in `encoding`.
    pub fn new(inner: R, encoding: &'static Encoding) -> Self {
        Self {
            inner,
            decoder: encoding.new_decoder_with_bom_removal(),
            raw: vec![0; BUFFER_BYTES],
            raw_at: 0,
            raw_len: 0,
            out: vec![0; BUFFER_BYTES],
            out_at: 0,
            out_len: 0,
            ended: false,
            line_end: LineEnd::Unknown,
            holds_cr: false,
        }
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.out_at == self.out_len {
            if self.raw_at == self.raw_len {
                if self.ended {
                    return Ok(0);
                }
                self.raw_at = 0;
                self.raw_len = self.inner.read(&mut self.raw)?;
                self.ended = self.raw_len == 0;
            }
            let raw = &self.raw[self.raw_at..self.raw_len];
            // The first byte is for a CR that was held back.
            let decoded = &mut self.out[1..];
            let (_, read, written, _) = self.decoder.decode_to_utf8(raw, decoded, self.ended);
            self.raw_at += read;
            self.out[0] = b'\r';
            let (from, to) = (usize::from(!self.holds_cr), 1 + written);
            let is_last = self.ended && self.raw_at == self.raw_len;
            self.holds_cr = self.line_end.translate(&mut self.out[from..to], is_last);
            (self.out_at, self.out_len) = (from, to - usize::from(self.holds_cr));
        }
        let count = buf.len().min(self.out_len - self.out_at);
        buf[..count].copy_from_slice(&self.out[self.out_at..self.out_at + count]);
        self.out_at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_end_with_cr_alone_end_with_lf() {
        for (bytes, expected) in [
            ("a,b\r1,2\r3,4\r", "a,b\n1,2\n3,4\n"),
            ("a,b\r\n1,\"2\r3\"\r\n", "a,b\r\n1,\"2\r3\"\r\n"),
            ("a,b\n1,\"2\r3\"\n", "a,b\n1,\"2\r3\"\n"),
            ("a", "a"),
        ] {
            assert_eq!(text(bytes.as_bytes()).1, expected, "{bytes:?}");
        }
    }

    /// A reader that returns the pieces one after the other.
    struct PiecewiseReader(Vec<&'static [u8]>);

    impl Read for PiecewiseReader {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buf[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn a_cr_at_the_end_of_a_piece_waits_for_what_follows() {
        for (pieces, expected) in [
            (vec!["a,b\r", "1,2\r3,4"], "a,b\n1,2\n3,4"),
            (
                vec!["a,b\r", "\n1,\"2\r3\"\r", "\n"],
                "a,b\r\n1,\"2\r3\"\r\n",
            ),
            (vec!["a,b\r"], "a,b\n"),
            (vec!["a", "\r", "\r", "b"], "a\n\nb"),
        ] {
            let read = PiecewiseReader(pieces.iter().map(|piece| piece.as_bytes()).collect());
            let mut text = String::new();
            Utf8::new(read, UTF_8).read_to_string(&mut text).unwrap();
            assert_eq!(text, expected, "{pieces:?}");
        }
    }

    fn text(bytes: &[u8]) -> (&'static str, String) {
        let encoding = detect(bytes).unwrap();
        let mut text = String::new();
        Utf8::new(bytes, encoding)
            .read_to_string(&mut text)
            .unwrap();
        (encoding.name(), text)
    }

    #[test]
    fn encodings_are_told_by_their_bytes() {
        assert_eq!(text(b"plain"), ("UTF-8", "plain".into()));
        assert_eq!(text("\u{feff}a;°C".as_bytes()), ("UTF-8", "a;°C".into()));
        assert_eq!(
            text(b"Temp [\xb0C]\n"),
            ("windows-1252", "Temp [°C]\n".into())
        );
        assert_eq!(text(b"1 \x80"), ("windows-1252", "1 €".into()));
        let little: Vec<u8> = "a;ü\n1;2"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(text(&little), ("UTF-16LE", "a;ü\n1;2".into()));
        let big: Vec<u8> = "\u{feff}a;ü\n"
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        assert_eq!(text(&big), ("UTF-16BE", "a;ü\n".into()));
        assert_eq!(text(b""), ("UTF-8", String::new()));
    }

    #[test]
    fn exports_are_utf_8_unless_a_program_converted_them() {
        let wide = |text: &str, big: bool| -> Vec<u8> {
            let bytes = |unit: u16| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            };
            text.encode_utf16().flat_map(bytes).collect()
        };
        for (head, name) in [
            (b"#marigram {}\n".to_vec(), "UTF-8"),
            (b"time,v\xe4\n".to_vec(), "UTF-8"),
            (Vec::new(), "UTF-8"),
            (wide("\u{feff}#marigram {}\n", false), "UTF-16LE"),
            (wide("#marigram {}\n", false), "UTF-16LE"),
            (wide("time,v\n", true), "UTF-16BE"),
        ] {
            assert_eq!(of_export(&head).name(), name, "{head:?}");
        }
    }

    #[test]
    fn one_broken_line_does_not_make_a_file_another_encoding() {
        let mut bytes = "größe,höhe\n".as_bytes().to_vec();
        bytes.extend(b"gr\xf6\n");
        assert_eq!(text(&bytes), ("UTF-8", "größe,höhe\ngr\u{fffd}\n".into()));
    }

    #[test]
    fn sequences_may_lie_across_buffers() {
        let long = "ä".repeat(BUFFER_BYTES) + "x";
        assert_eq!(text(long.as_bytes()), ("UTF-8", long.clone()));
        let shifted = format!("x{long}");
        assert_eq!(text(shifted.as_bytes()), ("UTF-8", shifted.clone()));
    }
}
