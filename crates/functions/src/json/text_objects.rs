//! `json_object(texts)` and `json_object(names, values)`: objects whose values are texts.

use super::binary::binary_text;
use super::columns::write_quoted;
use crate::pg_type::{argument_types, json_type, marked_field};
use crate::refusal::refused;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use std::sync::Arc;

/// The functions' names.
pub const TEXT_OBJECTS: [&str; 2] = ["json_object", "jsonb_object"];

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextObject {
    name: &'static str,
    is_binary: bool,
    signature: Signature,
}

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let signatures = || vec![TypeSignature::Any(1), TypeSignature::Any(2)];
    let function = |name, is_binary| {
        ScalarUDF::from(TextObject {
            name,
            is_binary,
            signature: Signature::one_of(signatures(), Volatility::Immutable),
        })
    };
    vec![
        function(TEXT_OBJECTS[0], false),
        function(TEXT_OBJECTS[1], true),
    ]
}

impl ScalarUDFImpl for TextObject {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_array = |kind: &DataType| matches!(kind, DataType::List(_)) || kind.is_null();
        if types.iter().all(is_array) {
            return Ok(DataType::Utf8);
        }
        let name = self.name;
        let message = format!("{name} takes an array of texts, or arrays of names and of values");
        Err(refused("42883", message))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kind = self.return_type(&argument_types(&args))?;
        let json = json_type(self.is_binary);
        Ok(marked_field(self.name, kind, Some(json)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_scalar = args.args.iter().all(is_scalar);
        let rows = if all_scalar { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| texts_of(&arg.to_array(rows)?));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let mut objects = StringBuilder::new();
        for row in 0..rows {
            let object = match arrays.as_slice() {
                [texts] => one_array(texts, row)?,
                [names, values] => two_arrays(names, values, row)?,
                _ => return internal_err!("{} takes one or two arrays", self.name),
            };
            let object = match object {
                Some(object) if self.is_binary => Some(binary_text(&object)?),
                object => object,
            };
            let length = object.as_ref().map_or(0, String::len);
            if objects.values_slice().len() + length > i32::MAX as usize {
                let message = "the JSON of these rows is longer than 2 GiB";
                return Err(refused("54000", message));
            }
            objects.append_option(object);
        }
        let objects: ArrayRef = Arc::new(objects.finish());
        Ok(if all_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&objects, 0)?)
        } else {
            ColumnarValue::Array(objects)
        })
    }
}

/// Arrays as arrays of texts.
fn texts_of(arrays: &ArrayRef) -> Result<ListArray> {
    let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let lists = cast(arrays, &DataType::List(item))?;
    Ok(lists.as_list::<i32>().clone())
}

/// The texts of a row.
fn row_of(lists: &ListArray, row: usize) -> Option<StringArray> {
    let is_there = lists.is_valid(row);
    is_there.then(|| lists.value(row).as_string::<i32>().clone())
}

/// The object of names and values in turn.
fn one_array(texts: &ListArray, row: usize) -> Result<Option<String>> {
    let Some(texts) = row_of(texts, row) else {
        return Ok(None);
    };
    if !texts.len().is_multiple_of(2) {
        let message = "array must have even number of elements";
        return Err(refused("2202E", message));
    }
    let texts: Vec<Option<&str>> = texts.iter().collect();
    let pairs = texts.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    object(pairs).map(Some)
}

/// The object of names and their values.
fn two_arrays(names: &ListArray, values: &ListArray, row: usize) -> Result<Option<String>> {
    let (Some(names), Some(values)) = (row_of(names, row), row_of(values, row)) else {
        return Ok(None);
    };
    if names.len() != values.len() {
        return Err(refused("2202E", "mismatched array dimensions"));
    }
    object(names.iter().zip(values.iter())).map(Some)
}

fn object<'a>(members: impl Iterator<Item = (Option<&'a str>, Option<&'a str>)>) -> Result<String> {
    let mut out = String::from("{");
    for (at, (name, value)) in members.enumerate() {
        let Some(name) = name else {
            return Err(refused("22004", "null value not allowed for object key"));
        };
        if at > 0 {
            out.push_str(", ");
        }
        write_quoted(name, &mut out);
        out.push_str(" : ");
        match value {
            Some(value) => write_quoted(value, &mut out),
            None => out.push_str("null"),
        }
    }
    out.push('}');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_made_of_texts() {
        let members = [(Some("a"), Some("1")), (Some("b\""), None)];
        let made = object(members.into_iter()).unwrap();
        assert_eq!(made, "{\"a\" : \"1\", \"b\\\"\" : null}");
        assert!(object([(None, Some("1"))].into_iter()).is_err());
    }
}
