//! INSERT: writes Arrow rows to the engine.
//!
//! A row that the engine refuses does not affect the others: they are stored, and the statement
//! fails with the number of refused rows and the reasons of the first ones. A statement that fails
//! halfway says how many rows it had stored. The table of a CREATE TABLE AS goes with a failure, and
//! its rows with it.

use crate::error::SqlError;
use crate::tables::notices::StatementNotices;
use crate::tables::replaced::ReplacedRows;
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, SchemaRef, TimestampNanosecondType};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::sink::DataSink;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use foldhash::fast::RandomState;
use futures::StreamExt;
use marigram_engine::{Engine, ReplacedCount, WriteOptions, WriteReport};
use marigram_functions::zoned::relabelled;
use marigram_model::{
    BatchField, BatchTag, FieldColumn, TableColumn, TableSchema, TagKey, WriteBatch,
};
use marigram_service::{CommitPoint, run_blocking};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The number of refused rows whose reasons are reported.
const REASONS_MAX: usize = 5;

/// Writes rows that have a table's schema.
#[derive(Debug)]
pub(crate) struct TableSink {
    engine: Engine,
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
    /// Whether the rows stay if the statement fails.
    keeps_rows: bool,
}

impl TableSink {
    /// Creates a sink for the table; `arrow` is its schema.
    pub(crate) fn new(engine: Engine, schema: Arc<TableSchema>, arrow: SchemaRef) -> Self {
        Self {
            engine,
            schema,
            arrow,
            keeps_rows: true,
        }
    }

    /// The same for a table that is dropped if the statement fails.
    pub(crate) fn of_new_table(mut self) -> Self {
        self.keeps_rows = false;
        self
    }
}

impl DisplayAs for TableSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "TableSink: {}.{}",
            self.schema.database, self.schema.name
        )
    }
}

/// The rows refused so far.
#[derive(Default)]
pub(crate) struct SinkRefusals {
    count: usize,
    reasons: Vec<String>,
}

impl SinkRefusals {
    /// Adds those of a report on rows that follow `first_row` others.
    pub(crate) fn add(&mut self, report: &WriteReport, first_row: u64) {
        self.count += report.rejected.len();
        for row in &report.rejected {
            if self.reasons.len() < REASONS_MAX {
                let number = first_row + u64::from(row.row) + 1;
                self.reasons.push(format!("row {number}: {}", row.reason));
            }
        }
    }

    /// The error for a statement that stored the other rows, unless what it did is undone.
    pub(crate) fn into_error(self, stored: u64, keeps_rows: bool) -> SqlError {
        let more = if self.count > self.reasons.len() {
            "; …"
        } else {
            ""
        };
        SqlError::invalid(
            "22000",
            format!(
                "{} of {} rows were refused ({}{more}); {}",
                self.count,
                self.count as u64 + stored,
                self.reasons.join("; "),
                if keeps_rows {
                    format!("the other {stored} are stored")
                } else {
                    "the table was not created".to_owned()
                }
            ),
        )
    }
}

#[async_trait]
impl DataSink for TableSink {
    fn schema(&self) -> &SchemaRef {
        &self.arrow
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let mut progress = SinkProgress::default();
        if let Err(error) = self.write_batches(data, &mut progress).await {
            return Err(match progress.stored {
                stored if stored > 0 && self.keeps_rows => {
                    let error = Box::new(SqlError::from(error));
                    DataFusionError::External(Box::new(SqlError::AfterRows { stored, error }))
                }
                _ => error,
            });
        }
        if let Some(notice) = progress.replaced.notice(&self.schema) {
            StatementNotices::tell(context.session_config(), notice);
        }
        if progress.refused.count > 0 {
            let error = progress
                .refused
                .into_error(progress.stored, self.keeps_rows);
            return Err(DataFusionError::External(Box::new(error)));
        }
        Ok(progress.stored)
    }
}

/// What a statement has written so far.
#[derive(Default)]
struct SinkProgress {
    stored: u64,
    seen: u64,
    refused: SinkRefusals,
    replaced: ReplacedRows,
}

