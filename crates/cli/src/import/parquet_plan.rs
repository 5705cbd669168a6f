//! The plan of a Parquet file: the roles and types of its columns, and how its times are read.
//!
//! The file says the types. The roles come from the options, the table, the file's metadata if Marigram
//! exported it, or else from the values, as those of a CSV file do.

use super::column_roles::{self, ImportRole, inferred_tags};
use super::new_columns::new_column;
use super::parquet_values::{whole_tags, with_exact_numbers, with_moments};
use super::source::{ImportSource, RereadableInput};
use super::{BATCH_ROWS, Precision, ReadPlanOptions};
use anyhow::{Context, Result, bail};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::util::display::array_value_to_string;
use marigram::Roles;
use marigram_model::FieldType;
use marigram_tabular::layout::ColumnLayout;
use marigram_tabular::names;
use marigram_tabular::profile::DISTINCT_MAX;
use marigram_tabular::tags::{RowSample, TagCandidate};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A column of a Parquet file.
#[derive(Clone, Debug)]
pub(crate) struct ParquetColumn {
    /// Its name in the file.
    pub file_name: String,
    /// Its name in the table.
    pub name: String,
    /// Its role.
    pub role: ImportRole,
    /// Its place in the file.
    at: usize,
    /// Its type in the file.
    data_type: DataType,
}

/// How a Parquet file is read.
#[derive(Clone, Debug)]
pub(crate) struct ParquetPlan {
    /// The columns that go to the table, in the order of the file.
    pub columns: Vec<ParquetColumn>,
    /// Name of the table's time column.
    pub time_name: String,
    /// Columns whose values are lists or structures.
    pub left_out: Vec<String>,
    /// Whether Marigram wrote the file.
    pub is_export: bool,
    /// Whether tags were inferred.
    pub inferred_tags: bool,
    /// Name and text of each cell of the first row.
    pub sample: Vec<(String, String)>,
    /// What the user should know before the import.
    pub notes: Vec<String>,
}

/// Opens a file for reading in batches.
pub(crate) fn builder(source: ImportSource) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = source.into_file()?;
    ParquetRecordBatchReaderBuilder::try_new(file).context("it is not a Parquet file")
}

/// Plans how to read a file.
pub(crate) fn plan(input: &RereadableInput, reading: &ReadPlanOptions) -> Result<ParquetPlan> {
    let builder = builder(input.source()?)?;
    let schema = Arc::clone(builder.schema());
    let written = Roles::from_metadata(&schema);
    let (kept, left_out): (Vec<_>, Vec<_>) = schema
        .fields()
        .iter()
        .enumerate()
        .partition(|(_, field)| !field.data_type().is_nested());
    let file_names: Vec<String> = kept.iter().map(|(_, field)| field.name().clone()).collect();
    let known = reading.known.as_ref();
    let table_columns = known.map(ColumnLayout::column_names).unwrap_or_default();
    let table_names = names::matched(&file_names, &table_columns)?;
    let time = time_column(
        reading,
        &schema,
        (&file_names, &table_names),
        written.as_ref(),
    )?;
    let tags = told_tags(reading, (&file_names, &table_names), written.as_ref())?;
    let time_name = known.map_or_else(|| file_names[time].clone(), |known| known.time.clone());
    let mut columns = Vec::new();
    for (place, (at, field)) in kept.into_iter().enumerate() {
        let role = if place == time {
            ImportRole::Time
        } else if tags.contains(&place) {
            ImportRole::Tag
        } else {
            ImportRole::Field(FieldType::String)
        };
        columns.push(ParquetColumn {
            file_name: field.name().clone(),
            name: if place == time {
                time_name.clone()
            } else {
                table_names[place].clone()
            },
            role,
            at,
            data_type: field.data_type().clone(),
        });
    }
    let mut plan = ParquetPlan {
        columns,
        time_name,
        left_out: left_out
            .iter()
            .map(|(_, field)| field.name().clone())
            .collect(),
        is_export: written.is_some(),
        inferred_tags: false,
        sample: Vec::new(),
        notes: Vec::new(),
    };
    let is_told = !reading.options.tags.is_empty() || reading.options.no_tags;
    if !is_told && known.is_none() && written.is_none() {
        infer_tags(input, &mut plan)?;
    }
    plan.add_types(reading, &schema)?;
    plan.sample = sample(&plan, builder)?;
    for column in &plan.columns {
        if matches!(column.role, ImportRole::Tag | ImportRole::Field(_)) {
            plan.notes.extend(new_column(reading, &column.name)?);
        }
    }
    Ok(plan)
}

