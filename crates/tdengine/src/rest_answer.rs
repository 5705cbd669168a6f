//! The answers of the REST API: JSON as the adapter of TDengine writes it.
//!
//! Invariant: what is written is valid JSON after [`RestAnswer::end`], if every row has as many values as
//! there are columns.

use crate::precision::TaosPrecision;
use crate::time_text::push_time;
use crate::types::TaosType;
use jiff::tz::TimeZone;
use std::fmt::Write as _;

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: TaosType,
}

/// Writes an answer with rows, into a text that the caller sends and empties as often as it likes.
#[derive(Clone, Debug)]
pub struct RestAnswer {
    columns: Vec<RestColumn>,
    precision: TaosPrecision,
    zone: TimeZone,
    /// Whether a row is an object with the names of the columns.
    has_names: bool,
    rows: u64,
    /// The column of the next value.
    column: usize,
}

impl RestAnswer {
    /// An answer with these columns, whose times have this precision and zone.
    #[must_use]
    pub fn new(
        columns: Vec<RestColumn>,
        (precision, zone): (TaosPrecision, TimeZone),
        has_names: bool,
    ) -> Self {
        Self {
            columns,
            precision,
            zone,
            has_names,
            rows: 0,
            column: 0,
        }
    }

    /// The same with a zone by its name; `None` if there is no such zone.
    #[must_use]
    pub fn in_zone(
        columns: Vec<RestColumn>,
        (precision, zone): (TaosPrecision, &str),
        has_names: bool,
    ) -> Option<Self> {
        let zone = zone_of_name(zone)?;
        Some(Self::new(columns, (precision, zone), has_names))
    }

    /// Writes what stands before the rows.
    pub fn begin(&self, out: &mut String) {
        out.push_str("{\"code\":0,\"column_meta\":[");
        for (place, column) in self.columns.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push('[');
            push_text(&column.name, out);
            let (name, length) = (column.kind.name(), column.kind.length());
            let _ = write!(out, ",\"{name}\",{length}]");
        }
        out.push_str("],\"data\":[");
    }

    /// Begins a row.
    pub fn begin_row(&mut self, out: &mut String) {
        if self.rows > 0 {
            out.push(',');
        }
        self.rows += 1;
        self.column = 0;
        out.push(if self.has_names { '{' } else { '[' });
    }

    /// Ends a row.
    pub fn end_row(&self, out: &mut String) {
        out.push(if self.has_names { '}' } else { ']' });
    }

    /// Writes what stands after the rows.
    pub fn end(&self, out: &mut String) {
        let _ = write!(out, "],\"rows\":{}}}", self.rows);
    }

    /// Goes to the next value of the row; returns the type of its column.
    fn next_column(&mut self, out: &mut String) -> TaosType {
        if self.column > 0 {
            out.push(',');
        }
        let column = self.columns.get(self.column);
        self.column += 1;
        if self.has_names {
            push_text(column.map_or("", |column| &column.name), out);
            out.push(':');
        }
        column.map_or(TaosType::Null, |column| column.kind)
    }

    /// Writes `null`.
    pub fn null(&mut self, out: &mut String) {
        self.next_column(out);
        out.push_str("null");
    }

    /// Writes a truth value.
    pub fn bool(&mut self, value: bool, out: &mut String) {
        self.next_column(out);
        out.push_str(if value { "true" } else { "false" });
    }

    /// Writes an integer.
    pub fn integer(&mut self, value: i128, out: &mut String) {
        self.next_column(out);
        let _ = write!(out, "{value}");
    }

    /// Writes a float; one that JSON does not have is `null`.
    pub fn float(&mut self, value: f64, out: &mut String) {
        let kind = self.next_column(out);
        if !value.is_finite() {
            out.push_str("null");
        } else if kind == TaosType::Float {
            push_float(value as f32, value.abs(), out);
        } else {
            push_float(value, value.abs(), out);
        }
    }

    /// Writes a time, ns.
    pub fn time(&mut self, time_ns: i64, out: &mut String) {
        self.next_column(out);
        out.push('"');
        push_time(time_ns, self.precision, &self.zone, out);
        out.push('"');
    }

    /// Writes a text; in a column of JSON it is JSON itself, or a text if it is none.
    pub fn text(&mut self, text: &str, out: &mut String) {
        self.next_column(out);
        push_text(text, out);
    }

    /// Writes JSON as it is; the caller knows that it is valid.
    pub fn json(&mut self, json: &str, out: &mut String) {
        self.next_column(out);
        out.push_str(json);
    }

    /// Writes bytes as hexadecimal digits.
    pub fn bytes(&mut self, bytes: &[u8], out: &mut String) {
        self.next_column(out);
        out.push('"');
        for byte in bytes {
            let _ = write!(out, "{byte:02x}");
        }
        out.push('"');
    }
}

