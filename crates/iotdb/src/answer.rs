//! Rows of an answer, as blocks and in the form before version 1.

use crate::value::{IotDbType, IotDbValue};

/// The encodings of a block's columns.
const BYTE_ENCODING: u8 = 0;
const INT32_ENCODING: u8 = 1;
const INT64_ENCODING: u8 = 2;
const BINARY_ENCODING: u8 = 3;

/// A column of an answer.
#[derive(Clone, Debug)]
pub struct AnswerColumn {
    kind: IotDbType,
    /// Whether each value is there.
    present: Vec<bool>,
    /// The values that are there, big-endian; booleans of all rows, a byte each.
    bytes: Vec<u8>,
}

impl AnswerColumn {
    /// A column without values.
    pub fn new(kind: IotDbType) -> Self {
        Self {
            kind,
            present: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Its type.
    pub fn kind(&self) -> IotDbType {
        self.kind
    }

    /// The memory of its values.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.present.len()
    }

    /// Adds a value. A value of another type than the column's is null.
    pub fn push(&mut self, value: Option<IotDbValue<'_>>) {
        let before = self.bytes.len();
        let is_present = value.is_some_and(|value| self.add_bytes(value));
        if self.kind == IotDbType::Boolean && !is_present {
            self.bytes.truncate(before);
            self.bytes.push(0);
        }
        self.present.push(is_present);
    }

    fn add_bytes(&mut self, value: IotDbValue<'_>) -> bool {
        let out = &mut self.bytes;
        match (self.kind, value) {
            (IotDbType::Boolean, IotDbValue::Boolean(value)) => out.push(u8::from(value)),
            (IotDbType::Int32, IotDbValue::Int32(value))
            | (IotDbType::Date, IotDbValue::Date(value)) => out.extend(value.to_be_bytes()),
            (IotDbType::Int64, IotDbValue::Int64(value))
            | (IotDbType::Timestamp, IotDbValue::Timestamp(value)) => {
                out.extend(value.to_be_bytes());
            }
            (IotDbType::Float, IotDbValue::Float(value)) => out.extend(value.to_be_bytes()),
            (IotDbType::Double, IotDbValue::Double(value)) => out.extend(value.to_be_bytes()),
            (IotDbType::Text | IotDbType::String, IotDbValue::Text(value)) => {
                return add_binary(value.as_bytes(), out);
            }
            (IotDbType::Blob, IotDbValue::Blob(value)) => return add_binary(value, out),
            _ => return false,
        }
        true
    }

    /// The type that a block names: the one that values are stored as.
    fn stored_type(&self) -> IotDbType {
        match self.kind {
            IotDbType::Date => IotDbType::Int32,
            IotDbType::Timestamp => IotDbType::Int64,
            IotDbType::Blob | IotDbType::String => IotDbType::Text,
            kind => kind,
        }
    }

    fn encoding(&self) -> u8 {
        match self.stored_type() {
            IotDbType::Boolean => BYTE_ENCODING,
            IotDbType::Int32 | IotDbType::Float => INT32_ENCODING,
            IotDbType::Int64 | IotDbType::Double => INT64_ENCODING,
            _ => BINARY_ENCODING,
        }
    }

    fn write_block(&self, out: &mut Vec<u8>) {
        let has_nulls = self.present.contains(&false);
        out.push(u8::from(has_nulls));
        if has_nulls {
            push_bits(self.present.iter().map(|present| !present), out);
        }
        if self.kind == IotDbType::Boolean {
            push_bits(self.bytes.iter().map(|byte| *byte != 0), out);
        } else {
            out.extend_from_slice(&self.bytes);
        }
    }

    /// The values in the form before version 1: those that are there.
    fn data_set_values(self) -> (Vec<u8>, Vec<u8>) {
        let mut bitmap = Vec::with_capacity(self.present.len() / 8 + 1);
        push_bits(self.present.iter().copied(), &mut bitmap);
        if self.kind != IotDbType::Boolean {
            return (self.bytes, bitmap);
        }
        let values = self.bytes.iter().zip(&self.present);
        let present = values.filter(|(_, present)| **present);
        (present.map(|(byte, _)| *byte).collect(), bitmap)
    }
}

/// Adds bytes behind their length; returns whether the length fits.
fn add_binary(value: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(len) = i32::try_from(value.len()) else {
        return false;
    };
    out.extend(len.to_be_bytes());
    out.extend_from_slice(value);
    true
}

/// Adds bits, from the highest one of each byte.
fn push_bits(bits: impl Iterator<Item = bool>, out: &mut Vec<u8>) {
    for (place, bit) in bits.enumerate() {
        if place % 8 == 0 {
            out.push(0);
        }
        if let (true, Some(byte)) = (bit, out.last_mut()) {
            *byte |= 0x80 >> (place % 8);
        }
    }
}

/// Rows of an answer.
#[derive(Clone, Debug)]
pub struct AnswerRows {
    times: Vec<i64>,
    columns: Vec<AnswerColumn>,
}

/// Rows in the form before version 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSetBytes {
    /// The times.
    pub times: Vec<u8>,
    /// The values of each column.
    pub values: Vec<Vec<u8>>,
    /// Which rows have a value in each column.
    pub bitmaps: Vec<Vec<u8>>,
}

