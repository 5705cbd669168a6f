//! CSV with a header, in batches.

use super::infer::{self, Plan, is_null, read_bool, read_f64};
use super::time_text::TimeForm;
use super::{BATCH_ROWS, Parsed, Reading};
use anyhow::{Context, Result, bail};
use arrow::array::builder::{
    BooleanBuilder, Float32Builder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
    TimestampNanosecondBuilder, UInt64Builder,
};
use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema};
use csv::StringRecord;
use marigram_model::FieldType;
use std::io::Read;
use std::sync::Arc;

/// Rows from which types are inferred.
const SAMPLE_ROWS: usize = 10_000;

/// Reads a file and hands its rows on, until `send` says that nobody wants more.
pub fn read(
    source: impl Read,
    reading: &Reading,
    delimiter: u8,
    send: &dyn Fn(Result<Parsed>) -> bool,
) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .from_reader(source);
    let header = reader.headers().context("its header line cannot be read")?;
    let names: Vec<String> = header
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}').trim().to_owned())
        .collect();
    if names.iter().all(String::is_empty) {
        bail!("it has no header line with the names of its columns");
    }
    let mut records = reader.into_records();
    let mut sample = Vec::new();
    let mut bad = Vec::new();
    for record in records.by_ref().take(SAMPLE_ROWS) {
        take_record(record, &mut sample, &mut bad)?;
    }
    let texts: Vec<Vec<String>> = sample
        .iter()
        .filter(|record| record.len() == names.len())
        .map(|record| record.iter().map(|cell| cell.trim().to_owned()).collect())
        .collect();
    let plan = infer::plan(reading, &names, &texts)?;
    let mut rows = Rows::new(reading, &names, &plan);
    rows.bad = bad;
    for record in &sample {
        rows.push(record);
        if rows.lines.len() >= BATCH_ROWS && !send(rows.take()) {
            return Ok(());
        }
    }
    drop(sample);
    let mut pending = Vec::new();
    for record in records {
        take_record(record, &mut pending, &mut rows.bad)?;
        for record in pending.drain(..) {
            rows.push(&record);
        }
        if rows.lines.len() >= BATCH_ROWS && !send(rows.take()) {
            return Ok(());
        }
    }
    send(rows.take());
    Ok(())
}

/// Keeps a good record, names one that is not text, and fails where the file cannot be read on.
fn take_record(
    record: csv::Result<StringRecord>,
    good: &mut Vec<StringRecord>,
    bad: &mut Vec<(u64, String)>,
) -> Result<()> {
    match record {
        Ok(record) => good.push(record),
        Err(error) => match error.kind() {
            csv::ErrorKind::Utf8 { pos, .. } => {
                let line = pos.as_ref().map_or(0, csv::Position::line);
                bad.push((line, "it is not UTF-8".to_owned()));
            }
            _ => return Err(error).context("it cannot be read on"),
        },
    }
    Ok(())
}

/// A field column under construction.
enum Column {
    Bool(BooleanBuilder),
    I32(Int32Builder),
    I64(Int64Builder),
    U64(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Text(StringBuilder),
    Time(TimestampNanosecondBuilder),
}

impl Column {
    fn new(kind: Option<FieldType>) -> Self {
        match kind {
            Some(FieldType::Bool) => Self::Bool(BooleanBuilder::new()),
            Some(FieldType::I32) => Self::I32(Int32Builder::new()),
            Some(FieldType::I64) => Self::I64(Int64Builder::new()),
            Some(FieldType::U64) => Self::U64(UInt64Builder::new()),
            Some(FieldType::F32) => Self::F32(Float32Builder::new()),
            Some(FieldType::F64) => Self::F64(Float64Builder::new()),
            Some(FieldType::Timestamp) => Self::Time(TimestampNanosecondBuilder::new()),
            Some(FieldType::String | FieldType::Bytes) | None => Self::Text(StringBuilder::new()),
        }
    }

    /// Whether a cell can be a value of the column.
    fn takes(&self, cell: &str) -> Result<(), &'static str> {
        let (fits, what) = match self {
            Self::Bool(_) => (truth(cell).is_some(), "BOOLEAN"),
            Self::I32(_) => (cell.parse::<i32>().is_ok(), "INT"),
            Self::I64(_) => (cell.parse::<i64>().is_ok(), "BIGINT"),
            Self::U64(_) => (cell.parse::<u64>().is_ok(), "BIGINT UNSIGNED"),
            Self::F32(_) => (cell.parse::<f32>().is_ok(), "FLOAT"),
            Self::F64(_) => (read_f64(cell).is_some(), "an exact DOUBLE"),
            Self::Time(_) => (TimeForm::Iso.read(cell).is_some(), "TIMESTAMP"),
            Self::Text(_) => (true, "STRING"),
        };
        if fits { Ok(()) } else { Err(what) }
    }

