//! Describes the plan of an import.

use super::column_roles::ImportRole;
use super::csv_plan::{CsvPlan, TextKind};
use super::parquet_plan::ParquetPlan;
use super::{KnownColumns, ReadPlanOptions};
use marigram_tabular::cell::DecimalMark;
use marigram_tabular::time::{DateOrder, TimeFormat};
use std::fmt::Write;

/// Characters of each cell that are shown of the sample row.
const CELL_CHARS: usize = 24;

/// What a plan says of a file, in the order in which it is shown.
struct PlanLines {
    /// How the file is written.
    form: String,
    /// How its times are read.
    time: String,
    /// Names of the tags.
    tags: Vec<String>,
    /// Whether the tags were inferred.
    inferred_tags: bool,
    /// Names and types of the fields.
    fields: Vec<String>,
    /// Name and text of each cell of the first row.
    sample: Vec<(String, String)>,
    /// What the user should know before the import.
    notes: Vec<String>,
}

impl PlanLines {
    /// The plan as text, with each option that changes it.
    fn text(&self, name: &str, reading: &ReadPlanOptions) -> String {
        let mut text = String::new();
        let new = if reading.known.is_some() { "" } else { "new " };
        let mut line = |words: std::fmt::Arguments<'_>| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{words}");
        };
        line(format_args!("{name} → {new}table {}", reading.table));
        line(format_args!("  form    {}", self.form));
        line(format_args!("  time    {}", self.time));
        let constant = reading.constant_tags.iter().map(|(name, _)| name.clone());
        let tags: Vec<String> = self.tags.iter().cloned().chain(constant).collect();
        let tags = if tags.is_empty() {
            "none: one series".to_owned()
        } else {
            tags.join(", ")
        };
        let how = if self.inferred_tags {
            " (detected; --tags sets them)"
        } else {
            ""
        };
        line(format_args!("  tags    {tags}{how}"));
        line(format_args!("  fields  {}", self.fields.join(", ")));
        if !self.sample.is_empty() {
            let cells = self.sample.iter().map(|(name, cell)| {
                let cut: String = cell.chars().take(CELL_CHARS).collect();
                let more = if cut.len() < cell.len() { "…" } else { "" };
                format!("{name}={cut}{more}")
            });
            line(format_args!(
                "  sample  {}",
                cells.collect::<Vec<_>>().join(" · ")
            ));
        }
        for note in &self.notes {
            line(format_args!("  note    {note}"));
        }
        text
    }
}

/// Describes how a CSV file will be read, and names each option that changes it.
pub(super) fn csv(name: &str, plan: &CsvPlan, reading: &ReadPlanOptions) -> String {
    let fields = plan.columns.iter().filter_map(|column| match column.role {
        ImportRole::Field(kind) => Some(format!("{} {kind}", column.name)),
        _ => None,
    });
    let sample = plan.columns.iter().zip(&plan.sample);
    let mut notes = Vec::new();
    if plan.without_zone && reading.known.is_some() {
        notes.push(
            "the table exists already: if its rows came with --tz, give it again, or the same \
             hours are stored a second time"
                .to_owned(),
        );
    }
    notes.extend(plan.notes.iter().cloned());
    let lines = PlanLines {
        form: csv_form(plan),
        time: time(plan),
        tags: plan.tags().map(ToOwned::to_owned).collect(),
        inferred_tags: plan.inferred_tags,
        fields: fields.collect(),
        sample: sample
            .map(|(column, cell)| (column.file_name.clone(), cell.clone()))
            .collect(),
        notes,
    };
    lines.text(name, reading)
}

/// How a CSV file is written.
fn csv_form(plan: &CsvPlan) -> String {
    if plan.kind == TextKind::Json {
        return "JSON lines".to_owned();
    }
    let dialect = &plan.dialect;
    let delimiter = match dialect.delimiter {
        b'\t' => "tab".to_owned(),
        delimiter => format!("'{}'", char::from(delimiter)),
    };
    let decimal = match plan.decimal {
        DecimalMark::Point => "'.'",
        DecimalMark::Comma => "','",
    };
    let header = match dialect.header_line {
        Some(at) => format!("header in line {at}"),
        None => "no header".to_owned(),
    };
    let skipped = match dialect.skipped() {
        0 => String::new(),
        lines => format!(", {lines} lines before it skipped"),
    };
    let units = match &dialect.units {
        Some(_) => ", units below it skipped",
        None => "",
    };
    format!(
        "{}, delimiter {delimiter}, decimal {decimal}, {header}{skipped}{units}",
        plan.encoding.name()
    )
}

