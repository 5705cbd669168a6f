//! Reads the records of a CSV file, with the line on which each begins and whether each cell was
//! quoted.
//!
//! `csv_core` does the parsing. The first byte of a cell shows whether it was quoted: a NULL is an
//! empty cell without quotes, an empty text has quotes, and spaces in quotes belong to the value.

use csv_core::{ReadFieldResult, Reader};
use std::io::{self, Read};

const BUFFER_BYTES: usize = 1 << 16;

/// Size of a record, in bytes, beyond which a quotation mark must be unclosed.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// The byte order mark of UTF-8.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The cells of a record.
#[derive(Clone, Debug, Default)]
pub struct TextRecord {
    text: Vec<u8>,
    ends: Vec<usize>,
    quoted: Vec<bool>,
    /// Line of the file on which it begins, from 1.
    pub line: u64,
    /// Whether the file ended inside quotation marks.
    pub is_open: bool,
    /// Number of its cells, and of the columns of the header above it, if they do not fit.
    pub misfit: Option<(usize, usize)>,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordCell<'a> {
    /// Its text without the quotation marks around it.
    pub text: &'a str,
    /// Whether it was in quotation marks.
    pub quoted: bool,
}

impl RecordCell<'_> {
    /// Whether it is empty or blank, and not quoted.
    pub fn is_missing(&self) -> bool {
        !self.quoted && self.text.trim().is_empty()
    }
}

impl TextRecord {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all cells.
    pub fn bytes(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Cell `at`; a missing cell if the record is shorter.
    pub fn cell(&self, at: usize) -> RecordCell<'_> {
        let Some(end) = self.ends.get(at) else {
            return RecordCell {
                text: "",
                quoted: false,
            };
        };
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        // The input is UTF-8 and delimiters are ASCII, so cells are valid UTF-8.
        let text = std::str::from_utf8(&self.text[begin..*end]).unwrap_or("\u{fffd}");
        RecordCell {
            text,
            quoted: self.quoted[at],
        }
    }

    /// The line on which cell `at` begins, and the one on which it ends, from 1.
    pub fn lines_of(&self, at: usize) -> (u64, u64) {
        let breaks = |to: usize| {
            let end = self.ends.get(to).copied().unwrap_or(self.text.len());
            memchr::memchr_iter(b'\n', &self.text[..end.min(self.text.len())]).count() as u64
        };
        let before = at.checked_sub(1).map_or(0, breaks);
        (self.line + before, self.line + breaks(at))
    }

    /// Makes it an empty record that begins on `line`.
    pub fn begin(&mut self, line: u64) {
        self.text.clear();
        self.ends.clear();
        self.quoted.clear();
        (self.line, self.is_open, self.misfit) = (line, false, None);
    }

    /// Appends a cell.
    pub fn push(&mut self, text: &str, quoted: bool) {
        self.text.extend(text.as_bytes());
        self.ends.push(self.text.len());
        self.quoted.push(quoted);
    }

    /// Makes it the record `from`, with cell `n` of that in place `columns[n]` of `width`. A record that has
    /// not as many cells as columns is a misfit, and is taken as it is.
    pub(crate) fn arrange(&mut self, from: &Self, columns: &[usize], width: usize) {
        let beyond = columns.len()..from.len();
        let fits =
            from.len() >= columns.len() && beyond.clone().all(|at| from.cell(at).is_missing());
        if !fits {
            self.clone_from(from);
            self.misfit = Some((from.len(), columns.len()));
            return;
        }
        self.begin(from.line);
        self.is_open = from.is_open;
        let mut sources = vec![None; width];
        for (at, place) in columns.iter().enumerate() {
            sources[*place] = Some(at);
        }
        for source in sources {
            let cell = source.map(|at| from.cell(at));
            self.text
                .extend(cell.map_or("", |cell| cell.text).as_bytes());
            self.ends.push(self.text.len());
            self.quoted.push(cell.is_some_and(|cell| cell.quoted));
        }
    }

    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = RecordCell<'_>> {
        (0..self.len()).map(|at| self.cell(at))
    }
}

