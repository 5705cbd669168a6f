//! Values with their lengths before them, as rows have them.
//!
//! What is of a fixed size is made ready a column at once, in loops that the compiler makes wide,
//! and a word of a dictionary once for all rows that have it; a row is then put together by copying
//! few bytes a value.

use super::{EPOCH_DAYS, EPOCH_US, Encoder, microseconds};
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use bytes::BytesMut;

/// Writes values of a column into rows.
pub struct RowEncoder {
    values: Encoder,
    ready: Ready,
}

/// Values that stand ready with their lengths before them, by row; what is null is of no account.
enum Ready {
    /// Of two bytes.
    Six(Vec<[u8; 6]>),
    /// Of four bytes.
    Eight(Vec<[u8; 8]>),
    /// Of eight bytes.
    Twelve(Vec<[u8; 12]>),
    Words(Words),
    /// They are written one by one.
    Not,
}

/// The words of a dictionary.
struct Words {
    keys: ScalarBuffer<i32>,
    bytes: BytesMut,
    /// Where the words end in `bytes`, with a 0 before the first.
    ends: Vec<usize>,
}

impl RowEncoder {
    /// An encoder of `array`, in binary or in text.
    ///
    /// # Errors
    /// If Arrow cannot convert the values to a type that PostgreSQL has.
    pub fn new(array: &ArrayRef, binary: bool) -> Result<Self, ArrowError> {
        let ready = match Words::of(array, binary)? {
            Some(words) => Ready::Words(words),
            None if binary => fixed(array),
            None => Ready::Not,
        };
        Ok(Self {
            values: Encoder::new(array, binary)?,
            ready,
        })
    }

    /// Appends the value of `row` with its length before it; -1 for null.
    pub fn write(&self, row: usize, out: &mut BytesMut) {
        if self.values.is_null(row) {
            out.extend_from_slice(&[0xff; 4]);
            return;
        }
        match &self.ready {
            Ready::Six(values) => out.extend_from_slice(&values[row]),
            Ready::Eight(values) => out.extend_from_slice(&values[row]),
            Ready::Twelve(values) => out.extend_from_slice(&values[row]),
            Ready::Words(words) => out.extend_from_slice(words.get(row)),
            Ready::Not => self.values.write_sized(row, out),
        }
    }
}

impl Words {
    /// `None` for what is no dictionary, or one with more words than rows.
    fn of(array: &ArrayRef, binary: bool) -> Result<Option<Self>, ArrowError> {
        let Some(dictionary) = array.as_dictionary_opt::<Int32Type>() else {
            return Ok(None);
        };
        let values = dictionary.values();
        if values.len() > array.len() {
            return Ok(None);
        }
        let encoder = Encoder::new(values, binary)?;
        let (mut bytes, mut ends) = (BytesMut::new(), vec![0]);
        for word in 0..values.len() {
            encoder.write_sized(word, &mut bytes);
            ends.push(bytes.len());
        }
        let keys = dictionary.keys().values().clone();
        Ok(Some(Self { keys, bytes, ends }))
    }

    fn get(&self, row: usize) -> &[u8] {
        let word = self.keys[row] as usize;
        &self.bytes[self.ends[word]..self.ends[word + 1]]
    }
}

/// Values of a fixed size in binary.
fn fixed(array: &ArrayRef) -> Ready {
    match array.data_type() {
        DataType::Int16 => {
            let values = array.as_primitive::<Int16Type>().values().iter();
            Ready::Six(
                values
                    .map(|value| {
                        let [a, b] = value.to_be_bytes();
                        [0, 0, 0, 2, a, b]
                    })
                    .collect(),
            )
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
            eight(&values, |value| {
                to_us(value).saturating_sub(EPOCH_US).to_be_bytes()
            })
        }
        _ => Ready::Not,
    }
}

fn four<T: ArrowPrimitiveType>(array: &ArrayRef, bytes: impl Fn(T::Native) -> [u8; 4]) -> Ready {
    let values = array.as_primitive::<T>().values().iter();
    let sized = values.map(|value| {
        let [a, b, c, d] = bytes(*value);
        [0, 0, 0, 4, a, b, c, d]
    });
    Ready::Eight(sized.collect())
}

fn eight<V: Copy>(values: &[V], bytes: impl Fn(V) -> [u8; 8]) -> Ready {
    let sized = values.iter().map(|value| {
        let mut sized = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        sized[4..].copy_from_slice(&bytes(*value));
        sized
    });
    Ready::Twelve(sized.collect())
}
