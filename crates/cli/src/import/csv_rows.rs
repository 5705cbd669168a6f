//! Converts the rows of a CSV file to batches, as its plan says.

mod cells;

use super::column_roles::ImportRole;
use super::csv_plan::{CsvColumn, CsvPlan, TextKind, text_of};
use super::repeated_hours::RepeatedHours;
use super::series_steps::SeriesSteps;
use super::{BATCH_ROWS, ParsedBatch, ReadOptions, ReadPlanOptions};
use anyhow::Result;
use arrow::array::builder::{
    BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int32Builder, Int64Builder,
    StringBuilder, TimestampNanosecondBuilder, UInt64Builder,
};
use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Field, Schema};
use cells::{bytes, not_whole, tag_types, tag_value, truth, whole};
use marigram::Roles;
use marigram_model::{FieldType, TagType, quoted};
use marigram_tabular::cell::{DecimalMark, is_infinite, is_nan, is_null, read_f64};
use marigram_tabular::numerals::NumberLike;
use marigram_tabular::record::{RecordCell, TextRecord};
use marigram_tabular::time::{TimeReader, has_short_year};
use std::io::Read;
use std::sync::Arc;

/// Cells and bytes of a batch, beyond which it gets no more rows.
const BATCH_CELLS: usize = 4_000_000;
const BATCH_BYTES: usize = 32 << 20;

/// Reads a file and passes its rows to `send`, until `send` returns false. `steps` are the distances between
/// its rows, which repeated hours need.
pub(crate) fn read(
    source: Box<dyn Read>,
    reading: &ReadPlanOptions,
    (plan, steps): (&CsvPlan, Arc<SeriesSteps>),
    send: &dyn Fn(Result<ParsedBatch>) -> bool,
) -> Result<()> {
    let mut rows = CsvRows::new(reading, plan, steps);
    let mut records = plan.records(source)?;
    let mut record = TextRecord::default();
    while records.read(&mut record)? {
        if plan.is_total(&record) {
            continue;
        }
        rows.push(&record);
        if rows.is_full() && !send(rows.take()) {
            return Ok(());
        }
    }
    send(rows.take());
    Ok(())
}

/// A field column under construction.
enum CsvFieldValues {
    Bool(BooleanBuilder),
    I32(Int32Builder),
    I64(Int64Builder),
    U64(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Time(TimestampNanosecondBuilder),
}

/// The value of a cell.
enum CsvValue<'a> {
    None,
    Bool(bool),
    I32(i32),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
    Text(&'a str),
    Bytes(Vec<u8>),
    Time(i64),
}

impl CsvFieldValues {
    fn new(role: ImportRole) -> Self {
        let ImportRole::Field(kind) = role else {
            return Self::Text(StringBuilder::new());
        };
        match kind {
            FieldType::Bool => Self::Bool(BooleanBuilder::new()),
            FieldType::I32 => Self::I32(Int32Builder::new()),
            FieldType::I64 => Self::I64(Int64Builder::new()),
            FieldType::U64 => Self::U64(UInt64Builder::new()),
            FieldType::F32 => Self::F32(Float32Builder::new()),
            FieldType::F64 => Self::F64(Float64Builder::new()),
            FieldType::Timestamp => Self::Time(TimestampNanosecondBuilder::new()),
            FieldType::Bytes => Self::Bytes(BinaryBuilder::new()),
            FieldType::String => Self::Text(StringBuilder::new()),
        }
    }

