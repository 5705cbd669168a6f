//! Converts rows to Arrow batches: the measurement, the tags, the time, and the columns, with their
//! roles.

use crate::expression::Expression;
use crate::point::Row;
use crate::prepare::{PreparedSelect, extra_columns};
use crate::series::sorted_keys;
use crate::source::RowSource;
use crate::typing::type_of;
use crate::value::{InfluxValueType, Value};
use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, NullArray, StringBuilder,
    TimestampNanosecondArray, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DataFusionError;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_service::ROLE_KEY;
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// The name of the column of measurements.
pub const MEASUREMENT_COLUMN: &str = "iox::measurement";

fn field(name: &str, kind: DataType, nullable: bool, role: &str) -> Field {
    let metadata = [(ROLE_KEY.to_owned(), role.to_owned())];
    Field::new(name, kind, nullable).with_metadata(metadata.into())
}

/// Arrow's type of values.
pub(crate) const fn arrow_type(kind: Option<InfluxValueType>) -> DataType {
    match kind {
        None => DataType::Null,
        Some(InfluxValueType::Float) => DataType::Float64,
        Some(InfluxValueType::Integer) => DataType::Int64,
        Some(InfluxValueType::Unsigned) => DataType::UInt64,
        Some(InfluxValueType::Boolean) => DataType::Boolean,
        Some(InfluxValueType::String | InfluxValueType::Tag) => DataType::Utf8,
    }
}

/// The columns of an answer that consists of series.
#[derive(Clone, Debug)]
pub(crate) struct SeriesSchema {
    schema: SchemaRef,
    keys: Arc<[Arc<str>]>,
    kinds: Vec<Option<InfluxValueType>>,
    /// The zone in which times are shown, by its IANA name.
    zone: Option<Arc<str>>,
}

impl SeriesSchema {
    /// The columns of a SELECT.
    pub(crate) fn new(prepared: &PreparedSelect) -> Self {
        let keys = sorted_keys(prepared.dimensions.iter().cloned());
        let mut kinds = Vec::new();
        for field in &prepared.fields {
            kinds.push(type_of(&field.expression).ok().flatten());
            if !prepared.has_target {
                let extra = extra_columns(&field.expression).into_iter();
                kinds.extend(
                    extra.map(|var| type_of(&Expression::Name(var.clone())).ok().flatten()),
                );
            }
        }
        let mut fields = vec![field(
            MEASUREMENT_COLUMN,
            DataType::Utf8,
            true,
            "measurement",
        )];
        fields.extend(
            keys.iter()
                .map(|key| field(key, DataType::Utf8, true, "tag")),
        );
        let zone = prepared.zone.as_ref().and_then(|zone| zone.iana_name());
        let zone: Option<Arc<str>> = zone.filter(|name| *name != "UTC").map(Arc::from);
        let time = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
        fields.push(field(&prepared.time_column, time, false, "time"));
        let columns = prepared.columns.iter().zip(&kinds);
        fields.extend(columns.map(|(name, kind)| field(name, arrow_type(*kind), true, "field")));
        Self {
            schema: Arc::new(Schema::new(fields)),
            keys,
            kinds,
            zone,
        }
    }

    /// Rows as a batch.
    ///
    /// # Errors
    /// Arrow's errors.
    pub(crate) fn batch(&self, rows: &[Row]) -> SqlResult<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        let mut names = StringBuilder::new();
        for row in rows {
            names.append_value(&row.series.name);
        }
        columns.push(Arc::new(names.finish()));
        for (place, key) in self.keys.iter().enumerate() {
            let mut tags = StringBuilder::new();
            for row in rows {
                let tag = match row.series.tags.get(place) {
                    Some((known, value)) if known == key => Some(value),
                    _ => row.series.tag(key),
                };
                tags.append_value(tag.map_or("", |value| value));
            }
            columns.push(Arc::new(tags.finish()));
        }
        let times = rows.iter().map(|row| row.time);
        let times = TimestampNanosecondArray::from_iter_values(times);
        columns.push(Arc::new(times.with_timezone_opt(self.zone.clone())));
        for (place, kind) in self.kinds.iter().enumerate() {
            let values = rows.iter().map(|row| row.values.get(place));
            columns.push(value_array(values, *kind));
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(DataFusionError::from)?)
    }

    /// Turns the rows of a source into the answer of a statement.
    pub(crate) fn answer(self, source: Box<dyn RowSource>) -> StatementRows {
        let schema = Arc::clone(&self.schema);
        let batches = futures::stream::try_unfold((self, source), |(own, mut source)| async move {
            Ok::<_, SqlError>(match source.next().await? {
                Some(rows) => Some((own.batch(&rows)?, (own, source))),
                None => None,
            })
        });
        StatementRows::Rows {
            schema,
            batches: batches.boxed(),
        }
    }
}

