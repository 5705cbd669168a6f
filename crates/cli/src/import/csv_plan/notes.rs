//! What the plan of a CSV file tells the user before the import, and what it refuses.

use super::CsvPlan;
use super::columns::told_type;
use crate::import::ReadPlanOptions;
use crate::import::column_roles::ImportRole;
use crate::import::new_columns::new_column;
use crate::terminal;
use anyhow::{Result, bail};
use marigram_model::{FieldType, quoted};
use marigram_tabular::cell::{DecimalMark, read_f64};
use marigram_tabular::dialect::TextDialect;
use marigram_tabular::profile::ColumnProfile;
use marigram_tabular::time::{TimeEvidence, TimeReader};
use std::collections::HashSet;

/// Headers between the rows that the plan tells of one by one.
const HEADERS_NOTED: usize = 5;

/// Notes about lines below the header that hold no rows: descriptions of columns, and further headers.
pub(crate) fn skipped_lines(plan: &CsvPlan) -> Vec<String> {
    let described = plan.dialect.described.iter().map(|(line, cells)| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("'{cell}'")).collect();
        format!(
            "line {line} describes the columns and is skipped: {}",
            cells.join(", ")
        )
    });
    let mut notes: Vec<String> = described.collect();
    if !plan.dialect.renamed.is_empty() {
        let renamed = plan.dialect.renamed.iter();
        let renamed: Vec<String> = renamed
            .map(|(from, to)| format!("'{from}' is '{to}'"))
            .collect();
        notes.push(format!(
            "the header names columns twice: the further {}",
            renamed.join(", ")
        ));
    }
    let headers = &plan.headers;
    if headers.again > 0 {
        notes.push(format!(
            "the header comes again in {}, the first in line {}; such lines are skipped",
            terminal::counted(headers.again, "line"),
            headers.again_line
        ));
    }
    for other in headers.others.iter().take(HEADERS_NOTED) {
        let names = other
            .columns
            .iter()
            .map(|at| plan.dialect.names[*at].as_str());
        notes.push(format!(
            "line {} is another header: {}; the rows below it are read by its names",
            other.line,
            names.collect::<Vec<_>>().join(", ")
        ));
    }
    let others = headers.others_count.min(HEADERS_NOTED as u64);
    if headers.others_count > others {
        notes.push(format!(
            "{} more are other headers",
            terminal::counted(headers.others_count - others, "line")
        ));
    }
    notes
}

/// The note for a header that has characters which are none in the encoding of the file.
pub(crate) fn damaged_name(plan: &CsvPlan) -> Option<String> {
    let mut names = plan.dialect.names.iter();
    let name = names.find(|name| name.contains('\u{fffd}'))?;
    Some(format!(
        "the header has characters that are not {} or were damaged before: '{name}'; --encoding latin1 reads \
         it otherwise",
        plan.encoding.name()
    ))
}

/// Refuses a header between the rows that names no time, because its rows would have none.
pub(crate) fn refuse_headers_without_time(plan: &CsvPlan) -> Result<()> {
    for other in &plan.headers.others {
        let mut parts = plan.time_columns.parts.iter();
        let missing = parts.find(|(_, at)| !other.columns.contains(at));
        let Some((_, missing)) = missing else {
            continue;
        };
        let names = &plan.dialect.names;
        let found: Vec<&str> = other.columns.iter().map(|at| names[*at].as_str()).collect();
        bail!(
            "line {} is another header ({}), which has no column '{}' for the time; nothing was \
             written: import the rows below it as a file of their own",
            other.line,
            found.join(", "),
            names[*missing]
        );
    }
    Ok(())
}

/// The note for times of which only some name a zone.
pub(crate) fn mixed_zones(time: &TimeReader, evidence: &TimeEvidence) -> Option<String> {
    let (offsets, names) = evidence.zones();
    let (named, all) = (offsets + names, evidence.cells());
    if time.form.is_moment() || named == 0 || named >= all {
        return None;
    }
    let others = match time.zone.name() {
        Some(zone) => format!("zone {zone}"),
        None => "UTC (--tz Europe/Berlin for another)".to_owned(),
    };
    Some(format!(
        "{named} of {all} times name a time zone; the others are read as {others}"
    ))
}

/// Refuses rows that have more cells than the header, as decimal commas without quotes make them:
/// the values would come under other names than their own.
pub(crate) fn refuse_beyond_header(
    dialect: &TextDialect,
    profiles: &[ColumnProfile],
) -> Result<()> {
    let width = dialect.names.len() - dialect.added_later;
    let named = width - dialect.beyond_header;
    if profiles[named..width].iter().all(ColumnProfile::is_empty) {
        return Ok(());
    }
    bail!(
        "the header names {named} columns, but rows have {width} cells. If they have decimal commas, \
         the file needs another delimiter or quotes; if the header is short, skip it with --skip \
         and --no-header"
    )
}

