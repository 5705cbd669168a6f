//! Answers as JSON, byte for byte as Go's `encoding/json` writes them.

use super::columns::InfluxValue;
use super::number::{write_integer, write_json_float, write_rfc3339};
use super::series::SeriesHeader;
use super::series_form::{SeriesForm, StatementEnd, TimeForm};
use arrow::array::timezone::Tz;

/// Writes JSON.
pub(super) struct JsonForm {
    text: JsonText,
    times: TimeForm,
    /// Whether the document has a result, the result a series, the series a row.
    has_result: bool,
    has_series: bool,
    has_row: bool,
}

/// JSON being written: knows where commas and line breaks go.
struct JsonText {
    out: Vec<u8>,
    pretty: bool,
    depth: usize,
    /// Whether nothing was written since a bracket was opened.
    is_fresh: bool,
}

impl JsonText {
    fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.depth += 1;
        self.is_fresh = true;
    }

    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        if !std::mem::take(&mut self.is_fresh) {
            self.line();
        }
        self.out.push(bracket);
    }

    /// Before each item of an array, and each key of an object.
    fn item(&mut self) {
        if !std::mem::take(&mut self.is_fresh) {
            self.out.push(b',');
        }
        self.line();
    }

    fn key(&mut self, name: &str) {
        self.item();
        self.string(name);
        self.out.push(b':');
        if self.pretty {
            self.out.push(b' ');
        }
    }

    fn line(&mut self) {
        if self.pretty {
            self.out.push(b'\n');
            let spaces = self.out.len() + 4 * self.depth;
            self.out.resize(spaces, b' ');
        }
    }

    fn string(&mut self, text: &str) {
        write_string(&mut self.out, text);
    }
}

/// Writes a text as Go does: what HTML or JavaScript would misread is escaped.
fn write_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' => Some(b'"'),
            b'\\' => Some(b'\\'),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\t' => Some(b't'),
            _ => None,
        };
        // U+2028 and U+2029.
        let is_separator = *byte == 0xe2
            && bytes.get(at + 1) == Some(&0x80)
            && matches!(bytes.get(at + 2), Some(0xa8 | 0xa9));
        if short.is_none() && !is_separator && *byte >= 0x20 && !b"<>&".contains(byte) {
            continue;
        }
        out.extend_from_slice(&bytes[done..at]);
        done = at + 1;
        if let Some(short) = short {
            out.extend_from_slice(&[b'\\', short]);
        } else if is_separator {
            out.extend_from_slice(b"\\u202");
            out.push(HEX[usize::from(bytes[at + 2] & 0xf)]);
            done = at + 3;
        } else {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
        }
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

impl JsonForm {
    /// A form; `pretty` writes each value on a line of its own.
    pub(super) fn new(pretty: bool, times: TimeForm) -> Self {
        Self {
            text: JsonText {
                out: Vec::new(),
                pretty,
                depth: 0,
                is_fresh: true,
            },
            times,
            has_result: false,
            has_series: false,
            has_row: false,
        }
    }

    fn value(&mut self, value: InfluxValue<'_>, zone: Option<Tz>) {
        let out = &mut self.text.out;
        match value {
            InfluxValue::Null => out.extend_from_slice(b"null"),
            InfluxValue::Bool(true) => out.extend_from_slice(b"true"),
            InfluxValue::Bool(false) => out.extend_from_slice(b"false"),
            InfluxValue::Integer(value) => write_integer(out, value),
            InfluxValue::Unsigned(value) => write_integer(out, value),
            InfluxValue::Float(value) => write_json_float(out, value),
            InfluxValue::Text(text) => write_string(out, text),
            InfluxValue::Time(time_ns) => match self.times.number(time_ns) {
                Some(number) => write_integer(out, number),
                None => {
                    out.push(b'"');
                    write_rfc3339(out, time_ns, zone);
                    out.push(b'"');
                }
            },
        }
    }
}

impl SeriesForm for JsonForm {
    fn begin_document(&mut self) {
        self.text.is_fresh = true;
        self.text.open(b'{');
        self.has_result = false;
    }

    fn begin_statement(&mut self, id: usize) {
        let text = &mut self.text;
        if !std::mem::replace(&mut self.has_result, true) {
            text.key("results");
            text.open(b'[');
        }
        text.item();
        text.open(b'{');
        text.key("statement_id");
        write_integer(&mut text.out, id);
        self.has_series = false;
    }

    fn begin_series(&mut self, series: &SeriesHeader) {
        let text = &mut self.text;
        if !std::mem::replace(&mut self.has_series, true) {
            text.key("series");
            text.open(b'[');
        }
        text.item();
        text.open(b'{');
        if !series.name.is_empty() {
            text.key("name");
            text.string(&series.name);
        }
        if !series.tags.is_empty() {
            text.key("tags");
            text.open(b'{');
            for (key, value) in &series.tags {
                text.key(key);
                text.string(value);
            }
            text.close(b'}');
        }
        if !series.columns.is_empty() {
            text.key("columns");
            text.open(b'[');
            for column in &series.columns {
                text.item();
                text.string(column);
            }
            text.close(b']');
        }
        self.has_row = false;
    }

    fn row(&mut self, values: &mut dyn Iterator<Item = (InfluxValue<'_>, Option<Tz>)>) {
        if !std::mem::replace(&mut self.has_row, true) {
            self.text.key("values");
            self.text.open(b'[');
        }
        self.text.item();
        self.text.open(b'[');
        for (value, zone) in values {
            self.text.item();
            self.value(value, zone);
        }
        self.text.close(b']');
    }

    fn end_series(&mut self, partial: bool) {
        let text = &mut self.text;
        if self.has_row {
            text.close(b']');
        }
        if partial {
            text.key("partial");
            text.out.extend_from_slice(b"true");
        }
        text.close(b'}');
    }

    fn end_statement(&mut self, end: &StatementEnd<'_>) {
        let text = &mut self.text;
        if self.has_series {
            text.close(b']');
        }
        if !end.messages.is_empty() {
            text.key("messages");
            text.open(b'[');
            for message in end.messages {
                text.item();
                text.open(b'{');
                text.key("level");
                text.string("warning");
                text.key("text");
                text.string(message);
                text.close(b'}');
            }
            text.close(b']');
        }
        if end.partial {
            text.key("partial");
            text.out.extend_from_slice(b"true");
        }
        if let Some(error) = end.error {
            text.key("error");
            text.string(error);
        }
        text.close(b'}');
    }

    fn end_document(&mut self) {
        let text = &mut self.text;
        if self.has_result {
            text.close(b']');
        }
        text.close(b'}');
        text.out.push(b'\n');
    }

    fn error(&mut self, message: &str) {
        self.text.open(b'{');
        self.text.key("error");
        self.text.string(message);
        self.text.close(b'}');
        self.text.out.push(b'\n');
    }

    fn ready_bytes(&self) -> usize {
        self.text.out.len()
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text.out)
    }

    fn held_bytes(&self) -> usize {
        0
    }
}
