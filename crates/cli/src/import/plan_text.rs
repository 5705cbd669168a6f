//! Describes the plan of an import.

use super::csv_plan::{CsvPlan, CsvRole, TextKind};
use super::{KnownColumns, ReadPlanOptions};
use marigram_tabular::cell::DecimalMark;
use marigram_tabular::time::{DateOrder, TimeFormat};
use std::fmt::Write;

/// Characters of each cell that are shown of the sample row.
const CELL_CHARS: usize = 24;

/// Describes how a CSV file will be read, and names each option that changes it.
pub(super) fn csv(name: &str, plan: &CsvPlan, reading: &ReadPlanOptions) -> String {
    let mut text = String::new();
    let new = if reading.known.is_some() { "" } else { "new " };
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{words}");
    };
    line(format_args!("{name} → {new}table {}", reading.table));
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
    if plan.kind == TextKind::Json {
        line(format_args!("  form    JSON lines"));
    } else {
        line(format_args!(
            "  form    {}, delimiter {delimiter}, decimal {decimal}, {header}{skipped}{units}",
            plan.encoding.name()
        ));
    }
    line(format_args!("  time    {}", time(plan)));
    let tags: Vec<&str> = plan
        .tags()
        .chain(reading.constant_tags.iter().map(|(name, _)| name.as_str()))
        .collect();
    let how = if plan.inferred_tags {
        " (detected; --tags sets them)"
    } else {
        ""
    };
    let none = "none: one series";
    let tags = if tags.is_empty() {
        none.to_owned()
    } else {
        tags.join(", ")
    };
    line(format_args!("  tags    {tags}{how}"));
    let fields = plan.columns.iter().filter_map(|column| match column.role {
        CsvRole::Field(kind) => Some(format!("{} {kind}", column.name)),
        _ => None,
    });
    line(format_args!(
        "  fields  {}",
        fields.collect::<Vec<_>>().join(", ")
    ));
    if !plan.sample.is_empty() {
        let cells = plan.columns.iter().zip(&plan.sample).map(|(column, cell)| {
            let cut: String = cell.chars().take(CELL_CHARS).collect();
            let more = if cut.len() < cell.len() { "…" } else { "" };
            format!("{}={cut}{more}", column.file_name)
        });
        line(format_args!(
            "  sample  {}",
            cells.collect::<Vec<_>>().join(" · ")
        ));
    }
    if plan.without_zone && reading.known.is_some() {
        line(format_args!(
            "  note    the table exists already: if its rows came with --tz, give it again, or the \
             same hours are stored a second time"
        ));
    }
    for note in &plan.notes {
        line(format_args!("  note    {note}"));
    }
    text
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
