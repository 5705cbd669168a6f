//! Detects the dialect of a CSV file from its first rows: the delimiter, the lines before the
//! header, the header, and a row of units.

use crate::cell::{self, DecimalMark};
use crate::names::{self, TimeNameStrength};
use crate::record::{TextRecord, TextRecords};
use crate::time::{DateOrder, WrittenTime, is_clock, is_impossible_day};
use std::collections::HashMap;
use std::io;

/// Delimiters to try; the likelier ones come first in case several fit equally.
const DELIMITERS: [u8; 4] = [b';', b'\t', b'|', b','];

/// Rows of the sample to examine.
const ROWS_MAX: usize = 1000;

/// What the user specified.
#[derive(Clone, Debug, Default)]
pub struct DialectOptions {
    /// The delimiter.
    pub delimiter: Option<u8>,
    /// Whether there is a header.
    pub header: Option<bool>,
    /// Lines before the header, or before the rows if there is none.
    pub skip: Option<u64>,
}

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextDialect {
    /// Separator of cells.
    pub delimiter: u8,
    /// Total number of lines before the first row with data.
    pub data_after: u64,
    /// Line of the header, from 1.
    pub header_line: Option<u64>,
    /// The row of units below the header, unchanged.
    pub units: Option<Vec<String>>,
    /// Other rows below the header that describe the columns, with their lines: further names, or
    /// how values are computed. They have text where the data has numbers.
    pub described: Vec<(u64, Vec<String>)>,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Names of the header that were changed, because they occur twice: the name in the file, and here.
    pub renamed: Vec<(String, String)>,
    /// Number of columns, behind those that the header names, for which it has no cell.
    pub beyond_header: usize,
    /// Number of the last columns, which only headers between the rows name.
    pub added_later: usize,
}

impl TextDialect {
    /// Whether a record below the header is the header again: files that were joined have such lines
    /// between their rows.
    pub fn is_header_again(&self, record: &TextRecord) -> bool {
        if self.header_line.is_none() {
            return false;
        }
        let is_name = |(at, name): (usize, &String)| {
            let text = &*names::header_name(record.cell(at).text);
            // Names that occur twice have a number, and columns without a name have one.
            *name == text
                || (text.is_empty() && *name == format!("column{}", at + 1))
                || (!text.is_empty()
                    && name
                        .strip_prefix(text)
                        .is_some_and(|rest| rest.starts_with('_')))
        };
        let first = &self.names[..self.names.len() - self.added_later];
        let fits = (first.len()..record.len()).all(|at| record.cell(at).is_missing());
        fits && record.cells().any(|cell| !cell.is_missing())
            && first.iter().enumerate().all(is_name)
    }

    /// Lines before the header (or the rows) that are neither.
    pub fn skipped(&self) -> u64 {
        self.header_line.map_or(self.data_after, |line| line - 1)
    }
}

/// The dialect of a file that begins with `sample`, which is UTF-8 cut at the end of a line; `None`
/// if it contains no row.
///
/// # Errors
/// If the sample cannot be parsed.
pub fn sniff(sample: &str, told: &DialectOptions) -> io::Result<Option<TextDialect>> {
    let skip = told.skip.unwrap_or(0);
    let delimiters = match &told.delimiter {
        Some(delimiter) => std::slice::from_ref(delimiter),
        None => &DELIMITERS[..],
    };
    let mut best: Option<(DelimiterScore, u8, SampleRows)> = None;
    for delimiter in delimiters {
        let rows = SampleRows::read(sample, *delimiter, skip)?;
        let score = if rows.width >= 2 || told.delimiter.is_some() {
            rows.score()
        } else {
            DelimiterScore::default()
        };
        if best.as_ref().is_none_or(|(most, _, _)| score > *most) {
            best = Some((score, *delimiter, rows));
        }
    }
    let Some((_, delimiter, rows)) = best else {
        return Ok(None);
    };
    Ok(rows.dialect(delimiter, told))
}

/// How well a delimiter suits a sample: in how many rows it makes as many cells. If several do in as many
/// rows, such as a semicolon and a decimal comma, the first one with times in a column is right, or
/// else the one with the most cells.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct DelimiterScore {
    rows: usize,
    has_times: bool,
    width: usize,
}

