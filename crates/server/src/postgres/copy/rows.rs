//! Collects the rows of a COPY in Arrow columns.

use crate::postgres::numeric;
use crate::postgres::zones;
use arrow::array::{
    ArrayBuilder, ArrayRef, BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder,
    Int32Builder, Int64Builder, StringBuilder, TimestampNanosecondBuilder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use marigram_pgtext::integer_time;
use std::sync::Arc;

/// Rows after which a batch is stored.
pub(crate) const BATCH_ROWS: usize = 10_000;
/// Bytes of data after which a batch is stored.
const BATCH_BYTES: usize = 8 << 20;
/// Microseconds from the Unix epoch to PostgreSQL's, 2000-01-01.
const EPOCH_US: i64 = 946_684_800_000_000;

/// A column being built.
enum CopyColumn {
    Bool(BooleanBuilder),
    I32(Int32Builder),
    I64(Int64Builder),
    U64(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Time(TimestampNanosecondBuilder),
}

/// Rows being built.
pub(crate) struct CopyRows {
    schema: SchemaRef,
    columns: Vec<CopyColumn>,
    count: usize,
    bytes: usize,
    /// The columns that are a `timestamptz`.
    zoned: Vec<bool>,
    /// The zone of their texts without one.
    zone: String,
}

impl CopyRows {
    /// An empty batch with the columns of `fields`.
    ///
    /// # Errors
    /// The column whose type COPY does not support.
    pub(crate) fn new(fields: Vec<Field>) -> Result<Self, String> {
        let column = |field: &Field| match field.data_type() {
            DataType::Boolean => Ok(CopyColumn::Bool(BooleanBuilder::new())),
            DataType::Int32 => Ok(CopyColumn::I32(Int32Builder::new())),
            DataType::Int64 => Ok(CopyColumn::I64(Int64Builder::new())),
            DataType::UInt64 => Ok(CopyColumn::U64(UInt64Builder::new())),
            DataType::Float32 => Ok(CopyColumn::F32(Float32Builder::new())),
            DataType::Float64 => Ok(CopyColumn::F64(Float64Builder::new())),
            DataType::Utf8 => Ok(CopyColumn::Text(StringBuilder::new())),
            DataType::Binary => Ok(CopyColumn::Bytes(BinaryBuilder::new())),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Ok(CopyColumn::Time(TimestampNanosecondBuilder::new()))
            }
            other => Err(format!(
                "COPY does not take column '{}' of type {other}",
                field.name()
            )),
        };
        let columns = fields.iter().map(column).collect::<Result<_, _>>()?;
        let is_zoned = |field: &Field| matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
        let zoned: Vec<bool> = fields.iter().map(is_zoned).collect();
        // Stored as instants in UTC.
        let stored = fields.into_iter().map(|field| match field.data_type() {
            DataType::Timestamp(unit, Some(_)) => {
                let kind = DataType::Timestamp(*unit, None);
                field.with_data_type(kind)
            }
            _ => field,
        });
        Ok(Self {
            schema: Arc::new(Schema::new(stored.collect::<Vec<_>>())),
            columns,
            count: 0,
            bytes: 0,
            zoned,
            zone: "UTC".to_owned(),
        })
    }

    /// The same, with the session's zone.
    #[must_use]
    pub(crate) fn in_zone(mut self, zone: &str) -> Self {
        zone.clone_into(&mut self.zone);
        self
    }

    /// Number of columns.
    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Name of a column.
    pub(crate) fn name(&self, column: usize) -> &str {
        self.schema.field(column).name()
    }

    /// Rows since the last [`CopyRows::finish`].
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether the batch is large enough to be stored.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Ends a row, after each column received one value.
    pub(crate) fn end_row(&mut self) {
        self.count += 1;
    }

    /// Returns the rows as a batch, and starts a new one.
    ///
    /// # Errors
    /// If the columns differ in length, which [`CopyRows::end_row`] rules out.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        (self.count, self.bytes) = (0, 0);
        let columns = self.columns.iter_mut().map(CopyColumn::finish).collect();
        RecordBatch::try_new(self.schema.clone(), columns)
    }

    /// Appends NULL.
    pub(crate) fn null(&mut self, column: usize) {
        match &mut self.columns[column] {
            CopyColumn::Bool(values) => values.append_null(),
            CopyColumn::I32(values) => values.append_null(),
            CopyColumn::I64(values) => values.append_null(),
            CopyColumn::U64(values) => values.append_null(),
            CopyColumn::F32(values) => values.append_null(),
            CopyColumn::F64(values) => values.append_null(),
            CopyColumn::Text(values) => values.append_null(),
            CopyColumn::Bytes(values) => values.append_null(),
            CopyColumn::Time(values) => values.append_null(),
        }
    }

    /// Appends a value from text.
    ///
    /// # Errors
    /// Why the text is not a value of the column's type.
    pub(crate) fn text(&mut self, column: usize, text: &[u8]) -> Result<(), String> {
        self.bytes += text.len();
        let place = column;
        let column = &mut self.columns[place];
        if let CopyColumn::Bytes(values) = column {
            values.append_value(parse_bytes(text)?);
            return Ok(());
        }
        let text = std::str::from_utf8(text).map_err(|_| "the text is not UTF-8".to_owned())?;
        let trimmed = text.trim();
        match column {
            CopyColumn::Bool(values) => values.append_value(parse_bool(trimmed)?),
            CopyColumn::I32(values) => {
                values.append_value(parse(trimmed, "an integer of 32 bits")?);
            }
            CopyColumn::I64(values) => {
                values.append_value(parse(trimmed, "an integer of 64 bits")?);
            }
            CopyColumn::U64(values) => {
                values.append_value(parse(trimmed, "an integer of 64 bits without sign")?);
            }
            CopyColumn::F32(values) => values.append_value(parse(trimmed, "a number")?),
            CopyColumn::F64(values) => values.append_value(parse(trimmed, "a number")?),
            CopyColumn::Text(values) => values.append_value(text),
            CopyColumn::Time(values) => {
                let zone = if self.zoned[place] { &self.zone } else { "UTC" };
                values.append_value(parse_time(trimmed, zone)?);
            }
            CopyColumn::Bytes(_) => {}
        }
        Ok(())
    }

    /// Appends a value in PostgreSQL's binary format; accepts integers and floats of any width if
    /// the conversion is exact.
    ///
    /// # Errors
    /// Why the bytes are not a value of the column's type.
    pub(crate) fn binary(&mut self, column: usize, bytes: &[u8]) -> Result<(), String> {
        self.bytes += bytes.len();
        match &mut self.columns[column] {
            CopyColumn::Bool(values) => match bytes {
                [byte] => values.append_value(*byte != 0),
                _ => return Err(size(bytes, "a boolean")),
            },
            CopyColumn::I32(values) => {
                let wide = binary_integer(bytes)?;
                let value = i32::try_from(wide)
                    .map_err(|_| format!("{wide} does not fit an integer of 32 bits"))?;
                values.append_value(value);
            }
            CopyColumn::I64(values) => values.append_value(binary_integer(bytes)?),
            CopyColumn::U64(values) => {
                // A numeric of eight bytes could only be 0; a bigint 0 has the same bytes.
                if matches!(bytes.len(), 2 | 4 | 8) {
                    return append_unsigned(values, binary_integer(bytes)?);
                }
                let text = numeric::decode(bytes).ok_or_else(|| size(bytes, "a numeric"))?;
                values.append_value(parse(&text, "an integer of 64 bits without sign")?);
            }
            CopyColumn::F32(values) => match bytes.len() {
                4 => values.append_value(f32::from_be_bytes(fixed(bytes)?)),
                8 => values.append_value(f64::from_be_bytes(fixed(bytes)?) as f32),
                _ => return Err(size(bytes, "a float")),
            },
            CopyColumn::F64(values) => match bytes.len() {
                8 => values.append_value(f64::from_be_bytes(fixed(bytes)?)),
                4 => values.append_value(f32::from_be_bytes(fixed(bytes)?).into()),
                _ => return Err(size(bytes, "a float")),
            },
            CopyColumn::Text(values) => {
                let text = std::str::from_utf8(bytes);
                values.append_value(text.map_err(|_| "the text is not UTF-8".to_owned())?);
            }
            CopyColumn::Bytes(values) => values.append_value(bytes),
            CopyColumn::Time(values) => {
                let [b0, b1, b2, b3, b4, b5, b6, b7] = *bytes else {
                    return Err(size(bytes, "a timestamp"));
                };
                let us = i64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]);
                let ns = us.checked_add(EPOCH_US).and_then(|us| us.checked_mul(1000));
                values.append_value(ns.ok_or_else(out_of_range)?);
            }
        }
        Ok(())
    }
}

