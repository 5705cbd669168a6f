//! Prints the answer to a statement, in the requested format.

use crate::json_numbers::FloatEncoders;
use crate::reply::{ReplyRows, StatementFailure, StatementReply};
use crate::zoned_rows::in_session_zone;
use crate::{interrupt, table, terminal};
use anyhow::Result;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::csv::WriterBuilder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::json::writer::{JsonArray, LineDelimited};
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use clap::ValueEnum;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// Format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerForm {
    /// Aligned columns for people
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// Tab-separated values with a header line
    Tsv,
    /// One JSON array of objects
    Json,
    /// One JSON object per line
    Ndjson,
}

/// Whether the values of a row stand one below the other, one per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpandedRows {
    /// No.
    Off,
    /// Yes.
    On,
    /// Only if a table would be wider than the terminal.
    Auto,
}

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrintOptions {
    /// The format.
    pub form: AnswerForm,
    /// The most rows of a table to show; the others are only counted. `None` shows all.
    pub rows_max: Option<usize>,
    /// Whether to print how long the statement took.
    pub timing: bool,
    /// Whether to print a line about rows and time after each answer.
    pub summary: bool,
    /// The most characters of a value in a table; longer values are cut and counted. `None` cuts
    /// nothing.
    pub width_max: Option<usize>,
    /// Whether the rows of a table are printed expanded.
    pub expanded: ExpandedRows,
    /// Width of the terminal in characters.
    pub columns: usize,
    /// Whether the output goes to a file, without colours.
    pub is_plain: bool,
}

/// Widest value of a table in the shell, in characters.
pub(crate) const WIDTH_MAX: usize = 60;

/// Prints `reply`; `begin` is when the statement began.
pub(crate) fn print(
    reply: StatementReply,
    printing: PrintOptions,
    begin: Instant,
    out: &mut dyn Write,
) -> Result<()> {
    match reply {
        StatementReply::Done(tag) => {
            if printing.summary {
                let time = timing(printing, begin);
                writeln!(out, "{tag}{time}")?;
            }
        }
        StatementReply::Rows(rows) if printing.form == AnswerForm::Table => {
            print_table(in_session_zone(rows), printing, begin, out)?;
        }
        StatementReply::Rows(rows) => print_data(rows, printing.form, out)?,
    }
    Ok(())
}

fn timing(printing: PrintOptions, begin: Instant) -> String {
    if printing.timing {
        format!(" · {}", terminal::span(begin.elapsed()))
    } else {
        String::new()
    }
}

/// Prints the first rows as a table, then the number of rows.
fn print_table(
    rows: ReplyRows,
    printing: PrintOptions,
    begin: Instant,
    out: &mut dyn Write,
) -> Result<()> {
    let (mut shown, mut shown_rows, mut total) = (Vec::new(), 0, 0);
    for batch in rows.batches {
        let batch = batch?;
        let room = printing.rows_max.map_or(usize::MAX, |max| max - shown_rows);
        total += batch.num_rows();
        if room > 0 {
            let part = batch.slice(0, room.min(batch.num_rows()));
            shown_rows += part.num_rows();
            shown.push(part);
        }
    }
    let time = timing(printing, begin);
    let mut notes = Vec::new();
    if shown_rows < total {
        let count = terminal::count(shown_rows as u64);
        notes.push(format!("the first {count} are shown; \\limit 0 shows all"));
    }
    if is_plan(&rows.schema) {
        print_plan(&shown, out)?;
    } else if is_statement(&rows.schema) {
        print_statements(&shown, out)?;
    } else {
        let rendered = render(&rows.schema, &shown, printing)?;
        put(&rendered.text, out)?;
        if rendered.cut > 0 {
            let values = match rendered.cut {
                1 => "1 value is".to_owned(),
                cut => format!("{} values are", terminal::count(cut as u64)),
            };
            let width = printing.width_max.unwrap_or(WIDTH_MAX);
            notes.push(format!(
                "{values} cut at {width} characters; \\x shows values whole"
            ));
        }
    }
    if printing.summary {
        let all = terminal::counted(total as u64, "row");
        let notes = std::iter::once(format!("{all}{time}")).chain(notes);
        let summary = format!("({})", notes.collect::<Vec<_>>().join(" · "));
        if printing.is_plain {
            writeln!(out, "{summary}")?;
        } else {
            writeln!(
                out,
                "{}",
                terminal::styled(terminal::TextStyle::Dim, &summary)
            )?;
        }
    }
    Ok(())
}

fn render(
    schema: &SchemaRef,
    shown: &[RecordBatch],
    printing: PrintOptions,
) -> Result<table::RenderedTable> {
    if printing.expanded == ExpandedRows::On {
        return Ok(table::render_expanded(schema, shown, 1)?);
    }
    let rendered = table::render(schema, shown, printing.width_max)?;
    if printing.expanded == ExpandedRows::Auto && rendered.width > printing.columns {
        return Ok(table::render_expanded(schema, shown, 1)?);
    }
    Ok(rendered)
}

