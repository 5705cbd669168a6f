//! `SHOW SEGMENTS` and `SHOW PAGES`: how rows are stored on disk.
//!
//! Segments are returned as one batch. A table may have millions of pages: they are returned in
//! batches, as they are read.

use crate::dialect::types::time_data_type;
use crate::error::{SqlError, SqlResult};
use crate::tables::batches::{batch, text};
use arrow::array::{ArrayRef, StringArray, TimestampNanosecondArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use marigram_engine::{EngineError, PageDetail, SegmentDetail, SegmentInfo, TableSnapshot};
use marigram_model::{ColumnId, FieldValue, TableId, TableSchema};
use std::path::Path;
use std::sync::Arc;

/// The largest number of pages in a batch.
const BATCH_PAGES: usize = 1024;

fn numbers(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

/// The segments, one per row; if `table` is given, only what they hold of that table.
///
/// # Errors
/// None that an engine could cause: a segment that cannot be read is a row that says so.
pub(crate) fn segments(all: &[SegmentInfo], table: Option<TableId>) -> SqlResult<RecordBatch> {
    let times = |time: fn(&SegmentInfo) -> i64| -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from_iter_values(
            all.iter().map(time),
        ))
    };
    let counts = |count: fn(&SegmentInfo) -> u64| numbers(all.iter().map(count));
    let file = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let space = |segment: &SegmentInfo| format!("{:?}", segment.meta.space).to_lowercase();
    let details: Vec<Result<SegmentDetail, EngineError>> =
        all.iter().map(|info| info.open.detail(table)).collect();
    let known = |count: fn(&SegmentDetail) -> u64| -> ArrayRef {
        let counts = details.iter().map(|detail| detail.as_ref().ok().map(count));
        Arc::new(counts.collect::<UInt64Array>())
    };
    let encodings = details.iter().map(|detail| {
        let encodings = &detail.as_ref().ok()?.encodings;
        Some(encodings.iter().cloned().collect::<Vec<_>>().join(" "))
    });
    let damage = details
        .iter()
        .map(|detail| detail.as_ref().err().map(EngineError::to_string));
    batch(vec![
        ("shard", counts(|segment| segment.shard as u64)),
        (
            "file",
            text(
                all.iter()
                    .map(|segment| file(&segment.path).unwrap_or_default()),
            ),
        ),
        ("space", text(all.iter().map(space))),
        ("level", counts(|segment| u64::from(segment.meta.level))),
        (
            "partition",
            times(|segment| segment.meta.partition.start_ns),
        ),
        ("first_time", times(|segment| segment.meta.range.min)),
        ("last_time", times(|segment| segment.meta.range.max)),
        ("rows", counts(|segment| segment.meta.rows)),
        ("bytes", counts(|segment| segment.meta.bytes)),
        ("tables", counts(|segment| segment.meta.tables.len() as u64)),
        ("segment", counts(|segment| segment.meta.id.0)),
        ("row_groups", known(|detail| detail.row_groups)),
        ("pages", known(|detail| detail.pages)),
        ("page_bytes", known(|detail| detail.page_bytes)),
        ("nulls", known(|detail| detail.nulls)),
        ("encodings", Arc::new(encodings.collect::<StringArray>())),
        ("damage", Arc::new(damage.collect::<StringArray>())),
    ])
}

/// The schema of `SHOW PAGES`.
pub(crate) fn pages_schema() -> SchemaRef {
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    let time = |name: &str| Field::new(name, time_data_type(), true);
    Arc::new(Schema::new(vec![
        number("shard"),
        number("segment"),
        number("row_group"),
        text("column_name", false),
        number("page"),
        number("first_series"),
        number("last_series"),
        number("rows"),
        number("nulls"),
        text("encoding", false),
        text("compression", false),
        number("encoded_bytes"),
        number("raw_bytes"),
        text("min", true),
        text("max", true),
        text("sum", true),
        text("first", true),
        time("first_time"),
        text("last", true),
        time("last_time"),
    ]))
}

