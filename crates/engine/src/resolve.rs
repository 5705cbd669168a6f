//! Resolves a written batch against a table's schema: which columns are which, what is missing, and
//! which rows cannot be stored, with the reason.
//!
//! It works column by column, and row by row only for bad rows. Nothing here changes anything:
//! missing columns are passed to the catalog as a [`SchemaGrowth`], and the batch is resolved again
//! against the resulting schema.

mod coerce;
mod rejects;

use crate::catalog::SchemaGrowth;
use crate::error::{EngineError, Result};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::NullBuffer;
use arrow_select::zip::zip;
use marigram_model::nearest;
use marigram_model::{BatchField, BatchTag, ColumnId, Limits, TableSchema, WriteBatch};
pub(crate) use rejects::RowRejections;

/// A batch in the columns of its table.
#[derive(Debug)]
pub(crate) struct ResolvedBatch {
    /// Tag columns by ordinal, ascending, with one value per slot.
    pub tags: Vec<(u16, BatchTag)>,
    /// Field columns, ascending by id, with one value per row.
    pub columns: Vec<(ColumnId, ArrayRef)>,
    /// Rows that cannot be stored.
    pub rejects: RowRejections,
}

/// The result of resolving a batch.
#[derive(Debug)]
pub(crate) enum ResolveOutcome {
    /// It fits.
    Done(ResolvedBatch),
    /// Columns must be added first.
    Grow(SchemaGrowth),
}

/// Resolves a checked batch. With `grow`, missing columns are requested if a row that can be stored
/// has values for them (with `new_table`, also the tags that no row has); otherwise they are
/// errors. `now_ns` decides which rows are too old for the table's ttl.
pub(crate) fn resolve(
    schema: &TableSchema,
    batch: &WriteBatch,
    grow: bool,
    new_table: bool,
    now_ns: i64,
) -> Result<ResolveOutcome> {
    let mut pass = ResolvePass {
        schema,
        batch,
        grow,
        rejects: RowRejections::new(batch.len()),
        tags: Vec::new(),
        columns: Vec::new(),
        new_tags: Vec::new(),
        new_fields: Vec::new(),
    };
    pass.reject_old_rows(now_ns);
    for tag in &batch.tags {
        pass.tag(tag)?;
    }
    for field in &batch.fields {
        pass.field(field)?;
    }
    pass.reject_rows_without_fields();
    let growth = pass.growth(new_table);
    if growth != SchemaGrowth::default() {
        return Ok(ResolveOutcome::Grow(growth));
    }
    pass.tags.sort_by_key(|(ordinal, _)| *ordinal);
    pass.columns.sort_by_key(|(id, _)| *id);
    pass.columns
        .retain(|(_, values)| values.null_count() < values.len());
    let ResolvePass {
        tags,
        columns,
        rejects,
        ..
    } = pass;
    Ok(ResolveOutcome::Done(ResolvedBatch {
        tags,
        columns,
        rejects,
    }))
}

/// Resolves the tags of rows to delete.
///
/// # Errors
/// If a column is not a tag of the table, or a value is not of its type.
pub(crate) fn resolve_keys(schema: &TableSchema, keys: &WriteBatch) -> Result<ResolvedBatch> {
    let mut pass = ResolvePass {
        schema,
        batch: keys,
        grow: false,
        rejects: RowRejections::new(keys.len()),
        tags: Vec::new(),
        columns: Vec::new(),
        new_tags: Vec::new(),
        new_fields: Vec::new(),
    };
    for tag in &keys.tags {
        pass.tag(tag)?;
    }
    let mut tags = pass.tags;
    if let Some((_, reason)) = pass.rejects.into_reasons().into_iter().next() {
        return Err(EngineError::Invalid(reason));
    }
    tags.sort_by_key(|(ordinal, _)| *ordinal);
    Ok(ResolvedBatch {
        tags,
        columns: Vec::new(),
        rejects: RowRejections::new(keys.len()),
    })
}

struct ResolvePass<'a> {
    schema: &'a TableSchema,
    batch: &'a WriteBatch,
    grow: bool,
    rejects: RowRejections,
    tags: Vec<(u16, BatchTag)>,
    columns: Vec<(ColumnId, ArrayRef)>,
    new_tags: Vec<&'a BatchTag>,
    new_fields: Vec<&'a BatchField>,
}

impl<'a> ResolvePass<'a> {
    fn reject_old_rows(&mut self, now_ns: i64) {
        let Some(ttl_ns) = self.schema.options.ttl_ns else {
            return;
        };
        let oldest = now_ns.saturating_sub(ttl_ns);
        if self.batch.times.iter().all(|time| *time >= oldest) {
            return;
        }
        for (row, time) in self.batch.times.iter().enumerate() {
            if *time < oldest {
                let table = &self.schema.name;
                self.rejects.add(row, || {
                    format!("time {time} is older than table '{table}' keeps rows (its ttl)")
                });
            }
        }
    }