impl ParquetPlan {
    /// Names of the tags in the table.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self
            .columns
            .iter()
            .filter(|column| column.role == ImportRole::Tag);
        tags.map(|column| column.name.as_str())
    }

    /// Names and types of the fields in the table.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, FieldType)> {
        self.columns.iter().filter_map(|column| match column.role {
            ImportRole::Field(kind) => Some((column.name.as_str(), kind)),
            _ => None,
        })
    }

    /// The roles of the columns in the table.
    pub(crate) fn roles(&self, reading: &ReadPlanOptions) -> Roles {
        let constant = reading.constant_tags.iter().map(|(name, _)| name.as_str());
        Roles::new(self.time_name.clone(), self.tags().chain(constant))
    }

    /// The places of the columns in the file.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|column| column.at)
    }

    /// Names of the columns in the table.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns
            .iter()
            .map(|column| column.name.clone())
            .collect()
    }

    /// The order of the columns of a new table, if the file is an export; others have the usual one.
    pub(crate) fn order(&self) -> Vec<String> {
        if self.is_export {
            self.names()
        } else {
            Vec::new()
        }
    }

    /// The columns that a new table shows with a zone, if the file is an export; those of other files are
    /// stored in UTC without a zone.
    pub(crate) fn zoned(&self) -> Vec<String> {
        let is_zoned = |column: &&ParquetColumn| {
            self.is_export && matches!(column.data_type, DataType::Timestamp(_, Some(_)))
        };
        let zoned = self.columns.iter().filter(is_zoned);
        zoned.map(|column| column.name.clone()).collect()
    }

    /// Whether the times are numbers, which say nothing of their unit.
    pub(crate) fn has_number_times(&self) -> bool {
        !self.is_export && self.time().data_type.is_integer()
    }

    /// How the times are read.
    pub(crate) fn time_words(&self, precision: Option<Precision>) -> String {
        let time = self.time();
        let form = match &time.data_type {
            DataType::Timestamp(_, Some(zone)) if is_utc(zone) => "TIMESTAMP in UTC".to_owned(),
            DataType::Timestamp(_, Some(zone)) => {
                format!("TIMESTAMP of the zone {zone}, stored in UTC")
            }
            DataType::Timestamp(_, None) => "TIMESTAMP, no zone in the file: UTC".to_owned(),
            DataType::Date32 | DataType::Date64 => "DATE, midnight in UTC".to_owned(),
            kind if kind.is_integer() => {
                format!("{} since 1970", precision.unwrap_or(Precision::Ns))
            }
            _ => "ISO 8601, times without a zone in UTC".to_owned(),
        };
        let name = if time.file_name == time.name {
            String::new()
        } else {
            format!(" as {}", time.name)
        };
        format!("{}{name}, {form}", time.file_name)
    }

    /// The column of the times.
    fn time(&self) -> &ParquetColumn {
        let mut columns = self.columns.iter();
        let time = columns.find(|column| column.role == ImportRole::Time);
        time.expect("a plan has a time column")
    }

    /// Gives the fields the types that they have in the table, or get in a new one.
    fn add_types(&mut self, reading: &ReadPlanOptions, schema: &Schema) -> Result<()> {
        // A tag that is a whole number in the table may be a float in the file.
        let whole_tags = whole_tags(reading)?;
        let typed = self.columns.iter();
        let typed = typed.filter(|column| !whole_tags.contains(&column.name));
        let fields = typed.map(|column| {
            let field = schema.field(column.at).clone();
            field.with_name(&column.name)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let rows = with_exact_numbers(&RecordBatch::new_empty(schema))?;
        let rows = with_moments(rows, &self.time_name, reading.options.precision)?;
        let roles = Roles::new(self.time_name.clone(), self.tags());
        let batch = marigram::convert(&reading.table, &roles, None, &rows)?.batch;
        let known = reading.known.as_ref();
        let known = known.map(ColumnLayout::field_types).transpose()?;
        for column in &mut self.columns {
            let ImportRole::Field(kind) = &mut column.role else {
                continue;
            };
            let stored = known
                .iter()
                .flatten()
                .find(|(name, _)| *name == column.name);
            let own = batch.fields.iter().find(|field| field.name == column.name);
            match (stored, own) {
                (Some((_, stored)), _) => *kind = *stored,
                (None, Some(own)) => *kind = own.kind(),
                // A column of nulls has no type.
                (None, None) => column.role = ImportRole::Dropped,
            }
        }
        Ok(())
    }
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "Z" | "+00:00" | "Etc/UTC" | "GMT")
}

