//! Values whose form is not that of their Arrow type: the texts of `int2vector` and `oidvector`, which are
//! arrays that look like `1 2`, and the binary forms of `uuid` and `jsonb`, which are texts here.

use crate::postgres::types::{PgType, is_vector};
use crate::postgres::uuid;
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use std::sync::Arc;

/// The values of a column of the type `oid` as the encoders write them.
///
/// # Errors
/// If the values are none of the type.
pub(crate) fn encodable(array: &ArrayRef, oid: u32, binary: bool) -> Result<ArrayRef, ArrowError> {
    if is_vector(oid) && !binary {
        return vector_texts(array);
    }
    if binary && oid == PgType::Uuid.oid() {
        return bytes_of(array, |text| {
            uuid::number(text).map(|number| number.to_be_bytes().to_vec())
        });
    }
    if binary && oid == PgType::Jsonb.oid() {
        // Version 1 is the text.
        return bytes_of(array, |text| Some([&[1], text.as_bytes()].concat()));
    }
    Ok(Arc::clone(array))
}

/// The texts of a column in binary.
fn bytes_of(
    array: &ArrayRef,
    bytes: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<ArrayRef, ArrowError> {
    let texts = cast(array, &DataType::Utf8)?;
    let read =
        |text| bytes(text).ok_or_else(|| ArrowError::CastError(format!("\"{text}\" is no UUID")));
    let values = texts.as_string::<i32>().iter();
    let values = values.map(|text| text.map(read).transpose());
    let values = values.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(BinaryArray::from_iter(values)))
}

/// The vectors of a column as texts.
///
/// # Errors
/// If Arrow cannot print the elements.
fn vector_texts(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
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

    #[test]
    fn texts_of_other_types_have_a_binary_form() {
        let texts = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
        let uuids = texts(vec![Some("00000000-0000-0000-0000-0000000000ff"), None]);
        let bytes = encodable(&uuids, PgType::Uuid.oid(), true).unwrap();
        let (first, second) = (bytes.as_binary::<i32>().value(0), bytes.is_null(1));
        assert_eq!((first[15], first.len(), second), (255, 16, true));
        let json = texts(vec![Some("{}")]);
        let bytes = encodable(&json, PgType::Jsonb.oid(), true).unwrap();
        assert_eq!(bytes.as_binary::<i32>().value(0), [1, b'{', b'}']);
        for oid in [PgType::Uuid.oid(), PgType::Jsonb.oid(), PgType::Json.oid()] {
            let text = encodable(&json, oid, false).unwrap();
            assert_eq!(text.data_type(), &DataType::Utf8);
        }
        assert!(encodable(&json, PgType::Uuid.oid(), true).is_err());
    }
}