    /// Appends a cell that the column takes; `None` is null.
    fn push(&mut self, cell: Option<&str>) {
        match self {
            Self::Bool(b) => b.append_option(cell.and_then(truth)),
            Self::I32(b) => b.append_option(cell.and_then(|c| c.parse().ok())),
            Self::I64(b) => b.append_option(cell.and_then(|c| c.parse().ok())),
            Self::U64(b) => b.append_option(cell.and_then(|c| c.parse().ok())),
            Self::F32(b) => b.append_option(cell.and_then(|c| c.parse().ok())),
            Self::F64(b) => b.append_option(cell.and_then(read_f64)),
            Self::Time(b) => b.append_option(cell.and_then(|c| TimeForm::Iso.read(c))),
            Self::Text(b) => b.append_option(cell),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(b) => Arc::new(b.finish()),
            Self::I32(b) => Arc::new(b.finish()),
            Self::I64(b) => Arc::new(b.finish()),
            Self::U64(b) => Arc::new(b.finish()),
            Self::F32(b) => Arc::new(b.finish()),
            Self::F64(b) => Arc::new(b.finish()),
            Self::Time(b) => Arc::new(b.finish()),
            Self::Text(b) => Arc::new(b.finish()),
        }
    }
}

/// In a column that is BOOLEAN in the table, 0 and 1 are truth values, too.
fn truth(cell: &str) -> Option<bool> {
    match cell {
        "0" => Some(false),
        "1" => Some(true),
        other => read_bool(other),
    }
}

/// Rows under construction.
struct Rows<'a> {
    reading: &'a Reading,
    names: &'a [String],
    plan: &'a Plan,
    columns: Vec<Column>,
    times: Vec<i64>,
    lines: Vec<u64>,
    bad: Vec<(u64, String)>,
}

impl<'a> Rows<'a> {
    fn new(reading: &'a Reading, names: &'a [String], plan: &'a Plan) -> Self {
        let columns = plan.kinds.iter().map(|kind| Column::new(*kind)).collect();
        let (times, lines, bad) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            reading,
            names,
            plan,
            columns,
            times,
            lines,
            bad,
        }
    }

    fn push(&mut self, record: &StringRecord) {
        let line = record.position().map_or(0, csv::Position::line);
        match self.time_of(record) {
            Err(reason) => self.bad.push((line, reason)),
            Ok(time) => {
                for (at, (column, cell)) in self.columns.iter_mut().zip(record).enumerate() {
                    let cell = cell.trim();
                    if at != self.plan.time_at {
                        column.push((!is_null(cell)).then_some(cell));
                    }
                }
                self.times.push(time);
                self.lines.push(line);
            }
        }
    }

    /// The time of a record, if all of it can be stored.
    fn time_of(&self, record: &StringRecord) -> Result<i64, String> {
        if record.len() != self.names.len() {
            return Err(format!(
                "{} values for {} columns",
                record.len(),
                self.names.len()
            ));
        }
        let name = &self.names[self.plan.time_at];
        let cell = &record[self.plan.time_at];
        if is_null(cell.trim()) {
            return Err(format!("it has no time (column '{name}' is empty)"));
        }
        let time = self.plan.time_form.read(cell);
        let time = time.ok_or_else(|| format!("column '{name}': '{cell}' is not a time"))?;
        for (at, (column, cell)) in self.columns.iter().zip(record).enumerate() {
            let cell = cell.trim();
            if at == self.plan.time_at || is_null(cell) {
                continue;
            }
            column
                .takes(cell)
                .map_err(|kind| format!("column '{}': '{cell}' is not {kind}", self.names[at]))?;
        }
        Ok(time)
    }

    /// The rows so far; begins anew.
    fn take(&mut self) -> Result<Parsed> {
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (at, name) in self.names.iter().enumerate() {
            let values = if at == self.plan.time_at {
                Arc::new(Int64Array::from(std::mem::take(&mut self.times))) as ArrayRef
            } else {
                self.columns[at].finish()
            };
            fields.push(Field::new(name, values.data_type().clone(), true));
            arrays.push(values);
        }
        let lines = std::mem::take(&mut self.lines);
        for (name, value) in &self.reading.constant_tags {
            let values = StringArray::from_iter_values(std::iter::repeat_n(value, lines.len()));
            fields.push(Field::new(name, values.data_type().clone(), true));
            arrays.push(Arc::new(values));
        }
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
        parsed(
            self.reading,
            &self.plan.roles,
            &rows,
            lines,
            std::mem::take(&mut self.bad),
        )
    }
}

