//! The roles and types of a CSV file's columns.

use super::{CsvColumn, CsvPlan, OpenFile};
use crate::import::ReadPlanOptions;
use crate::import::column_roles::{ImportRole, inferred_tags, told_tags};
use crate::import::repeated_hours::RepeatedHours;
use anyhow::Result;
use marigram_model::FieldType;
use marigram_tabular::layout::ColumnLayout;
use marigram_tabular::profile::ColumnProfile;
use marigram_tabular::record::TextRecord;
use marigram_tabular::tags::{self, RowSample, TagCandidate};
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64;

/// What was seen of the columns of a file.
pub(crate) struct SeenColumns<'a> {
    /// The columns of the table, or of the one that the file was exported from.
    pub known: Option<&'a ColumnLayout>,
    /// The cells of each column.
    pub profiles: &'a [ColumnProfile],
    /// The name of each column in the table.
    pub table_names: &'a [String],
    /// Columns whose values are texts in the file.
    pub texts: &'a HashSet<usize>,
    /// Lines whose rows are refused; they have no say.
    pub refused: &'a HashSet<u64>,
}

/// Decides the role and the type of each column.
pub(crate) fn add(
    plan: &mut CsvPlan,
    reading: &ReadPlanOptions,
    seen: &SeenColumns<'_>,
) -> Result<()> {
    let names = &plan.dialect.names;
    let told_tags = told_tags(&reading.options, seen.known, names, seen.table_names)?;
    let mut empty = Vec::new();
    for (at, profile) in seen.profiles.iter().enumerate() {
        let file_name = plan.dialect.names[at].clone();
        let name = seen.table_names[at].clone();
        let role = if plan.time_columns.contains(at) {
            ImportRole::Time
        } else if told_tags.contains(&at) {
            ImportRole::Tag
        } else if file_name == format!("column{}", at + 1) && profile.is_empty() {
            ImportRole::Dropped
        } else {
            let inferred = || {
                if seen.texts.contains(&at) {
                    FieldType::String
                } else {
                    profile.kind_without(plan.decimal, seen.refused)
                }
            };
            let decided = decided(reading, seen.known, &file_name, &name)?;
            if decided.is_none() && profile.has_no_text() {
                empty.push(at);
            }
            ImportRole::Field(decided.unwrap_or_else(inferred))
        };
        let decimal = profile.decimal(plan.decimal);
        let is_text = role == ImportRole::Field(FieldType::String);
        plan.columns.push(CsvColumn {
            can_tell: can_tell(&file_name, is_text, profile),
            file_name,
            name,
            role,
            decimal,
        });
    }
    leave_out(plan, &empty);
    Ok(())
}

/// Whether a column could be a tag: texts with few values, or whole numbers that are named like an
/// identity or a channel. Others are measured values, or so many that each row would be a series.
fn can_tell(name: &str, is_text: bool, profile: &ColumnProfile) -> bool {
    let is_identity = tags::is_identity(name);
    let candidate = TagCandidate {
        name: name.to_owned(),
        is_text,
        distinct: profile.distinct(),
    };
    if tags::is_channel(name) {
        return is_text || profile.is_integer();
    }
    if is_identity {
        return (is_text || profile.is_integer()) && candidate.is_likely(profile.values);
    }
    let is_few = |distinct: usize| distinct as u64 * 2 <= profile.values;
    is_text && profile.obstacles().is_empty() && candidate.distinct.is_some_and(is_few)
}

/// Takes columns without any value out of a plan: nothing says which type they would have. A file whose
/// fields are all empty keeps them, because a table needs one.
fn leave_out(plan: &mut CsvPlan, empty: &[usize]) {
    let is_kept = |(at, column): (usize, &CsvColumn)| {
        matches!(column.role, ImportRole::Field(_)) && !empty.contains(&at)
    };
    if !plan.columns.iter().enumerate().any(is_kept) {
        return;
    }
    for at in empty {
        let column = &mut plan.columns[*at];
        column.role = ImportRole::Dropped;
        plan.notes.push(format!(
            "column '{name}' has no value; it is left out; --types {name}=string creates it",
            name = column.file_name
        ));
    }
}

/// The type that the options give to a column.
pub(crate) fn told_type(
    reading: &ReadPlanOptions,
    file_name: &str,
    name: &str,
) -> Option<FieldType> {
    let types = &reading.types;
    let exact = |told: &str| told == file_name || told == name;
    let alike = |told: &str| told.eq_ignore_ascii_case(file_name);
    let found = types.iter().find(|(told, _)| exact(told));
    let found = found.or_else(|| types.iter().find(|(told, _)| alike(told)));
    found.map(|(_, kind)| *kind)
}

/// The type that the options or the table give to a column.
fn decided(
    reading: &ReadPlanOptions,
    known: Option<&ColumnLayout>,
    file_name: &str,
    name: &str,
) -> Result<Option<FieldType>> {
    let told = told_type(reading, file_name, name);
    if told.is_some() {
        return Ok(told);
    }
    if let Some(known) = known
        && let Some((_, kind)) = known
            .field_types()?
            .into_iter()
            .find(|(field, _)| field == name)
    {
        return Ok(Some(kind));
    }
    Ok(None)
}

/// Infers tags from the rows of some times; takes all rows of a time, or none.
pub(crate) fn infer_tags(
    open: OpenFile<'_>,
    plan: &mut CsvPlan,
    reading: &ReadPlanOptions,
    seen: &SeenColumns<'_>,
) -> Result<()> {
    let mut places = Vec::new();
    let mut candidates = Vec::new();
    for (at, (column, profile)) in plan.columns.iter().zip(seen.profiles).enumerate() {
        let told = told_type(reading, &column.file_name, &column.name);
        if told.is_some_and(|kind| kind != FieldType::String) {
            continue;
        }
        let is_text = column.role == ImportRole::Field(FieldType::String);
        if matches!(column.role, ImportRole::Field(_)) && (is_text || profile.is_integer()) {
            places.push(at);
            candidates.push(TagCandidate {
                name: column.file_name.clone(),
                is_text,
                distinct: profile.distinct(),
            });
        }
    }
    if candidates.is_empty() || seen.known.is_some() {
        return Ok(());
    }
    let mut sample = RowSample::default();
    let hours = RepeatedHours::if_ordered(&reading.options, &plan.time);
    let mut records = plan.records(open()?)?;
    let mut record = TextRecord::default();
    while records.read(&mut record)? {
        if !plan.fits(&record) || record.is_open {
            continue;
        }
        let Ok(time) = plan.time_of(&record) else {
            continue;
        };
        // Rows of both passes of a repeated hour seem to have one time.
        let is_repeated = |hours: &RepeatedHours| plan.is_repeated(&record, hours);
        if hours.as_ref().is_some_and(is_repeated) {
            continue;
        }
        if !sample.takes(time) {
            continue;
        }
        let cell = |at: &usize| xxh3_64(record.cell(*at).text.trim().as_bytes());
        sample.add(time, places.iter().map(cell).collect());
    }
    let roles = plan.columns.iter().map(|column| &column.role);
    for at in inferred_tags(&candidates, sample.rows(), roles, &places) {
        plan.columns[places[at]].role = ImportRole::Tag;
        plan.inferred_tags = true;
    }
    Ok(())
}