impl CopyColumn {
    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(values) => ArrayBuilder::finish(values),
            Self::I32(values) => ArrayBuilder::finish(values),
            Self::I64(values) => ArrayBuilder::finish(values),
            Self::U64(values) => ArrayBuilder::finish(values),
            Self::F32(values) => ArrayBuilder::finish(values),
            Self::F64(values) => ArrayBuilder::finish(values),
            Self::Text(values) => ArrayBuilder::finish(values),
            Self::Bytes(values) => ArrayBuilder::finish(values),
            Self::Time(values) => ArrayBuilder::finish(values),
        }
    }
}

fn append_unsigned(values: &mut UInt64Builder, value: i64) -> Result<(), String> {
    let value = u64::try_from(value).map_err(|_| format!("{value} is negative"))?;
    values.append_value(value);
    Ok(())
}

fn binary_integer(bytes: &[u8]) -> Result<i64, String> {
    match bytes.len() {
        2 => Ok(i16::from_be_bytes(fixed(bytes)?).into()),
        4 => Ok(i32::from_be_bytes(fixed(bytes)?).into()),
        8 => Ok(i64::from_be_bytes(fixed(bytes)?)),
        _ => Err(size(bytes, "an integer")),
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], String> {
    bytes.try_into().map_err(|_| size(bytes, "the value"))
}

fn size(bytes: &[u8], kind: &str) -> String {
    format!("{kind} cannot have {} bytes", bytes.len())
}

fn out_of_range() -> String {
    "the time is outside the years 1677 to 2262, the range of 64-bit nanoseconds".to_owned()
}

fn parse<T: std::str::FromStr>(text: &str, kind: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("\"{text}\" is not {kind}"))
}

