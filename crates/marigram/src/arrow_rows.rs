//! Converts Arrow record batches to batches of rows to write.
//!
//! Columns are matched by name. The role of a column (time, tag, field) comes from the table's
//! schema, or from [`Roles`] if the table does not exist yet. Values are converted only if the
//! conversion is lossless. A row that lacks a time, or has a value that does not fit, is reported
//! and left out; the other rows are kept.
//!
//! Distinct tag sets are found by one code per value and column: dictionary keys are used directly,
//! and a text is hashed only if it differs from the row above.

mod cast;
mod slots;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array};
use arrow::compute::filter;
use arrow::datatypes::{DataType, TimeUnit};
use arrow::record_batch::RecordBatch;
use marigram_engine::RejectedRow;
use marigram_model::{BatchField, BatchTag, FieldType, TableSchema, TagType, WriteBatch};
use std::collections::BTreeMap;

/// Which column is the time and which are tags; all others are fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// The time column.
    pub time: String,
    /// The tag columns.
    pub tags: Vec<String>,
}

impl Roles {
    /// Roles from names.
    pub fn new<T: Into<String>>(
        time: impl Into<String>,
        tags: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            time: time.into(),
            tags: tags.into_iter().map(Into::into).collect(),
        }
    }

    /// The roles of an existing table's columns.
    pub fn of(schema: &TableSchema) -> Self {
        Self::new(
            schema.time_name.clone(),
            schema.tags.iter().map(|tag| tag.name.clone()),
        )
    }
}

/// Rows ready to be written.
#[derive(Clone, Debug)]
pub struct ConvertedRows {
    /// The rows that could be converted, in their order.
    pub batch: WriteBatch,
    /// The rows that could not be converted, by their number in the record batch; ascending.
    pub rejected: Vec<RejectedRow>,
    /// For each row of `batch`, its number in the record batch; `None` if the numbers are the same.
    pub rows: Option<Vec<u32>>,
}

impl ConvertedRows {
    /// The record batch's number for row `row` of the batch.
    pub fn source_row(&self, row: u32) -> u32 {
        self.rows
            .as_ref()
            .and_then(|rows| rows.get(row as usize).copied())
            .unwrap_or(row)
    }
}

/// Converts `rows` for `table`. With `schema`, columns take the types that they have there. A
/// column that the table lacks keeps its own type and becomes a field (or a tag, if `roles` says
/// so).
///
/// # Errors
/// If there is no time column, a column has a type that no tag or field can have, or a column name
/// occurs twice.
pub fn convert(
    table: &str,
    roles: &Roles,
    schema: Option<&TableSchema>,
    rows: &RecordBatch,
) -> Result<ConvertedRows> {
    let mut refused = RefusedRows::default();
    let names: Vec<&str> = rows
        .schema_ref()
        .fields()
        .iter()
        .map(|f| f.name().as_str())
        .collect();
    if let Some(twice) = names
        .iter()
        .enumerate()
        .find(|(at, name)| names[..*at].contains(name))
    {
        return Err(Error::Arrow(format!(
            "column '{}' occurs twice in the rows",
            twice.1
        )));
    }
    let time = rows.column_by_name(&roles.time).ok_or_else(|| {
        let names = names.join(", ");
        Error::Arrow(format!(
            "the rows have no time column '{}'; they have: {names}",
            roles.time
        ))
    })?;
    let times = times(&roles.time, time, &mut refused)?;
    let mut tags = Vec::new();
    let mut fields = Vec::new();
    for (name, values) in names.iter().zip(rows.columns()) {
        if *name == roles.time || *values.data_type() == DataType::Null {
            continue;
        }
        if roles.tags.iter().any(|tag| tag == name) {
            let kind = schema
                .and_then(|schema| schema.tag(name))
                .map(|(_, tag)| tag.kind);
            tags.push((*name, cast::tag(name, values, kind, &mut refused)?));
        } else {
            let kind = schema
                .and_then(|schema| schema.field(name))
                .map(|field| field.kind);
            fields.push((*name, cast::field(name, values, kind, &mut refused)?));
        }
    }
    let keep = refused.keep(rows.num_rows());
    let (times, tags, fields) = match &keep {
        None => (times, tags, fields),
        Some(keep) => {
            let kept = |array: &dyn Array| {
                filter(array, keep).map_err(|error| Error::Arrow(error.to_string()))
            };
            let times: Int64Array = kept(&times)?.to_data().into();
            let tags = tags
                .into_iter()
                .map(|(name, tag)| Ok((name, kept(&tag)?)))
                .collect::<Result<Vec<_>>>()?;
            let fields = fields
                .into_iter()
                .map(|(name, field)| Ok((name, kept(&field)?)))
                .collect::<Result<Vec<_>>>()?;
            (times, tags, fields)
        }
    };
    let arrays: Vec<ArrayRef> = tags.iter().map(|(_, values)| values.clone()).collect();
    let slots = slots::assign(&arrays, times.len())?;
    let tags = tags
        .iter()
        .zip(slots.values)
        .map(|((name, _), values)| BatchTag {
            name: (*name).to_owned(),
            values,
        });
    let fields = fields.into_iter().map(|(name, values)| BatchField {
        name: name.to_owned(),
        values,
    });
    let batch = WriteBatch {
        table: table.to_owned(),
        tags: tags.collect(),
        slot_count: slots.count,
        slots: slots.of_rows,
        times: times.values().clone(),
        fields: fields.collect(),
    };
    batch.check()?;
    let numbers = keep.map(|keep| {
        keep.values()
            .set_indices()
            .map(|row| u32::try_from(row).unwrap_or(u32::MAX))
            .collect()
    });
    Ok(ConvertedRows {
        batch,
        rejected: refused.finish(),
        rows: numbers,
    })
}

