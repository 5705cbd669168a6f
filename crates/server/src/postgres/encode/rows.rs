//! Encodes rows as messages in which a length precedes each value.
//!
//! A batch is written column by column: the lengths of all values determine where each row begins,
//! and then each column writes its values in a loop that knows its type. Going row by row, and from
//! type to type within each, takes three times as long.

use super::{EPOCH_DAYS, EPOCH_US, ValueEncoder, microseconds};
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, StringArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimeUnit,
};
use arrow::error::ArrowError;
use bytes::BytesMut;

/// The length that represents a null.
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// Bytes of a message before its values: type, length, number of values.
const HEAD: usize = 7;

/// Rows to be encoded as messages.
pub(crate) struct RowWriter {
    columns: Vec<EncodedColumn>,
    rows: usize,
}

struct EncodedColumn {
    /// The nulls of values that do not encode them.
    nulls: Option<NullBuffer>,
    values: EncodedValues,
}

/// Values, with the data to write them with their lengths.
enum EncodedValues {
    /// Values of two bytes.
    Two(Vec<[u8; 2]>),
    /// Values of four bytes.
    Four(Vec<[u8; 4]>),
    /// Values of eight bytes.
    Eight(Vec<[u8; 8]>),
    Texts(StringArray),
    /// Dictionary values, and the index of each row's value.
    Words(ScalarBuffer<i32>, WrittenValues),
    /// One value per row, including nulls.
    Written(WrittenValues),
}

/// Values written one after another, with their lengths.
struct WrittenValues {
    bytes: BytesMut,
    /// Their ends in `bytes`, with a leading 0.
    ends: Vec<usize>,
}

impl RowWriter {
    /// Encodes `rows` rows of the arrays, each in binary or in text.
    ///
    /// # Errors
    /// If Arrow cannot convert the values to a PostgreSQL type.
    pub(crate) fn new<'a>(
        arrays: impl IntoIterator<Item = (&'a ArrayRef, bool)>,
        rows: usize,
    ) -> Result<Self, ArrowError> {
        let columns = arrays.into_iter();
        let columns = columns.map(|(array, binary)| EncodedColumn::from_array(array, binary));
        Ok(Self {
            columns: columns.collect::<Result<_, _>>()?,
            rows,
        })
    }

    /// Appends each row as a message of type `kind`: the number of its values, and the values.
    /// `first` precedes them in the message of the first row.
    pub(crate) fn write(&self, kind: u8, first: &[u8], out: &mut BytesMut) {
        let mut lengths = vec![HEAD; self.rows];
        if let Some(length) = lengths.first_mut() {
            *length += first.len();
        }
        for column in &self.columns {
            column.add_lengths(&mut lengths);
        }
        let begin = out.len();
        out.resize(begin + lengths.iter().sum::<usize>(), 0);
        let out = &mut out[begin..];
        // From here on, the position of each row's next value.
        let mut places = lengths;
        let (mut at, mut before) = (0, first);
        let [count_high, count_low] = (self.columns.len() as u16).to_be_bytes();
        for place in &mut places {
            let [a, b, c, d] = (*place as u32 - 1).to_be_bytes();
            let head = [kind, a, b, c, d];
            out[at..at + 5].copy_from_slice(&head);
            let count = at + 5 + before.len();
            out[at + 5..count].copy_from_slice(before);
            out[count..count + 2].copy_from_slice(&[count_high, count_low]);
            at += std::mem::replace(place, count + 2);
            before = &[];
        }
        for column in &self.columns {
            column.put(&mut places, out);
        }
    }
}

impl EncodedColumn {
    fn from_array(array: &ArrayRef, binary: bool) -> Result<Self, ArrowError> {
        let apart = if let Some(values) = words(array, binary)? {
            Some(values)
        } else if let Some(texts) = array.as_string_opt::<i32>() {
            Some(EncodedValues::Texts(texts.clone()))
        } else if binary {
            fixed(array)
        } else {
            None
        };
        Ok(match apart {
            Some(values) => Self {
                nulls: array.logical_nulls().filter(|nulls| nulls.null_count() > 0),
                values,
            },
            None => Self {
                nulls: None,
                values: EncodedValues::Written(WrittenValues::from_array(array, binary)?),
            },
        })
    }

    /// Adds the length of each row's value and of its length prefix.
    fn add_lengths(&self, lengths: &mut [usize]) {
        match &self.values {
            EncodedValues::Two(_) => self.add(lengths, |_| 2),
            EncodedValues::Four(_) => self.add(lengths, |_| 4),
            EncodedValues::Eight(_) => self.add(lengths, |_| 8),
            EncodedValues::Texts(texts) => {
                let ends = texts.value_offsets();
                self.add(lengths, |row| (ends[row + 1] - ends[row]) as usize);
            }
            EncodedValues::Words(keys, words) => {
                self.add(lengths, |row| words.get(keys[row] as usize).len() - 4);
            }
            EncodedValues::Written(values) => self.add(lengths, |row| values.get(row).len() - 4),
        }
    }

    /// `length` returns the length of a row's value that is not null.
    fn add(&self, lengths: &mut [usize], length: impl Fn(usize) -> usize) {
        let rows = lengths.iter_mut().enumerate();
        match &self.nulls {
            None => rows.for_each(|(row, all)| *all += 4 + length(row)),
            Some(nulls) => rows.for_each(|(row, all)| {
                *all += 4 + if nulls.is_null(row) { 0 } else { length(row) };
            }),
        }
    }