impl TableSink {
    async fn write_batches(
        &self,
        mut data: SendableRecordBatchStream,
        progress: &mut SinkProgress,
    ) -> Result<()> {
        let commit = CommitPoint::of_task();
        let mut next = data.next().await.transpose()?;
        while let Some(batch) = next {
            // The last batch has to be known as such: once its write began, nothing stops the statement.
            next = data.next().await.transpose()?;
            let (commit, is_last) = (commit.clone(), next.is_none());
            let keeps_rows = self.keeps_rows;
            let first_row = progress.seen;
            progress.seen += batch.num_rows() as u64;
            let rows = Arc::new(to_write_batch(&batch, &self.schema)?);
            let noted = Arc::clone(&rows);
            let (engine, database) = (self.engine.clone(), self.schema.database.clone());
            let scanned_max = progress.replaced.scanned_max();
            let written = run_blocking(move || {
                // What cannot be read holds up no INSERT.
                let known = engine.replaced_by(&database, &rows, scanned_max);
                let mut step = commit.begin_write(is_last)?;
                let report = engine.write(&database, &rows, WriteOptions { grow: false })?;
                if keeps_rows {
                    step.stored(report.stored as u64);
                }
                Ok::<_, SqlError>((report, known.ok()))
            });
            let external = |error: SqlError| DataFusionError::External(Box::new(error));
            let written = written.await.map_err(|error| external(error.into()))?;
            let (report, known) = written.map_err(external)?;
            progress.stored += report.stored as u64;
            progress.refused.add(&report, first_row);
            note(&mut progress.replaced, &noted, &report, known.as_ref());
        }
        Ok(())
    }
}

/// Converts a batch with the table's schema for the engine: rows with equal tags share a slot.
///
/// # Errors
/// If a row has no time, or a column does not have the table's type.
pub(crate) fn to_write_batch(batch: &RecordBatch, schema: &TableSchema) -> Result<WriteBatch> {
    let columns = BatchColumns::new(batch, schema)?;
    let fields = schema.fields.iter().zip(columns.fields).collect();
    write_batch(schema, columns.time, columns.tags, fields)
}

/// The same of single columns: the time, all tags, and some fields.
///
/// # Errors
/// As [`to_write_batch`].
pub(crate) fn write_batch(
    schema: &TableSchema,
    time: &ArrayRef,
    tag_columns: Vec<&ArrayRef>,
    fields: Vec<(&FieldColumn, &ArrayRef)>,
) -> Result<WriteBatch> {
    let rows = time.len();
    let times = time
        .as_primitive_opt::<TimestampNanosecondType>()
        .ok_or_else(|| DataFusionError::Internal("time is not in nanoseconds".into()))?;
    if times.null_count() > 0 {
        return Err(DataFusionError::External(Box::new(SqlError::invalid(
            "23502",
            "a row has no time; give every row a time, or leave the column out",
        ))));
    }
    let mut tags = Vec::with_capacity(schema.tags.len());
    for (tag, values) in schema.tags.iter().zip(tag_columns) {
        let values = cast(values, &tag.kind.data_type())?;
        tags.push(BatchTag {
            name: tag.name.clone(),
            values,
        });
    }
    let (slots, firsts) = slots(&tags, rows);
    let firsts = UInt32Array::from(firsts);
    for tag in &mut tags {
        tag.values = take(&tag.values, &firsts, None)?;
    }
    // A column without values is left out.
    let fields = fields
        .into_iter()
        .filter(|(_, values)| values.null_count() < rows || rows == 0);
    let fields = fields.map(|(field, values)| BatchField {
        name: field.name.clone(),
        // Stored as the time in UTC.
        values: match values.data_type() {
            DataType::Timestamp(unit, Some(_)) => {
                relabelled(values, &DataType::Timestamp(*unit, None))
                    .unwrap_or_else(|_| Arc::clone(values))
            }
            _ => Arc::clone(values),
        },
    });
    Ok(WriteBatch {
        table: schema.name.clone(),
        slot_count: firsts.len(),
        tags,
        slots,
        times: ScalarBuffer::clone(times.values()),
        fields: fields.collect(),
    })
}

/// The columns of a batch that has a table's schema, by role; tags and fields in the order of the
/// table's.
struct BatchColumns<'a> {
    time: &'a ArrayRef,
    tags: Vec<&'a ArrayRef>,
    fields: Vec<&'a ArrayRef>,
}

impl<'a> BatchColumns<'a> {
    fn new(batch: &'a RecordBatch, schema: &TableSchema) -> Result<Self> {
        let by_column: HashMap<TableColumn, &ArrayRef> =
            schema.columns().zip(batch.columns()).collect();
        let values = |column: TableColumn| {
            let lacks = || {
                let name = schema.name_of(column).unwrap_or_default();
                DataFusionError::Internal(format!("a batch lacks the column '{name}'"))
            };
            by_column.get(&column).copied().ok_or_else(lacks)
        };
        let tags = (0..=u16::MAX).take(schema.tags.len()).map(TableColumn::Tag);
        let fields = schema.fields.iter();
        let fields = fields.map(|field| TableColumn::Field(field.id));
        Ok(Self {
            time: values(TableColumn::Time)?,
            tags: tags.map(values).collect::<Result<_>>()?,
            fields: fields.map(values).collect::<Result<_>>()?,
        })
    }
}