impl AnswerRows {
    /// Rows with columns of these types.
    pub fn new(kinds: &[IotDbType]) -> Self {
        Self {
            times: Vec::new(),
            columns: kinds.iter().copied().map(AnswerColumn::new).collect(),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The memory of the rows.
    pub fn memory_bytes(&self) -> usize {
        let columns = self.columns.iter().map(AnswerColumn::memory_bytes);
        columns.sum::<usize>() + 8 * self.times.len()
    }

    /// Begins a row; a value for each column must follow.
    pub fn push_time(&mut self, time: i64) {
        self.times.push(time);
    }

    /// The columns, to add values to.
    pub fn columns_mut(&mut self) -> &mut [AnswerColumn] {
        &mut self.columns
    }

    /// The rows as a block.
    pub fn block(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.memory_bytes() + 64);
        out.extend((self.columns.len() as u32).to_be_bytes());
        out.extend(self.columns.iter().map(|it| it.stored_type().number()));
        out.extend((self.times.len() as u32).to_be_bytes());
        out.push(INT64_ENCODING);
        out.extend(self.columns.iter().map(AnswerColumn::encoding));
        out.push(0);
        out.extend(self.time_bytes());
        for column in &self.columns {
            column.write_block(&mut out);
        }
        out
    }

    /// The rows in the form before version 1.
    pub fn into_data_set(self) -> DataSetBytes {
        let times = self.time_bytes().collect();
        let columns = self.columns.into_iter();
        let (values, bitmaps) = columns.map(AnswerColumn::data_set_values).unzip();
        DataSetBytes {
            times,
            values,
            bitmaps,
        }
    }

    fn time_bytes(&self) -> impl Iterator<Item = u8> {
        self.times.iter().flat_map(|time| time.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> AnswerRows {
        let mut rows = AnswerRows::new(&[IotDbType::Int32, IotDbType::Boolean, IotDbType::Text]);
        let values = [
            (
                1,
                [
                    Some(IotDbValue::Int32(7)),
                    Some(IotDbValue::Boolean(true)),
                    None,
                ],
            ),
            (2, [None, None, Some(IotDbValue::Text("ab"))]),
        ];
        for (time, values) in values {
            rows.push_time(time);
            for (column, value) in rows.columns_mut().iter_mut().zip(values) {
                column.push(value);
            }
        }
        rows
    }

    #[test]
    fn a_block_has_heads_and_columns() {
        let mut expected = vec![0, 0, 0, 3, 1, 0, 5, 0, 0, 0, 2, 2, 1, 0, 3];
        expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        expected.extend([1, 0b0100_0000, 0, 0, 0, 7]);
        expected.extend([1, 0b0100_0000, 0b1000_0000]);
        expected.extend([1, 0b1000_0000, 0, 0, 0, 2, b'a', b'b']);
        assert_eq!(rows().block(), expected);
    }

    #[test]
    fn a_data_set_has_only_values_that_are_there() {
        let set = rows().into_data_set();
        assert_eq!(
            set.values,
            [vec![0, 0, 0, 7], vec![1], vec![0, 0, 0, 2, b'a', b'b']]
        );
        assert_eq!(set.bitmaps, [[0b1000_0000], [0b1000_0000], [0b0100_0000]]);
        assert_eq!(set.times.len(), 16);
    }

    #[test]
    fn a_value_of_another_type_is_null() {
        let mut column = AnswerColumn::new(IotDbType::Boolean);
        column.push(Some(IotDbValue::Int32(1)));
        column.push(Some(IotDbValue::Boolean(true)));
        assert_eq!(column.data_set_values(), (vec![1], vec![0b0100_0000]));
    }
}