/// Reads records of UTF-8 text.
pub struct TextRecords<R> {
    reader: R,
    core: Reader,
    buffer: Vec<u8>,
    at: usize,
    len: usize,
    line: u64,
    /// Whether a byte order mark before a record is no part of it.
    skips_marks: bool,
}

impl<R: Read> TextRecords<R> {
    /// Reads what `reader` returns after its first `skip` lines.
    ///
    /// # Errors
    /// Errors of the reader.
    pub fn new(reader: R, delimiter: u8, skip: u64) -> io::Result<Self> {
        let mut records = Self {
            reader,
            core: csv_core::ReaderBuilder::new().delimiter(delimiter).build(),
            buffer: vec![0; BUFFER_BYTES],
            at: 0,
            len: 0,
            line: 1,
            skips_marks: false,
        };
        while records.line <= skip && records.fill()? {
            let rest = &records.buffer[records.at..records.len];
            match memchr::memchr(b'\n', rest) {
                Some(end) => {
                    records.at += end + 1;
                    records.line += 1;
                }
                None => records.at = records.len,
            }
        }
        Ok(records)
    }

    /// The same without byte order marks before records, which files have that were joined.
    #[must_use]
    pub fn skipping_marks(mut self) -> Self {
        self.skips_marks = true;
        self
    }

    /// The line at which the next record can begin, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Whether the buffer has bytes; reads more if it is empty.
    fn fill(&mut self) -> io::Result<bool> {
        if self.at == self.len {
            self.at = 0;
            self.len = 0;
            self.len = self.reader.read(&mut self.buffer)?;
        }
        Ok(self.at < self.len)
    }

    /// Whether a byte order mark comes next.
    fn has_mark(&mut self) -> io::Result<bool> {
        if self.buffer[self.at] != MARK[0] {
            return Ok(false);
        }
        // The mark may lie across two reads.
        self.buffer.copy_within(self.at..self.len, 0);
        self.len -= self.at;
        self.at = 0;
        while self.len < MARK.len() {
            let read = self.reader.read(&mut self.buffer[self.len..])?;
            if read == 0 {
                break;
            }
            self.len += read;
        }
        Ok(self.buffer[..self.len].starts_with(&MARK))
    }