/// Records the rows of a batch that were stored.
fn note(
    replaced: &mut ReplacedRows,
    rows: &WriteBatch,
    report: &WriteReport,
    stored: Option<&ReplacedCount>,
) {
    replaced.note_scan(stored);
    let mut key = TagKey::default();
    let series: Vec<_> = (0..rows.slot_count)
        .map(|slot| {
            push_key(&mut key, &rows.tags, slot);
            replaced.series(key.as_bytes())
        })
        .collect();
    let mut rejected = report.rejected.iter().peekable();
    let mut stored = stored
        .map_or(&[][..], |stored| &stored.rows)
        .iter()
        .peekable();
    for (row, (slot, time)) in rows.slots.iter().zip(rows.times.iter()).enumerate() {
        let is_stored = stored.next_if(|stored| **stored as usize == row).is_some();
        if rejected
            .next_if(|refused| refused.row as usize == row)
            .is_none()
        {
            replaced.note(series[*slot as usize], *time, is_stored);
        }
    }
}

/// Appends the tags at an index of their columns to a key.
fn push_key(key: &mut TagKey, tags: &[BatchTag], place: usize) {
    key.clear();
    for (ordinal, tag) in tags.iter().enumerate() {
        if let Some(value) = tag.value(place) {
            key.push(ordinal as u16, value);
        }
    }
}

/// The slot of each row, and the first row of each slot.
fn slots(tags: &[BatchTag], rows: usize) -> (Vec<u32>, Vec<u32>) {
    if tags.is_empty() {
        return (vec![0; rows], if rows > 0 { vec![0] } else { Vec::new() });
    }
    let (mut slots, mut firsts) = (Vec::with_capacity(rows), Vec::new());
    let mut known: HashMap<Vec<u8>, u32, RandomState> = HashMap::default();
    let mut key = TagKey::default();
    for row in 0..rows {
        push_key(&mut key, tags, row);
        let slot = match known.get(key.as_bytes()) {
            Some(slot) => *slot,
            None => {
                let slot = firsts.len() as u32;
                known.insert(key.as_bytes().to_vec(), slot);
                firsts.push(row as u32);
                slot
            }
        };
        slots.push(slot);
    }
    (slots, firsts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::types::arrow_schema;
    use arrow::array::{Float64Array, StringArray, TimestampNanosecondArray};
    use marigram_model::{
        ColumnId, FieldColumn, FieldType, TableId, TableOptions, TagColumn, TagType,
    };

    #[test]
    fn equal_tag_sets_share_a_slot() {
        let schema = TableSchema {
            id: TableId(1),
            database: "d".into(),
            name: "t".into(),
            time_name: "time".into(),
            tags: vec![TagColumn {
                name: "dev".into(),
                kind: TagType::String,
            }],
            fields: ["x", "y"]
                .into_iter()
                .zip(1..)
                .map(|(name, id)| FieldColumn {
                    id: ColumnId(id),
                    name: name.into(),
                    kind: FieldType::F64,
                    codec: marigram_model::ColumnCodec::default(),
                })
                .collect(),
            options: TableOptions::default(),
            rollup: None,
            view: None,
            dropped_max: 0,
            declared: Vec::new(),
        };
        let arrow = arrow_schema(&schema);
        let devices: ArrayRef = Arc::new(StringArray::from(vec![
            Some("a"),
            None,
            Some("a"),
            Some("b"),
        ]));
        let batch = RecordBatch::try_new(
            Arc::clone(&arrow),
            vec![
                Arc::new(TimestampNanosecondArray::from(vec![1, 2, 3, 4])),
                cast(&devices, arrow.field(1).data_type()).unwrap(),
                Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0])),
                Arc::new(Float64Array::new_null(4)),
            ],
        );
        let rows = to_write_batch(&batch.unwrap(), &schema).unwrap();
        assert_eq!(rows.check(), Ok(()));
        assert_eq!(rows.slots, [0, 1, 0, 2]);
        let values = rows.tags[0].values.as_string::<i32>();
        assert_eq!(values, &StringArray::from(vec![Some("a"), None, Some("b")]));
        assert_eq!(rows.fields.len(), 1, "a column without values is left out");
    }
}
