//! Reads a TsFile into record batches.

use super::{DEVICE_TAG, TIME_COLUMN};
use crate::error::{SqlError, SqlResult};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, TimestampNanosecondArray, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use chrono::NaiveDate;
use marigram_tsfile::{
    ColumnCategory, ColumnValues, DataType as TsType, DeviceBlock, DeviceColumn, DeviceId,
    TsFileReader, TsFileTableSchema,
};
use std::io::{Read, Seek};
use std::sync::Arc;

/// The number of rows that are collected from small devices.
const BATCH_ROWS: usize = 16_384;

/// Rows of one table, with the roles of their columns.
#[derive(Clone, Debug)]
pub struct FileRows {
    /// The table: the file's own, or the database of a path (`sg` for `root.sg.d1`).
    pub table: String,
    /// The time column.
    pub time: String,
    /// The tag columns.
    pub tags: Vec<String>,
    /// The rows.
    pub rows: RecordBatch,
}

/// A TsFile that is being read.
pub struct TsFileRows<R> {
    reader: TsFileReader<R>,
    unit_ns: i64,
    /// The rows that begin the next batch.
    next: Option<FileRows>,
}

impl<R: Read + Seek> TsFileRows<R> {
    /// Opens a file whose times are in units of `unit_ns` nanoseconds.
    ///
    /// # Errors
    /// If it is not a TsFile, or is damaged.
    pub fn open(input: R, unit_ns: i64) -> SqlResult<Self> {
        Ok(Self {
            reader: TsFileReader::open(input)?,
            unit_ns,
            next: None,
        })
    }

    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// If the file is damaged, or contains something that Marigram cannot store.
    pub fn next_rows(&mut self) -> SqlResult<Option<FileRows>> {
        let Some(first) = self.next_of_device()? else {
            return Ok(None);
        };
        let (table, time, tags) = (first.table.clone(), first.time.clone(), first.tags.clone());
        let mut count = first.rows.num_rows();
        let mut parts = vec![first.rows];
        while count < BATCH_ROWS {
            let Some(more) = self.next_of_device()? else {
                break;
            };
            if more.table != table || more.rows.schema() != parts[0].schema() {
                self.next = Some(more);
                break;
            }
            count += more.rows.num_rows();
            parts.push(more.rows);
        }
        let rows = if parts.len() == 1 {
            parts.swap_remove(0)
        } else {
            concat_batches(&parts[0].schema(), &parts).map_err(arrow_error)?
        };
        Ok(Some(FileRows {
            table,
            time,
            tags,
            rows,
        }))
    }

    fn next_of_device(&mut self) -> SqlResult<Option<FileRows>> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        match self.reader.next_block()? {
            Some(block) => self.rows_of(&block).map(Some),
            None => Ok(None),
        }
    }

    fn rows_of(&self, block: &DeviceBlock) -> SqlResult<FileRows> {
        let name = block.device.table();
        let is_path = name == "root" || name.starts_with("root.");
        let mut tables = self.reader.tables().iter();
        let schema = tables.find(|table| !is_path && table.name == name);
        let rows = block.times.len();
        let time = schema.and_then(|table| table.columns_of(ColumnCategory::Time).next());
        let time = time.map_or(TIME_COLUMN, |column| &column.name).to_owned();
        let mut columns = vec![(time.clone(), times(&block.times, self.unit_ns)?)];
        let (table, tags) = match schema {
            Some(schema) => (schema.name.clone(), tags_of(schema, &block.device)?),
            None => {
                let path = block.device.path();
                let tags = vec![(DEVICE_TAG.to_owned(), Some(path.clone()))];
                (database_of(&path), tags)
            }
        };
        for (name, value) in &tags {
            let values: StringArray = std::iter::repeat_n(value.as_deref(), rows).collect();
            columns.push((name.clone(), Arc::new(values)));
        }
        match schema {
            Some(schema) => {
                let fields = schema.columns.iter().filter(|column| {
                    matches!(
                        column.category,
                        ColumnCategory::Field | ColumnCategory::Attribute
                    )
                });
                for field in fields {
                    let found = block
                        .columns
                        .iter()
                        .find(|column| *column.name == *field.name);
                    let values = match found {
                        Some(column) => array(column, self.unit_ns)?,
                        None => new_null_array(&arrow_type(field.data_type), rows),
                    };
                    columns.push((field.name.clone(), values));
                }
            }
            None => {
                for column in &block.columns {
                    columns.push((column.name.to_string(), array(column, self.unit_ns)?));
                }
            }
        }
        let fields = columns
            .iter()
            .map(|(name, values)| Field::new(name, values.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|(_, values)| values).collect();
        Ok(FileRows {
            table,
            time,
            tags: tags.into_iter().map(|(name, _)| name).collect(),
            rows: RecordBatch::try_new(schema, arrays).map_err(arrow_error)?,
        })
    }
}

/// The tags of a device of a table.
fn tags_of(
    schema: &TsFileTableSchema,
    device: &DeviceId,
) -> SqlResult<Vec<(String, Option<String>)>> {
    let names = schema.columns_of(ColumnCategory::Tag);
    let values = device.segments.iter().skip(1).cloned();
    let tags: Vec<_> = names
        .map(|column| column.name.clone())
        .zip(values.chain(std::iter::repeat(None)))
        .collect();
    if device.segments.len() > tags.len() + 1 {
        let (path, table) = (device.path(), &schema.name);
        let message = format!("TsFile: device '{path}' has more tags than table '{table}'");
        return Err(SqlError::invalid("22000", message));
    }
    Ok(tags)
}

