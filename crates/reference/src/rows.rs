//! From rows of SQLite to columns of Arrow.

use crate::definition::{ReferenceColumn, ReferenceTable, ReferenceType};
use crate::error::{ReferenceError, Result};
use crate::value::{INTEGER_DIGITS_MAX, NAN, from_sortable, interval_of};
use arrow::array::{
    Array, ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder,
    Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    IntervalMonthDayNanoBuilder, RecordBatch, RecordBatchOptions, StringBuilder,
    Time64NanosecondBuilder, TimestampNanosecondBuilder,
};
use arrow::datatypes::{Field, Schema};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::sync::Arc;

/// The name of the column of row ids.
const ROW_ID: &str = "rowid";

/// One column under construction.
enum ColumnBuilder {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Numeric(Decimal128Builder, u8),
    Text(StringBuilder),
    Bytea(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64NanosecondBuilder),
    Timestamp(TimestampNanosecondBuilder),
    Interval(IntervalMonthDayNanoBuilder),
}

/// Runs an expression with the builder of any column.
macro_rules! with_builder {
    ($column:expr, $builder:ident => $body:expr) => {
        match $column {
            ColumnBuilder::Bool($builder) => $body,
            ColumnBuilder::Int2($builder) => $body,
            ColumnBuilder::Int4($builder) => $body,
            ColumnBuilder::Int8($builder) => $body,
            ColumnBuilder::Float4($builder) => $body,
            ColumnBuilder::Float8($builder) => $body,
            ColumnBuilder::Numeric($builder, _) => $body,
            ColumnBuilder::Text($builder) => $body,
            ColumnBuilder::Bytea($builder) => $body,
            ColumnBuilder::Date($builder) => $body,
            ColumnBuilder::Time($builder) => $body,
            ColumnBuilder::Timestamp($builder) => $body,
            ColumnBuilder::Interval($builder) => $body,
        }
    };
}

impl ColumnBuilder {
    fn new(kind: ReferenceType, rows: usize) -> Self {
        match kind {
            ReferenceType::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
            ReferenceType::Int2 => Self::Int2(Int16Builder::with_capacity(rows)),
            ReferenceType::Int4 => Self::Int4(Int32Builder::with_capacity(rows)),
            ReferenceType::Int8 => Self::Int8(Int64Builder::with_capacity(rows)),
            ReferenceType::Float4 => Self::Float4(Float32Builder::with_capacity(rows)),
            ReferenceType::Float8 => Self::Float8(Float64Builder::with_capacity(rows)),
            ReferenceType::Numeric { precision, .. } => Self::Numeric(
                Decimal128Builder::with_capacity(rows).with_data_type(kind.data_type()),
                precision,
            ),
            ReferenceType::Bytea => Self::Bytea(BinaryBuilder::with_capacity(rows, 8 * rows)),
            ReferenceType::Date => Self::Date(Date32Builder::with_capacity(rows)),
            ReferenceType::Time => Self::Time(Time64NanosecondBuilder::with_capacity(rows)),
            ReferenceType::Timestamp | ReferenceType::TimestampTz => Self::Timestamp(
                TimestampNanosecondBuilder::with_capacity(rows).with_data_type(kind.data_type()),
            ),
            ReferenceType::Interval => {
                Self::Interval(IntervalMonthDayNanoBuilder::with_capacity(rows))
            }
            ReferenceType::Text
            | ReferenceType::Varchar(_)
            | ReferenceType::Char(_)
            | ReferenceType::Uuid
            | ReferenceType::Json
            | ReferenceType::Jsonb => Self::Text(StringBuilder::with_capacity(rows, 8 * rows)),
        }
    }