/// Writes a text piece by piece, until Ctrl-C.
fn put(text: &str, out: &mut dyn Write) -> Result<()> {
    for part in text.as_bytes().chunks(PART_BYTES) {
        if interrupt::is_raised() {
            return Err(StatementFailure::new(interrupt::CANCELLED).into());
        }
        out.write_all(part)?;
    }
    Ok(())
}

/// Bytes to write between two checks for Ctrl-C.
const PART_BYTES: usize = 8 << 10;

/// Whether the rows answer a SHOW CREATE TABLE.
fn is_statement(schema: &Schema) -> bool {
    let names = schema.fields().iter().map(|field| field.name().as_str());
    names.eq(["table_name", "statement"])
}

/// Prints statements in a form that can be run again.
fn print_statements(batches: &[RecordBatch], out: &mut dyn Write) -> Result<()> {
    for batch in batches {
        let statements = batch.column(1).as_string_opt::<i32>();
        for statement in statements.into_iter().flatten().flatten() {
            writeln!(out, "{};", statement.trim_end_matches(';'))?;
        }
    }
    Ok(())
}

/// Whether the rows answer an EXPLAIN.
fn is_plan(schema: &Schema) -> bool {
    let names = schema.fields().iter().map(|field| field.name().as_str());
    names.eq(["plan_type", "plan"])
}

/// Prints plans unchanged, line by line: a table would cut them.
fn print_plan(batches: &[RecordBatch], out: &mut dyn Write) -> Result<()> {
    for batch in batches {
        let texts = [0, 1].map(|column| batch.column(column).as_string_opt::<i32>());
        let [Some(kinds), Some(plans)] = texts else {
            continue;
        };
        for (kind, plan) in kinds.iter().zip(plans) {
            writeln!(out, "{}", kind.unwrap_or_default())?;
            for line in plan.unwrap_or_default().lines() {
                writeln!(out, "  {line}")?;
            }
        }
    }
    Ok(())
}

/// Prints rows for programs, as they arrive.
fn print_data(rows: ReplyRows, form: AnswerForm, out: &mut dyn Write) -> Result<()> {
    match form {
        AnswerForm::Csv | AnswerForm::Tsv => {
            let delimiter = if form == AnswerForm::Tsv { b'\t' } else { b',' };
            let mut writer = csv_builder().with_delimiter(delimiter).build(out);
            // Print a header even if there are no rows.
            writer.write(&with_flat_values(&RecordBatch::new_empty(
                rows.schema.clone(),
            ))?)?;
            for batch in rows.batches {
                writer.write(&with_flat_values(&batch?)?)?;
            }
        }
        AnswerForm::Json => {
            let mut writer = json_builder().build::<_, JsonArray>(&mut *out);
            for batch in rows.batches {
                writer.write(&batch?)?;
            }
            writer.finish()?;
            writeln!(out)?;
        }
        AnswerForm::Table | AnswerForm::Ndjson => {
            let mut writer = json_builder().build::<_, LineDelimited>(&mut *out);
            for batch in rows.batches {
                writer.write(&batch?)?;
            }
            writer.finish()?;
        }
    }
    Ok(())
}

/// The rows with arrays and structures as texts, as tables and the server show them: CSV has no such
/// values.
pub(crate) fn with_flat_values(rows: &RecordBatch) -> Result<RecordBatch> {
    if !rows
        .columns()
        .iter()
        .any(|values| values.data_type().is_nested())
    {
        return Ok(rows.clone());
    }
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, values) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        if !values.data_type().is_nested() {
            fields.push(field.as_ref().clone());
            columns.push(Arc::clone(values));
            continue;
        }
        let texts = (0..values.len()).map(|row| {
            let text = values
                .is_valid(row)
                .then(|| array_value_to_string(values, row));
            text.transpose()
        });
        let texts: StringArray = texts.collect::<Result<_, _>>()?;
        fields.push(Field::new(field.name(), DataType::Utf8, true));
        columns.push(Arc::new(texts));
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// CSV as all commands write it: with a header, and with times as RFC 3339.
pub(crate) fn csv_builder() -> WriterBuilder {
    WriterBuilder::new()
        .with_header(true)
        .with_timestamp_format("%Y-%m-%dT%H:%M:%S%.fZ".to_owned())
}

fn json_builder() -> arrow::json::WriterBuilder {
    arrow::json::WriterBuilder::new()
        .with_encoder_factory(Arc::new(FloatEncoders))
        .with_explicit_nulls(true)
        .with_timestamp_format("%Y-%m-%dT%H:%M:%S%.fZ".to_owned())
}

/// Prints a failure and its position in the statement to stderr.
pub(crate) fn print_failure(failure: &StatementFailure, statement: &str) {
    erroutln!("{} {}", terminal::error_label(), failure.explain(statement));
}
