//! Reads the records of a CSV file that may have further headers between its rows.
//!
//! Files that were joined, and loggers whose settings changed, repeat the header, often with other
//! columns or another order. A value belongs to the column that the last header above it names.
//!
//! Invariant: the cells of a record come in the order of [`HeaderedRecords::names`], whatever header it
//! stands below.

use crate::cell::{DecimalMark, read_f64};
use crate::dialect::{TextDialect, is_annotation, is_end_mark, is_time, texts_of};
use crate::names::{TimeNameStrength, names_from_header, time_name_strength};
use crate::record::{TextRecord, TextRecords};
use std::io::{self, Read};

/// Columns that later headers may add.
const NAMES_ADDED_MAX: usize = 4_000;

/// Later headers that are remembered one by one.
const HEADERS_MAX: usize = 100;

/// A header below the first one that names other columns, or in another order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaterHeader {
    /// Its line, from 1.
    pub line: u64,
    /// The index of each of its columns among the names.
    pub columns: Vec<usize>,
}

/// Headers between the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadersBelow {
    /// How often the first header comes again.
    pub again: u64,
    /// The first line in which it does.
    pub again_line: u64,
    /// The first of the other headers, each once.
    pub others: Vec<LaterHeader>,
    /// How often other headers come.
    pub others_count: u64,
}

/// Reads rows, and puts their cells in the order of the names.
pub struct HeaderedRecords<R> {
    records: TextRecords<R>,
    dialect: TextDialect,
    /// Whether the file is an export, whose cells are taken literally.
    exact: bool,
    names: Vec<String>,
    /// The columns of the last header; `None` for the first header.
    current: Option<Vec<usize>>,
    annotated: bool,
    raw: TextRecord,
    headers: HeadersBelow,
}

impl<R: Read> HeaderedRecords<R> {
    /// Reads the rows below the header of `dialect`.
    ///
    /// # Errors
    /// Errors of the reader.
    pub fn new(reader: R, dialect: &TextDialect, exact: bool) -> io::Result<Self> {
        let records = TextRecords::new(reader, dialect.delimiter, dialect.data_after)?;
        Ok(Self {
            // The texts of an export may begin with such a mark.
            records: if exact {
                records
            } else {
                records.skipping_marks()
            },
            names: dialect.names.clone(),
            dialect: dialect.clone(),
            exact,
            current: None,
            annotated: false,
            raw: TextRecord::default(),
            headers: HeadersBelow::default(),
        })
    }

    /// The names of all columns: those of the first header, and what later ones added so far.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The headers that came so far.
    pub fn headers(&self) -> &HeadersBelow {
        &self.headers
    }

    /// Reads the next row; returns whether there is one.
    ///
    /// # Errors
    /// Errors of the reader, or too many columns.
    pub fn read(&mut self, record: &mut TextRecord) -> io::Result<bool> {
        loop {
            if !self.records.read(&mut self.raw)? {
                return Ok(false);
            }
            if !is_end_mark(&self.raw) && !self.is_header()? {
                break;
            }
        }
        let (first, width) = (self.first_width(), self.names.len());
        match &self.current {
            None if first == width => record.clone_from(&self.raw),
            None => {
                let columns: Vec<usize> = (0..first).collect();
                record.arrange(&self.raw, &columns, width);
            }
            Some(columns) => record.arrange(&self.raw, columns, width),
        }
        Ok(true)
    }

    /// Number of columns of the first header.
    fn first_width(&self) -> usize {
        self.dialect.names.len() - self.dialect.added_later
    }

    /// Whether the record is no row but a header, or a line that belongs to one.
    fn is_header(&mut self) -> io::Result<bool> {
        if self.dialect.header_line.is_none() {
            return Ok(false);
        }
        let raw = &self.raw;
        if !self.exact {
            if is_annotation(raw) {
                self.annotated = true;
                return Ok(true);
            }
            if self.headers.again + self.headers.others_count > 0 && self.is_below_header() {
                return Ok(true);
            }
        }
        let annotated = std::mem::take(&mut self.annotated);
        if self.is_first_header() {
            self.headers.again += 1;
            if self.headers.again == 1 {
                self.headers.again_line = raw.line;
            }
            self.current = None;
            return Ok(true);
        }
        if !annotated && !self.is_other_header() {
            return Ok(false);
        }
        self.begin_header()?;
        Ok(true)
    }

    /// Whether a record is what stood below the first header: units and descriptions.
    fn is_below_header(&self) -> bool {
        let described = self.dialect.described.iter().map(|(_, texts)| texts);
        let mut below = self.dialect.units.iter().chain(described).peekable();
        below.peek().is_some() && {
            let texts = texts_of(&self.raw);
            below.any(|known| *known == texts)
        }
    }

    fn is_first_header(&self) -> bool {
        let names = &self.dialect.names[..self.first_width()];
        if self.exact {
            let cells = self.raw.cells().map(|cell| cell.text);
            return names.len() == self.raw.len() && cells.eq(names.iter().map(String::as_str));
        }
        self.dialect.is_header_again(&self.raw)
    }