    /// Appends a value; returns its bytes. What this crate never stores is damage.
    fn push(&mut self, value: ValueRef<'_>) -> Result<usize> {
        match (&mut *self, value) {
            (column, ValueRef::Null) => with_builder!(column, builder => builder.append_null()),
            (Self::Bool(builder), ValueRef::Integer(number)) => builder.append_value(number != 0),
            (Self::Int2(builder), ValueRef::Integer(number)) => {
                builder.append_value(i16::try_from(number).map_err(|_| unexpected(value))?);
            }
            (Self::Int4(builder), ValueRef::Integer(number)) => {
                builder.append_value(i32::try_from(number).map_err(|_| unexpected(value))?);
            }
            (Self::Date(builder), ValueRef::Integer(number)) => {
                builder.append_value(i32::try_from(number).map_err(|_| unexpected(value))?);
            }
            (Self::Int8(builder), ValueRef::Integer(number)) => builder.append_value(number),
            (Self::Time(builder), ValueRef::Integer(number)) => builder.append_value(number),
            (Self::Timestamp(builder), ValueRef::Integer(number)) => builder.append_value(number),
            (Self::Float4(builder), ValueRef::Real(number)) => builder.append_value(number as f32),
            (Self::Float8(builder), ValueRef::Real(number)) => builder.append_value(number),
            (Self::Float4(builder), ValueRef::Text(text)) if text == NAN.as_bytes() => {
                builder.append_value(f32::NAN);
            }
            (Self::Float8(builder), ValueRef::Text(text)) if text == NAN.as_bytes() => {
                builder.append_value(f64::NAN);
            }
            (Self::Numeric(builder, precision), ValueRef::Integer(number))
                if *precision <= INTEGER_DIGITS_MAX =>
            {
                builder.append_value(number.into());
            }
            (Self::Numeric(builder, _), ValueRef::Blob(bytes)) => {
                builder.append_value(from_sortable(bytes).ok_or_else(|| unexpected(value))?);
            }
            (Self::Interval(builder), ValueRef::Blob(bytes)) => {
                builder.append_value(interval_of(bytes).ok_or_else(|| unexpected(value))?);
            }
            (Self::Text(builder), ValueRef::Text(text)) => {
                builder.append_value(std::str::from_utf8(text).map_err(|_| unexpected(value))?);
                return Ok(text.len());
            }
            (Self::Bytea(builder), ValueRef::Blob(bytes)) => {
                builder.append_value(bytes);
                return Ok(bytes.len());
            }
            _ => return Err(unexpected(value)),
        }
        Ok(8)
    }

    fn finish(&mut self) -> ArrayRef {
        with_builder!(self, builder => Arc::new(builder.finish()))
    }
}

fn unexpected(value: ValueRef<'_>) -> ReferenceError {
    ReferenceError::damaged(format!("unexpected value of type {}", value.data_type()))
}

/// Rows under construction: some columns of a table, then the row ids if they are wanted.
pub(crate) struct RowsBuilder<'a> {
    columns: Vec<(&'a ReferenceColumn, ColumnBuilder)>,
    row_ids: Option<Vec<i64>>,
    rows: usize,
    /// About as many bytes as the values take.
    pub(crate) bytes: usize,
}

impl<'a> RowsBuilder<'a> {
    pub(crate) fn new(
        table: &'a ReferenceTable,
        positions: &[usize],
        with_row_id: bool,
        rows_expected: usize,
    ) -> Result<Self> {
        let mut columns = Vec::with_capacity(positions.len());
        for position in positions {
            let column = column_at(table, *position)?;
            columns.push((column, ColumnBuilder::new(column.kind, rows_expected)));
        }
        let row_ids = with_row_id.then(|| Vec::with_capacity(rows_expected));
        Ok(Self {
            columns,
            row_ids,
            rows: 0,
            bytes: 0,
        })
    }

    /// Appends a row of SQLite, whose first columns are these.
    pub(crate) fn push(&mut self, row: &Row<'_>, row_id: i64) -> Result<()> {
        for (position, (_, builder)) in self.columns.iter_mut().enumerate() {
            self.bytes += builder.push(row.get_ref(position)?)?;
        }
        if let Some(row_ids) = &mut self.row_ids {
            row_ids.push(row_id);
        }
        self.rows += 1;
        Ok(())
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn finish(self) -> Result<RecordBatch> {
        let mut fields = Vec::with_capacity(self.columns.len() + 1);
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len() + 1);
        for (column, mut builder) in self.columns {
            let array = builder.finish();
            // A new column without NULLs has them until its default is filled in.
            let is_nullable = column.is_nullable || array.null_count() > 0;
            fields.push(Field::new(
                &column.name,
                column.kind.data_type(),
                is_nullable,
            ));
            arrays.push(array);
        }
        if let Some(row_ids) = self.row_ids {
            fields.push(Field::new(ROW_ID, arrow::datatypes::DataType::Int64, false));
            arrays.push(Arc::new(arrow::array::Int64Array::from(row_ids)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::new(Schema::new(fields)),
            arrays,
            &options,
        )?)
    }
}

/// The column at a position.
pub(crate) fn column_at(table: &ReferenceTable, position: usize) -> Result<&ReferenceColumn> {
    table.columns.get(position).ok_or_else(|| {
        let message = format!(
            "relation \"{}\" has no column number {position}",
            table.name
        );
        ReferenceError::new("42703", message)
    })
}
