//! The text and CSV formats of COPY (PostgreSQL's manual, COPY, "Text Format" and "CSV Format").

use crate::postgres::copy::rows::CopyRows;
use crate::postgres::copy::syntax::{CopyDataFormat, CopyHeader, CopyOptions};
use crate::postgres::error::PgError;
use bytes::{Buf, Bytes, BytesMut};

/// Decodes lines as bytes arrive.
pub(crate) struct TextDecoder {
    options: CopyOptions,
    rest: BytesMut,
    /// Bytes of `rest` already searched for the end of the record.
    searched: usize,
    /// Whether the search is within quotes.
    quoted: bool,
    /// Line on which the record begins, from 1.
    line: u64,
    /// Line ends within the record so far.
    breaks: u64,
    header: CopyHeader,
    ended: bool,
    table: String,
    /// Line of each row since the last [`TextDecoder::take_lines`].
    lines: Vec<u64>,
}

/// A value of a record.
enum TextCell {
    Null,
    Text(Vec<u8>),
}

impl TextDecoder {
    /// A decoder at the beginning of the data for `table`.
    pub(crate) fn new(table: &str, options: CopyOptions) -> Self {
        Self {
            header: options.header,
            options,
            rest: BytesMut::new(),
            searched: 0,
            quoted: false,
            line: 1,
            breaks: 0,
            ended: false,
            table: table.to_owned(),
            lines: Vec::new(),
        }
    }

    /// Bytes that wait for the rest of their record.
    pub(crate) fn waiting(&self) -> usize {
        self.rest.len()
    }

