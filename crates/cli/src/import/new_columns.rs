//! Columns that a file has and its table lacks: the plan names them, and `--strict` refuses them.

use super::ReadPlanOptions;
use anyhow::{Result, bail};
use marigram_model::WriteBatch;
use marigram_tabular::layout::ColumnLayout;

/// What the plan says of a column that the table lacks.
///
/// # Errors
/// If the table lacks the column, and `--strict` allows no new one.
pub(crate) fn new_column(reading: &ReadPlanOptions, name: &str) -> Result<Option<String>> {
    let Some(known) = &reading.known else {
        return Ok(None);
    };
    if known.column_names().iter().any(|column| column == name) {
        return Ok(None);
    }
    if reading.options.strict {
        refuse(name, known)?;
    }
    Ok(Some(format!(
        "column '{name}' is new in table '{}'",
        reading.table
    )))
}

/// Refuses rows with a column that their table lacks.
pub(crate) fn check_strict(batch: &WriteBatch, known: &ColumnLayout) -> Result<()> {
    let tags = batch.tags.iter().map(|tag| &tag.name);
    let fields = batch.fields.iter().map(|field| &field.name);
    let names = known.column_names();
    match tags.chain(fields).find(|name| !names.contains(name)) {
        Some(name) => refuse(name, known),
        None => Ok(()),
    }
}

fn refuse(name: &str, known: &ColumnLayout) -> Result<()> {
    bail!(
        "column '{name}' is not in table '{}', which has: {}; --strict allows no new one; nothing was \
         written",
        known.table,
        known.column_names().join(", ")
    )
}
