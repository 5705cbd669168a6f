//! Annotated CSV: what a query of Flux answers.
//!
//! Lines end with CR and LF. A table whose columns differ from those of the table before, or that
//! has no rows, gets annotations and a header of its own, behind an empty line. An empty line ends a
//! result.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, SchemaRef, TimestampNanosecondType, UInt64Type,
};
use arrow::record_batch::RecordBatch;
use chrono::DateTime;
use marigram_service::{FLUX_DEFAULT_KEY, FLUX_GROUP_KEY, FLUX_RESULT_KEY, FLUX_TABLE_KEY};
use serde_json::{Map, Value};
use std::fmt::Write;

/// A line of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CsvAnnotation {
    Datatype,
    Group,
    Default,
}

/// The form that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CsvDialect {
    has_header: bool,
    delimiter: char,
    annotations: Vec<CsvAnnotation>,
}

impl Default for CsvDialect {
    fn default() -> Self {
        Self {
            has_header: true,
            delimiter: ',',
            annotations: Vec::new(),
        }
    }
}

impl CsvDialect {
    /// The dialect of a request in JSON.
    ///
    /// # Errors
    /// What is wrong with it, in InfluxDB's words.
    pub(super) fn from_json(json: &Map<String, Value>) -> Result<Self, String> {
        let mut dialect = Self::default();
        match json.get("header") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(has_header)) => dialect.has_header = *has_header,
            Some(_) => return Err("invalid dialect header: must be a boolean".to_owned()),
        }
        match json.get("delimiter").and_then(Value::as_str) {
            None | Some("") => {}
            Some(text) => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(char), None) if !matches!(char, '\r' | '\n' | '"' | '\u{fffd}') => {
                        dialect.delimiter = char;
                    }
                    _ => return Err("invalid dialect delimeter: must be a single character".into()),
                }
            }
        }
        let prefix = json.get("commentPrefix").and_then(Value::as_str);
        if prefix.is_some_and(|prefix| prefix.chars().count() > 1) {
            return Err("invalid dialect comment prefix: must be length 0 or 1".to_owned());
        }
        match json.get("dateTimeFormat").and_then(Value::as_str) {
            None | Some("" | "RFC3339" | "RFC3339Nano") => {}
            Some(other) => return Err(format!("unknown dialect date time format: {other}")),
        }
        let annotations = json.get("annotations").and_then(Value::as_array);
        for annotation in annotations.into_iter().flatten() {
            dialect.annotations.push(match annotation.as_str() {
                Some("datatype") => CsvAnnotation::Datatype,
                Some("group") => CsvAnnotation::Group,
                Some("default") => CsvAnnotation::Default,
                _ => return Err(format!("unknown dialect annotation type: {annotation}")),
            });
        }
        Ok(dialect)
    }
}

/// Writes tables.
pub(super) struct AnnotatedCsv {
    dialect: CsvDialect,
    /// The columns of the table before, and whether it had no rows.
    last: Option<(SchemaRef, bool)>,
    /// The number of the table that is being written.
    table: Option<String>,
    /// What begins the rows of a table.
    row_head: String,
    has_written: bool,
    text: String,
}

impl AnnotatedCsv {
    /// A writer in a dialect.
    pub(super) fn new(dialect: CsvDialect) -> Self {
        Self {
            dialect,
            last: None,
            table: None,
            row_head: String::new(),
            has_written: false,
            text: String::new(),
        }
    }

    /// The bytes so far.
    pub(super) fn ready_bytes(&self) -> usize {
        self.text.len()
    }