/// The first rows, read with one delimiter.
struct SampleRows {
    records: Vec<TextRecord>,
    /// Number of cells in most rows, without a missing one after the last delimiter.
    width: usize,
}

impl SampleRows {
    fn read(sample: &str, delimiter: u8, skip: u64) -> io::Result<Self> {
        let mut records = Vec::new();
        let mut reader = TextRecords::new(sample.as_bytes(), delimiter, skip)?.skipping_marks();
        let mut record = TextRecord::default();
        while records.len() < ROWS_MAX && reader.read(&mut record)? {
            if !is_end_mark(&record) {
                records.push(record.clone());
            }
        }
        let mut counts: Vec<(usize, usize)> = Vec::new();
        for width in records.iter().map(width_of) {
            match counts.iter_mut().find(|(known, _)| *known == width) {
                Some((_, count)) => *count += 1,
                None => counts.push((width, 1)),
            }
        }
        // Rows may end in missing cells, so if two widths are equally frequent, the larger one is
        // right.
        let width = counts.iter().max_by_key(|(width, count)| (*count, *width));
        Ok(Self {
            width: width.map_or(0, |(width, _)| *width),
            records,
        })
    }

    fn score(&self) -> DelimiterScore {
        // A row may end in a missing cell, or in a delimiter that the header lacks.
        let is_full =
            |record: &&TextRecord| width_of(record) == self.width || record.len() == self.width;
        let full = self.records.iter().filter(is_full).count();
        let mut alike: HashMap<usize, usize> = HashMap::new();
        for len in self.records.iter().map(TextRecord::len) {
            *alike.entry(len).or_default() += usize::from(len >= 2);
        }
        let has_times = self.time_column().is_some();
        DelimiterScore {
            rows: full.max(alike.into_values().max().unwrap_or(0)),
            has_times,
            // Decimal commas make cells, too, also in the fraction of a time.
            width: if has_times { 0 } else { self.width },
        }
    }

    /// The column that has a time in most rows.
    fn time_column(&self) -> Option<usize> {
        let count = |at: usize| {
            let rows = self.records.iter();
            rows.filter(|record| is_time(record.cell(at).text)).count()
        };
        let rows = self
            .records
            .iter()
            .filter(|r| width_of(r) == self.width)
            .count();
        (0..self.width).find(|at| count(*at) * 2 > rows.saturating_sub(3).max(1))
    }

    fn dialect(&self, delimiter: u8, told: &DialectOptions) -> Option<TextDialect> {
        let time = self.time_column();
        let is_data = |record: &TextRecord| match time {
            Some(at) => is_time(record.cell(at).text) && record.len() + 1 >= self.width,
            None => {
                width_of(record) == self.width
                    && record.cells().any(|cell| is_number(cell.text.trim()))
            }
        };
        let first = self.records.first()?;
        let data_at = self.records.iter().position(is_data);
        let (header_at, data_at) = match (told.header, data_at) {
            (Some(false), _) => (None, Some(0)),
            (Some(true), _) if told.skip.is_some() => (Some(0), Some(1)),
            (_, None) => (Some(0), Some(1)),
            (_, Some(0)) => (
                told.header.map(|_| 0),
                Some(usize::from(told.header.is_some())),
            ),
            (_, Some(at)) if told.skip.is_some() => (Some(0), Some(at)),
            (_, Some(at)) => match self.header_before(at, time) {
                Some(header) => (Some(header), Some(at)),
                None => (None, Some(self.rows_before(at))),
            },
        };
        let data_at = data_at.unwrap_or(1);
        let (mut units_at, mut described) = (None, Vec::new());
        // Rows between header and data that neither hold units nor describe columns are treated as
        // rows, so that they are reported as refused.
        let data_at = header_at.map_or(data_at, |header| {
            let numeric = self.numeric_columns(data_at);
            let mut at = header + 1;
            while at < data_at {
                let record = &self.records[at];
                if units_at.is_none() && is_units(record) {
                    units_at = Some(at);
                } else if is_description(record, &numeric) {
                    described.push((record.line, texts_of(record)));
                } else {
                    break;
                }
                at += 1;
            }
            at
        });
        let data_width = self.data_width(data_at);
        let mut renamed = Vec::new();
        let (names, beyond_header) = match header_at {
            Some(at) => {
                let (record, named) = (&self.records[at], width_of(&self.records[at]));
                let cells = (0..named.max(data_width)).map(|at| record.cell(at).text);
                let beyond = data_width.saturating_sub(named);
                let names = names::names_from_header(cells.clone());
                let changed = cells.map(names::header_name).zip(&names);
                let changed = changed.filter(|(cell, name)| !cell.is_empty() && cell != *name);
                renamed.extend(changed.map(|(cell, name)| (cell.into_owned(), name.clone())));
                (names, beyond)
            }
            None => (names::names_from_header((0..data_width).map(|_| "")), 0),
        };
        let line = |at: usize| self.records.get(at).map(|record| record.line);
        let data_after = match header_at {
            // Start at a line where a record was read, so that a header of two lines does not
            // mislead.
            Some(_) => line(data_at).map_or_else(
                || self.records.last().map_or(first.line, |last| last.line),
                |line| line - 1,
            ),
            None => line(data_at).unwrap_or(1) - 1,
        };
        let units = units_at.map(|at: usize| texts_of(&self.records[at]));
        Some(TextDialect {
            delimiter,
            data_after,
            header_line: header_at.and_then(line),
            units,
            described,
            names,
            renamed,
            beyond_header,
            added_later: 0,
        })
    }