/// Notes what the user should know about a column: that it is new, or text because of a few cells.
pub(crate) fn note_column(
    plan: &mut CsvPlan,
    reading: &ReadPlanOptions,
    at: usize,
    (profile, refused): (&ColumnProfile, &HashSet<u64>),
) -> Result<()> {
    let column = &plan.columns[at];
    let name = column.name.clone();
    let is_nameless = column.file_name == format!("column{}", at + 1);
    let is_data = match column.role {
        ImportRole::Tag | ImportRole::Field(_) => true,
        ImportRole::Dropped => reading.options.strict && !is_nameless,
        ImportRole::Time => false,
    };
    if is_data {
        plan.notes.extend(new_column(reading, &name)?);
    }
    if let Some(known) = &reading.known
        && let ImportRole::Field(told) = plan.columns[at].role
        && let Some((_, kind)) = known
            .field_types()?
            .iter()
            .find(|(field, _)| *field == name)
        && *kind != told
    {
        bail!(
            "--types {name}={told}: column '{name}' of table '{}' is {kind}; leave the option out, or \
             give the column another type first: ALTER TABLE {} ALTER COLUMN {} TYPE {told}",
            reading.table,
            quoted(&reading.table),
            quoted(&name)
        );
    }
    note_numbers(plan, at, profile);
    let is_told = told_type(reading, &plan.columns[at].file_name, &name).is_some();
    let fields = reading.known.iter().flat_map(|known| &known.fields);
    let is_known = fields.into_iter().any(|(field, _)| *field == name);
    note_identifiers(plan, at, (profile, refused), is_told || is_known);
    if !is_told && !is_known {
        note_text(plan, at, (profile, refused));
    }
    Ok(())
}

/// Notes how numbers were read that could be others, and which texts are no value.
fn note_numbers(plan: &mut CsvPlan, at: usize, profile: &ColumnProfile) {
    let column = &plan.columns[at];
    let ImportRole::Field(FieldType::F64 | FieldType::F32 | FieldType::I64 | FieldType::I32) =
        column.role
    else {
        return;
    };
    let name = &column.name;
    if profile.is_ambiguous(plan.dialect.delimiter)
        && let Some(cell) = profile.ambiguous_number()
        && let Some(number) = read_f64(cell, column.decimal)
    {
        let (mark, other) = match column.decimal {
            DecimalMark::Point => ("point", ","),
            DecimalMark::Comma => ("comma", "."),
        };
        plan.notes.push(format!(
            "column '{name}': '{cell}' is read as {number}, because the decimal mark of the file is a \
             {mark}; --decimal {other} reads it otherwise"
        ));
    }
    if let Some((code, count)) = profile.missing_code() {
        plan.notes.push(format!(
            "column '{name}': '{code}' ({}) is stored as a number; if it stands for no value, --null={code} \
             reads it as such",
            terminal::count(count)
        ));
    }
    let markers = profile.marker_texts();
    if !markers.is_empty() {
        let texts: Vec<String> = markers
            .iter()
            .map(|(text, count)| format!("'{text}' ({})", terminal::count(*count)))
            .collect();
        plan.notes.push(format!(
            "column '{name}': {} {} no value",
            texts.join(", "),
            if markers.len() == 1 { "is" } else { "are" }
        ));
    }
}

/// Notes that whole numbers are kept as texts because they look like identifiers; or that they are not,
/// because the type `is_decided`.
fn note_identifiers(
    plan: &mut CsvPlan,
    at: usize,
    (profile, refused): (&ColumnProfile, &HashSet<u64>),
    is_decided: bool,
) {
    let Some(cell) = profile.identifier(refused) else {
        return;
    };
    let (name, role) = (&plan.columns[at].name, plan.columns[at].role);
    let what = if cell.starts_with('0') {
        format!("'{cell}' begins with a zero")
    } else if cell.starts_with('+') {
        format!("'{cell}' begins with a plus, as telephone numbers do")
    } else {
        format!("'{cell}' among whole numbers may be a name")
    };
    let note = match role {
        ImportRole::Field(FieldType::String) if !is_decided => format!(
            "column '{name}' is STRING because {what}, which a number would not keep; --types \
             {name}=double makes it a number"
        ),
        ImportRole::Field(kind) if kind != FieldType::String => {
            format!("column '{name}': {what}, which {kind} does not keep")
        }
        _ => return,
    };
    plan.notes.push(note);
}

/// Notes that a column is text because of a few cells, or although most of its cells look like numbers.
fn note_text(plan: &mut CsvPlan, at: usize, (profile, refused): (&ColumnProfile, &HashSet<u64>)) {
    if profile.identifier(refused).is_some() {
        return;
    }
    let obstacles = profile.obstacles();
    if plan.columns[at].role == ImportRole::Field(FieldType::String) && !obstacles.is_empty() {
        let name = &plan.columns[at].name;
        plan.notes.push(format!(
            "column '{name}' is text: {}; --types {name}=double stores the cells that are numbers, and \
             refuses the other rows",
            obstacles.join("; ")
        ));
        return;
    }
    let (name, decimal) = (plan.columns[at].name.clone(), plan.columns[at].decimal);
    let is_text = plan.columns[at].role == ImportRole::Field(FieldType::String);
    if is_text && let Some(few) = profile.few_exceptions(decimal) {
        let named: Vec<String> = few
            .named
            .iter()
            .map(|(line, cell)| format!("line {line} '{cell}'"))
            .collect();
        let rest = few.count - few.named.len() as u64;
        let more = if rest > 0 {
            format!(" and {rest} more")
        } else {
            String::new()
        };
        let markers: HashSet<&str> = few.named.iter().map(|(_, cell)| cell.as_str()).collect();
        let mut markers: Vec<&str> = markers.into_iter().collect();
        markers.sort_unstable();
        plan.notes.push(format!(
            "column '{name}' is STRING because of {} of {} cells that are not numbers: {}{more}; \
             --null '{}' reads them as no value, --types {name}=double refuses their rows",
            few.count,
            few.count + few.numbers,
            named.join(", "),
            markers.join(",")
        ));
    }
}
