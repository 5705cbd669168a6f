//! Prints what a statement gave back, in the form that was asked for.

use crate::reply::{Failure, Reply, Rows};
use crate::{table, terminal};
use anyhow::Result;
use arrow::array::AsArray;
use arrow::csv::WriterBuilder;
use arrow::datatypes::Schema;
use arrow::json::writer::{JsonArray, LineDelimited};
use arrow::record_batch::RecordBatch;
use clap::ValueEnum;
use std::io::Write;
use std::time::Instant;

/// Form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Aligned columns for people
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// Tab-separated values with a header line
    Tsv,
    /// One JSON array of objects
    Json,
    /// One JSON object a line
    Ndjson,
}

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Printing {
    /// The form.
    pub form: Form,
    /// Rows of a table that are shown; the others are only counted. `None` shows all.
    pub rows_max: Option<usize>,
    /// Whether to say how long it took.
    pub timing: bool,
    /// Whether to print a line about rows and time after each answer.
    pub summary: bool,
}

/// Prints `reply`; `begin` is when its statement began.
pub fn print(reply: Reply, printing: Printing, begin: Instant, out: &mut dyn Write) -> Result<()> {
    match reply {
        Reply::Done(tag) => {
            if printing.summary {
                let time = timing(printing, begin);
                writeln!(out, "{tag}{time}")?;
            }
        }
        Reply::Rows(rows) if printing.form == Form::Table => {
            print_table(rows, printing, begin, out)?;
        }
        Reply::Rows(rows) => print_data(rows, printing.form, out)?,
    }
    Ok(())
}

fn timing(printing: Printing, begin: Instant) -> String {
    if printing.timing {
        format!(" · {}", terminal::span(begin.elapsed()))
    } else {
        String::new()
    }
}

/// The first rows as a table, then how many there are.
fn print_table(rows: Rows, printing: Printing, begin: Instant, out: &mut dyn Write) -> Result<()> {
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
    if is_plan(&rows.schema) {
        print_plan(&shown, out)?;
    } else {
        write!(out, "{}", table::render(&rows.schema, &shown)?)?;
    }
    if printing.summary {
        let all = terminal::counted(total as u64, "row");
        let cut = if shown_rows < total {
            format!(
                " · the first {} are shown; \\limit 0 shows all",
                terminal::count(shown_rows as u64)
            )
        } else {
            String::new()
        };
        writeln!(
            out,
            "{}",
            terminal::styled(terminal::Style::Dim, &format!("({all}{time}{cut})"))
        )?;
    }
    Ok(())
}

/// Whether the rows are the answer to an EXPLAIN.
fn is_plan(schema: &Schema) -> bool {
    let names = schema.fields().iter().map(|field| field.name().as_str());
    names.eq(["plan_type", "plan"])
}

/// Plans as they are, line by line: a table would cut them.
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

/// Rows for programs, written as they come.
fn print_data(rows: Rows, form: Form, out: &mut dyn Write) -> Result<()> {
    match form {
        Form::Csv | Form::Tsv => {
            let delimiter = if form == Form::Tsv { b'\t' } else { b',' };
            let mut writer = csv_builder().with_delimiter(delimiter).build(out);
            // A header even where there are no rows.
            writer.write(&RecordBatch::new_empty(rows.schema.clone()))?;
            for batch in rows.batches {
                writer.write(&batch?)?;
            }
        }
        Form::Json => {
            let mut writer = json_builder().build::<_, JsonArray>(&mut *out);
            for batch in rows.batches {
                writer.write(&batch?)?;
            }
            writer.finish()?;
            writeln!(out)?;
        }
        Form::Table | Form::Ndjson => {
            let mut writer = json_builder().build::<_, LineDelimited>(&mut *out);
            for batch in rows.batches {
                writer.write(&batch?)?;
            }
            writer.finish()?;
        }
    }
    Ok(())
}

/// CSV as everything here writes it: a header, times as RFC 3339.
pub fn csv_builder() -> WriterBuilder {
    WriterBuilder::new()
        .with_header(true)
        .with_timestamp_format("%Y-%m-%dT%H:%M:%S%.fZ".to_owned())
}

fn json_builder() -> arrow::json::WriterBuilder {
    arrow::json::WriterBuilder::new()
        .with_explicit_nulls(true)
        .with_timestamp_format("%Y-%m-%dT%H:%M:%S%.fZ".to_owned())
}

/// Prints a failure with its place in the statement, on stderr.
pub fn print_failure(failure: &Failure, statement: &str) {
    eprintln!("{} {}", terminal::error_label(), failure.explain(statement));
}
