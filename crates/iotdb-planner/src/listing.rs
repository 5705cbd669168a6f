//! Answers that list things: columns without times.

use crate::statement::TreeRun;
use arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use futures::StreamExt;
use marigram_iotdb::{IGNORES_TIME_KEY, IotDbType, TYPE_KEY};
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use std::collections::HashMap;
use std::sync::Arc;

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// Bytes of a row beside its texts.
const ROW_BYTES: usize = 64;

/// The rows of an answer that are shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListingPage {
    /// Rows that are left out first.
    pub(crate) offset: u64,
    /// The most rows.
    pub(crate) limit: Option<u64>,
}

/// A value of a listing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListedValue {
    Missing,
    Text(Arc<str>),
    Number(i64),
}

impl From<&str> for ListedValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for ListedValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i32> for ListedValue {
    fn from(number: i32) -> Self {
        Self::Number(i64::from(number))
    }
}

impl From<i64> for ListedValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// The field of a column with an IoTDB type.
pub(crate) fn typed_field(name: &str, kind: IotDbType) -> Field {
    let metadata = HashMap::from([(TYPE_KEY.to_owned(), kind.name().to_owned())]);
    Field::new(name, answer_type(kind), true).with_metadata(metadata)
}

/// The Arrow type of values of an IoTDB type in answers.
pub(crate) fn answer_type(kind: IotDbType) -> DataType {
    match kind {
        IotDbType::Boolean => DataType::Boolean,
        IotDbType::Int32 | IotDbType::Date => DataType::Int32,
        IotDbType::Int64 | IotDbType::Timestamp => DataType::Int64,
        IotDbType::Float => DataType::Float32,
        IotDbType::Double => DataType::Float64,
        IotDbType::Text | IotDbType::String => DataType::Utf8,
        IotDbType::Blob => DataType::Binary,
    }
}

/// The schema of an answer, and whether it has no column of times.
pub(crate) fn answer_schema(fields: Vec<Field>, ignores_time: bool) -> SchemaRef {
    let mut metadata = HashMap::new();
    metadata.insert(IGNORES_TIME_KEY.to_owned(), ignores_time.to_string());
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// Rows that are listed.
pub(crate) struct TreeListing {
    columns: Vec<(String, IotDbType)>,
    page: ListingPage,
    rows: Vec<Vec<ListedValue>>,
}

impl TreeListing {
    /// A listing with columns of these names and types.
    pub(crate) fn new(columns: &[(&str, IotDbType)], page: ListingPage) -> Self {
        let columns = columns.iter();
        Self {
            columns: columns
                .map(|(name, kind)| ((*name).to_owned(), *kind))
                .collect(),
            page,
            rows: Vec::new(),
        }
    }

    /// A listing of texts.
    pub(crate) fn of_texts(columns: &[&str], page: ListingPage) -> Self {
        let columns: Vec<_> = columns
            .iter()
            .map(|name| (*name, IotDbType::Text))
            .collect();
        Self::new(&columns, page)
    }

    /// Whether more rows would not be shown.
    pub(crate) fn is_full(&self) -> bool {
        let limit = self.page.limit;
        limit.is_some_and(|limit| self.rows.len() as u64 >= limit)
    }

    /// Adds a row, if it is on the page.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn push(&mut self, run: &TreeRun<'_>, row: Vec<ListedValue>) -> SqlResult<()> {
        if self.page.offset > 0 {
            self.page.offset -= 1;
            return Ok(());
        }
        if self.is_full() {
            return Ok(());
        }
        let texts = row.iter().map(|value| match value {
            ListedValue::Text(text) => text.len() + size_of::<ListedValue>(),
            _ => size_of::<ListedValue>(),
        });
        run.budget.keep(ROW_BYTES + texts.sum::<usize>())?;
        self.rows.push(row);
        Ok(())
    }

    /// The answer.
    pub(crate) fn answer(self) -> StatementRows {
        let columns = self.columns.iter();
        let fields = columns.map(|(name, kind)| typed_field(name, *kind));
        let schema = answer_schema(fields.collect(), true);
        let shown = Arc::clone(&schema);
        let chunks = (0..self.rows.len()).step_by(BATCH_ROWS);
        let ends: Vec<usize> = chunks.collect();
        let batches = ends.into_iter().map(move |begin| {
            let end = (begin + BATCH_ROWS).min(self.rows.len());
            let rows = &self.rows[begin..end];
            let columns = self.columns.iter().enumerate();
            let columns = columns.map(|(place, (_, kind))| column(rows, place, *kind));
            let batch = RecordBatch::try_new(Arc::clone(&shown), columns.collect());
            batch.map_err(|error| SqlError::from(DataFusionError::from(error)))
        });
        StatementRows::Rows {
            schema,
            batches: futures::stream::iter(batches).boxed(),
        }
    }
}

fn column(rows: &[Vec<ListedValue>], place: usize, kind: IotDbType) -> ArrayRef {
    let values = rows.iter().map(|row| row.get(place));
    let number = |value: Option<&ListedValue>| match value {
        Some(ListedValue::Number(number)) => Some(*number),
        _ => None,
    };
    match answer_type(kind) {
        DataType::Int64 => Arc::new(values.map(number).collect::<Int64Array>()),
        DataType::Int32 => {
            let numbers = values.map(|value| i32::try_from(number(value)?).ok());
            Arc::new(numbers.collect::<Int32Array>())
        }
        _ => {
            let texts = values.map(|value| match value {
                Some(ListedValue::Text(text)) => Some(&**text),
                _ => None,
            });
            Arc::new(texts.collect::<StringArray>())
        }
    }
}
