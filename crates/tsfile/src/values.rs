//! Values of a column in memory, and the rows of a file.

use crate::kinds::{DataType, ValueShape};
use std::ops::Range;
use std::sync::Arc;

/// Texts or bytes, stored consecutively.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteValues {
    bytes: Vec<u8>,
    /// The end of each value.
    ends: Vec<usize>,
}

impl ByteValues {
    /// Values in `bytes`, each from one of `offsets` to the next; these ascend from 0.
    pub(crate) fn from_parts(bytes: Vec<u8>, offsets: &[i32]) -> Self {
        let ends = offsets.iter().skip(1).map(|end| *end as usize);
        Self {
            bytes,
            ends: ends.collect(),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends a value.
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    /// Value `at`; `None` if there is none.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(begin..end)
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| &self.bytes[begin..*end])
    }

    /// Total size of all values, in bytes.
    pub fn bytes_total(&self) -> usize {
        self.bytes.len()
    }
}

impl<V: AsRef<[u8]>> FromIterator<V> for ByteValues {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        let mut all = Self::default();
        for value in values {
            all.push(value.as_ref());
        }
        all
    }
}

/// Values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// Values of [`DataType::Boolean`].
    Bool(Vec<bool>),
    /// Values of [`DataType::Int32`] and [`DataType::Date`].
    I32(Vec<i32>),
    /// Values of [`DataType::Int64`] and [`DataType::Timestamp`].
    I64(Vec<i64>),
    /// Values of [`DataType::Float`].
    F32(Vec<f32>),
    /// Values of [`DataType::Double`].
    F64(Vec<f64>),
    /// Values of [`DataType::Text`], [`DataType::String`] and [`DataType::Blob`].
    Bytes(ByteValues),
}

/// Applies the same expression to the vector of any variant.
macro_rules! each {
    ($values:expr, $vector:ident => $done:expr, $bytes:ident => $bytes_done:expr) => {
        match $values {
            ColumnValues::Bool($vector) => ColumnValues::Bool($done),
            ColumnValues::I32($vector) => ColumnValues::I32($done),
            ColumnValues::I64($vector) => ColumnValues::I64($done),
            ColumnValues::F32($vector) => ColumnValues::F32($done),
            ColumnValues::F64($vector) => ColumnValues::F64($done),
            ColumnValues::Bytes($bytes) => ColumnValues::Bytes($bytes_done),
        }
    };
}

impl ColumnValues {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Bytes(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn shape(&self) -> ValueShape {
        match self {
            Self::Bool(_) => ValueShape::Bool,
            Self::I32(_) => ValueShape::I32,
            Self::I64(_) => ValueShape::I64,
            Self::F32(_) => ValueShape::F32,
            Self::F64(_) => ValueShape::F64,
            Self::Bytes(_) => ValueShape::Bytes,
        }
    }

    pub(crate) fn empty(shape: ValueShape) -> Self {
        match shape {
            ValueShape::Bool => Self::Bool(Vec::new()),
            ValueShape::I32 => Self::I32(Vec::new()),
            ValueShape::I64 => Self::I64(Vec::new()),
            ValueShape::F32 => Self::F32(Vec::new()),
            ValueShape::F64 => Self::F64(Vec::new()),
            ValueShape::Bytes => Self::Bytes(ByteValues::default()),
        }
    }

    /// Spreads the values of the valid rows over all rows; the other rows get zero or nothing.
    /// There must be as many values as valid rows.
    pub(crate) fn spread(self, valid: &[bool]) -> Self {
        fn spread<T: Copy + Default>(values: Vec<T>, valid: &[bool]) -> Vec<T> {
            let mut values = values.into_iter();
            let mut next = |is_valid: &bool| match is_valid {
                true => values.next().unwrap_or_default(),
                false => T::default(),
            };
            valid.iter().map(&mut next).collect()
        }
        each!(self, values => spread(values, valid), bytes => {
            let mut next = bytes.iter();
            let empty: &[u8] = &[];
            valid
                .iter()
                .map(|is_valid| if *is_valid { next.next().unwrap_or(empty) } else { empty })
                .collect()
        })
    }

    /// Appends values of the same variant; ignores those of another.
    pub(crate) fn extend(&mut self, more: Self) {
        match (self, more) {
            (Self::Bool(values), Self::Bool(more)) => values.extend(more),
            (Self::I32(values), Self::I32(more)) => values.extend(more),
            (Self::I64(values), Self::I64(more)) => values.extend(more),
            (Self::F32(values), Self::F32(more)) => values.extend(more),
            (Self::F64(values), Self::F64(more)) => values.extend(more),
            (Self::Bytes(values), Self::Bytes(more)) => {
                more.iter().for_each(|value| values.push(value));
            }
            _ => {}
        }
    }

    /// The values of the valid rows in `rows`.
    pub(crate) fn dense(&self, rows: Range<usize>, valid: Option<&[bool]>) -> Self {
        fn dense<T: Copy>(values: &[T], at: &[usize]) -> Vec<T> {
            at.iter().map(|row| values[*row]).collect()
        }
        let is_valid = |row: &usize| valid.is_none_or(|valid| valid[*row]);
        let at: Vec<usize> = rows.filter(is_valid).collect();
        each!(self, values => dense(values, &at), bytes => {
            at.iter().map(|row| bytes.get(*row).unwrap_or_default()).collect()
        })
    }
}

/// A column with one value per row.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceColumn {
    /// Name (the measurement).
    pub name: Arc<str>,
    /// Type.
    pub data_type: DataType,
    /// One value per row, in the variant of the type; arbitrary for rows without a value.
    pub values: ColumnValues,
    /// Which rows have a value; `None` if all have.
    pub valid: Option<Vec<bool>>,
}