    /// Whether a record that is not the first header is another one. It has texts only, and names a time
    /// or mostly columns that are known: a row has a time, so such a record is none.
    fn is_other_header(&self) -> bool {
        let raw = &self.raw;
        let known = |text: &str| self.names.iter().any(|name| name == text);
        if self.exact {
            let cells = raw.cells().map(|cell| cell.text);
            let mut seen: Vec<&str> = cells.filter(|text| known(text)).collect();
            seen.sort_unstable();
            seen.dedup();
            return seen.len() == raw.len() && raw.len() == self.names.len() && raw.len() > 1;
        }
        let texts = raw.cells().map(|cell| cell.text.trim());
        let (mut named, mut matching, mut has_time) = (0, 0, false);
        for text in texts.filter(|text| !text.is_empty()) {
            let is_number = |mark| read_f64(text, mark).is_some();
            if is_number(DecimalMark::Point) || is_number(DecimalMark::Comma) || is_time(text) {
                return false;
            }
            named += 1;
            matching += usize::from(known(text));
            has_time |= time_name_strength(text).0 == TimeNameStrength::Whole;
        }
        named >= 2 && (has_time || (matching >= 2 && matching * 2 >= named))
    }

    /// Begins the rows below the header in `raw`.
    fn begin_header(&mut self) -> io::Result<()> {
        let mut width = self.raw.len();
        while width > 1 && self.raw.cell(width - 1).is_missing() {
            width -= 1;
        }
        let found = if self.exact {
            self.raw.cells().map(|cell| cell.text.to_owned()).collect()
        } else {
            names_from_header((0..width).map(|at| self.raw.cell(at).text))
        };
        let mut columns = Vec::new();
        for name in found {
            let known = self.names.iter().position(|known| *known == name);
            columns.push(known.unwrap_or(self.names.len()));
            if known.is_none() {
                self.names.push(name);
            }
        }
        if self.names.len() > self.dialect.names.len() + NAMES_ADDED_MAX {
            let line = self.raw.line;
            let message = format!(
                "line {line}: the headers between the rows name more than {NAMES_ADDED_MAX} further columns"
            );
            return Err(io::Error::other(message));
        }
        self.headers.others_count += 1;
        let others = &mut self.headers.others;
        if others.len() < HEADERS_MAX && others.iter().all(|other| other.columns != columns) {
            let line = self.raw.line;
            others.push(LaterHeader {
                line,
                columns: columns.clone(),
            });
        }
        self.current = Some(columns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{DialectOptions, sniff};

    fn rows(text: &str) -> (Vec<String>, Vec<Vec<String>>, HeadersBelow) {
        let dialect = sniff(text, &DialectOptions::default()).unwrap().unwrap();
        let mut records = HeaderedRecords::new(text.as_bytes(), &dialect, false).unwrap();
        let (mut record, mut rows) = (TextRecord::default(), Vec::new());
        while records.read(&mut record).unwrap() {
            rows.push(record.cells().map(|cell| cell.text.to_owned()).collect());
        }
        (records.names().to_vec(), rows, records.headers().clone())
    }

    #[test]
    fn values_go_to_the_columns_that_the_last_header_names() {
        let text = "time,temp,hum\n2026-01-01,20,50\ntime,hum,temp\n2026-01-02,52,22\n\
                    time,temp,wind\n2026-01-03,23,7\ntime,temp,hum\n2026-01-04,24,54\n";
        let (names, rows, headers) = rows(text);
        assert_eq!(names, ["time", "temp", "hum", "wind"]);
        assert_eq!(rows[0], ["2026-01-01", "20", "50"]);
        assert_eq!(rows[1], ["2026-01-02", "22", "52"]);
        assert_eq!(rows[2], ["2026-01-03", "23", "", "7"]);
        assert_eq!(rows[3], ["2026-01-04", "24", "54", ""]);
        assert_eq!((headers.again, headers.again_line), (1, 7));
        let lines: Vec<u64> = headers.others.iter().map(|other| other.line).collect();
        assert_eq!(lines, [3, 5]);
    }

    #[test]
    fn units_come_again_with_their_header() {
        let text = "time,temp\n,°C\n2026-01-01,20\ntime,temp\n,°C\n2026-01-02,21\n";
        let (_, rows, headers) = rows(text);
        assert_eq!(rows.len(), 2);
        assert_eq!(headers.again, 1);
    }

    #[test]
    fn joined_files_may_have_byte_order_marks() {
        let text =
            "time,temp\n2026-01-01,20\n\u{feff}time,temp\n2026-01-02,21\n\u{feff}2026-01-03,22\n";
        let (names, rows, headers) = rows(text);
        assert_eq!(names, ["time", "temp"]);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2], ["2026-01-03", "22"]);
        assert_eq!(headers.again, 1);
    }

    #[test]
    fn texts_in_rows_are_no_headers() {
        let text = "time,note\n2026-01-01,time\n2026-01-02,note\n,note\n";
        assert_eq!(rows(text).1.len(), 3);
    }

    #[test]
    fn rows_that_do_not_fit_their_header_say_so() {
        let text = "time,temp,hum\n2026-01-01,20,50\ntime,temp\n2026-01-02,20,50\n";
        let dialect = sniff(text, &DialectOptions::default()).unwrap().unwrap();
        let mut records = HeaderedRecords::new(text.as_bytes(), &dialect, false).unwrap();
        let mut record = TextRecord::default();
        assert!(records.read(&mut record).unwrap() && record.misfit.is_none());
        assert!(records.read(&mut record).unwrap());
        assert_eq!(record.misfit, Some((3, 2)));
    }
}