/// The pages of a table as rows, read on demand.
pub(crate) struct PageDetailStream {
    table: Arc<TableSchema>,
    pages: Box<dyn Iterator<Item = Result<PageDetail, EngineError>> + Send>,
}

impl PageDetailStream {
    /// The pages that `snapshot` sees: of all segments or of the one with this number, and at most
    /// `limit`.
    pub(crate) fn new(snapshot: &TableSnapshot, segment: Option<u64>, limit: Option<u64>) -> Self {
        let table = Arc::clone(snapshot.schema());
        let views: Vec<_> = snapshot
            .views()
            .iter()
            .map(|view| view.pages(table.id, segment))
            .collect();
        let most = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        Self {
            table,
            pages: Box::new(views.into_iter().flatten().take(most)),
        }
    }

    /// The next batch, if there is one. Blocks.
    ///
    /// # Errors
    /// If a segment is damaged, or the disk refuses.
    pub(crate) fn next_batch(&mut self) -> SqlResult<Option<RecordBatch>> {
        let taken: Vec<PageDetail> = self
            .pages
            .by_ref()
            .take(BATCH_PAGES)
            .collect::<Result<_, _>>()?;
        if taken.is_empty() {
            return Ok(None);
        }
        rows(&self.table, &taken).map(Some)
    }
}

fn rows(table: &TableSchema, pages: &[PageDetail]) -> SqlResult<RecordBatch> {
    let count = |count: fn(&PageDetail) -> u64| numbers(pages.iter().map(count));
    let values = |value: fn(&PageDetail) -> Option<&FieldValue>| -> ArrayRef {
        let texts = pages
            .iter()
            .map(|page| value(page).map(|value| shown(value, page.column)));
        Arc::new(texts.collect::<StringArray>())
    };
    let times = |time: fn(&PageDetail) -> Option<i64>| -> ArrayRef {
        Arc::new(pages.iter().map(time).collect::<TimestampNanosecondArray>())
    };
    let columns: Vec<ArrayRef> = vec![
        count(|page| page.shard as u64),
        count(|page| page.segment),
        count(|page| page.row_group as u64),
        text(pages.iter().map(|page| column_name(table, page.column))),
        count(|page| page.page as u64),
        count(|page| u64::from(page.series.0.0)),
        count(|page| u64::from(page.series.1.0)),
        count(|page| u64::from(page.rows)),
        count(|page| u64::from(page.stats.nulls)),
        text(
            pages
                .iter()
                .map(|page| page.info.encoding.name().to_owned()),
        ),
        text(
            pages
                .iter()
                .map(|page| page.info.compressor.name().to_owned()),
        ),
        count(|page| u64::from(page.info.encoded_bytes)),
        count(|page| u64::from(page.info.raw_bytes)),
        values(|page| page.stats.min.as_ref()),
        values(|page| page.stats.max.as_ref()),
        // The sum of times has no meaning.
        values(|page| {
            page.stats
                .sum
                .as_ref()
                .filter(|_| page.column != ColumnId::TIME)
        }),
        values(|page| page.stats.first.as_ref().map(|first| &first.1)),
        times(|page| page.stats.first.as_ref().map(|first| first.0)),
        values(|page| page.stats.last.as_ref().map(|last| &last.1)),
        times(|page| page.stats.last.as_ref().map(|last| last.0)),
    ];
    RecordBatch::try_new(pages_schema(), columns)
        .map_err(|error| SqlError::DataFusion(error.into()))
}

fn column_name(table: &TableSchema, column: ColumnId) -> String {
    if column == ColumnId::TIME {
        return table.time_name.clone();
    }
    table
        .field_by_id(column)
        .map_or_else(|| format!("column {column}"), |field| field.name.clone())
}

/// A value as queries would show it.
fn shown(value: &FieldValue, column: ColumnId) -> String {
    let array = match value {
        FieldValue::I64(ns) if column == ColumnId::TIME => FieldValue::Timestamp(*ns).to_array(),
        value => value.to_array(),
    };
    array_value_to_string(&array, 0).unwrap_or_else(|error| error.to_string())
}