    /// Lines of the rows that were decoded since the last call.
    pub(crate) fn take_lines(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.lines)
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &Bytes) {
        if !self.ended {
            self.rest.extend_from_slice(bytes);
        }
    }

    /// Decodes until `rows` is full or no complete record is left; returns whether it stopped
    /// because `rows` is full.
    ///
    /// # Errors
    /// The line and column that is malformed.
    pub(crate) fn decode(&mut self, rows: &mut CopyRows) -> Result<bool, PgError> {
        while !self.ended {
            if rows.is_full() {
                return Ok(true);
            }
            let Some(length) = self.find_end() else {
                return Ok(false);
            };
            let record = self.rest.split_to(length);
            self.rest.advance(1);
            self.record(&record, rows)?;
        }
        Ok(false)
    }

    /// Decodes a last record without a line end.
    ///
    /// # Errors
    /// If it is malformed, or a quote is never closed.
    pub(crate) fn finish(&mut self, rows: &mut CopyRows) -> Result<(), PgError> {
        if self.quoted {
            return Err(self.error("a quote is not closed before the data ends".into(), None));
        }
        if !self.rest.is_empty() && !self.ended {
            let record = self.rest.split();
            self.record(&record, rows)?;
        }
        Ok(())
    }

    /// Length of the record at the start of `rest`, without its line end.
    fn find_end(&mut self) -> Option<usize> {
        let csv = self.options.form == CopyDataFormat::Csv;
        while let Some(byte) = self.rest.get(self.searched).copied() {
            let at = self.searched;
            self.searched += 1;
            if csv && self.quoted && byte == self.options.escape && byte != self.options.quote {
                // The escaped character may not have arrived yet; look again later.
                if self.rest.len() == self.searched {
                    self.searched = at;
                    return None;
                }
                self.searched += 1;
            } else if csv && byte == self.options.quote {
                self.quoted = !self.quoted;
            } else if byte == b'\n' {
                if !self.quoted {
                    self.searched = 0;
                    return Some(at);
                }
                self.breaks += 1;
            }
        }
        None
    }

    fn record(&mut self, record: &[u8], rows: &mut CopyRows) -> Result<(), PgError> {
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        let skip = self.line == 1 && self.header != CopyHeader::None;
        if record == b"\\." {
            self.ended = true;
            self.rest.clear();
            return Ok(());
        }
        let values = match self.options.form {
            CopyDataFormat::Csv => self.csv_values(record),
            _ => self.text_values(record),
        };
        if skip {
            if self.header == CopyHeader::Match {
                self.match_header(&values, rows)?;
            }
        } else {
            self.append(&values, rows)?;
        }
        self.line += 1 + self.breaks;
        self.breaks = 0;
        Ok(())
    }

    fn append(&mut self, values: &[TextCell], rows: &mut CopyRows) -> Result<(), PgError> {
        if values.len() != rows.width() {
            let message = if values.len() < rows.width() {
                format!("missing data for column \"{}\"", rows.name(values.len()))
            } else {
                format!("extra data after the last of {} columns", rows.width())
            };
            return Err(self.error(message, None));
        }
        for (column, value) in values.iter().enumerate() {
            match value {
                TextCell::Null => rows.null(column),
                TextCell::Text(text) => {
                    if let Err(message) = rows.text(column, text) {
                        let error = self.error(message, Some(rows.name(column)));
                        return Err(PgError {
                            sqlstate: "22P02",
                            ..error
                        });
                    }
                }
            }
        }
        rows.end_row();
        self.lines.push(self.line);
        Ok(())
    }

    fn match_header(&self, values: &[TextCell], rows: &CopyRows) -> Result<(), PgError> {
        let names = values.iter().map(|value| match value {
            TextCell::Null => String::new(),
            TextCell::Text(text) => String::from_utf8_lossy(text).into_owned(),
        });
        let names: Vec<_> = names.collect();
        let expected: Vec<_> = (0..rows.width()).map(|column| rows.name(column)).collect();
        if names == expected {
            return Ok(());
        }
        let message = format!(
            "the header names ({}) where ({}) is expected",
            names.join(", "),
            expected.join(", ")
        );
        Err(self.error(message, None))
    }

    fn text_values(&self, record: &[u8]) -> Vec<TextCell> {
        let mut values = Vec::new();
        let mut begin = 0;
        let mut at = 0;
        let mut escaped = false;
        loop {
            let byte = record.get(at).copied();
            if byte == Some(b'\\') {
                escaped = true;
                at += 2;
                continue;
            }
            if byte.is_none() || byte == Some(self.options.delimiter) {
                let raw = record.get(begin..at.min(record.len())).unwrap_or(&[]);
                values.push(if raw == self.options.null.as_bytes() {
                    TextCell::Null
                } else if escaped {
                    TextCell::Text(unescape(raw))
                } else {
                    TextCell::Text(raw.to_vec())
                });
                escaped = false;
                begin = at + 1;
            }
            if byte.is_none() {
                return values;
            }
            at += 1;
        }
    }

    fn csv_values(&self, record: &[u8]) -> Vec<TextCell> {
        let CopyOptions {
            delimiter,
            quote,
            escape,
            ..
        } = self.options;
        let mut values = Vec::new();
        let mut text = Vec::new();
        let (mut inside, mut was_quoted) = (false, false);
        let mut bytes = record.iter().copied().peekable();
        loop {
            let byte = bytes.next();
            match byte {
                Some(byte) if inside && byte == escape => {
                    let next = bytes.peek().copied();
                    if next == Some(quote) || (next == Some(escape) && escape != quote) {
                        text.extend(next);
                        bytes.next();
                    } else if byte == quote {
                        inside = false;
                    } else {
                        text.push(byte);
                    }
                }
                Some(byte) if byte == quote => {
                    inside = !inside;
                    was_quoted = true;
                }
                Some(byte) if inside || byte != delimiter => text.push(byte),
                _ => {
                    let text = std::mem::take(&mut text);
                    let null = !was_quoted && text == self.options.null.as_bytes();
                    values.push(if null {
                        TextCell::Null
                    } else {
                        TextCell::Text(text)
                    });
                    was_quoted = false;
                    if byte.is_none() {
                        return values;
                    }
                }
            }
        }
    }

    fn error(&self, message: String, column: Option<&str>) -> PgError {
        let column = column
            .map(|name| format!(", column {name}"))
            .unwrap_or_default();
        let context = format!("COPY {}, line {}{column}", self.table, self.line);
        PgError::new("22P04", message).with_context(context)
    }
}

/// Resolves the escapes of the text format.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            text.push(*byte);
            continue;
        }
        let [escaped, tail @ ..] = rest else {
            text.push(b'\\');
            break;
        };
        rest = tail;
        let (digits, radix) = match escaped {
            b'b' => {
                text.push(8);
                continue;
            }
            b'f' => {
                text.push(12);
                continue;
            }
            b'n' => {
                text.push(b'\n');
                continue;
            }
            b'r' => {
                text.push(b'\r');
                continue;
            }
            b't' => {
                text.push(b'\t');
                continue;
            }
            b'v' => {
                text.push(11);
                continue;
            }
            b'0'..=b'7' => (digits(&raw[raw.len() - rest.len() - 1..], 3, 8), 8),
            b'x' => (digits(rest, 2, 16), 16),
            _ => (0, 0),
        };
        if digits == 0 {
            text.push(*escaped);
            continue;
        }
        let begin = raw.len() - rest.len() - usize::from(radix == 8);
        let number = raw[begin..begin + digits].iter().fold(0, |sum, digit| {
            sum * radix + (*digit as char).to_digit(radix).unwrap_or(0)
        });
        text.push(number as u8);
        rest = &raw[begin + digits..];
    }
    text
}