    /// The columns that hold numbers in most rows from record `from` on.
    fn numeric_columns(&self, from: usize) -> Vec<usize> {
        let rows = &self.records[from.min(self.records.len())..];
        let is_numeric = |at: &usize| {
            let numbers = rows
                .iter()
                .filter(|row| is_number(row.cell(*at).text.trim()));
            numbers.count() * 2 > rows.len()
        };
        (0..self.width).filter(is_numeric).collect()
    }

    /// Number of cells in most data rows, without a last one that is always missing.
    fn data_width(&self, from: usize) -> usize {
        let rows = &self.records[from.min(self.records.len())..];
        let full = rows
            .iter()
            .map(width_of)
            .filter(|width| *width == self.width);
        full.max()
            .or_else(|| rows.iter().map(width_of).max())
            .unwrap_or(self.width)
    }

    /// The header above the first row whose time can be read; `None` if there is none.
    ///
    /// Rows below the header may have times that cannot be read: they are no header, so that the
    /// import refuses them. A record that names the time is the header. Else it is the first of the
    /// records directly above the data that hold only names.
    fn header_before(&self, data_at: usize, time: Option<usize>) -> Option<usize> {
        let above = data_at.checked_sub(1)?;
        let is_full = |at: &usize| {
            let record = &self.records[*at];
            let cells = record.cells();
            let names = cells.filter(|cell| !cell.text.trim().is_empty()).count();
            names + 1 >= self.width && names > 0 && width_of(record) + 1 >= self.width
        };
        let any = |at: usize, is: fn(&str) -> bool| {
            let mut cells = self.records[at].cells();
            cells.any(|cell| is(cell.text.trim()))
        };
        // Lines before the header may mention times, so names that are nothing else come first.
        let is_header = |at: &usize| is_full(at) && !is_annotation(&self.records[*at]);
        for names_time in [is_sure_time_name, names::is_time_name] {
            let mut headers = (0..data_at).filter(is_header);
            let named = headers.find(|at| any(*at, names_time) && !any(*at, is_time));
            if named.is_some() {
                return named;
            }
        }
        let is_named = |at: &usize| is_full(at) && !any(*at, is_time) && !any(*at, is_number);
        let mut below = (0..data_at).rev().skip_while(|at| {
            // Units stand below the header; rows of data have numbers.
            is_units(&self.records[*at]) || !is_named(at)
        });
        if let Some(last) = below.next() {
            let more = below.take_while(|at| is_named(at) && !is_units(&self.records[*at]));
            return Some(more.last().unwrap_or(last));
        }
        // Names may be numbers, but a time may not.
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let could_name_time = |at: &usize| {
            time.is_none_or(|time| {
                let text = self.records[*at].cell(time).text.trim();
                !text.is_empty() && !text.bytes().any(is_digit)
            })
        };
        Some(above).filter(is_full).filter(could_name_time)
    }