    fn push(&mut self, value: CsvValue<'_>) {
        match (self, value) {
            (Self::Bool(b), CsvValue::Bool(v)) => b.append_value(v),
            (Self::Bool(b), _) => b.append_null(),
            (Self::I32(b), CsvValue::I32(v)) => b.append_value(v),
            (Self::I32(b), _) => b.append_null(),
            (Self::I64(b), CsvValue::I64(v)) => b.append_value(v),
            (Self::I64(b), _) => b.append_null(),
            (Self::U64(b), CsvValue::U64(v)) => b.append_value(v),
            (Self::U64(b), _) => b.append_null(),
            (Self::F32(b), CsvValue::F32(v)) => b.append_value(v),
            (Self::F32(b), _) => b.append_null(),
            (Self::F64(b), CsvValue::F64(v)) => b.append_value(v),
            (Self::F64(b), _) => b.append_null(),
            (Self::Text(b), CsvValue::Text(v)) => b.append_value(v),
            // A tag in the notation of its type.
            (Self::Text(b), CsvValue::I64(v)) => b.append_value(v.to_string()),
            (Self::Text(b), CsvValue::Bool(v)) => b.append_value(v.to_string()),
            (Self::Text(b), _) => b.append_null(),
            (Self::Bytes(b), CsvValue::Bytes(v)) => b.append_value(v),
            (Self::Bytes(b), _) => b.append_null(),
            (Self::Time(b), CsvValue::Time(v)) => b.append_value(v),
            (Self::Time(b), _) => b.append_null(),
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
            Self::Text(b) => Arc::new(b.finish()),
            Self::Bytes(b) => Arc::new(b.finish()),
            Self::Time(b) => Arc::new(b.finish()),
        }
    }
}

/// Parses a cell with the type of its column; returns the reason if it does not fit.
fn value_of<'a>(
    cell: RecordCell<'a>,
    (column, tag): (&CsvColumn, TagType),
    exact: bool,
    options: &ReadOptions,
) -> Result<CsvValue<'a>, String> {
    let nulls = &options.null;
    let kind = match column.role {
        ImportRole::Tag => {
            let text = text_of(cell, exact, nulls).filter(|text| !text.is_empty());
            return match text {
                Some(text) if !exact => tag_value(text, column, tag),
                text => Ok(text.map_or(CsvValue::None, CsvValue::Text)),
            };
        }
        ImportRole::Field(FieldType::String) => {
            return Ok(text_of(cell, exact, nulls).map_or(CsvValue::None, CsvValue::Text));
        }
        ImportRole::Field(kind) => kind,
        ImportRole::Time | ImportRole::Dropped => return Ok(CsvValue::None),
    };
    let text = cell.text.trim();
    if options.keeps_nan && (is_nan(text) || is_infinite(text)) {
        let value: Option<f64> = text.parse().ok();
        match (kind, value) {
            (FieldType::F64, Some(value)) => return Ok(CsvValue::F64(value)),
            (FieldType::F32, Some(value)) => return Ok(CsvValue::F32(value as f32)),
            _ => {}
        }
    }
    if cell.is_missing() || (!exact && is_null(text, nulls)) {
        return Ok(CsvValue::None);
    }
    let value = match kind {
        FieldType::Bool => truth(text).map(CsvValue::Bool),
        FieldType::I32 => whole(text, column, exact).map(CsvValue::I32),
        FieldType::I64 => whole(text, column, exact).map(CsvValue::I64),
        FieldType::U64 => whole(text, column, exact).map(CsvValue::U64),
        FieldType::F32 if exact => text.parse().ok().map(CsvValue::F32),
        FieldType::F32 if column.decimal == DecimalMark::Point && text.parse::<f32>().is_ok() => {
            // Rounded once, not first to a DOUBLE.
            let value: Option<f32> = text.parse().ok();
            value.filter(|value| value.is_finite()).map(CsvValue::F32)
        }
        FieldType::F32 => read_f64(text, column.decimal)
            .map(|v| v as f32)
            .filter(|v| v.is_finite())
            .map(CsvValue::F32),
        FieldType::F64 if exact => text.parse().ok().map(CsvValue::F64),
        FieldType::F64 => read_f64(text, column.decimal).map(CsvValue::F64),
        FieldType::Timestamp if has_short_year(text) => None,
        FieldType::Timestamp => TimeReader::default().read(text).ok().map(CsvValue::Time),
        FieldType::Bytes => bytes(text).map(CsvValue::Bytes),
        FieldType::String => Some(CsvValue::Text(text)),
    };
    value.ok_or_else(|| {
        if matches!(kind, FieldType::F64 | FieldType::F32) && is_infinite(text) {
            return format!(
                "column '{}': '{text}' is infinite; --null {text} reads it as no value",
                column.name
            );
        }
        if !exact && let Some(reason) = not_whole(text, column, kind) {
            return format!("column '{}': '{text}' {reason}", column.name);
        }
        let is_number = matches!(kind, FieldType::F64 | FieldType::F32);
        let what = match (NumberLike::from_cell(text), kind) {
            (Some(NumberLike::TooLarge), FieldType::F64) => "is not an exact DOUBLE".to_owned(),
            (Some(like), _) if is_number => format!("is not a number: it {}", like.words()),
            (None, _) if is_number => "is not a number".to_owned(),
            (_, FieldType::Bytes) => "is not BYTES (\\x and hexadecimal digits)".to_owned(),
            (_, other) => format!("is not {other}"),
        };
        format!("column '{}': '{text}' {what}", column.name)
    })
}

/// Rows under construction.
struct CsvRows<'a> {
    reading: &'a ReadPlanOptions,
    plan: &'a CsvPlan,
    columns: Vec<CsvFieldValues>,
    /// The type of each column as a tag of the table; STRING for other columns.
    tag_types: Vec<TagType>,
    /// Tells repeated hours apart, if the order of the rows does.
    hours: Option<RepeatedHours>,
    times: Vec<i64>,
    lines: Vec<u64>,
    bad: Vec<(u64, String)>,
    /// Rows of delimiters only, as spreadsheets write them below a table.
    blank: u64,
    /// Bytes of the cells of the batch.
    bytes: usize,
}