impl DeviceColumn {
    /// Whether row `row` has a value.
    pub fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid[row])
    }
}

/// The device of rows: the name of the table and the values of its tags, or a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// Table (or the first levels of the path), then a segment for each tag (or further level). A
    /// tag without a value is `None`; trailing ones are left out.
    pub segments: Vec<Option<String>>,
}

impl DeviceId {
    /// The device of a table with these tags.
    pub fn of_table<'a>(table: &str, tags: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut segments = vec![Some(table.to_owned())];
        segments.extend(tags.into_iter().map(|tag| tag.map(ToOwned::to_owned)));
        Self::from_segments(segments)
    }

    /// A device with these segments. Missing tags at the end are dropped, because only some
    /// libraries write them.
    pub(crate) fn from_segments(mut segments: Vec<Option<String>>) -> Self {
        while segments.len() > 1 && segments.last() == Some(&None) {
            segments.pop();
        }
        Self { segments }
    }

    /// The name of its table.
    pub fn table(&self) -> &str {
        self.segments
            .first()
            .and_then(Option::as_deref)
            .unwrap_or("")
    }

    /// The path: its segments separated by dots, with `null` for a tag without a value, as the
    /// format's own libraries write it.
    pub fn path(&self) -> String {
        let segments = self.segments.iter();
        let segments: Vec<&str> = segments
            .map(|segment| segment.as_deref().unwrap_or("null"))
            .collect();
        segments.join(".")
    }
}

/// Rows of one device, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceBlock {
    /// The device.
    pub device: Arc<DeviceId>,
    /// Time of each row, in the file's unit.
    pub times: Vec<i64>,
    /// Columns, each with one value per row.
    pub columns: Vec<DeviceColumn>,
}

/// The category of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnCategory {
    /// Identifies a device.
    Tag,
    /// Is measured.
    Field,
    /// Describes a device without identifying it.
    Attribute,
    /// Is the time.
    Time,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Its category.
    pub category: ColumnCategory,
}

/// A table of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TsFileTableSchema {
    /// Name.
    pub name: String,
    /// Columns; tags in the order of a device's segments.
    pub columns: Vec<ColumnSchema>,
}

impl TsFileTableSchema {
    /// The columns of one category.
    pub fn columns_of(&self, category: ColumnCategory) -> impl Iterator<Item = &ColumnSchema> {
        self.columns
            .iter()
            .filter(move |column| column.category == category)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_value_are_spread_and_left_out_again() {
        let valid = [true, false, true];
        let dense = ColumnValues::Bytes(["a", "b"].into_iter().collect());
        let spread = dense.clone().spread(&valid);
        assert_eq!(
            spread,
            ColumnValues::Bytes(["a", "", "b"].into_iter().collect())
        );
        assert_eq!(spread.dense(0..3, Some(&valid)), dense);
        assert_eq!(spread.dense(1..3, Some(&valid)).len(), 1);
        let spread = ColumnValues::I32(vec![7, 8]).spread(&valid);
        assert_eq!(spread, ColumnValues::I32(vec![7, 0, 8]));
    }

    #[test]
    fn tags_at_the_end_without_a_value_are_left_out() {
        let device = DeviceId::of_table("t", [None, Some("b"), None]);
        assert_eq!(device.segments.len(), 3);
        assert_eq!(device.path(), "t.null.b");
        assert_eq!(DeviceId::of_table("t", [None]).path(), "t");
    }
}
