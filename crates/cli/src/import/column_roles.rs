//! The roles of a file's columns, and which are tags: what the plans of CSV and Parquet have in common.

use super::ReadOptions;
use anyhow::{Result, bail};
use marigram_model::FieldType;
use marigram_tabular::layout::ColumnLayout;
use marigram_tabular::tags::{self, SampleRow, TagCandidate};
use std::collections::HashSet;

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportRole {
    /// The time, or a part of it.
    Time,
    /// A tag.
    Tag,
    /// A field.
    Field(FieldType),
    /// None: the column has no values.
    Dropped,
}

/// Indexes of the tags that the options name or that the table has.
pub(super) fn told_tags(
    options: &ReadOptions,
    known: Option<&ColumnLayout>,
    file_names: &[String],
    table_names: &[String],
) -> Result<HashSet<usize>> {
    let mut places = HashSet::new();
    for tag in &options.tags {
        let exact = file_names.iter().position(|name| name == tag);
        let alike = || {
            file_names
                .iter()
                .position(|name| name.eq_ignore_ascii_case(tag))
        };
        let Some(at) = exact.or_else(alike) else {
            bail!(
                "there is no column '{tag}' for a tag; the file has: {}",
                file_names.join(", ")
            );
        };
        let is_field =
            |known: &ColumnLayout| known.fields.iter().any(|(n, _)| *n == table_names[at]);
        if known.is_some_and(is_field) {
            bail!("column '{tag}' is a field of the table, not a tag");
        }
        places.insert(at);
    }
    for (tag, _) in known.into_iter().flat_map(|known| &known.tags) {
        places.extend(table_names.iter().position(|name| name == tag));
    }
    Ok(places)
}

/// Infers which candidates are tags, as indexes: none if the table had no field then, which could store nothing.
/// `places` are those of the candidates, and `roles` those of all columns.
pub(super) fn inferred_tags<'a>(
    candidates: &[TagCandidate],
    rows: &[SampleRow],
    roles: impl Iterator<Item = &'a ImportRole> + Clone,
    places: &[usize],
) -> Vec<usize> {
    let leaves_no_field = |found: &[usize]| {
        let is_tag = |at: usize| found.iter().any(|tag| places[*tag] == at);
        let mut roles = roles.clone().enumerate();
        !roles.any(|(at, role)| matches!(role, ImportRole::Field(_)) && !is_tag(at))
    };
    let mut found = tags::infer(candidates, rows);
    if leaves_no_field(&found) {
        found.retain(|at| tags::is_identity(&candidates[*at].name));
    }
    if leaves_no_field(&found) {
        found.clear();
    }
    found
}