    fn tag(&mut self, tag: &'a BatchTag) -> Result<()> {
        let (name, kind) = (&tag.name, tag.kind());
        if let Some((ordinal, column)) = self.schema.tag(name) {
            self.reject_slots(tag, |slot| tag.fault(slot));
            let Some((values, bad)) = coerce::tag(&tag.values, column.kind) else {
                self.reject_slots(tag, |_| {
                    Some(conflict("tag", name, kind, "tag", column.kind))
                });
                return Ok(());
            };
            if !bad.is_empty() {
                let wanted = column.kind;
                self.reject_slots(tag, |slot| {
                    bad.contains(&slot)
                        .then(|| format!("tag '{name}' is {wanted}, and this value is not"))
                });
            }
            self.add_tag(
                ordinal,
                BatchTag {
                    name: name.clone(),
                    values,
                },
            );
            return Ok(());
        }
        if tag.values.null_count() == tag.values.len() && !self.grow {
            return Ok(());
        }
        if let Some(other) = self.other_than_tag(name) {
            self.reject_slots(tag, |_| {
                Some(format!("'{name}' is a tag here ({kind}), and {other}"))
            });
            return Ok(());
        }
        if !self.grow {
            return Err(self.not_found("tag", name));
        }
        let count = self.schema.tags.len() + self.new_tags.len();
        if let Some(fault) = new_name_fault("tag", name, count, Limits::TAGS_MAX) {
            self.reject_slots(tag, |_| Some(fault.clone()));
        } else if let Some(first) = self.new_tags.iter().find(|other| other.name == *name) {
            let first = first.kind();
            self.reject_slots(tag, |_| Some(conflict("tag", name, kind, "tag", first)));
        } else {
            self.reject_slots(tag, |slot| tag.fault(slot));
            self.new_tags.push(tag);
        }
        Ok(())
    }

    fn field(&mut self, field: &'a BatchField) -> Result<()> {
        let (name, kind, values) = (&field.name, field.kind(), &field.values);
        if let Some(column) = self.schema.field(name) {
            let id = column.id;
            let Some(coerced) = coerce::field(values, kind, column.kind) else {
                let wanted = column.kind;
                self.reject_valid(values, || conflict("field", name, kind, "field", wanted));
                return Ok(());
            };
            for row in coerced.bad {
                let wanted = column.kind;
                self.rejects.add(row, || {
                    format!("field '{name}' is {wanted}, and this {kind} does not fit in it")
                });
            }
            self.reject_long_values(name, values);
            self.add_column(id, coerced.values);
            return Ok(());
        }
        if values.null_count() == values.len() {
            return Ok(());
        }
        if let Some(other) = self.other_than_field(name) {
            self.reject_valid(values, || {
                format!("'{name}' is a field here ({kind}), and {other}")
            });
            return Ok(());
        }
        if !self.grow {
            return Err(self.not_found("field", name));
        }
        let count = self.schema.fields.len() + self.new_fields.len();
        if let Some(fault) = new_name_fault("field", name, count, Limits::FIELDS_MAX) {
            self.reject_valid(values, || fault.clone());
        } else {
            // A second type for a new name must wait until the first one has created the column.
            self.reject_long_values(name, values);
            self.new_fields.push(field);
        }
        Ok(())
    }

    /// What the name refers to in the table or the batch, if it is not a tag.
    fn other_than_tag(&self, name: &str) -> Option<String> {
        if name == self.schema.time_name {
            return Some(self.is_time());
        }
        let field = self.schema.field(name)?;
        Some(format!(
            "a field ({}) of table '{}'",
            field.kind, self.schema.name
        ))
    }

    fn other_than_field(&self, name: &str) -> Option<String> {
        if name == self.schema.time_name {
            return Some(self.is_time());
        }
        if let Some((_, tag)) = self.schema.tag(name) {
            return Some(format!(
                "a tag ({}) of table '{}'",
                tag.kind, self.schema.name
            ));
        }
        let tag = self.new_tags.iter().find(|tag| tag.name == name)?;
        Some(format!("also a tag ({}) of the same rows", tag.kind()))
    }

    fn is_time(&self) -> String {
        format!("the time column of table '{}'", self.schema.name)
    }

    fn not_found(&self, kind: &'static str, name: &str) -> EngineError {
        let nearest = nearest(name, self.schema.column_names());
        EngineError::NotFound {
            kind,
            name: name.to_owned(),
            nearest,
        }
    }

