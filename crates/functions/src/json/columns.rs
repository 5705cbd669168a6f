//! Columns whose values are written as JSON.

use super::JSON_FIELD;
use crate::interval_text::format_postgres_interval;
use crate::refusal::refused;
use crate::value_texts::{as_intervals, float_texts, hexadecimal_bytes};
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNanoType};
use datafusion::common::Result;
use std::fmt::Write;

/// The longest text within JSON.
const TEXT_BYTES_MAX: i32 = 16 << 20;

/// See the module documentation.
pub(super) enum JsonColumn {
    /// Texts, and whether numbers and booleans stand without quotes.
    Plain { texts: StringArray, is_bare: bool },
    /// JSON.
    Json { texts: StringArray },
    /// Arrays.
    Lists {
        lists: ListArray,
        elements: Box<JsonColumn>,
    },
    /// Rows of named values.
    Rows {
        rows: StructArray,
        names: Vec<String>,
        values: Vec<JsonColumn>,
    },
}

impl JsonColumn {
    pub(super) fn new(array: &ArrayRef) -> Result<Self> {
        if let DataType::LargeList(element) | DataType::FixedSizeList(element, _) =
            array.data_type()
        {
            return Self::new(&cast(array, &DataType::List(element.clone()))?);
        }
        if let Some(lists) = array.as_list_opt::<i32>() {
            return Ok(Self::Lists {
                lists: lists.clone(),
                elements: Box::new(Self::new(lists.values())?),
            });
        }
        if let Some(rows) = array.as_struct_opt() {
            return Self::from_rows(rows);
        }
        let texts = match array.data_type() {
            kind if kind.is_floating() => float_texts(array)?,
            DataType::Interval(_) | DataType::Duration(_) => {
                let intervals = as_intervals(array)?;
                let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
                let texts = intervals.iter();
                texts
                    .map(|interval| interval.map(format_postgres_interval))
                    .collect()
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                let bytes = cast(array, &DataType::Binary)?;
                let texts = bytes.as_binary::<i32>().iter();
                texts.map(|bytes| bytes.map(hexadecimal_bytes)).collect()
            }
            DataType::Timestamp(..) => {
                let texts = cast(array, &DataType::Utf8)?;
                let texts = texts.as_string::<i32>().iter();
                texts.map(|text| text.map(json_time)).collect()
            }
            _ => cast(array, &DataType::Utf8)?.as_string::<i32>().clone(),
        };
        // Each text within JSON within JSON may double; so none is long.
        let offsets = texts.value_offsets().windows(2);
        let longest = offsets.map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        if longest > TEXT_BYTES_MAX {
            let message = format!("JSON takes texts of at most {TEXT_BYTES_MAX} bytes");
            return Err(refused("54000", message));
        }
        let is_bare = is_bare(array.data_type());
        Ok(Self::Plain { texts, is_bare })
    }

    fn from_rows(rows: &StructArray) -> Result<Self> {
        let names = rows.fields().iter().map(|field| field.name().clone());
        let names: Vec<String> = names.collect();
        if let ([name], [json]) = (names.as_slice(), rows.columns())
            && name == JSON_FIELD
        {
            let texts = cast(json, &DataType::Utf8)?.as_string::<i32>().clone();
            return Ok(Self::Json { texts });
        }
        let values = rows.columns().iter().map(Self::new);
        Ok(Self::Rows {
            rows: rows.clone(),
            names,
            values: values.collect::<Result<_>>()?,
        })
    }