impl<'a> CsvRows<'a> {
    fn new(reading: &'a ReadPlanOptions, plan: &'a CsvPlan, steps: Arc<SeriesSteps>) -> Self {
        let hours = RepeatedHours::if_ordered(&reading.options, &plan.time);
        Self {
            reading,
            plan,
            columns: plan
                .columns
                .iter()
                .map(|column| CsvFieldValues::new(column.role))
                .collect(),
            tag_types: tag_types(reading, plan),
            hours: hours.map(|hours| hours.with_steps(steps)),
            times: Vec::new(),
            lines: Vec::new(),
            bad: Vec::new(),
            blank: 0,
            bytes: 0,
        }
    }

    /// Whether the batch has enough rows; if they are wide or long, fewer are enough.
    fn is_full(&self) -> bool {
        let rows = self.times.len() + self.bad.len();
        rows >= BATCH_ROWS || rows * self.columns.len() >= BATCH_CELLS || self.bytes >= BATCH_BYTES
    }

    fn push(&mut self, record: &TextRecord) {
        self.bytes += record.bytes();
        let is_blank = |cell: RecordCell<'_>| !cell.quoted && cell.text.trim().is_empty();
        if self.plan.kind != TextKind::Json && !record.is_empty() && record.cells().all(is_blank) {
            self.blank += 1;
            return;
        }
        match self.values(record) {
            Err(reason) => self.bad.push((record.line, reason)),
            Ok((time, values)) => {
                for (column, value) in self.columns.iter_mut().zip(values) {
                    column.push(value);
                }
                self.times.push(time);
                self.lines.push(record.line);
            }
        }
    }

    /// Time and values of a record, if everything in it can be stored.
    fn values<'r>(&mut self, record: &'r TextRecord) -> Result<(i64, Vec<CsvValue<'r>>), String> {
        if record.is_open {
            let (opened, ended) = record.lines_of(record.len().saturating_sub(1));
            return Err(format!(
                "the quotation mark that opens in line {opened} is never closed, so everything up to \
                 line {ended} is in one cell"
            ));
        }
        if record.misfit.is_some() && self.plan.kind == TextKind::Json {
            return Err(record.cell(0).text.to_owned());
        }
        if !self.plan.fits(record) {
            let (found, expected) = record
                .misfit
                .unwrap_or((record.len(), self.plan.columns.len()));
            let (_, ended) = record.lines_of(record.len().saturating_sub(1));
            let joined = if ended > record.line {
                format!("; quotation marks join it with the lines up to {ended}")
            } else {
                String::new()
            };
            return Err(format!("{found} values for {expected} columns{joined}"));
        }
        if let Some(reason) = self.swallowed_rows(record) {
            return Err(reason);
        }
        if record.cells().any(|cell| cell.text.contains('\u{fffd}')) && !self.plan.exact {
            return Err(format!("it is not {}", self.plan.encoding.name()));
        }
        let time = match &mut self.hours {
            Some(hours) => self.plan.ordered_time_of(record, hours)?,
            None => self.plan.time_of(record)?,
        };
        let options = &self.reading.options;
        let cells = self.plan.columns.iter().enumerate().map(|(at, column)| {
            let typed = (column, self.tag_types[at]);
            let value = value_of(record.cell(at), typed, self.plan.exact, options);
            value.map_err(|reason| {
                let text = record.cell(at).text.trim();
                let is_number = read_f64(text, column.decimal).is_some();
                self.with_remedy(reason, column, is_number)
            })
        });
        Ok((time, cells.collect::<Result<_, _>>()?))
    }

    /// The reason to refuse a cell, and how the column of an existing table takes such cells.
    fn with_remedy(&self, reason: String, column: &CsvColumn, is_number: bool) -> String {
        let Some(known) = &self.reading.known else {
            return reason;
        };
        let is_field = known.fields.iter().any(|(field, _)| *field == column.name);
        let ImportRole::Field(kind) = column.role else {
            return reason;
        };
        if !is_field || kind == FieldType::Bytes || reason.contains("--null") {
            return reason;
        }
        let (wider, what) = if is_number && kind != FieldType::Timestamp {
            ("DOUBLE", "such numbers")
        } else {
            ("STRING", "texts")
        };
        format!(
            "{reason}; ALTER TABLE {} ALTER COLUMN {} TYPE {wider} makes the column take {what}",
            quoted(&self.reading.table),
            quoted(&column.name)
        )
    }

    /// The reason to refuse a record in one of whose cells lie other rows, because a quotation mark is
    /// closed too late.
    fn swallowed_rows(&self, record: &TextRecord) -> Option<String> {
        let plan = self.plan;
        if plan.exact
            || plan.kind == TextKind::Json
            || record.lines_of(record.len().checked_sub(1)?).1 == record.line
        {
            return None;
        }
        let [(_, time_at)] = plan.time_columns.parts.as_slice() else {
            return None;
        };
        let delimiter = char::from(plan.dialect.delimiter);
        let is_row = |line: &str| {
            let mut cells = line.split(delimiter);
            let time = cells.nth(*time_at);
            time.is_some_and(|time| plan.time.read(time).is_ok())
                && line.matches(delimiter).count() + 1 >= plan.columns.len().min(2)
        };
        let at = (0..record.len()).find(|at| {
            let cell = record.cell(*at);
            cell.quoted && cell.text.split('\n').skip(1).any(is_row)
        })?;
        let (opened, ended) = record.lines_of(at);
        Some(format!(
            "the quotation mark that opens in line {opened} closes in line {ended} only, and rows lie \
             between them"
        ))
    }

    /// Takes the rows so far, and starts an empty batch.
    fn take(&mut self) -> Result<ParsedBatch> {
        self.bytes = 0;
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        let times = Int64Array::from(std::mem::take(&mut self.times));
        fields.push(Field::new(
            &self.plan.time_name,
            times.data_type().clone(),
            true,
        ));
        arrays.push(Arc::new(times));
        for (column, values) in self.plan.columns.iter().zip(&mut self.columns) {
            let values = values.finish();
            if matches!(column.role, ImportRole::Tag | ImportRole::Field(_)) {
                fields.push(Field::new(&column.name, values.data_type().clone(), true));
                arrays.push(values);
            }
        }
        let lines = std::mem::take(&mut self.lines);
        for (name, value) in &self.reading.constant_tags {
            let values = StringArray::from_iter_values(std::iter::repeat_n(value, lines.len()));
            fields.push(Field::new(name, values.data_type().clone(), true));
            arrays.push(Arc::new(values));
        }
        let constant = self
            .reading
            .constant_tags
            .iter()
            .map(|(name, _)| name.as_str());
        let roles = Roles::new(
            self.plan.time_name.clone(),
            self.plan.tags().chain(constant),
        );
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
        let mut parsed = parsed(
            self.reading,
            &roles,
            &rows,
            lines,
            std::mem::take(&mut self.bad),
        )?;
        parsed.empty += std::mem::take(&mut self.blank);
        Ok(parsed)
    }
}

