//! Answers as CSV, byte for byte as InfluxDB writes them.
//!
//! Times are numbers. Statements stand one after another with an empty line and a header between them;
//! a statement without series, so also one that failed, has no lines.

use super::columns::InfluxValue;
use super::number::{write_integer, write_plain_float};
use super::series::SeriesHeader;
use super::series_form::{SeriesForm, StatementEnd, TimeForm};
use arrow::array::timezone::Tz;

/// Writes CSV.
pub(super) struct CsvForm {
    out: Vec<u8>,
    times: TimeForm,
    /// The statement whose answer is being written, and that of the last header.
    statement: usize,
    headed: Option<usize>,
    columns: Vec<String>,
    /// Measurement and tags of the series, as each of its lines begins.
    prefix: Vec<u8>,
}

impl CsvForm {
    /// A form.
    pub(super) fn new(times: TimeForm) -> Self {
        Self {
            out: Vec::new(),
            times,
            statement: 0,
            headed: None,
            columns: Vec::new(),
            prefix: Vec::new(),
        }
    }
}

/// Writes a field, in quotes where Go's `encoding/csv` wants them.
fn write_field(out: &mut Vec<u8>, text: &str) {
    let starts_blank = text.chars().next().is_some_and(char::is_whitespace);
    let needs_quotes = text == "\\." || starts_blank || text.contains([',', '"', '\r', '\n']);
    if !needs_quotes {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Tags as a key of a series has them: ascending, without empty ones, escaped.
fn tag_text(tags: &[(String, String)]) -> String {
    let mut text = String::new();
    for (key, value) in tags.iter().filter(|(_, value)| !value.is_empty()) {
        if !text.is_empty() {
            text.push(',');
        }
        push_escaped(&mut text, key);
        text.push('=');
        push_escaped(&mut text, value);
    }
    text
}

fn push_escaped(text: &mut String, part: &str) {
    for char in part.chars() {
        if matches!(char, ',' | '=' | ' ') {
            text.push('\\');
        }
        text.push(char);
    }
}

impl SeriesForm for CsvForm {
    fn begin_document(&mut self) {}

    fn begin_statement(&mut self, id: usize) {
        self.statement = id;
    }

    fn begin_series(&mut self, series: &SeriesHeader) {
        let is_new = self.headed != Some(self.statement);
        if is_new || self.columns != series.columns {
            if self.headed.is_some() {
                self.out.push(b'\n');
            }
            self.headed = Some(self.statement);
            self.columns.clone_from(&series.columns);
            self.out.extend_from_slice(b"name,tags");
            for column in &series.columns {
                self.out.push(b',');
                write_field(&mut self.out, column);
            }
            self.out.push(b'\n');
        }
        self.prefix.clear();
        write_field(&mut self.prefix, &series.name);
        self.prefix.push(b',');
        write_field(&mut self.prefix, &tag_text(&series.tags));
    }

    fn row(&mut self, values: &mut dyn Iterator<Item = (InfluxValue<'_>, Option<Tz>)>) {
        let out = &mut self.out;
        out.extend_from_slice(&self.prefix);
        for (value, _) in values {
            out.push(b',');
            match value {
                InfluxValue::Null => {}
                InfluxValue::Bool(true) => out.extend_from_slice(b"true"),
                InfluxValue::Bool(false) => out.extend_from_slice(b"false"),
                InfluxValue::Integer(value) => write_integer(out, value),
                InfluxValue::Unsigned(value) => write_integer(out, value),
                InfluxValue::Float(value) => write_plain_float(out, value),
                InfluxValue::Text(text) => write_field(out, text),
                InfluxValue::Time(time_ns) => {
                    write_integer(out, self.times.number(time_ns).unwrap_or(time_ns));
                }
            }
        }
        out.push(b'\n');
    }

    fn end_series(&mut self, _partial: bool) {}

    fn end_statement(&mut self, _end: &StatementEnd<'_>) {}

    fn end_document(&mut self) {}

    fn error(&mut self, message: &str) {
        self.out.extend_from_slice(b"error\n");
        write_field(&mut self.out, message);
        self.out.push(b'\n');
    }

    fn ready_bytes(&self) -> usize {
        self.out.len()
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn held_bytes(&self) -> usize {
        0
    }
}