fn value_array<'a>(
    values: impl Iterator<Item = Option<&'a Value>>,
    kind: Option<InfluxValueType>,
) -> ArrayRef {
    let cast = |value: Option<&Value>| match (value, kind) {
        (Some(value), Some(kind)) => value.cast(kind),
        _ => Value::Null,
    };
    match kind {
        None => Arc::new(NullArray::new(values.count())),
        Some(InfluxValueType::Float) => {
            let mut array = Float64Builder::new();
            values.for_each(|value| array.append_option(cast(value).as_f64()));
            Arc::new(array.finish())
        }
        Some(InfluxValueType::Integer) => {
            let mut array = Int64Builder::new();
            values.for_each(|value| {
                array.append_option(match cast(value) {
                    Value::Integer(value) => Some(value),
                    _ => None,
                });
            });
            Arc::new(array.finish())
        }
        Some(InfluxValueType::Unsigned) => {
            let mut array = UInt64Builder::new();
            values.for_each(|value| {
                array.append_option(match cast(value) {
                    Value::Unsigned(value) => Some(value),
                    _ => None,
                });
            });
            Arc::new(array.finish())
        }
        Some(InfluxValueType::Boolean) => {
            let mut array = BooleanBuilder::new();
            values.for_each(|value| {
                array.append_option(match value {
                    Some(Value::Boolean(value)) => Some(*value),
                    _ => None,
                });
            });
            Arc::new(array.finish())
        }
        Some(InfluxValueType::String | InfluxValueType::Tag) => {
            let mut array = StringBuilder::new();
            values.for_each(|value| {
                array.append_option(match value {
                    Some(Value::String(text)) => Some(text),
                    _ => None,
                });
            });
            Arc::new(array.finish())
        }
    }
}

/// A complete answer: rows under the names of series, without times.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    columns: Vec<(&'static str, InfluxValueType)>,
    rows: Vec<(Option<Arc<str>>, Vec<Value>)>,
}

impl Listing {
    /// No rows of these columns.
    pub(crate) const fn new(columns: Vec<(&'static str, InfluxValueType)>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row of a series, which may have no name.
    pub(crate) fn push(&mut self, series: Option<&Arc<str>>, values: Vec<Value>) {
        self.rows.push((series.cloned(), values));
    }

    /// Turns the listing into the answer of a statement.
    ///
    /// # Errors
    /// Arrow's errors.
    pub(crate) fn answer(self) -> SqlResult<StatementRows> {
        let mut fields = vec![field(
            MEASUREMENT_COLUMN,
            DataType::Utf8,
            true,
            "measurement",
        )];
        let columns = self.columns.iter();
        fields.extend(columns.map(|(name, kind)| match *name {
            "time" => {
                let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
                field(name, time, false, "time")
            }
            name => field(name, arrow_type(Some(*kind)), true, "field"),
        }));
        let schema = Arc::new(Schema::new(fields));
        let mut names = StringBuilder::new();
        self.rows
            .iter()
            .for_each(|(name, _)| names.append_option(name.as_deref()));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(names.finish())];
        for (place, (name, kind)) in self.columns.iter().enumerate() {
            let values = self.rows.iter().map(|(_, values)| values.get(place));
            arrays.push(match *name {
                "time" => {
                    let times = values.map(|value| match value {
                        Some(Value::Integer(time)) => *time,
                        _ => 0,
                    });
                    Arc::new(TimestampNanosecondArray::from_iter_values(times))
                }
                _ => value_array(values, Some(*kind)),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
            .map_err(DataFusionError::from)?;
        let batches: BoxStream<'static, SqlResult<RecordBatch>> =
            futures::stream::iter([Ok(batch)]).boxed();
        Ok(StatementRows::Rows { schema, batches })
    }
}
