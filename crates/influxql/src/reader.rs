//! Reads the characters of a query one by one, and can step back.
//!
//! InfluxDB derives the positions of errors from its reads: a line end of any kind is one
//! character, and the end of the text, if read again, is one character further than the first time.
//! A cursor here is therefore a byte of the text or, past the end, the number of reads there.

use crate::error::ErrorPosition;

/// The result of a read at the end; a text ends at the first such character in it.
pub(crate) const END: char = '\0';

/// A text and a position in it.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    cursor: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let end = text.find(END).unwrap_or(text.len());
        Self {
            text: &text[..end],
            cursor: 0,
        }
    }

    /// The text, to its end.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The next character; `\r\n` and `\r` are `\n`.
    pub(crate) fn read(&mut self) -> char {
        let rest = self.text.get(self.cursor..).unwrap_or_default();
        match rest.chars().next() {
            None => {
                self.cursor += 1;
                END
            }
            Some('\r') => {
                self.cursor += if rest.starts_with("\r\n") { 2 } else { 1 };
                '\n'
            }
            Some(ch) => {
                self.cursor += ch.len_utf8();
                ch
            }
        }
    }

    /// Takes the last read back.
    pub(crate) fn unread(&mut self) {
        self.cursor = self.before();
    }

    /// The next character, without consuming it; the end is consumed.
    pub(crate) fn peek(&mut self) -> char {
        let ch = self.read();
        if ch != END {
            self.unread();
        }
        ch
    }

    /// Continues at a byte of the text.
    pub(crate) fn skip_to(&mut self, byte: usize) {
        self.cursor = byte.min(self.text.len());
    }

    /// The position of the next read.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// The position of the last read, or the beginning if there was none.
    pub(crate) fn before(&self) -> usize {
        match self.text.get(..self.cursor) {
            Some(read) if read.ends_with("\r\n") => self.cursor - 2,
            Some(read) => {
                let last = read.chars().next_back();
                self.cursor - last.map_or(0, char::len_utf8)
            }
            None => self.cursor - 1,
        }
    }

    /// The text from one cursor to another.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text
            .get(from..to.min(self.text.len()))
            .unwrap_or_default()
    }

    /// Line and character of a cursor.
    pub(crate) fn position(&self, cursor: usize) -> ErrorPosition {
        let byte = cursor.min(self.text.len());
        let read = &self.text[..byte];
        let lines = read.matches('\n').count() + read.replace("\r\n", "").matches('\r').count();
        let line_start = read.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let past_end = usize::from(cursor > self.text.len());
        ErrorPosition {
            line: lines + 1,
            char: read[line_start..].chars().count() + past_end + 1,
            byte,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{END, Reader};

    #[test]
    fn line_ends_of_all_kinds_are_one_character() {
        let mut reader = Reader::new("aé\r\nb\rc\n");
        let read: String =
            std::iter::from_fn(|| Some(reader.read()).filter(|ch| *ch != END)).collect();
        assert_eq!(read, "aé\nb\nc\n");
        let mut reader = Reader::new("é\r\nb");
        assert_eq!((reader.read(), reader.read()), ('é', '\n'));
        reader.unread();
        assert_eq!(
            (reader.cursor(), reader.read(), reader.read()),
            (2, '\n', 'b')
        );
        let at = reader.position(reader.before());
        assert_eq!((at.line, at.char, at.byte), (2, 1, 4));
    }

    #[test]
    fn the_end_moves_once() {
        let mut reader = Reader::new("ab\0cd");
        let chars: Vec<usize> = (0..5)
            .map(|_| {
                let at = reader.cursor();
                reader.read();
                reader.position(at).char
            })
            .collect();
        assert_eq!(chars, [1, 2, 3, 4, 4]);
    }
}