/// The place of the time column: from the options, the file's metadata, the table, or the first column
/// of timestamps.
fn time_column(
    reading: &ReadPlanOptions,
    schema: &Schema,
    (file_names, table_names): (&[String], &[String]),
    written: Option<&Roles>,
) -> Result<usize> {
    let place = |name: &str| {
        let exact = file_names.iter().position(|known| known == name);
        exact.or_else(|| {
            file_names
                .iter()
                .position(|known| known.eq_ignore_ascii_case(name))
        })
    };
    let found = match &reading.options.time_column {
        Some(name) => place(name),
        None => written
            .and_then(|roles| place(&roles.time))
            .or_else(|| {
                let known = reading.known.as_ref()?;
                table_names.iter().position(|name| *name == known.time)
            })
            .or_else(|| {
                let is_time = |name: &String| {
                    let field = schema.field_with_name(name);
                    field.is_ok_and(|field| matches!(field.data_type(), DataType::Timestamp(_, _)))
                };
                file_names.iter().position(is_time)
            }),
    };
    let Some(found) = found else {
        bail!(
            "which column is the time? Give --time-column; the file has: {}",
            file_names.join(", ")
        );
    };
    Ok(found)
}

/// The places of the tags that the options name, that the table has, or that an export names.
fn told_tags(
    reading: &ReadPlanOptions,
    (file_names, table_names): (&[String], &[String]),
    written: Option<&Roles>,
) -> Result<HashSet<usize>> {
    let known = reading.known.as_ref();
    let mut places = column_roles::told_tags(&reading.options, known, file_names, table_names)?;
    let is_field = |place: usize| {
        let mut fields = known.iter().flat_map(|known| &known.fields);
        fields.any(|(name, _)| *name == table_names[place])
    };
    let written = written.filter(|_| !reading.options.no_tags);
    for tag in written.iter().flat_map(|roles| &roles.tags) {
        let place = file_names.iter().position(|name| name == tag);
        places.extend(place.filter(|place| !is_field(*place)));
    }
    Ok(places)
}

/// A column that could be a tag, and its values so far.
struct CandidateColumn {
    /// Its place among the columns of the plan.
    place: usize,
    is_text: bool,
    /// Hashes of its values; `None` if there are too many.
    distinct: Option<HashSet<u64>>,
}

