//! Parses a body of lines.
//!
//! A whole line is read before anything of it is stored, so a bad line has no effect. A line whose
//! series and fields were seen before allocates nothing.

use super::batches::{LineField, TableBatch};
use super::series::{LineSeries, parse_series};
use super::text::shown;
use super::value::{LineValue, line_breaks, parse_time, parse_value};
use super::{LineError, LineFault, LineLimits, ParsedLines, Precision, fault};
use hashbrown::HashMap;
use memchr::{memchr, memchr2};

/// Parses lines; `default_time_ns` is the time of those without one.
#[must_use]
pub fn parse(
    body: &[u8],
    precision: Precision,
    default_time_ns: i64,
    limits: LineLimits,
) -> ParsedLines {
    let mut parser = LineParser {
        precision,
        default_time_ns,
        limits,
        batches: Vec::new(),
        by_table: HashMap::new(),
        places: HashMap::new(),
        fields: Vec::new(),
        scratch: String::new(),
        serial: 0,
        errors: Vec::new(),
        errors_omitted: 0,
    };
    match str::from_utf8(body) {
        Ok(text) => {
            parser.text(text, 1);
        }
        Err(_) => parser.mixed(body),
    }
    let (batches, lines) = parser
        .batches
        .into_iter()
        .filter_map(TableBatch::finish)
        .unzip();
    ParsedLines {
        batches,
        lines,
        errors: parser.errors,
        errors_omitted: parser.errors_omitted,
    }
}

/// The slot of a line's row within its batch.
enum BatchPosition<'a> {
    /// An existing slot.
    Known(u32),
    /// A slot that is created after the whole line was read.
    New(LineSeries<'a>),
}

struct LineParser<'a> {
    precision: Precision,
    default_time_ns: i64,
    limits: LineLimits,
    batches: Vec<TableBatch<'a>>,
    by_table: HashMap<String, u32>,
    /// Batch and slot of each series, by its raw key.
    places: HashMap<&'a str, (u32, u32)>,
    /// Fields of the current line.
    fields: Vec<LineField<'a>>,
    scratch: String,
    /// Serial number of the current line, without blank lines.
    serial: u64,
    errors: Vec<LineError>,
    errors_omitted: u64,
}

impl<'a> LineParser<'a> {
    /// Parses a body that contains invalid UTF-8: lines with invalid bytes are refused.
    fn mixed(&mut self, body: &'a [u8]) {
        let mut line = 1;
        let mut rest = body;
        while !rest.is_empty() {
            let valid = match str::from_utf8(rest) {
                Ok(_) => rest.len(),
                Err(error) => error.valid_up_to(),
            };
            // Whole lines only, unless all of the rest is valid.
            let whole = match memchr::memrchr(b'\n', &rest[..valid]) {
                _ if valid == rest.len() => valid,
                Some(at) => at + 1,
                None => 0,
            };
            if let Ok(text) = str::from_utf8(&rest[..whole]) {
                line = self.text(text, line);
            }
            if valid < rest.len() {
                let column = (valid - whole + 1) as u32;
                self.error(LineError {
                    line,
                    column,
                    reason: "this is not UTF-8".to_owned(),
                });
                line += 1;
                let end = memchr(b'\n', &rest[valid..]).map_or(rest.len(), |at| valid + at + 1);
                rest = &rest[end..];
            } else {
                rest = &[];
            }
        }
    }

    /// Parses lines, the first of which has the number `line`; returns the number of the next line.
    fn text(&mut self, text: &'a str, mut line: u32) -> u32 {
        let bytes = text.as_bytes();
        let mut start = 0;
        while start < bytes.len() {
            let mut at = start;
            while let Some(b' ' | b'\t') = bytes.get(at) {
                at += 1;
            }
            let blank = match bytes.get(at) {
                None | Some(b'\n' | b'#') => true,
                Some(b'\r') => ends_line(bytes, at),
                Some(_) => false,
            };
            if blank {
                start = next_line(bytes, at);
                line += 1;
                continue;
            }
            self.serial += 1;
            match self.line(text, at, line) {
                Ok(end) => {
                    start = end;
                    line += 1 + self.breaks();
                }
                Err(LineFault {
                    at: fault_at,
                    reason,
                }) => {
                    let column = (fault_at - start + 1) as u32;
                    self.error(LineError {
                        line,
                        column,
                        reason,
                    });
                    start = next_line(bytes, at);
                    line += 1;
                }
            }
        }
        line
    }

    fn error(&mut self, error: LineError) {
        if self.errors.len() < self.limits.errors_max {
            self.errors.push(error);
        } else {
            self.errors_omitted += 1;
        }
    }