    /// Takes the bytes so far.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text).into_bytes()
    }

    /// Adds the rows of a batch.
    pub(super) fn batch(&mut self, batch: &RecordBatch) {
        let schema = batch.schema();
        let metadata = |key: &str| schema.metadata().get(key).map_or("", String::as_str);
        let number = metadata(FLUX_TABLE_KEY);
        self.has_written = true;
        if number.is_empty() {
            self.text.push_str("\r\n");
            (self.last, self.table) = (None, None);
            return;
        }
        if self.table.as_deref() != Some(number) {
            self.begin_table(
                &schema,
                metadata(FLUX_RESULT_KEY),
                number,
                batch.num_rows() == 0,
            );
        }
        for row in 0..batch.num_rows() {
            self.text.push_str(&self.row_head);
            for column in batch.columns() {
                self.text.push(self.dialect.delimiter);
                value(&mut self.text, self.dialect.delimiter, column.as_ref(), row);
            }
            self.text.push_str("\r\n");
        }
    }

    fn begin_table(&mut self, schema: &SchemaRef, result: &str, number: &str, is_empty: bool) {
        let is_new = match &self.last {
            Some((last, was_empty)) => *was_empty || is_empty || !has_columns_of(last, schema),
            None => true,
        };
        if is_new {
            if self.last.is_some() {
                self.text.push_str("\r\n");
            }
            self.head(schema, result, is_empty.then_some(number));
        }
        let has_default = self.dialect.annotations.contains(&CsvAnnotation::Default);
        let mut head = String::new();
        head.push(self.dialect.delimiter);
        if !has_default {
            field(&mut head, self.dialect.delimiter, result);
        }
        head.push(self.dialect.delimiter);
        head.push_str(number);
        self.row_head = head;
        self.table = Some(number.to_owned());
        self.last = Some((SchemaRef::clone(schema), is_empty));
    }

    /// The annotations and the header of a table; its number, if it has no rows.
    fn head(&mut self, schema: &SchemaRef, result: &str, empty: Option<&str>) {
        for annotation in self.dialect.annotations.clone() {
            let mut cells: Vec<String> = Vec::with_capacity(schema.fields().len() + 3);
            match annotation {
                CsvAnnotation::Datatype => {
                    cells.extend(["#datatype", "string", "long"].map(str::to_owned));
                    let kinds = schema.fields().iter();
                    cells.extend(kinds.map(|field| datatype(field.data_type()).to_owned()));
                }
                CsvAnnotation::Group => {
                    cells.extend(["#group", "false", "false"].map(str::to_owned));
                    let fields = schema.fields().iter();
                    let is_key = |key: &str, field: &arrow::datatypes::FieldRef| {
                        field.metadata().contains_key(key).to_string()
                    };
                    cells.extend(fields.map(|field| is_key(FLUX_GROUP_KEY, field)));
                }
                CsvAnnotation::Default => {
                    let number = empty.unwrap_or_default();
                    cells.extend(["#default", result, number].map(str::to_owned));
                    let fields = schema.fields().iter();
                    cells.extend(fields.map(|field| {
                        let default = field.metadata().get(FLUX_DEFAULT_KEY);
                        default
                            .filter(|_| empty.is_some())
                            .cloned()
                            .unwrap_or_default()
                    }));
                }
            }
            self.line(cells.iter().map(String::as_str));
        }
        if self.dialect.has_header {
            let names = schema.fields().iter().map(|field| field.name().clone());
            let names: Vec<String> = names.collect();
            let names = names.iter().map(String::as_str);
            self.line(["", "result", "table"].into_iter().chain(names));
        }
    }

    fn line<'a>(&mut self, cells: impl Iterator<Item = &'a str>) {
        for (place, cell) in cells.enumerate() {
            if place > 0 {
                self.text.push(self.dialect.delimiter);
            }
            field(&mut self.text, self.dialect.delimiter, cell);
        }
        self.text.push_str("\r\n");
    }

    /// Adds an error, behind what was written, as a table of its own.
    pub(super) fn error(&mut self, message: &str) {
        if self.has_written {
            self.text.push_str("\r\n");
        }
        for annotation in self.dialect.annotations.clone() {
            self.line(
                match annotation {
                    CsvAnnotation::Datatype => ["#datatype", "string", "string"],
                    CsvAnnotation::Group => ["#group", "true", "true"],
                    CsvAnnotation::Default => ["#default", "", ""],
                }
                .into_iter(),
            );
        }
        self.line(["", "error", "reference"].into_iter());
        self.line(["", message, ""].into_iter());
    }
}

/// Whether two tables have the same columns, whatever their keys.
fn has_columns_of(a: &SchemaRef, b: &SchemaRef) -> bool {
    let same = |(a, b): (&arrow::datatypes::FieldRef, &arrow::datatypes::FieldRef)| {
        a.name() == b.name() && a.data_type() == b.data_type()
    };
    a.fields().len() == b.fields().len() && a.fields().iter().zip(b.fields()).all(same)
}

const fn datatype(kind: &DataType) -> &'static str {
    match kind {
        DataType::Boolean => "boolean",
        DataType::Int64 => "long",
        DataType::UInt64 => "unsignedLong",
        DataType::Float64 => "double",
        DataType::Timestamp(..) => "dateTime:RFC3339",
        _ => "string",
    }
}

fn value(out: &mut String, delimiter: char, array: &dyn Array, row: usize) {
    if array.is_null(row) {
        return;
    }
    // Writing to a string cannot fail.
    let _ = match array.data_type() {
        DataType::Boolean => write!(out, "{}", array.as_boolean().value(row)),
        DataType::Int64 => write!(out, "{}", array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => write!(out, "{}", array.as_primitive::<UInt64Type>().value(row)),
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            if value.is_infinite() {
                out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
                Ok(())
            } else {
                write!(out, "{value}")
            }
        }
        DataType::Timestamp(..) => time(
            out,
            array.as_primitive::<TimestampNanosecondType>().value(row),
        ),
        DataType::Utf8 => {
            field(out, delimiter, array.as_string::<i32>().value(row));
            Ok(())
        }
        _ => Ok(()),
    };
}