/// Describes how a Parquet file will be read.
pub(super) fn parquet(name: &str, plan: &ParquetPlan, reading: &ReadPlanOptions) -> String {
    let left_out = plan.left_out.iter().map(|column| {
        format!(
            "column '{column}' is left out: its values are lists or structures, which no column of a \
             table holds"
        )
    });
    let lines = PlanLines {
        form: if plan.is_export {
            "Parquet, an export".to_owned()
        } else {
            "Parquet".to_owned()
        },
        time: plan.time_words(reading.options.precision),
        tags: plan.tags().map(ToOwned::to_owned).collect(),
        inferred_tags: plan.inferred_tags,
        fields: plan
            .fields()
            .map(|(name, kind)| format!("{name} {kind}"))
            .collect(),
        sample: plan.sample.clone(),
        notes: left_out.chain(plan.notes.iter().cloned()).collect(),
    };
    lines.text(name, reading)
}

fn time(plan: &CsvPlan) -> String {
    let parts = plan.time_columns.parts.iter();
    let names: Vec<&str> = parts
        .map(|(_, at)| plan.columns[*at].file_name.as_str())
        .collect();
    let from = names.join(" + ");
    let form = match &plan.time.form {
        TimeFormat::Number(precision) => format!("{precision} since 1970"),
        TimeFormat::Written(DateOrder::Ymd) => "ISO 8601".to_owned(),
        TimeFormat::Written(order) => order.words().to_owned(),
        TimeFormat::Pattern(pattern) => format!("'{pattern}'"),
        TimeFormat::SpreadsheetDays => "days since 1899-12-30".to_owned(),
        TimeFormat::Counted(count) => count.words().to_owned(),
    };
    let form = format!("{form}{}", sample_time(plan).unwrap_or_default());
    let zone = match (plan.time.zone.name(), plan.without_zone) {
        (Some(zone), _) => format!(", zone {zone}"),
        (None, true) => ", no zone in the file: UTC (--tz Europe/Berlin for another)".to_owned(),
        (None, false) => String::new(),
    };
    let name = if from == plan.time_name {
        String::new()
    } else {
        format!(" as {}", plan.time_name)
    };
    format!("{from}{name}, {form}{zone}")
}

/// The first time beside what it was read from, if that is a number: it says nothing to people.
fn sample_time(plan: &CsvPlan) -> Option<String> {
    let [(_, at)] = plan.time_columns.parts.as_slice() else {
        return None;
    };
    let cell = plan.sample.get(*at)?.trim();
    let is_number = cell
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.,eE".contains(&byte));
    let is_bare = matches!(plan.time.form, TimeFormat::Written(_)) && cell.contains(['-', '.']);
    if !is_number || is_bare {
        return None;
    }
    let ns = plan.time.read(cell).ok()?;
    let time = jiff::Timestamp::from_nanosecond(i128::from(ns)).ok()?;
    Some(format!(" ({cell} is {time})"))
}

/// Describes the tables that files of another format go to.
pub(super) fn other(
    name: &str,
    form: &str,
    known: Option<&KnownColumns>,
    table: Option<&str>,
) -> String {
    let mut text = format!("{name} → ");
    let _ = match table {
        Some(table) => writeln!(text, "table {table} ({form})"),
        None => writeln!(text, "its own tables ({form})"),
    };
    if let Some(known) = known {
        let names = |columns: &[(String, String)]| {
            let typed = columns.iter().map(|(name, kind)| format!("{name} {kind}"));
            typed.collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(text, "  time    {}", known.time);
        let _ = writeln!(text, "  tags    {}", names(&known.tags));
        let _ = writeln!(text, "  fields  {}", names(&known.fields));
    }
    text
}
