//! Names as answers tell them.

use arrow::array::{Array, RecordBatch};
use arrow::util::display::array_value_to_string;

/// The texts of the first column that has one of `names`; of the first column, if none has.
pub(crate) fn texts(batches: &[RecordBatch], names: &[&str]) -> Vec<String> {
    let mut texts = Vec::new();
    for batch in batches {
        let named = names.iter().find_map(|name| batch.column_by_name(name));
        let Some(column) = named.or_else(|| batch.columns().first()) else {
            continue;
        };
        let shown = (0..column.len()).filter_map(|row| array_value_to_string(column, row).ok());
        texts.extend(shown);
    }
    texts
}