/// Names and types of tags, and of fields.
type TagAndFieldTypes = (Vec<(String, TagType)>, Vec<(String, FieldType)>);

/// The column types of a table created for these rows: tags in the order of `roles`, fields in the
/// order of the columns.
///
/// # Errors
/// If a column has a type that no tag or field can have.
pub(crate) fn table_columns(roles: &Roles, rows: &RecordBatch) -> Result<TagAndFieldTypes> {
    let mut tags = Vec::new();
    for name in &roles.tags {
        let Some(values) = rows.column_by_name(name) else {
            return Err(Error::Arrow(format!(
                "the rows have no tag column '{name}'"
            )));
        };
        tags.push((name.clone(), cast::tag_type(name, values.data_type())?));
    }
    let mut fields = Vec::new();
    for (field, values) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let name = field.name();
        let is_field = *name != roles.time && !roles.tags.contains(name);
        if is_field && *values.data_type() != DataType::Null {
            fields.push((name.clone(), cast::field_type(name, values.data_type())?));
        }
    }
    Ok((tags, fields))
}

/// Rows that cannot be written, with the first reason for each.
#[derive(Debug, Default)]
struct RefusedRows(BTreeMap<u32, String>);

impl RefusedRows {
    fn add(&mut self, row: usize, reason: impl FnOnce() -> String) {
        self.0
            .entry(u32::try_from(row).unwrap_or(u32::MAX))
            .or_insert_with(reason);
    }

    /// Selects the rows to keep; `None` keeps all.
    fn keep(&self, rows: usize) -> Option<BooleanArray> {
        if self.0.is_empty() {
            return None;
        }
        let mut keep = vec![true; rows];
        for row in self.0.keys() {
            keep[*row as usize] = false;
        }
        Some(keep.into())
    }

    fn finish(self) -> Vec<RejectedRow> {
        self.0
            .into_iter()
            .map(|(row, reason)| RejectedRow { row, reason })
            .collect()
    }
}

/// Times as ns. A number without a unit is in ns; a text is parsed as a timestamp.
fn times(name: &str, values: &ArrayRef, refused: &mut RefusedRows) -> Result<Int64Array> {
    let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let whole = match values.data_type() {
        DataType::Int64 => values.clone(),
        from @ (DataType::Timestamp(_, _)
        | DataType::Date32
        | DataType::Date64
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View) => {
            let from_text = from.is_string();
            let local = if from_text {
                &nanoseconds
            } else {
                &cast::without_zone(from)
            };
            let values = cast::lossless(name, values, local, refused)?;
            cast::lossless(name, &values, &nanoseconds, refused)?
        }
        other => {
            return Err(Error::Arrow(format!(
                "the time column '{name}' has the type {other}; give a timestamp, or a BIGINT in \
                 nanoseconds"
            )));
        }
    };
    for row in whole
        .nulls()
        .into_iter()
        .flat_map(|nulls| (!nulls.inner()).set_indices().collect::<Vec<_>>())
    {
        refused.add(row, || format!("it has no time (column '{name}' is null)"));
    }
    let numbers = arrow::compute::cast(&whole, &DataType::Int64)
        .map_err(|error| Error::Arrow(error.to_string()))?;
    Ok(numbers.to_data().into())
}