    /// Reads the next record; `false` at the end. Skips blank lines.
    ///
    /// # Errors
    /// Errors of the reader, and if a record is too large.
    pub fn read(&mut self, record: &mut TextRecord) -> io::Result<bool> {
        record.ends.clear();
        record.quoted.clear();
        record.is_open = false;
        loop {
            if !self.fill()? {
                return Ok(false);
            }
            let byte = self.buffer[self.at];
            match byte {
                b'\n' => self.line += 1,
                b'\r' => {}
                _ if self.skips_marks && self.has_mark()? => self.at += MARK.len() - 1,
                _ => break,
            }
            self.at += 1;
        }
        record.line = self.line;
        let mut used = 0;
        loop {
            let more = self.fill()?;
            let quoted = more && self.buffer[self.at] == b'"';
            let (mut last, mut taken) = (None, 0);
            loop {
                let input = &self.buffer[self.at..self.len];
                if record.text.len() < used + 64 {
                    record.text.resize((used + 64) * 2, 0);
                }
                let at_end = input.is_empty();
                let (result, read, written) = self.core.read_field(input, &mut record.text[used..]);
                self.line += memchr::memchr_iter(b'\n', &input[..read]).count() as u64;
                last = input[..read].last().copied().or(last);
                self.at += read;
                taken += read;
                used += written;
                if used > RECORD_BYTES_MAX {
                    let line = record.line;
                    return Err(io::Error::other(format!(
                        "the record in line {line} has over {RECORD_BYTES_MAX} bytes: a quotation \
                         mark is not closed"
                    )));
                }
                let record_end = match result {
                    ReadFieldResult::InputEmpty => {
                        self.fill()?;
                        continue;
                    }
                    ReadFieldResult::OutputFull => continue,
                    ReadFieldResult::Field { record_end } => record_end,
                    ReadFieldResult::End => true,
                };
                record.ends.push(used);
                record.quoted.push(quoted);
                if !record_end {
                    break;
                }
                record.is_open = quoted && at_end && (last != Some(b'"') || taken == 1);
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (u64, Vec<(String, bool)>);

    /// Reads the text in pieces of `piece` bytes.
    fn rows(text: &str, skip: u64, piece: usize) -> Vec<Row> {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(buf.len()).min(self.0.len());
                buf[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut records = TextRecords::new(Pieces(text.as_bytes(), piece), b',', skip).unwrap();
        let mut record = TextRecord::default();
        let mut rows = Vec::new();
        while records.read(&mut record).unwrap() {
            let cells = record
                .cells()
                .map(|cell| (cell.text.to_owned(), cell.quoted));
            rows.push((record.line, cells.collect()));
        }
        rows
    }

    #[test]
    fn lines_and_quotes_are_known_however_the_input_comes() {
        let text = "a,b\r\n\r\n\"x\ny\",\"\"\r\n, s ,\n\"q\"\"q\",1";
        let cell = |text: &str, quoted| (text.to_owned(), quoted);
        let expected = vec![
            (1, vec![cell("a", false), cell("b", false)]),
            (3, vec![cell("x\ny", true), cell("", true)]),
            (
                5,
                vec![cell("", false), cell(" s ", false), cell("", false)],
            ),
            (6, vec![cell("q\"q", true), cell("1", false)]),
        ];
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(rows(text, 0, piece), expected, "{piece}");
        }
        assert_eq!(rows(text, 2, 2), expected[1..]);
        assert_eq!(rows("", 3, 1), []);
    }

    #[test]
    fn byte_order_marks_before_records_are_skipped() {
        struct OneByteReader<'a>(&'a [u8]);
        impl Read for OneByteReader<'_> {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let count = self.0.len().min(buf.len()).min(1);
                buf[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let text = "\u{feff}a,b\n\u{feff}\"c\",\u{feff}d\né,\u{feff}";
        let records = TextRecords::new(OneByteReader(text.as_bytes()), b',', 0).unwrap();
        let (mut records, mut record) = (records.skipping_marks(), TextRecord::default());
        let mut rows = Vec::new();
        while records.read(&mut record).unwrap() {
            let cells = record.cells().map(|cell| cell.text.to_owned());
            rows.push((record.line, cells.collect::<Vec<_>>()));
        }
        let expected = [
            (1, ["a", "b"]),
            (2, ["c", "\u{feff}d"]),
            (3, ["é", "\u{feff}"]),
        ];
        for ((line, cells), (expected_line, expected)) in rows.iter().zip(expected) {
            assert_eq!(
                (*line, cells.as_slice()),
                (expected_line, &expected.map(str::to_owned)[..])
            );
        }
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn cells_know_their_lines() {
        let text = "a,b\n1,\"x\ny\",\"z\n\",2\n";
        let mut records = TextRecords::new(text.as_bytes(), b',', 1).unwrap();
        let mut record = TextRecord::default();
        assert!(records.read(&mut record).unwrap());
        let lines: Vec<_> = (0..4).map(|at| record.lines_of(at)).collect();
        assert_eq!(lines, [(2, 2), (2, 3), (3, 4), (4, 4)]);
    }

    #[test]
    fn an_open_quote_is_seen() {
        let open = |text: &str| {
            let mut records = TextRecords::new(text.as_bytes(), b',', 0).unwrap();
            let mut record = TextRecord::default();
            while records.read(&mut record).unwrap() {
                if record.is_open {
                    return true;
                }
            }
            false
        };
        assert!(open("a,\"b\nc"));
        assert!(open("a,\""));
        assert!(open("a,\"b\nc\n"));
        assert!(!open("a,\"b\""));
        assert!(!open("a,\"\""));
        assert!(!open("a,\"b\"\n"));
    }
}