/// The database of a path: its second level, `sg` in `root.sg.d1`; a level in backquotes may
/// contain dots.
fn database_of(path: &str) -> String {
    let mut quoted = false;
    let mut levels = path.split(|ch: char| {
        quoted ^= ch == '`';
        ch == '.' && !quoted
    });
    let (first, second) = (levels.next(), levels.next());
    let has_device = levels.next().is_some();
    let name = second.filter(|_| has_device).or(first).unwrap_or(path);
    name.trim_matches('`').to_owned()
}

fn arrow_error(error: arrow::error::ArrowError) -> SqlError {
    SqlError::DataFusion(error.into())
}

fn times(units: &[i64], unit_ns: i64) -> SqlResult<ArrayRef> {
    let times = units.iter().map(|unit| nanoseconds(*unit, unit_ns));
    let times = times.collect::<SqlResult<Vec<i64>>>()?;
    Ok(Arc::new(TimestampNanosecondArray::from(times)))
}

fn nanoseconds(unit: i64, unit_ns: i64) -> SqlResult<i64> {
    unit.checked_mul(unit_ns).ok_or_else(|| {
        let message = format!(
            "TsFile: the time {unit} is out of range; does the file have another precision (s, ms, \
             us, ns)?"
        );
        SqlError::invalid("22008", message)
    })
}

/// The start of a day written as YYYYMMDD, as a time in UTC.
fn day(number: i32) -> SqlResult<i64> {
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    let date = NaiveDate::from_ymd_opt(year, month.unsigned_abs(), day.unsigned_abs());
    let time = date.and_then(|date| date.and_hms_opt(0, 0, 0));
    let time = time.and_then(|time| time.and_utc().timestamp_nanos_opt());
    time.ok_or_else(|| SqlError::invalid("22008", format!("TsFile: {number} is not a date")))
}

fn arrow_type(kind: TsType) -> DataType {
    match kind {
        TsType::Boolean => DataType::Boolean,
        TsType::Int32 => DataType::Int32,
        TsType::Int64 => DataType::Int64,
        TsType::Float => DataType::Float32,
        TsType::Double => DataType::Float64,
        TsType::Text | TsType::String => DataType::Utf8,
        TsType::Blob => DataType::Binary,
        TsType::Timestamp | TsType::Date => DataType::Timestamp(TimeUnit::Nanosecond, None),
    }
}

fn array(column: &DeviceColumn, unit_ns: i64) -> SqlResult<ArrayRef> {
    let nulls = column.valid.clone().map(NullBuffer::from);
    let rows = 0..column.values.len();
    let timestamps = |value: &dyn Fn(usize) -> SqlResult<i64>| {
        let times = rows
            .clone()
            .map(|row| column.is_valid(row).then(|| value(row)).transpose());
        let times = times.collect::<SqlResult<Vec<Option<i64>>>>()?;
        Ok::<ArrayRef, SqlError>(Arc::new(TimestampNanosecondArray::from(times)))
    };
    Ok(match &column.values {
        ColumnValues::Bool(values) => Arc::new(BooleanArray::new(values.clone().into(), nulls)),
        ColumnValues::I32(values) if column.data_type == TsType::Date => {
            timestamps(&|row| day(values[row]))?
        }
        ColumnValues::I32(values) => Arc::new(Int32Array::new(values.clone().into(), nulls)),
        ColumnValues::I64(values) if column.data_type == TsType::Timestamp => {
            timestamps(&|row| nanoseconds(values[row], unit_ns))?
        }
        ColumnValues::I64(values) => Arc::new(Int64Array::new(values.clone().into(), nulls)),
        ColumnValues::F32(values) => Arc::new(Float32Array::new(values.clone().into(), nulls)),
        ColumnValues::F64(values) => Arc::new(Float64Array::new(values.clone().into(), nulls)),
        ColumnValues::Bytes(values) => {
            let values = values.iter().zip(rows.clone());
            let mut values = values.map(|(value, row)| column.is_valid(row).then_some(value));
            if column.data_type == TsType::Blob {
                Arc::new(values.collect::<BinaryArray>())
            } else {
                let texts = values
                    .by_ref()
                    .map(|value| value.map(std::str::from_utf8).transpose());
                let texts = texts.collect::<Result<StringArray, _>>();
                Arc::new(texts.map_err(|_| {
                    let message = format!("TsFile: a text of '{}' is not UTF-8", column.name);
                    SqlError::invalid("22021", message)
                })?)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_database() {
        assert_eq!(database_of("root.sg.d1"), "sg");
        assert_eq!(database_of("root.`a.b`.x.y"), "a.b");
        assert_eq!(database_of("root.d1"), "root");
        assert_eq!(database_of("d1"), "d1");
    }

    #[test]
    fn days_are_times() {
        assert_eq!(day(19_700_102).unwrap(), 86_400_000_000_000);
        assert!(day(20_241_301).is_err());
        assert!(day(-5).is_err());
    }
}