    /// Writes each row's value at its position, and advances the position.
    fn put(&self, places: &mut [usize], out: &mut [u8]) {
        match &self.values {
            EncodedValues::Two(values) => self.put_each(places, out, |row, out| {
                let [a, b] = values[row];
                fill(out, [0, 0, 0, 2, a, b])
            }),
            EncodedValues::Four(values) => self.put_each(places, out, |row, out| {
                let [a, b, c, d] = values[row];
                fill(out, [0, 0, 0, 4, a, b, c, d])
            }),
            EncodedValues::Eight(values) => self.put_each(places, out, |row, out| {
                let mut sized = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
                sized[4..].copy_from_slice(&values[row]);
                fill(out, sized)
            }),
            EncodedValues::Texts(texts) => self.put_each(places, out, |row, out| {
                let text = texts.value(row).as_bytes();
                fill(out, (text.len() as u32).to_be_bytes());
                out[4..4 + text.len()].copy_from_slice(text);
                4 + text.len()
            }),
            EncodedValues::Words(keys, words) => self.put_each(places, out, |row, out| {
                copy(out, words.get(keys[row] as usize))
            }),
            EncodedValues::Written(values) => {
                self.put_each(places, out, |row, out| copy(out, values.get(row)));
            }
        }
    }

    /// `put` writes a row's value that is not null, and returns its length.
    fn put_each(
        &self,
        places: &mut [usize],
        out: &mut [u8],
        put: impl Fn(usize, &mut [u8]) -> usize,
    ) {
        let rows = places.iter_mut().enumerate();
        match &self.nulls {
            None => rows.for_each(|(row, place)| *place += put(row, &mut out[*place..])),
            Some(nulls) => rows.for_each(|(row, place)| {
                let out = &mut out[*place..];
                *place += if nulls.is_null(row) {
                    fill(out, NULL)
                } else {
                    put(row, out)
                };
            }),
        }
    }
}

fn fill<const N: usize>(out: &mut [u8], bytes: [u8; N]) -> usize {
    out[..N].copy_from_slice(&bytes);
    N
}

fn copy(out: &mut [u8], bytes: &[u8]) -> usize {
    out[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

impl WrittenValues {
    fn from_array(array: &ArrayRef, binary: bool) -> Result<Self, ArrowError> {
        let encoder = ValueEncoder::new(array, binary)?;
        let mut ends = Vec::with_capacity(array.len() + 1);
        ends.push(0);
        let mut bytes = BytesMut::with_capacity(array.len() * 16);
        for row in 0..array.len() {
            encoder.write_sized(row, &mut bytes);
            ends.push(bytes.len());
        }
        Ok(Self { bytes, ends })
    }

    fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.ends[at]..self.ends[at + 1]]
    }
}

/// The values of a dictionary, encoded once for all rows; `None` if the array is not a dictionary,
/// or has more values than rows.
fn words(array: &ArrayRef, binary: bool) -> Result<Option<EncodedValues>, ArrowError> {
    let Some(dictionary) = array.as_dictionary_opt::<Int32Type>() else {
        return Ok(None);
    };
    let values = dictionary.values();
    if values.len() > array.len() {
        return Ok(None);
    }
    let keys = dictionary.keys().values().clone();
    Ok(Some(EncodedValues::Words(
        keys,
        WrittenValues::from_array(values, binary)?,
    )))
}

/// Values that have a fixed size in binary.
fn fixed(array: &ArrayRef) -> Option<EncodedValues> {
    Some(match array.data_type() {
        DataType::Int16 => {
            let values = array.as_primitive::<Int16Type>().values().iter();
            EncodedValues::Two(values.map(|value| value.to_be_bytes()).collect())
        }
        DataType::Int32 => four::<Int32Type>(array, i32::to_be_bytes),
        DataType::Float32 => four::<Float32Type>(array, f32::to_be_bytes),
        DataType::Date32 => {
            four::<Date32Type>(array, |day| day.saturating_sub(EPOCH_DAYS).to_be_bytes())
        }
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values();
            eight(values, i64::to_be_bytes)
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            eight(values, f64::to_be_bytes)
        }
        DataType::Timestamp(unit, _) => {
            let (values, to_us) = microseconds(array, *unit);
            let bytes = |us: i64| us.saturating_sub(EPOCH_US).to_be_bytes();
            match unit {
                // The type of table columns, handled without a call per value.
                TimeUnit::Nanosecond => eight(&values, |ns| bytes(ns.div_euclid(1000))),
                _ => eight(&values, |value| bytes(to_us(value))),
            }
        }
        _ => return None,
    })
}

fn four<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    bytes: impl Fn(T::Native) -> [u8; 4],
) -> EncodedValues {
    let values = array.as_primitive::<T>().values().iter();
    EncodedValues::Four(values.map(|value| bytes(*value)).collect())
}

fn eight<V: Copy>(values: &[V], bytes: impl Fn(V) -> [u8; 8]) -> EncodedValues {
    EncodedValues::Eight(values.iter().map(|value| bytes(*value)).collect())
}
