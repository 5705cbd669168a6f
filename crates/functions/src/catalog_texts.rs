//! Functions that clients call when they ask about types, besides PostgreSQL's catalog:
//! `to_regtype`, and `json_build_object` for values that they cannot use as columns.

use crate::value_casts::float_texts;
use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::fmt::Write;
use std::sync::Arc;

/// Names of types, as in SQL and in PostgreSQL's catalog, and their OIDs.
const TYPES: [(&str, i32); 37] = [
    ("bool", 16),
    ("boolean", 16),
    ("bytea", 17),
    ("\"char\"", 18),
    ("name", 19),
    ("int8", 20),
    ("bigint", 20),
    ("int2", 21),
    ("smallint", 21),
    ("int4", 23),
    ("int", 23),
    ("integer", 23),
    ("regproc", 24),
    ("text", 25),
    ("oid", 26),
    ("json", 114),
    ("float4", 700),
    ("real", 700),
    ("float8", 701),
    ("double precision", 701),
    ("bpchar", 1042),
    ("character", 1042),
    ("varchar", 1043),
    ("character varying", 1043),
    ("date", 1082),
    ("time", 1083),
    ("time without time zone", 1083),
    ("timestamp", 1114),
    ("timestamp without time zone", 1114),
    ("timestamptz", 1184),
    ("timestamp with time zone", 1184),
    ("interval", 1186),
    ("numeric", 1700),
    ("decimal", 1700),
    ("regclass", 2205),
    ("regtype", 2206),
    ("uuid", 2950),
];

/// `to_regtype(name)`: the OID of a type; null if no type has that name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToRegtype {
    signature: Signature,
}

impl ScalarUDFImpl for ToRegtype {
    fn name(&self) -> &'static str {
        "to_regtype"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let names = args.args[0].to_array(args.number_rows)?;
        let names = cast(&names, &DataType::Utf8)?;
        let oids = names.as_string::<i32>().iter();
        let oids: Int32Array = oids.map(|name| oid_of_type(name?)).collect();
        Ok(ColumnarValue::Array(Arc::new(oids)))
    }
}

fn oid_of_type(name: &str) -> Option<i32> {
    let name = name.trim().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let found = TYPES.iter().find(|(known, _)| *known == name);
    found.map(|(_, oid)| *oid)
}

/// `json_build_object(name, value, …)`, as a text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonBuildObject {
    signature: Signature,
}

impl ScalarUDFImpl for JsonBuildObject {
    fn name(&self) -> &'static str {
        "json_build_object"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if !args.args.len().is_multiple_of(2) {
            return exec_err!("json_build_object takes names and values in turn");
        }
        let arrays = args
            .args
            .iter()
            .map(|arg| JsonColumn::new(&arg.to_array(args.number_rows)?));
        let arrays: Vec<JsonColumn> = arrays.collect::<Result<_>>()?;
        let mut objects = StringBuilder::new();
        for row in 0..args.number_rows {
            let mut object = String::from("{");
            for (at, array) in arrays.iter().enumerate() {
                let is_name = at % 2 == 0;
                if is_name {
                    array.write_name(row, &mut object)?;
                    object.push_str(" : ");
                    continue;
                }
                array.write(row, &mut object);
                if at + 1 < arrays.len() {
                    object.push_str(", ");
                }
            }
            object.push('}');
            objects.append_value(object);
        }
        Ok(ColumnarValue::Array(Arc::new(objects.finish())))
    }
}

/// A column whose values are written as JSON.
enum JsonColumn {
    /// Texts, and whether numbers and booleans stand without quotes.
    Plain { texts: StringArray, is_bare: bool },
    /// Arrays.
    Lists {
        lists: ListArray,
        elements: Box<JsonColumn>,
    },
}

impl JsonColumn {
    fn new(array: &ArrayRef) -> Result<Self> {
        if let DataType::LargeList(element) | DataType::FixedSizeList(element, _) =
            array.data_type()
        {
            return Self::new(&cast(array, &DataType::List(Arc::clone(element)))?);
        }
        if let Some(lists) = array.as_list_opt::<i32>() {
            return Ok(Self::Lists {
                lists: lists.clone(),
                elements: Box::new(Self::new(lists.values())?),
            });
        }
        let is_bare = is_bare(array.data_type());
        let texts = if array.data_type().is_floating() {
            float_texts(array)?
        } else {
            cast(array, &DataType::Utf8)?.as_string::<i32>().clone()
        };
        Ok(Self::Plain { texts, is_bare })
    }

    /// Writes a value.
    fn write(&self, row: usize, out: &mut String) {
        match self {
            Self::Plain { texts, .. } if texts.is_null(row) => out.push_str("null"),
            Self::Plain { texts, is_bare } => {
                let text = texts.value(row);
                let stands_bare = text.parse::<f64>().is_ok_and(f64::is_finite)
                    || matches!(text, "true" | "false");
                if *is_bare && stands_bare {
                    out.push_str(text);
                } else {
                    write_quoted(text, out);
                }
            }
            Self::Lists { lists, .. } if lists.is_null(row) => out.push_str("null"),
            Self::Lists { lists, elements } => {
                let offsets = lists.value_offsets();
                out.push('[');
                for (at, element) in (offsets[row]..offsets[row + 1]).enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    elements.write(element as usize, out);
                }
                out.push(']');
            }
        }
    }

    /// Writes the name of a value.
    fn write_name(&self, row: usize, out: &mut String) -> Result<()> {
        match self {
            Self::Plain { texts, .. } if texts.is_valid(row) => {
                write_quoted(texts.value(row), out);
                Ok(())
            }
            Self::Plain { .. } => exec_err!("a name in json_build_object is null"),
            Self::Lists { .. } => exec_err!("a name in json_build_object is an array"),
        }
    }
}

/// Whether JSON writes values of a type without quotes.
fn is_bare(kind: &DataType) -> bool {
    kind.is_numeric() || matches!(kind, DataType::Boolean)
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    vec![
        ScalarUDF::from(ToRegtype {
            signature: Signature::string(1, Volatility::Stable),
        }),
        ScalarUDF::from(JsonBuildObject {
            signature: Signature::variadic_any(Volatility::Stable),
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_several_names() {
        assert_eq!(oid_of_type("int4"), Some(23));
        assert_eq!(oid_of_type(" pg_catalog.INTEGER "), Some(23));
        assert_eq!(oid_of_type("hstore"), None);
    }

    #[test]
    fn texts_are_quoted_as_json() {
        let mut out = String::new();
        write_quoted("a\"b\\\n\u{1}é", &mut out);
        assert_eq!(out, "\"a\\\"b\\\\\\n\\u0001é\"");
    }
}