/// PostgreSQL's words for true and false.
pub(crate) fn parse_bool(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Ok(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("\"{text}\" is not a boolean")),
    }
}

/// `\x` and hexadecimal digits, or raw bytes.
pub(crate) fn parse_bytes(text: &[u8]) -> Result<Vec<u8>, String> {
    let Some(digits) = text.strip_prefix(b"\\x") else {
        return Ok(text.to_vec());
    };
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs
        .collect::<Option<_>>()
        .ok_or_else(|| "\\x is not followed by pairs of hexadecimal digits".to_owned())
}

/// Parses a time in any format that PostgreSQL reads, in `zone` if the text names none; returns ns
/// since the epoch. An integer counts as a time if it is plausible in exactly one unit.
fn parse_time(text: &str, zone: &str) -> Result<i64, String> {
    if let Ok(number) = text.parse() {
        return integer_time(number).map_err(|error| error.to_string());
    }
    zones::read(text, zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(kind: DataType) -> CopyRows {
        CopyRows::new(vec![Field::new("c", kind, true)]).unwrap()
    }

    fn time(text: &str) -> Result<i64, String> {
        parse_time(text, "UTC")
    }

    #[test]
    fn times() {
        assert_eq!(time("2000-01-01 00:00:00+00"), Ok(EPOCH_US * 1000));
        assert_eq!(
            time("2000-01-01T01:00:00.5+01:00"),
            Ok(EPOCH_US * 1000 + 500_000_000)
        );
        assert_eq!(time("946684800"), Ok(EPOCH_US * 1000));
        assert_eq!(time("946684800000000000"), Ok(EPOCH_US * 1000));
        assert!(time("7").is_err_and(|error| error.contains("in seconds")));
        assert!(time("yesterday").is_err());
        assert!(time("9999-01-01").is_err());
        let mut rows = rows(DataType::Timestamp(TimeUnit::Nanosecond, None));
        rows.binary(0, &1_i64.to_be_bytes()).unwrap();
        rows.end_row();
        assert!(rows.binary(0, &i64::MAX.to_be_bytes()).is_err());
        assert!(rows.binary(0, &[0; 4]).is_err());
    }

    #[test]
    fn integers_of_any_width_that_fit() {
        let mut rows = rows(DataType::Int32);
        assert!(rows.binary(0, &7_i64.to_be_bytes()).is_ok());
        assert!(rows.binary(0, &i64::MAX.to_be_bytes()).is_err());
        assert!(rows.text(0, b"2147483648").is_err());
        assert!(rows.text(0, b" 5 ").is_ok());
    }

    #[test]
    fn unsigned_from_numeric_and_bigint() {
        let mut rows = rows(DataType::UInt64);
        let mut bytes = bytes::BytesMut::new();
        numeric::encode(&u64::MAX.to_string(), &mut bytes);
        rows.binary(0, &bytes).unwrap();
        rows.binary(0, &5_i64.to_be_bytes()).unwrap();
        assert!(rows.binary(0, &(-1_i64).to_be_bytes()).is_err());
        rows.end_row();
        rows.end_row();
        let batch = rows.finish().unwrap();
        let values = batch
            .column(0)
            .as_any()
            .downcast_ref::<arrow::array::UInt64Array>()
            .unwrap();
        assert_eq!(values.values(), &[u64::MAX, 5]);
    }

    #[test]
    fn bytes_and_booleans() {
        assert_eq!(parse_bytes(b"\\x00fF"), Ok(vec![0, 255]));
        assert!(parse_bytes(b"\\x0").is_err());
        assert_eq!(parse_bytes(b"raw"), Ok(b"raw".to_vec()));
        assert_eq!((parse_bool("T"), parse_bool("off")), (Ok(true), Ok(false)));
        assert!(parse_bool("maybe").is_err());
    }
}