/// Arrow rows as the writer takes them; `lines` are their lines in the file.
pub(crate) fn parsed(
    reading: &ReadPlanOptions,
    roles: &Roles,
    rows: &RecordBatch,
    lines: Vec<u64>,
    mut bad: Vec<(u64, String)>,
) -> Result<ParsedBatch> {
    let schema = reading.schema.as_deref();
    let mut roles = roles.clone();
    let mut renamed = None;
    if let Some(schema) = schema
        && roles.time != schema.time_name
    {
        // The table's time column and the file's have different names.
        renamed = Some(rename(rows, &roles.time, &schema.time_name)?);
        roles.time.clone_from(&schema.time_name);
    }
    let rows = renamed.as_ref().unwrap_or(rows);
    let (filled, lines) = with_values(rows, &roles, lines)?;
    let empty = (rows.num_rows() - filled.num_rows()) as u64;
    let rows = &filled;
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
        return Ok(ParsedBatch {
            batches: Vec::new(),
            lines: Vec::new(),
            bad,
            empty,
        });
    }
    Ok(ParsedBatch {
        batches: vec![converted.batch],
        lines: vec![kept],
        bad,
        empty,
    })
}

/// The rows that carry a value, and their lines; all rows if the table has no fields.
fn with_values(
    rows: &RecordBatch,
    roles: &Roles,
    lines: Vec<u64>,
) -> Result<(RecordBatch, Vec<u64>)> {
    let fields: Vec<&ArrayRef> = rows
        .schema_ref()
        .fields()
        .iter()
        .zip(rows.columns())
        .filter(|(field, _)| *field.name() != roles.time && !roles.tags.contains(field.name()))
        .map(|(_, column)| column)
        .collect();
    let has_value = |row: usize| fields.iter().any(|column| column.is_valid(row));
    if fields.is_empty() || (0..rows.num_rows()).all(has_value) {
        return Ok((rows.clone(), lines));
    }
    let mask: BooleanArray = (0..rows.num_rows())
        .map(|row| Some(has_value(row)))
        .collect();
    let kept = lines.iter().enumerate().filter(|(row, _)| has_value(*row));
    let kept = kept.map(|(_, line)| *line).collect();
    Ok((filter_record_batch(rows, &mask)?, kept))
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
pub(crate) mod tests;
