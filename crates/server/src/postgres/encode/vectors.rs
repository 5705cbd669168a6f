//! The texts of PostgreSQL's vectors, `int2vector` and `oidvector`: arrays that look like `1 2`.

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use std::sync::Arc;

/// The vectors of a column as texts.
///
/// # Errors
/// If Arrow cannot print the elements.
pub(crate) fn vector_texts(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Some(lists) = array.as_list_opt::<i32>() else {
        return Ok(Arc::clone(array));
    };
    let values = cast(lists.values(), &DataType::Utf8)?;
    let values = values.as_string::<i32>();
    let ends = lists.value_offsets();
    let texts = (0..lists.len()).map(|row| {
        let elements = (ends[row]..ends[row + 1]).map(|at| values.value(at as usize));
        let text = || elements.collect::<Vec<_>>().join(" ");
        lists.is_valid(row).then(text)
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::ListArray;
    use arrow::datatypes::Int16Type;

    #[test]
    fn elements_stand_side_by_side() {
        let lists = [Some(vec![Some(1), Some(12)]), None, Some(vec![])];
        let lists = ListArray::from_iter_primitive::<Int16Type, _, _>(lists);
        let texts = vector_texts(&(Arc::new(lists) as ArrayRef)).unwrap();
        let texts: Vec<_> = texts.as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("1 12"), None, Some("")]);
    }
}