    /// Whether a value is null. A structure of JSON has no other nulls than those of its field.
    pub(super) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Plain { texts, .. } | Self::Json { texts } => texts.is_null(row),
            Self::Lists { lists, .. } => lists.is_null(row),
            Self::Rows { rows, .. } => rows.is_null(row),
        }
    }

    /// Whether PostgreSQL begins a new line with each value of an array.
    fn has_lines(&self) -> bool {
        matches!(self, Self::Lists { .. } | Self::Rows { .. })
    }

    /// Writes a value.
    pub(super) fn write(&self, row: usize, out: &mut String) {
        if self.is_null(row) {
            out.push_str("null");
            return;
        }
        match self {
            Self::Plain { texts, is_bare } => {
                let text = texts.value(row);
                let stands_bare = text.parse::<f64>().is_ok_and(f64::is_finite)
                    || matches!(text, "true" | "false");
                if *is_bare && stands_bare {
                    out.push_str(text);
                } else {
                    write_quoted(text, out);
                }
            }
            Self::Json { texts } => out.push_str(texts.value(row)),
            Self::Lists { lists, elements } => {
                let offsets = lists.value_offsets();
                out.push('[');
                for (at, element) in (offsets[row]..offsets[row + 1]).enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    elements.write(element as usize, out);
                }
                out.push(']');
            }
            Self::Rows { names, values, .. } => {
                out.push('{');
                for (at, (name, value)) in names.iter().zip(values).enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_quoted(name, out);
                    out.push(':');
                    value.write(row, out);
                }
                out.push('}');
            }
        }
    }

    /// Writes an array as `json_agg` does.
    pub(super) fn write_list(&self, row: usize, out: &mut String) {
        let Self::Lists { lists, elements } = self else {
            self.write(row, out);
            return;
        };
        let offsets = lists.value_offsets();
        out.push('[');
        for (at, element) in (offsets[row]..offsets[row + 1]).enumerate() {
            let element = element as usize;
            if at > 0 {
                out.push_str(", ");
                if elements.has_lines() && !elements.is_null(element) {
                    out.push_str("\n ");
                }
            }
            elements.write(element, out);
        }
        out.push(']');
    }

    /// Writes an array of pairs as `json_object_agg` does.
    pub(super) fn write_members(&self, row: usize, out: &mut String) -> Result<()> {
        let Self::Lists { lists, elements } = self else {
            return Err(refused("XX000", "an object is made of a list of pairs"));
        };
        let Self::Rows { values, .. } = elements.as_ref() else {
            return Err(refused("XX000", "an object is made of pairs"));
        };
        let [names, values] = values.as_slice() else {
            return Err(refused("XX000", "a pair has a name and a value"));
        };
        let offsets = lists.value_offsets();
        out.push_str("{ ");
        for (at, element) in (offsets[row]..offsets[row + 1]).enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            names.write_name(element as usize, out)?;
            out.push_str(" : ");
            values.write(element as usize, out);
        }
        out.push_str(" }");
        Ok(())
    }

    /// Writes the name of a value.
    pub(super) fn write_name(&self, row: usize, out: &mut String) -> Result<()> {
        match self {
            Self::Plain { texts, .. } if texts.is_valid(row) => {
                write_quoted(texts.value(row), out);
                Ok(())
            }
            Self::Plain { .. } => Err(refused("22023", "a name of a JSON object is null")),
            _ => Err(refused(
                "22023",
                "a name of a JSON object is a plain value, not an array, a row or JSON",
            )),
        }
    }
}

/// Whether JSON writes values of a type without quotes.
fn is_bare(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_bare(value),
        kind => kind.is_numeric() || matches!(kind, DataType::Boolean),
    }
}

/// A time as JSON has it: UTC with an offset, and no zeros at the end of a fraction.
fn json_time(time: &str) -> String {
    let time = match time.strip_suffix('Z') {
        Some(time) => format!("{time}+00:00"),
        None => time.to_owned(),
    };
    let Some((before, rest)) = time.split_once('.') else {
        return time;
    };
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let (digits, offset) = rest.split_at(end.unwrap_or(rest.len()));
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{before}{point}{digits}{offset}")
}

pub(super) fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_json() {
        let mut out = String::new();
        write_quoted("a\"b\\\n\u{1}é", &mut out);
        assert_eq!(out, "\"a\\\"b\\\\\\n\\u0001é\"");
    }
}