/// Counts the leading digits, up to `max` bytes.
fn digits(bytes: &[u8], max: usize, radix: u32) -> usize {
    bytes
        .iter()
        .take(max)
        .take_while(|byte| (**byte as char).is_digit(radix))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::copy::syntax::{CopyStatement, parse};
    use arrow::array::{AsArray, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type};

    fn decode(options: &str, data: &[u8], cut: usize) -> Result<RecordBatch, PgError> {
        let copy = parse(&format!("COPY t FROM STDIN {options}")).unwrap();
        let CopyStatement::In { options, .. } = copy else {
            panic!("{copy:?}")
        };
        let fields = vec![
            Field::new("n", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ];
        let mut rows = CopyRows::new(fields).unwrap();
        let mut decoder = TextDecoder::new("t", options);
        for part in data.chunks(cut) {
            decoder.push(&Bytes::copy_from_slice(part));
            decoder.decode(&mut rows)?;
        }
        decoder.finish(&mut rows)?;
        Ok(rows.finish().unwrap())
    }

    fn values(batch: &RecordBatch) -> Vec<(Option<i64>, Option<&str>)> {
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        let texts = batch.column(1).as_string::<i32>();
        numbers.iter().zip(texts.iter()).collect()
    }

    #[test]
    fn text_with_escapes_however_it_is_cut() {
        let data = b"1\ta\\tb\\n\\x41\\101\\\\\n\\N\t\\N\r\n3\t\n\\.\nafter the end\n";
        for cut in 1..data.len() {
            let batch = decode("", data, cut).unwrap();
            assert_eq!(
                values(&batch),
                [
                    (Some(1), Some("a\tb\nAA\\")),
                    (None, None),
                    (Some(3), Some(""))
                ]
            );
        }
    }

    #[test]
    fn csv_with_quotes_however_it_is_cut() {
        let data = b"n,s\r\n1,\"a,\"\"b\"\"\nc\"\r\n2,\n3,\"\"\n,last";
        for cut in 1..data.len() {
            let batch = decode("(FORMAT csv, HEADER)", data, cut).unwrap();
            assert_eq!(
                values(&batch),
                [
                    (Some(1), Some("a,\"b\"\nc")),
                    (Some(2), None),
                    (Some(3), Some("")),
                    (None, Some("last"))
                ]
            );
        }
    }

    #[test]
    fn csv_with_its_own_escape() {
        let data = b"1;'a\\'b\\\\'\n";
        for cut in 1..data.len() {
            let batch = decode(
                "(FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\\')",
                data,
                cut,
            )
            .unwrap();
            assert_eq!(values(&batch), [(Some(1), Some("a'b\\"))]);
        }
    }

    #[test]
    fn errors_name_line_and_column() {
        let error = decode("", b"1\ta\nx\tb\n", 100).unwrap_err();
        assert_eq!(error.context.as_deref(), Some("COPY t, line 2, column n"));
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            ("22P02", "\"x\" is not an integer of 64 bits")
        );
        let error = decode("(FORMAT csv)", b"1,\"a\nb\"\n2\n", 100).unwrap_err();
        assert_eq!(error.context.as_deref(), Some("COPY t, line 3"));
        assert_eq!(error.message, "missing data for column \"s\"");
        let error = decode("(FORMAT csv)", b"1,\"a", 100).unwrap_err();
        assert!(error.message.contains("not closed"));
        assert!(
            decode("", b"1\ta\tb\n", 100)
                .unwrap_err()
                .message
                .contains("extra data")
        );
        assert!(decode("(FORMAT csv, HEADER match)", b"n,t\n1,a\n", 100).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_rows_or_an_error(data: Vec<u8>, cut in 1_usize..20, csv: bool) {
            let options = if csv { "(FORMAT csv, ESCAPE '\\')" } else { "" };
            if let Ok(batch) = decode(options, &data, cut) {
                proptest::prop_assert!(batch.num_rows() <= data.len());
            }
        }
    }
}