/// Whether there is a zone of this name.
#[must_use]
pub fn is_zone(name: &str) -> bool {
    zone_of_name(name).is_some()
}

fn zone_of_name(name: &str) -> Option<TimeZone> {
    if name.is_empty() || name.eq_ignore_ascii_case("utc") {
        return Some(TimeZone::UTC);
    }
    TimeZone::get(name).ok()
}

/// Writes a float with the fewest digits that say it; very small and great ones with an exponent.
fn push_float<T: std::fmt::Display + std::fmt::LowerExp>(value: T, size: f64, out: &mut String) {
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, power)) if !power.starts_with('-') => {
                let _ = write!(out, "{digits}e+{power}");
            }
            _ => out.push_str(&text),
        }
    } else {
        let _ = write!(out, "{value}");
    }
}

/// Writes a text of JSON.
pub(crate) fn push_text(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            char if u32::from(char) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

/// The answer to a statement that changes something, with the number of changed rows.
#[must_use]
pub fn update_answer(rows: u64, has_names: bool) -> String {
    let row = if has_names {
        format!("{{\"affected_rows\":{rows}}}")
    } else {
        format!("[{rows}]")
    };
    format!(
        "{{\"code\":0,\"column_meta\":[[\"affected_rows\",\"INT\",4]],\"data\":[{row}],\"rows\":1}}"
    )
}

/// The answer to a statement that failed.
#[must_use]
pub fn error_answer(number: u16, message: &str) -> String {
    let mut out = format!("{{\"code\":{number},\"desc\":");
    push_text(message, &mut out);
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: TaosType) -> RestColumn {
        RestColumn {
            name: name.to_owned(),
            kind,
        }
    }

    #[test]
    fn rows_are_written_as_arrays_or_objects() {
        let columns = vec![
            column("ts", TaosType::Timestamp),
            column("f", TaosType::Float),
            column("d", TaosType::Double),
            column("n", TaosType::NChar(4)),
            column("b", TaosType::VarBinary(4)),
            column("i", TaosType::UBigInt),
        ];
        for has_names in [false, true] {
            let setting = (TaosPrecision::Milli, TimeZone::UTC);
            let mut answer = RestAnswer::new(columns.clone(), setting, has_names);
            let mut out = String::new();
            answer.begin(&mut out);
            for _ in 0..2 {
                answer.begin_row(&mut out);
                answer.time(1_500, &mut out);
                answer.float(f64::from(10.123_f32), &mut out);
                answer.float(1e-9, &mut out);
                answer.text("a\"\n\u{1}ü", &mut out);
                answer.bytes(&[0xaa, 1], &mut out);
                answer.integer(u64::MAX.into(), &mut out);
                answer.end_row(&mut out);
            }
            answer.end(&mut out);
            let json: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(json["rows"], 2);
            assert_eq!(json["column_meta"][1], serde_json::json!(["f", "FLOAT", 4]));
            let expected = if has_names {
                r#"{"ts":"1970-01-01T00:00:00.000Z","f":10.123,"d":1e-9,"n":"a\"\n\u0001ü","b":"aa01","i":18446744073709551615}"#
            } else {
                r#"["1970-01-01T00:00:00.000Z",10.123,1e-9,"a\"\n\u0001ü","aa01",18446744073709551615]"#
            };
            assert!(out.contains(expected), "{out}");
        }
    }

    #[test]
    fn zones_have_names() {
        assert!(is_zone("") && is_zone("Asia/Shanghai"));
        assert!(!is_zone("Nowhere/At all") && !is_zone("../etc/passwd"));
        let setting = (TaosPrecision::Milli, "Asia/Shanghai");
        let columns = vec![column("ts", TaosType::Timestamp)];
        let mut answer = RestAnswer::in_zone(columns, setting, false).unwrap();
        let mut out = String::new();
        answer.time(0, &mut out);
        assert_eq!(out, "\"1970-01-01T08:00:00.000+08:00\"");
    }

    #[test]
    fn floats_are_short() {
        let written = |value: f64| {
            let mut out = String::new();
            push_float(value, value.abs(), &mut out);
            out
        };
        assert_eq!(written(0.0), "0");
        assert_eq!(written(-340.242_342_4), "-340.2423424");
        assert_eq!(written(1e20), "100000000000000000000");
        assert_eq!(written(1e21), "1e+21");
        assert_eq!(written(2.5e-7), "2.5e-7");
    }

    #[test]
    fn other_answers_are_json() {
        let text = "{\"code\":0,\"column_meta\":[[\"affected_rows\",\"INT\",4]],\"data\":[[2]],\"rows\":1}";
        assert_eq!(update_answer(2, false), text);
        assert!(update_answer(2, true).contains("[{\"affected_rows\":2}]"));
        assert_eq!(
            error_answer(9728, "a \"b\""),
            "{\"code\":9728,\"desc\":\"a \\\"b\\\"\"}"
        );
    }
}