/// A time with as many digits as it needs.
fn time(out: &mut String, ns: i64) -> std::fmt::Result {
    let time = DateTime::from_timestamp_nanos(ns);
    write!(out, "{}", time.format("%Y-%m-%dT%H:%M:%S"))?;
    let fraction = ns.rem_euclid(1_000_000_000);
    if fraction != 0 {
        let digits = format!("{fraction:09}");
        write!(out, ".{}", digits.trim_end_matches('0'))?;
    }
    out.push('Z');
    Ok(())
}

/// A cell, in quotes where Go's writer of CSV sets them.
fn field(out: &mut String, delimiter: char, text: &str) {
    let is_special = |char: char| char == delimiter || matches!(char, '"' | '\r' | '\n');
    let needs_quotes =
        text == "\\." || text.contains(is_special) || text.starts_with(char::is_whitespace);
    if !needs_quotes {
        out.push_str(text);
        return;
    }
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\"\""),
            '\n' => out.push_str("\r\n"),
            '\r' => {}
            char => out.push(char),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float64Array, StringArray};
    use arrow::datatypes::{Field, Schema};
    use std::collections::HashMap;
    use std::sync::Arc;

    fn table(number: &str, host: &str, values: &[f64]) -> RecordBatch {
        let key = HashMap::from([(FLUX_GROUP_KEY.to_owned(), "true".to_owned())]);
        let fields = vec![
            Field::new("host", DataType::Utf8, true).with_metadata(key),
            Field::new("_value", DataType::Float64, true),
        ];
        let metadata = HashMap::from([
            (FLUX_RESULT_KEY.to_owned(), "_result".to_owned()),
            (FLUX_TABLE_KEY.to_owned(), number.to_owned()),
        ]);
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let hosts = vec![host; values.len()];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(hosts)),
            Arc::new(Float64Array::from(values.to_vec())),
        ];
        RecordBatch::try_new(schema, columns).unwrap()
    }

    fn dialect(json: &str) -> Result<CsvDialect, String> {
        let Value::Object(json) = serde_json::from_str(json).unwrap() else {
            panic!("{json}");
        };
        CsvDialect::from_json(&json)
    }

    #[test]
    fn tables_share_a_head_and_results_end_with_an_empty_line() {
        let all = dialect(r#"{"annotations": ["datatype", "group", "default"]}"#).unwrap();
        let mut csv = AnnotatedCsv::new(all);
        csv.batch(&table("0", "a,\"b\"", &[1.0]));
        csv.batch(&table("1", " c", &[1e21, f64::NEG_INFINITY]));
        csv.batch(&RecordBatch::new_empty(Arc::new(Schema::empty())));
        csv.error("it broke");
        let expected = "#datatype,string,long,string,double\r\n\
                        #group,false,false,true,false\r\n\
                        #default,_result,,,\r\n\
                        ,result,table,host,_value\r\n\
                        ,,0,\"a,\"\"b\"\"\",1\r\n\
                        ,,1,\" c\",1000000000000000000000\r\n\
                        ,,1,\" c\",-Inf\r\n\
                        \r\n\r\n\
                        #datatype,string,string\r\n\
                        #group,true,true\r\n\
                        #default,,\r\n\
                        ,error,reference\r\n\
                        ,it broke,\r\n";
        assert_eq!(String::from_utf8(csv.take()).unwrap(), expected);
    }

    #[test]
    fn a_dialect_has_its_bounds() {
        let mut csv = AnnotatedCsv::new(dialect(r#"{"header": false, "delimiter": ";"}"#).unwrap());
        csv.batch(&table("0", "a;b", &[0.5]));
        assert_eq!(csv.take(), b";_result;0;\"a;b\";0.5\r\n");
        for wrong in [
            r#"{"delimiter": "ab"}"#,
            r#"{"delimiter": "\n"}"#,
            r#"{"annotations": ["x"]}"#,
            r#"{"commentPrefix": "ab"}"#,
            r#"{"dateTimeFormat": "x"}"#,
            r#"{"header": 1}"#,
        ] {
            assert!(dialect(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_the_digits_that_they_need() {
        let shown = |ns| {
            let mut out = String::new();
            time(&mut out, ns).unwrap();
            out
        };
        assert_eq!(shown(0), "1970-01-01T00:00:00Z");
        assert_eq!(shown(1_500_000_000), "1970-01-01T00:00:01.5Z");
        assert_eq!(shown(-1), "1969-12-31T23:59:59.999999999Z");
    }
}