/// Arrow rows as they are handed to the writer; `lines` are their lines in the file.
pub fn parsed(
    reading: &Reading,
    roles: &marigram::Roles,
    rows: &RecordBatch,
    lines: Vec<u64>,
    mut bad: Vec<(u64, String)>,
) -> Result<Parsed> {
    let schema = reading.schema.as_deref();
    let mut roles = roles.clone();
    let mut renamed = None;
    if let Some(schema) = schema
        && roles.time != schema.time_name
    {
        // The table's time column has another name than the file's.
        renamed = Some(rename(rows, &roles.time, &schema.time_name)?);
        roles.time.clone_from(&schema.time_name);
    }
    let rows = renamed.as_ref().unwrap_or(rows);
    let converted = marigram::convert(&reading.table, &roles, schema, rows)?;
    let line_of = |row: u32| lines.get(row as usize).copied().unwrap_or(0);
    bad.extend(
        converted
            .rejected
            .iter()
            .map(|row| (line_of(row.row), row.reason.clone())),
    );
    let count = u32::try_from(converted.batch.len())?;
    let kept = (0..count)
        .map(|row| line_of(converted.source_row(row)))
        .collect();
    if count == 0 {
        return Ok(Parsed {
            batches: Vec::new(),
            lines: Vec::new(),
            bad,
        });
    }
    Ok(Parsed {
        batches: vec![converted.batch],
        lines: vec![kept],
        bad,
    })
}

fn rename(rows: &RecordBatch, from: &str, to: &str) -> Result<RecordBatch> {
    let fields = rows.schema_ref().fields().iter().map(|field| {
        let name = if field.name() == from {
            to
        } else {
            field.name()
        };
        Field::new(name, field.data_type().clone(), field.is_nullable())
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(RecordBatch::try_new(schema, rows.columns().to_vec())?)
}

#[cfg(test)]
mod tests {
    use super::super::ReadOptions;
    use super::*;
    use marigram_model::TagValueRef;
    use std::cell::RefCell;

    fn import(text: &str, options: ReadOptions) -> Result<Vec<Parsed>> {
        let reading = Reading {
            table: "pump".into(),
            schema: None,
            options,
            constant_tags: vec![("plant".into(), "west".into())],
            types: Vec::new(),
        };
        let parsed = RefCell::new(Vec::new());
        read(text.as_bytes(), &reading, b',', &|item| {
            parsed.borrow_mut().push(item);
            true
        })?;
        parsed.into_inner().into_iter().collect()
    }

    #[test]
    fn good_rows_are_kept_and_bad_ones_named_by_line() {
        let text = "time,site,rpm\n2026-01-01 00:00:00,a,900\n2026-01-01 00:01:00,b\n\
                    ,a,901\nlater,a,902\n2026-01-01 00:02:00,\"a\nb\",\n2026-01-01 00:03:00,a,903\n";
        let options = ReadOptions {
            tags: vec!["site".into()],
            ..ReadOptions::default()
        };
        let parsed = import(text, options).unwrap();
        let parsed = &parsed[0];
        let batch = &parsed.batches[0];
        assert_eq!(batch.len(), 3);
        assert_eq!(parsed.lines, [[2, 6, 8]]);
        let bad: Vec<u64> = parsed.bad.iter().map(|(line, _)| *line).collect();
        assert_eq!(bad, [3, 4, 5]);
        assert_eq!(batch.fields[0].kind(), FieldType::F64);
        let plant = batch.tags.iter().find(|tag| tag.name == "plant").unwrap();
        assert_eq!(plant.value(0), Some(TagValueRef::String("west")));
    }

    #[test]
    fn a_file_without_a_time_says_so() {
        let error = import("a,b\n1,2\n", ReadOptions::default())
            .map(|_| ())
            .unwrap_err();
        assert!(error.to_string().contains("--time-column"), "{error}");
    }
}
