//! Answers as MessagePack, with the lengths and the extension for times that InfluxDB writes.
//!
//! MessagePack says how long an array is before its items. So rows are held until their series ends,
//! series until their result ends, and results until their document ends: a client that asks for much
//! should ask for chunks.

use super::columns::InfluxValue;
use super::series::SeriesHeader;
use super::series_form::{SeriesForm, StatementEnd, TimeForm};
use arrow::array::timezone::Tz;

/// Writes MessagePack.
pub(super) struct MsgpackForm {
    out: Vec<u8>,
    times: TimeForm,
    results: CountedItems,
    series: CountedItems,
    rows: CountedItems,
    statement: usize,
    header: SeriesHeader,
}

/// Items of an array whose number is not known yet.
#[derive(Default)]
struct CountedItems {
    count: usize,
    bytes: Vec<u8>,
}

impl CountedItems {
    /// Writes them as an array, and begins anew.
    fn drain_into(&mut self, out: &mut Vec<u8>) {
        let Self { count, bytes } = std::mem::take(self);
        write_length(out, count, ARRAY);
        out.extend_from_slice(&bytes);
    }
}

/// Marks of a kind that has a length: with the length in itself (and the most that fits), of 16 bits
/// and of 32 bits.
struct LengthMarks {
    fixed: u8,
    fixed_max: usize,
    of_16: u8,
    of_32: u8,
}

const ARRAY: LengthMarks = LengthMarks {
    fixed: 0x90,
    fixed_max: 15,
    of_16: 0xdc,
    of_32: 0xdd,
};
const MAP: LengthMarks = LengthMarks {
    fixed: 0x80,
    fixed_max: 15,
    of_16: 0xde,
    of_32: 0xdf,
};
const TEXT: LengthMarks = LengthMarks {
    fixed: 0xa0,
    fixed_max: 31,
    of_16: 0xda,
    of_32: 0xdb,
};

const TRUE: u8 = 0xc3;
const FALSE: u8 = 0xc2;
const NIL: u8 = 0xc0;

