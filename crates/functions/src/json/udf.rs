//! The functions.

use super::binary::binary_text;
use super::columns::JsonColumn;
use crate::pg_type::{argument_types, json_type, marked_field};
use crate::refusal::refused;
use arrow::array::{ArrayRef, StringBuilder};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;

/// The functions to which `json_agg` and `jsonb_agg` are rewritten, around `array_agg`.
pub const JSON_LISTS: [&str; 2] = ["json_list", "jsonb_list"];

/// The functions to which `json_object_agg` and `jsonb_object_agg` are rewritten, around `array_agg` of
/// pairs.
pub const JSON_OBJECT_LISTS: [&str; 2] = ["json_object_list", "jsonb_object_list"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum JsonShape {
    /// One value.
    Value,
    /// Names and values in turn.
    Object,
    /// All arguments.
    Array,
    /// The elements of an array.
    List,
    /// The pairs of an array.
    Members,
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonUdf {
    name: &'static str,
    shape: JsonShape,
    is_binary: bool,
    signature: Signature,
}

/// All functions of this module.
pub(super) fn functions() -> Vec<ScalarUDF> {
    use JsonShape::{Array, List, Members, Object, Value};
    [
        ("to_json", Value, false),
        ("to_jsonb", Value, true),
        ("row_to_json", Value, false),
        ("array_to_json", Value, false),
        ("json_build_object", Object, false),
        ("jsonb_build_object", Object, true),
        ("json_build_array", Array, false),
        ("jsonb_build_array", Array, true),
        (JSON_LISTS[0], List, false),
        (JSON_LISTS[1], List, true),
        (JSON_OBJECT_LISTS[0], Members, false),
        (JSON_OBJECT_LISTS[1], Members, true),
    ]
    .into_iter()
    .map(|(name, shape, is_binary)| {
        let signature = match shape {
            Object | Array => Signature::one_of(
                vec![
                    datafusion::logical_expr::TypeSignature::Nullary,
                    datafusion::logical_expr::TypeSignature::VariadicAny,
                ],
                Volatility::Stable,
            ),
            Value | List | Members => Signature::any(1, Volatility::Stable),
        };
        ScalarUDF::from(JsonUdf {
            name,
            shape,
            is_binary,
            signature,
        })
    })
    .collect()
}

impl ScalarUDFImpl for JsonUdf {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if self.name == "row_to_json" && !matches!(types, [DataType::Struct(_)]) {
            return Err(refused("42883", "row_to_json takes a row"));
        }
        if self.name == "array_to_json"
            && !matches!(
                types,
                [DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)]
            )
        {
            return Err(refused("42883", "array_to_json takes an array"));
        }
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kind = self.return_type(&argument_types(&args))?;
        let json = json_type(self.is_binary);
        Ok(marked_field(self.name, kind, Some(json)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.shape == JsonShape::Object && !args.args.len().is_multiple_of(2) {
            let message = format!("{} takes names and values in turn", self.name);
            return Err(refused("22023", message));
        }
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let rows = if all_one { 1 } else { args.number_rows };
        let columns = args.args.iter();
        let columns = columns.map(|arg| JsonColumn::new(&arg.to_array(rows)?));
        let columns: Vec<JsonColumn> = columns.collect::<Result<_>>()?;
        let mut texts = StringBuilder::new();
        for row in 0..rows {
            let Some(json) = self.json(&columns, row)? else {
                texts.append_null();
                continue;
            };
            let json = if self.is_binary {
                binary_text(&json)?
            } else {
                json
            };
            if texts.values_slice().len() + json.len() > i32::MAX as usize {
                return Err(refused(
                    "54000",
                    "the JSON of these rows is longer than 2 GiB",
                ));
            }
            texts.append_value(json);
        }
        let texts: ArrayRef = Arc::new(texts.finish());
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?)
        } else {
            ColumnarValue::Array(texts)
        })
    }
}

impl JsonUdf {
    /// The JSON of a row; `None` if its only argument is null.
    fn json(&self, columns: &[JsonColumn], row: usize) -> Result<Option<String>> {
        let mut out = String::new();
        match (self.shape, columns) {
            (JsonShape::Object, columns) => {
                out.push('{');
                for (at, pair) in columns.chunks(2).enumerate() {
                    let [name, value] = pair else { continue };
                    if at > 0 {
                        out.push_str(", ");
                    }
                    name.write_name(row, &mut out)?;
                    out.push_str(" : ");
                    value.write(row, &mut out);
                }
                out.push('}');
            }
            (JsonShape::Array, columns) => {
                out.push('[');
                for (at, value) in columns.iter().enumerate() {
                    if at > 0 {
                        out.push_str(", ");
                    }
                    value.write(row, &mut out);
                }
                out.push(']');
            }
            (_, [column]) if column.is_null(row) => return Ok(None),
            (JsonShape::Value, [column]) => column.write(row, &mut out),
            (JsonShape::List, [column]) => column.write_list(row, &mut out),
            (JsonShape::Members, [column]) => column.write_members(row, &mut out)?,
            _ => {
                let message = format!("{} takes one argument", self.name);
                return Err(refused("42883", message));
            }
        }
        Ok(Some(out))
    }
}