    /// The first of the records directly above `data_at` that are as wide as the data.
    fn rows_before(&self, data_at: usize) -> usize {
        let above = (0..data_at).rev();
        let rows = above.take_while(|at| width_of(&self.records[*at]) == self.width);
        rows.last().unwrap_or(data_at)
    }
}

/// Number of cells of a record, without a missing one after a last delimiter.
fn width_of(record: &TextRecord) -> usize {
    let len = record.len();
    if len > 1 && record.cell(len - 1).is_missing() {
        len - 1
    } else {
        len
    }
}

fn is_number(text: &str) -> bool {
    let read = |decimal| cell::read_f64(text, decimal).is_some();
    (read(DecimalMark::Point) || read(DecimalMark::Comma))
        && text.bytes().any(|b| b.is_ascii_digit())
}

/// Whether a cell looks like a time: a written one, or a number that may be one.
pub fn is_time(text: &str) -> bool {
    let text = text.trim();
    // Nanoseconds are more than a DOUBLE holds exactly.
    if is_number(text) || text.parse::<i64>().is_ok() {
        // Seconds since 2001, and finer units; eight digits may be a date.
        let digits = text.split(['.', ',']).next().unwrap_or(text);
        return digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    }
    DateOrder::ALL
        .iter()
        .any(|order| WrittenTime::read(text, *order).is_some())
        || is_clock(text)
        // A day that does not exist is a time that is wrong, not a header.
        || is_impossible_day(text)
}

fn is_sure_time_name(name: &str) -> bool {
    names::time_name_strength(name).0 == TimeNameStrength::Whole
}

/// Whether a record is the mark with which old programs end a file: Ctrl-Z.
pub(crate) fn is_end_mark(record: &TextRecord) -> bool {
    record.len() == 1
        && record
            .cell(0)
            .text
            .trim_matches(['\u{1a}', '\0', ' '])
            .is_empty()
}

/// Whether a record is a comment of InfluxDB's annotated CSV.
pub(crate) fn is_annotation(record: &TextRecord) -> bool {
    let first = record.cell(0);
    !first.quoted && ["#group", "#datatype", "#default"].contains(&first.text)
}

pub(crate) fn texts_of(record: &TextRecord) -> Vec<String> {
    let cells = record.cells();
    cells.map(|cell| cell.text.trim().to_owned()).collect()
}

/// Whether a row below the header describes the columns: it has no time and no number, and text where
/// the data has numbers.
fn is_description(record: &TextRecord, numeric: &[usize]) -> bool {
    let is_value = |text: &str| is_number(text) || is_time(text);
    let mut texts = numeric.iter().map(|at| record.cell(*at).text.trim());
    texts.any(|text| !cell::is_null(text, &[]))
        && !record.cells().any(|cell| is_value(cell.text.trim()))
}

const UNITS: &str = " °c °f degc degf c k f % bar mbar pa hpa kpa mpa psi v mv kv a ma ka w kw mw \
     gw kwh wh mwh va kva var hz khz mhz rpm 1/min min-1 u/min m mm cm km µm um m/s m/s2 m/s² km/h \
     m3 m³ m3/h m³/h l l/min l/s l/h ml g kg t mg kg/h s ms us min h d ppm ppb lx lux db dba w/m2 \
     w/m² ° deg rad n nm kn j kj mol ph µs/cm us/cm ms/cm - count pcs none bool utc local ";

/// Whether a row contains units: short cells, at least one of which is a known unit or in brackets.
fn is_units(record: &TextRecord) -> bool {
    let mut known = 0;
    for cell in record.cells() {
        let text = cell.text.trim();
        let bare = text.trim_matches(['[', ']', '(', ')']);
        let is_bracketed = bare.len() + 2 == text.len();
        let is_known = is_bracketed || UNITS.contains(&format!(" {} ", bare.to_lowercase()));
        let is_form = text
            .to_lowercase()
            .bytes()
            .all(|byte| b"ymdhs :.-/'t".contains(&byte));
        // `h` alone is an hour; `h:m` is a form of times.
        let says = |char: char| char.is_alphabetic() || "%°1".contains(char);
        if is_known && (is_bracketed || text.contains(says)) {
            known += 1;
        } else if !is_known && !text.is_empty() && !is_form {
            return false;
        }
    }
    known > 0
}

#[cfg(test)]
mod tests;