    /// Rejects the rows of the slots that have the tag and for which `reason` returns a reason.
    fn reject_slots(&mut self, tag: &BatchTag, reason: impl Fn(usize) -> Option<String>) {
        let carried = (0..tag.values.len()).filter(|slot| tag.values.is_valid(*slot));
        let mut reasons: Vec<Option<String>> = Vec::new();
        for slot in carried {
            if let Some(reason) = reason(slot) {
                reasons.resize(tag.values.len(), None);
                reasons[slot] = Some(reason);
            }
        }
        if reasons.is_empty() {
            return;
        }
        for (row, slot) in self.batch.slots.iter().enumerate() {
            if let Some(reason) = &reasons[*slot as usize] {
                self.rejects.add(row, || reason.clone());
            }
        }
    }

    /// Rejects the rows that have a value.
    fn reject_valid(&mut self, values: &ArrayRef, reason: impl Fn() -> String) {
        for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
            self.rejects.add(row, &reason);
        }
    }

    fn reject_long_values(&mut self, name: &str, values: &ArrayRef) {
        let max = Limits::VALUE_BYTES_MAX;
        for (row, len) in coerce::long_values(values, max) {
            self.rejects.add(row, || {
                format!("field '{name}' has {len} bytes; at most {max}")
            });
        }
    }

    fn add_tag(&mut self, ordinal: u16, tag: BatchTag) {
        match self.tags.iter_mut().find(|(other, _)| *other == ordinal) {
            Some((_, first)) => first.values = either(&first.values, &tag.values),
            None => self.tags.push((ordinal, tag)),
        }
    }

    fn add_column(&mut self, id: ColumnId, values: ArrayRef) {
        match self.columns.iter_mut().find(|(other, _)| *other == id) {
            Some((_, first)) => *first = either(first, &values),
            None => self.columns.push((id, values)),
        }
    }

    fn reject_rows_without_fields(&mut self) {
        let new = self.new_fields.iter().map(|field| &field.values);
        let carried: Vec<&ArrayRef> = self.columns.iter().map(|(_, v)| v).chain(new).collect();
        if carried.iter().any(|values| values.null_count() == 0) {
            return;
        }
        let valid = carried
            .iter()
            .filter_map(|values| values.nulls())
            .map(NullBuffer::inner);
        let any = valid.cloned().reduce(|a, b| &a | &b);
        for row in 0..self.batch.len() {
            if !any.as_ref().is_some_and(|any| any.value(row)) {
                self.rejects.add(row, || {
                    "the row has no value in any field, and a table stores no such row".to_owned()
                });
            }
        }
    }

    /// The missing columns for which a row that can be stored has values.
    fn growth(&self, new_table: bool) -> SchemaGrowth {
        let good = |row: usize| !self.rejects.contains(row);
        let mut growth = SchemaGrowth::default();
        let any_row = (0..self.batch.len()).any(good);
        if !any_row {
            return growth;
        }
        for tag in &self.new_tags {
            let slots = self.batch.slots.iter().enumerate();
            let carries =
                |(row, slot): (usize, &u32)| tag.values.is_valid(*slot as usize) && good(row);
            if new_table || slots.clone().any(carries) {
                growth.tags.push((tag.name.clone(), tag.kind()));
            }
        }
        for field in &self.new_fields {
            let carries = |row: &usize| field.values.is_valid(*row) && good(*row);
            let again = growth.fields.iter().any(|(name, _)| *name == field.name);
            if !again && (0..self.batch.len()).any(|row| carries(&row)) {
                growth.fields.push((field.name.clone(), field.kind()));
            }
        }
        growth
    }
}

/// The values of two columns, at most one of which has a value in each row.
fn either(first: &ArrayRef, second: &ArrayRef) -> ArrayRef {
    let valid: BooleanArray = match first.nulls() {
        None => return first.clone(),
        Some(nulls) => BooleanArray::new(nulls.inner().clone(), None),
    };
    zip(&valid, first, second).expect("the columns have one type and length")
}

fn conflict(
    kind: &str,
    name: &str,
    found: impl std::fmt::Display,
    wanted_kind: &str,
    wanted: impl std::fmt::Display,
) -> String {
    format!("{kind} '{name}' is {found} here, and the {wanted_kind} in the table is {wanted}")
}

fn new_name_fault(kind: &'static str, name: &str, count: usize, max: usize) -> Option<String> {
    if let Err(error) = Limits::check_name(kind, name) {
        return Some(error.to_string());
    }
    (count >= max).then(|| format!("{kind} '{name}' would be one more than the {max} allowed"))
}

#[cfg(test)]
mod tests;