    /// Line breaks within the last line.
    fn breaks(&self) -> u32 {
        let breaks = |field: &LineField<'_>| match field.value {
            LineValue::Text(raw) | LineValue::Escaped(raw) => line_breaks(raw),
            _ => 0,
        };
        self.fields.iter().map(breaks).sum()
    }

    /// Parses the line that begins at byte `start`; returns the start of the next one.
    #[inline]
    fn line(&mut self, text: &'a str, start: usize, line: u32) -> Result<usize, LineFault> {
        let key_end = key_end(text, start)?;
        let key = &text[start..key_end];
        let is_open = |(batch, _): &(u32, u32)| !self.batches[*batch as usize].is_closed;
        let known = self.places.get(key).copied().filter(is_open);
        let (batch_number, place) = match known {
            Some((batch, slot)) => (batch, BatchPosition::Known(slot)),
            None => {
                let series = parse_series(key, start)?;
                (self.batch_of(&series), BatchPosition::New(series))
            }
        };
        let new = match &place {
            BatchPosition::Known(_) => None,
            BatchPosition::New(series) => Some(series),
        };
        let fields_end = self.fields(text, key_end, batch_number, new)?;
        let (time, end) = self.time(text, fields_end)?;
        let batch = &mut self.batches[batch_number as usize];
        let slot = match place {
            BatchPosition::Known(slot) => slot,
            BatchPosition::New(series) => {
                let slot = batch.slot(&series);
                self.places.insert(key, (batch_number, slot));
                slot
            }
        };
        batch.row(slot, time, line, &self.fields, &mut self.scratch);
        if batch.is_sparse() {
            self.close(batch_number);
        }
        Ok(end)
    }

    fn batch_of(&mut self, series: &LineSeries<'_>) -> u32 {
        if let Some(number) = self.by_table.get(&*series.table) {
            return *number;
        }
        let number = self.batches.len() as u32;
        self.batches
            .push(TableBatch::new(&series.table, self.limits.tagged_fields));
        self.by_table
            .insert(series.table.clone().into_owned(), number);
        number
    }

    /// Directs further rows of a batch's table to a new batch.
    #[cold]
    fn close(&mut self, batch: u32) {
        let number = self.batches.len() as u32;
        let closed = &mut self.batches[batch as usize];
        closed.is_closed = true;
        let table = closed.table().to_owned();
        self.batches
            .push(TableBatch::new(&table, self.limits.tagged_fields));
        self.by_table.insert(table, number);
    }

    /// Parses the fields after the key into `self.fields`; returns where they end.
    #[inline]
    fn fields(
        &mut self,
        text: &'a str,
        key_end: usize,
        batch: u32,
        new: Option<&LineSeries<'_>>,
    ) -> Result<usize, LineFault> {
        let bytes = text.as_bytes();
        let batch = &mut self.batches[batch as usize];
        if let Some(new) = new {
            batch.check_tags(new)?;
        }
        self.fields.clear();
        let mut at = skip_spaces(bytes, key_end);
        if ends_line(bytes, at) {
            return fault(at, "the line has no fields");
        }
        loop {
            let (name, value_at) = batch.name(text, at, self.fields.len(), self.serial, new)?;
            let (value, end) = parse_value(text, value_at)?;
            self.fields.push(LineField { name, value });
            if bytes.get(end) != Some(&b',') {
                return Ok(end);
            }
            at = end + 1;
        }
    }

    /// Parses the rest of a line after its fields: the time, if there is one. Returns it and the
    /// start of the next line.
    #[inline]
    fn time(&self, text: &str, fields_end: usize) -> Result<(i64, usize), LineFault> {
        let bytes = text.as_bytes();
        let at = skip_spaces(bytes, fields_end);
        if ends_line(bytes, at) {
            return Ok((self.default_time_ns, next_line(bytes, at)));
        }
        if at == fields_end {
            let rest = &text[at..];
            let rest = rest.split([',', ' ', '\n']).next().unwrap_or(rest);
            let reason = format!(
                "found '{}' where a comma, a space or the end is expected",
                shown(rest)
            );
            return fault(at, reason);
        }
        let (time, end) = parse_time(text, at, self.precision)?;
        let at = skip_spaces(bytes, end);
        if ends_line(bytes, at) {
            return Ok((time, next_line(bytes, at)));
        }
        fault(at, "something follows the time")
    }
}

/// The end of the key that begins at byte `start`: the first space that is not escaped.
#[inline]
fn key_end(text: &str, start: usize) -> Result<usize, LineFault> {
    let bytes = text.as_bytes();
    let mut at = start;
    loop {
        match memchr2(b' ', b'\n', &bytes[at..]) {
            Some(found) if bytes[at + found] == b' ' => {
                at += found;
                if at == start || bytes[at - 1] != b'\\' {
                    return Ok(at);
                }
                at += 1;
            }
            found => {
                let end = found.map_or(bytes.len(), |found| at + found);
                return fault(end, "the line has no fields");
            }
        }
    }
}

#[inline]
fn skip_spaces(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at) == Some(&b' ') {
        at += 1;
    }
    at
}

/// Whether a line ends at this byte: with LF, CR LF or the body.
#[inline]
fn ends_line(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        None | Some(b'\n') => true,
        Some(b'\r') => matches!(bytes.get(at + 1), None | Some(b'\n')),
        Some(_) => false,
    }
}

/// The start of the line after the one that contains byte `at`.
#[inline]
fn next_line(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) == Some(&b'\n') {
        return at + 1;
    }
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found + 1)
}
