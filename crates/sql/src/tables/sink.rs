//! INSERT: writes Arrow rows to the engine.
//!
//! A row that the engine refuses does not affect the others: they are stored, and the statement
//! fails with the number of refused rows and the reasons of the first ones.

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
use futures::StreamExt;
use marigram_engine::{Engine, ReplacedCount, WriteOptions, WriteReport};
use marigram_functions::zoned::relabelled;
use marigram_model::{BatchField, BatchTag, TableColumn, TableSchema, TagKey, WriteBatch};
use marigram_service::run_blocking;
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
}

impl TableSink {
    /// Creates a sink for the table; `arrow` is its schema.
    pub(crate) fn new(engine: Engine, schema: Arc<TableSchema>, arrow: SchemaRef) -> Self {
        Self {
            engine,
            schema,
            arrow,
        }
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
struct SinkRefusals {
    count: usize,
    reasons: Vec<String>,
}

impl SinkRefusals {
    fn add(&mut self, report: &WriteReport, first_row: u64) {
        self.count += report.rejected.len();
        for row in &report.rejected {
            if self.reasons.len() < REASONS_MAX {
                let number = first_row + u64::from(row.row) + 1;
                self.reasons.push(format!("row {number}: {}", row.reason));
            }
        }
    }

    fn into_error(self, stored: u64) -> SqlError {
        let more = if self.count > self.reasons.len() {
            "; …"
        } else {
            ""
        };
        SqlError::invalid(
            "22000",
            format!(
                "{} of {} rows were refused ({}{more}); the other {stored} are stored",
                self.count,
                self.count as u64 + stored,
                self.reasons.join("; "),
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
        mut data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (mut stored, mut seen, mut refused) = (0_u64, 0_u64, SinkRefusals::default());
        let mut replaced = ReplacedRows::default();
        while let Some(batch) = data.next().await {
            let batch = batch?;
            let first_row = seen;
            seen += batch.num_rows() as u64;
            let rows = Arc::new(to_write_batch(&batch, &self.schema)?);
            let noted = Arc::clone(&rows);
            let (engine, database) = (self.engine.clone(), self.schema.database.clone());
            let scanned_max = replaced.scanned_max();
            let written = run_blocking(move || {
                // What cannot be read holds up no INSERT.
                let stored = engine.replaced_by(&database, &rows, scanned_max);
                let written = engine.write(&database, &rows, WriteOptions { grow: false });
                written.map(|report| (report, stored.ok()))
            });
            let (report, known) = written
                .await
                .map_err(|error| DataFusionError::External(Box::new(SqlError::from(error))))?
                .map_err(|error| DataFusionError::External(Box::new(SqlError::Engine(error))))?;
            stored += report.stored as u64;
            refused.add(&report, first_row);
            note(&mut replaced, &noted, &report, known.as_ref());
        }
        if let Some(notice) = replaced.notice(&self.schema) {
            StatementNotices::tell(context.session_config(), notice);
        }
        if refused.count > 0 {
            return Err(DataFusionError::External(Box::new(
                refused.into_error(stored),
            )));
        }
        Ok(stored)
    }
}

/// Converts a batch with the table's schema for the engine: rows with equal tags share a slot.
///
/// # Errors
/// If a row has no time, or a column does not have the table's type.
pub(crate) fn to_write_batch(batch: &RecordBatch, schema: &TableSchema) -> Result<WriteBatch> {
    let rows = batch.num_rows();
    let columns = BatchColumns::new(batch, schema)?;
    let times = columns
        .time
        .as_primitive_opt::<TimestampNanosecondType>()
        .ok_or_else(|| DataFusionError::Internal("time is not in nanoseconds".into()))?;
    if times.null_count() > 0 {
        return Err(DataFusionError::External(Box::new(SqlError::invalid(
            "23502",
            "a row has no time; give every row a time, or leave the column out",
        ))));
    }
    let mut tags = Vec::with_capacity(schema.tags.len());
    for (tag, values) in schema.tags.iter().zip(columns.tags) {
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
    let fields = schema.fields.iter().zip(columns.fields);
    // A column without values is left out.
    let fields = fields.filter(|(_, values)| values.null_count() < rows || rows == 0);
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
    let keys: Vec<Vec<u8>> = (0..rows.slot_count)
        .map(|slot| {
            push_key(&mut key, &rows.tags, slot);
            key.as_bytes().to_vec()
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
            replaced.note(&keys[*slot as usize], *time, is_stored);
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
    let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
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
