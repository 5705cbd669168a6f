//! Encodes comparable values of any type as bytes that sort in the order of the values, for
//! functions that count or rank values.

use crate::floats::canonical_array;
use arrow::array::{Array, ArrayRef, AsArray, LargeBinaryArray, LargeListArray, new_null_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, exec_err, internal_datafusion_err};
use std::sync::Arc;

/// The encoded bytes of a value.
pub(crate) type ValueKey = Box<[u8]>;

/// Converts values of one type to keys and back.
#[derive(Debug)]
pub(crate) struct ValueKeys {
    converter: RowConverter,
    data_type: DataType,
}

/// The keys of a batch; a null has none.
pub(crate) struct BatchKeys {
    rows: Rows,
    column: ArrayRef,
}

impl BatchKeys {
    /// The key of a row.
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        self.column.is_valid(row).then(|| self.rows.row(row).data())
    }
}

impl ValueKeys {
    /// Creates a converter whose keys sort in the order of the values, or in the reverse order.
    pub(crate) fn new(data_type: &DataType, descending: bool) -> Result<Self> {
        let options = SortOptions::new(descending, true);
        let field = SortField::new_with_options(data_type.clone(), options);
        Ok(Self {
            converter: RowConverter::new(vec![field])?,
            data_type: data_type.clone(),
        })
    }

    /// The keys of a column.
    pub(crate) fn encode_column(&self, column: &ArrayRef) -> Result<BatchKeys> {
        let column = canonical_array(column);
        let rows = self
            .converter
            .convert_columns(&[ArrayRef::clone(&column)])?;
        Ok(BatchKeys { rows, column })
    }

    /// The values of keys; `None` becomes a null.
    pub(crate) fn values<'a>(
        &self,
        keys: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> Result<ArrayRef> {
        let null = new_null_array(&self.data_type, 1);
        let null = self.converter.convert_columns(&[null])?;
        let parser = self.converter.parser();
        let rows: Vec<_> = keys
            .map(|key| parser.parse(key.unwrap_or_else(|| null.row(0).data())))
            .collect();
        let columns = self.converter.convert_rows(rows)?;
        columns
            .into_iter()
            .next()
            .ok_or_else(|| internal_datafusion_err!("keys have one column"))
    }
}

/// The type of [`key_lists`].
pub(crate) fn list_type() -> DataType {
    DataType::LargeList(Arc::new(Field::new_list_field(DataType::LargeBinary, true)))
}

/// The keys of many groups as a column of states: the number of keys of each group, and all keys.
pub(crate) fn key_lists<'a>(
    lengths: impl Iterator<Item = usize>,
    keys: impl Iterator<Item = &'a ValueKey>,
) -> Result<ArrayRef> {
    let keys: LargeBinaryArray = keys.map(|key| Some(key.as_ref())).collect();
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    let field = Arc::new(Field::new_list_field(DataType::LargeBinary, true));
    let list = LargeListArray::try_new(field, offsets, Arc::new(keys), None)?;
    Ok(Arc::new(list))
}

/// The keys in one row of such a column.
pub(crate) fn keys_at(column: &ArrayRef, row: usize) -> Result<LargeBinaryArray> {
    let Some(list) = column.as_list_opt::<i64>() else {
        return exec_err!("the states of an aggregate are not lists");
    };
    if list.is_null(row) {
        return Ok(LargeBinaryArray::from_iter_values(
            std::iter::empty::<&[u8]>(),
        ));
    }
    Ok(list.value(row).as_binary::<i64>().clone())
}