fn write_length(out: &mut Vec<u8>, length: usize, marks: LengthMarks) {
    if length <= marks.fixed_max {
        out.push(marks.fixed | length as u8);
    } else if let Ok(length) = u16::try_from(length) {
        out.push(marks.of_16);
        out.extend_from_slice(&length.to_be_bytes());
    } else {
        out.push(marks.of_32);
        // A document of so many bytes is never held.
        out.extend_from_slice(&(length as u32).to_be_bytes());
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    match text.len() {
        length @ 32..=255 => out.extend_from_slice(&[0xd9, length as u8]),
        length => write_length(out, length, TEXT),
    }
    out.extend_from_slice(text.as_bytes());
}

fn write_integer(out: &mut Vec<u8>, value: i64) {
    if let (0..=0x7f, _) | (_, -32..=-1) = (value, value) {
        out.push(value as u8);
    } else if let Ok(value) = i8::try_from(value) {
        out.extend_from_slice(&[0xd0, value as u8]);
    } else if let Ok(value) = i16::try_from(value) {
        out.push(0xd1);
        out.extend_from_slice(&value.to_be_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        out.push(0xd2);
        out.extend_from_slice(&value.to_be_bytes());
    } else {
        out.push(0xd3);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

fn write_unsigned(out: &mut Vec<u8>, value: u64) {
    if value <= 0x7f {
        out.push(value as u8);
    } else if let Ok(value) = u8::try_from(value) {
        out.extend_from_slice(&[0xcc, value]);
    } else if let Ok(value) = u16::try_from(value) {
        out.push(0xcd);
        out.extend_from_slice(&value.to_be_bytes());
    } else if let Ok(value) = u32::try_from(value) {
        out.push(0xce);
        out.extend_from_slice(&value.to_be_bytes());
    } else {
        out.push(0xcf);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Extension 5 of 12 bytes: seconds and nanoseconds.
fn write_time(out: &mut Vec<u8>, time_ns: i64) {
    out.extend_from_slice(&[0xc7, 12, 5]);
    out.extend_from_slice(&time_ns.div_euclid(1_000_000_000).to_be_bytes());
    let ns = time_ns.rem_euclid(1_000_000_000) as i32;
    out.extend_from_slice(&ns.to_be_bytes());
}

impl MsgpackForm {
    /// A form.
    pub(super) fn new(times: TimeForm) -> Self {
        Self {
            out: Vec::new(),
            times,
            results: CountedItems::default(),
            series: CountedItems::default(),
            rows: CountedItems::default(),
            statement: 0,
            header: SeriesHeader::default(),
        }
    }
}

impl SeriesForm for MsgpackForm {
    fn begin_document(&mut self) {}

    fn begin_statement(&mut self, id: usize) {
        self.statement = id;
    }

    fn begin_series(&mut self, series: &SeriesHeader) {
        self.header.clone_from(series);
    }

    fn row(&mut self, values: &mut dyn Iterator<Item = (InfluxValue<'_>, Option<Tz>)>) {
        self.rows.count += 1;
        let out = &mut self.rows.bytes;
        write_length(out, self.header.columns.len(), ARRAY);
        for (value, _) in values {
            match value {
                InfluxValue::Null => out.push(NIL),
                InfluxValue::Bool(value) => out.push(if value { TRUE } else { FALSE }),
                InfluxValue::Integer(value) => write_integer(out, value),
                InfluxValue::Unsigned(value) => write_unsigned(out, value),
                InfluxValue::Float(value) => {
                    out.push(0xcb);
                    out.extend_from_slice(&value.to_bits().to_be_bytes());
                }
                InfluxValue::Text(text) => write_text(out, text),
                InfluxValue::Time(time_ns) => match self.times.number(time_ns) {
                    Some(number) => write_integer(out, number),
                    None => write_time(out, time_ns),
                },
            }
        }
    }

    fn end_series(&mut self, partial: bool) {
        let header = &self.header;
        self.series.count += 1;
        let out = &mut self.series.bytes;
        let (is_named, is_tagged) = (!header.name.is_empty(), !header.tags.is_empty());
        let entries = 2 + usize::from(is_named) + usize::from(is_tagged) + usize::from(partial);
        write_length(out, entries, MAP);
        if is_named {
            write_text(out, "name");
            write_text(out, &header.name);
        }
        if is_tagged {
            write_text(out, "tags");
            write_length(out, header.tags.len(), MAP);
            for (key, value) in &header.tags {
                write_text(out, key);
                write_text(out, value);
            }
        }
        write_text(out, "columns");
        write_length(out, header.columns.len(), ARRAY);
        for column in &header.columns {
            write_text(out, column);
        }
        write_text(out, "values");
        self.rows.drain_into(out);
        if partial {
            write_text(out, "partial");
            out.push(TRUE);
        }
    }

    fn end_statement(&mut self, end: &StatementEnd<'_>) {
        self.results.count += 1;
        let out = &mut self.results.bytes;
        if let Some(error) = end.error {
            self.series = CountedItems::default();
            write_length(out, 1, MAP);
            write_text(out, "error");
            write_text(out, error);
            return;
        }
        let entries = 2 + usize::from(!end.messages.is_empty()) + usize::from(end.partial);
        write_length(out, entries, MAP);
        write_text(out, "statement_id");
        write_integer(out, self.statement as i64);
        if !end.messages.is_empty() {
            write_text(out, "messages");
            write_length(out, end.messages.len(), ARRAY);
            for message in end.messages {
                write_length(out, 2, MAP);
                write_text(out, "level");
                write_text(out, "warning");
                write_text(out, "text");
                write_text(out, message);
            }
        }
        write_text(out, "series");
        self.series.drain_into(out);
        if end.partial {
            write_text(out, "partial");
            out.push(TRUE);
        }
    }

    fn end_document(&mut self) {
        write_length(&mut self.out, 1, MAP);
        write_text(&mut self.out, "results");
        self.results.drain_into(&mut self.out);
    }

    fn error(&mut self, message: &str) {
        write_length(&mut self.out, 1, MAP);
        write_text(&mut self.out, "error");
        write_text(&mut self.out, message);
    }

    fn ready_bytes(&self) -> usize {
        self.out.len()
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn held_bytes(&self) -> usize {
        let held = [&self.results, &self.series, &self.rows];
        held.iter().map(|items| items.bytes.capacity()).sum()
    }
}