/// Infers tags from the rows of some times, as for CSV.
fn infer_tags(input: &RereadableInput, plan: &mut ParquetPlan) -> Result<()> {
    let mut candidates: Vec<CandidateColumn> = Vec::new();
    for (place, column) in plan.columns.iter().enumerate() {
        let is_text = is_text(&column.data_type);
        if matches!(column.role, ImportRole::Field(_)) && (is_text || column.data_type.is_integer())
        {
            candidates.push(CandidateColumn {
                place,
                is_text,
                distinct: Some(HashSet::new()),
            });
        }
    }
    if candidates.is_empty() {
        return Ok(());
    }
    let wanted = candidates
        .iter()
        .map(|candidate| plan.columns[candidate.place].at);
    let wanted: Vec<usize> = wanted.chain([plan.time().at]).collect();
    let mut sample = RowSample::default();
    for rows in projected(builder(input.source()?)?, wanted)? {
        let rows = rows.context("cannot be read further")?;
        let column = |column: &ParquetColumn| -> Result<ArrayRef> {
            let values = rows.column_by_name(&column.file_name);
            Ok(Arc::clone(values.context("a column is missing")?))
        };
        let times = moments(&column(plan.time())?)?;
        let cells = candidates
            .iter()
            .map(|one| hashes(&column(&plan.columns[one.place])?));
        let cells = cells.collect::<Result<Vec<_>>>()?;
        for (candidate, hashes) in candidates.iter_mut().zip(&cells) {
            if let Some(distinct) = &mut candidate.distinct {
                distinct.extend(hashes);
                if distinct.len() > DISTINCT_MAX {
                    candidate.distinct = None;
                }
            }
        }
        for (row, time) in times.iter().enumerate() {
            if let Some(time) = time.filter(|time| sample.takes(*time)) {
                sample.add(time, cells.iter().map(|hashes| hashes[row]).collect());
            }
        }
    }
    let places: Vec<usize> = candidates.iter().map(|candidate| candidate.place).collect();
    let candidates: Vec<TagCandidate> = candidates
        .into_iter()
        .map(|one| TagCandidate {
            name: plan.columns[one.place].file_name.clone(),
            is_text: one.is_text,
            distinct: one.distinct.map(|distinct| distinct.len()),
        })
        .collect();
    let roles = plan.columns.iter().map(|column| &column.role);
    for at in inferred_tags(&candidates, sample.rows(), roles, &places) {
        plan.columns[places[at]].role = ImportRole::Tag;
        plan.inferred_tags = true;
    }
    Ok(())
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        kind => kind.is_string(),
    }
}

/// Reads only the columns at `places`.
fn projected(
    builder: ParquetRecordBatchReaderBuilder<File>,
    places: Vec<usize>,
) -> Result<ParquetRecordBatchReader> {
    let mask = ProjectionMask::roots(builder.parquet_schema(), places);
    Ok(builder
        .with_projection(mask)
        .with_batch_size(BATCH_ROWS)
        .build()?)
}

/// A number for each time, by which times are compared.
fn moments(values: &ArrayRef) -> Result<Vec<Option<i64>>> {
    let is_counted = values.data_type().is_integer() || values.data_type().is_temporal();
    if is_counted && let Ok(numbers) = cast(values, &DataType::Int64) {
        return Ok(numbers.as_primitive::<Int64Type>().iter().collect());
    }
    let hashes = hashes(values)?.into_iter().enumerate();
    let moments = hashes.map(|(row, hash)| values.is_valid(row).then_some(hash.cast_signed()));
    Ok(moments.collect())
}

/// A hash of each value.
fn hashes(values: &ArrayRef) -> Result<Vec<u64>> {
    let texts = cast(values, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    Ok(texts
        .iter()
        .map(|text| xxh3_64(text.unwrap_or_default().as_bytes()))
        .collect())
}

/// Name and text of each cell of the first row.
fn sample(
    plan: &ParquetPlan,
    builder: ParquetRecordBatchReaderBuilder<File>,
) -> Result<Vec<(String, String)>> {
    let places = plan.places().collect();
    let builder = builder.with_limit(1);
    let Some(rows) = projected(builder, places)?.next().transpose()? else {
        return Ok(Vec::new());
    };
    let mut cells = Vec::new();
    for (column, values) in plan.columns.iter().zip(rows.columns()) {
        let text = array_value_to_string(values, 0).unwrap_or_default();
        cells.push((column.file_name.clone(), text));
    }
    Ok(cells)
}
