//! Functions that read JSON: `'…'::json` and `'…'::jsonb`, and the lists of the elements and members of JSON, to
//! which the dialect rewrites `json_array_elements`, `json_each`, `json_object_keys` and the like.

use super::binary::{JsonReader, binary_text, check_json};
use super::escapes::characters;
use crate::pg_type::{argument_types, json_type, marked_field};
use crate::refusal::refused;
use arrow::array::{ArrayBuilder, ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;

/// The functions to which casts to `json` and to `jsonb` are rewritten.
pub const JSON_READERS: [&str; 2] = ["read_json", "read_jsonb"];

/// The functions that return a list of the elements of a JSON array, as JSON and as texts; of the names of
/// the members of a JSON object; and of their values, as JSON and as texts. Those of `json` come before those
/// of `jsonb`.
pub const JSON_PARTS: [[&str; 2]; 5] = [
    ["json_element_list", "jsonb_element_list"],
    ["json_element_text_list", "jsonb_element_text_list"],
    ["json_name_list", "jsonb_name_list"],
    ["json_value_list", "jsonb_value_list"],
    ["json_value_text_list", "jsonb_value_text_list"],
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum JsonPart {
    /// The JSON itself, checked.
    Whole,
    Elements,
    ElementTexts,
    Names,
    Values,
    ValueTexts,
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonReading {
    name: &'static str,
    part: JsonPart,
    is_binary: bool,
    signature: Signature,
}

/// All functions of this module.
pub(super) fn functions() -> Vec<ScalarUDF> {
    use JsonPart::{ElementTexts, Elements, Names, ValueTexts, Values, Whole};
    let parts = [Elements, ElementTexts, Names, Values, ValueTexts];
    let lists = JSON_PARTS.into_iter().zip(parts);
    let all = lists.chain([(JSON_READERS, Whole)]);
    let function = |name, part, is_binary| {
        ScalarUDF::from(JsonReading {
            name,
            part,
            is_binary,
            signature: Signature::any(1, Volatility::Immutable),
        })
    };
    all.flat_map(|([text, binary], part)| {
        [function(text, part, false), function(binary, part, true)]
    })
    .collect()
}

impl ScalarUDFImpl for JsonReading {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_text = match types {
            [DataType::Dictionary(_, value)] => value.is_string(),
            [kind] => kind.is_string() || kind.is_null(),
            _ => false,
        };
        if !is_text {
            let json = json_type(self.is_binary);
            return Err(refused(
                "42846",
                format!("only a text can be read as {json}"),
            ));
        }
        Ok(match self.part {
            JsonPart::Whole => DataType::Utf8,
            _ => list_type(),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kind = self.return_type(&argument_types(&args))?;
        let is_whole = self.part == JsonPart::Whole;
        let json = is_whole.then(|| json_type(self.is_binary));
        Ok(marked_field(self.name, kind, json))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(texts) = args.args.into_iter().next() else {
            return internal_err!("{} takes one argument", self.name);
        };
        let is_scalar = matches!(texts, ColumnarValue::Scalar(_));
        let texts = cast(&texts.into_array(1)?, &DataType::Utf8)?;
        let read = match self.part {
            JsonPart::Whole => self.read_whole(texts.as_string())?,
            _ => self.read_lists(texts.as_string())?,
        };
        Ok(if is_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&read, 0)?)
        } else {
            ColumnarValue::Array(read)
        })
    }
}

/// The type of a list of texts.
fn list_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
}

fn too_long() -> datafusion::common::DataFusionError {
    refused("54000", "the JSON of these rows is longer than 2 GiB")
}

impl JsonReading {
    fn read_whole(&self, texts: &StringArray) -> Result<ArrayRef> {
        if !self.is_binary {
            for text in texts.iter().flatten() {
                check_json(text)?;
            }
            return Ok(Arc::new(texts.clone()));
        }
        let mut out = StringBuilder::new();
        for text in texts {
            let json = text.map(binary_text).transpose()?;
            let length = json.as_ref().map_or(0, String::len);
            if out.values_slice().len() + length > i32::MAX as usize {
                return Err(too_long());
            }
            out.append_option(json);
        }
        Ok(Arc::new(out.finish()))
    }

    fn read_lists(&self, texts: &StringArray) -> Result<ArrayRef> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for text in texts {
            let Some(text) = text else {
                lists.append_null();
                continue;
            };
            if self.is_binary {
                self.append_parts(&binary_text(text)?, lists.values())?;
            } else {
                self.append_parts(text, lists.values())?;
            }
            let parts = lists.values();
            if parts.values_slice().len().max(parts.len()) > i32::MAX as usize {
                return Err(too_long());
            }
            lists.append(true);
        }
        Ok(Arc::new(lists.finish()))
    }

    /// Appends the parts of one JSON value.
    fn append_parts(&self, json: &str, parts: &mut StringBuilder) -> Result<()> {
        let mut reader = JsonReader::new(json);
        match self.part {
            JsonPart::Elements | JsonPart::ElementTexts => {
                open(&mut reader, b'[', "cannot extract elements from")?;
                if !reader.next_if(b']') {
                    loop {
                        self.append_value(reader.raw_value()?, parts)?;
                        if reader.next_if(b']') {
                            break;
                        }
                        comma(&mut reader)?;
                    }
                }
            }
            _ => {
                open(&mut reader, b'{', "cannot deconstruct")?;
                if !reader.next_if(b'}') {
                    loop {
                        let name = reader.raw_name()?;
                        if !reader.next_if(b':') {
                            return Err(reader.invalid());
                        }
                        let value = reader.raw_value()?;
                        if self.part == JsonPart::Names {
                            parts.append_value(characters(name)?);
                        } else {
                            self.append_value(value, parts)?;
                        }
                        if reader.next_if(b'}') {
                            break;
                        }
                        comma(&mut reader)?;
                    }
                }
            }
        }
        reader.end()
    }

    /// Appends a value as JSON, or as a text: then the text without quotes, and nothing for null.
    fn append_value(&self, value: &str, parts: &mut StringBuilder) -> Result<()> {
        let is_text = matches!(self.part, JsonPart::ElementTexts | JsonPart::ValueTexts);
        if !is_text {
            parts.append_value(value);
        } else if value == "null" {
            parts.append_null();
        } else if value.starts_with('"') {
            parts.append_value(characters(value)?);
        } else {
            parts.append_value(value);
        }
        Ok(())
    }
}

/// Reads the beginning of an array or of an object.
///
/// # Errors
/// 22023 if JSON is something else, and 22P02 if it is no JSON.
fn open(reader: &mut JsonReader<'_>, bracket: u8, refusal: &str) -> Result<()> {
    reader.blanks();
    let other = match reader.peek() {
        Some(found) if found == bracket => {
            reader.next_if(bracket);
            return Ok(());
        }
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        _ => "a scalar",
    };
    reader.raw_value()?;
    reader.end()?;
    Err(refused("22023", format!("{refusal} {other}")))
}

/// Reads the comma between two parts.
fn comma(reader: &mut JsonReader<'_>) -> Result<()> {
    if reader.next_if(b',') {
        return Ok(());
    }
    Err(reader.invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(part: JsonPart, is_binary: bool, json: &str) -> Result<Vec<Option<String>>> {
        let reading = JsonReading {
            name: "",
            part,
            is_binary,
            signature: Signature::any(1, Volatility::Immutable),
        };
        let read = reading.read_lists(&StringArray::from(vec![json]))?;
        let parts = read.as_list::<i32>().value(0);
        let parts = parts.as_string::<i32>().iter();
        Ok(parts.map(|part| part.map(str::to_owned)).collect())
    }

    fn shown(part: JsonPart, is_binary: bool, json: &str) -> String {
        let parts = read(part, is_binary, json).unwrap().into_iter();
        let parts: Vec<String> = parts.map(|part| part.unwrap_or("<null>".into())).collect();
        parts.join("|")
    }

    #[test]
    fn parts_are_those_of_postgresql() {
        use JsonPart::{ElementTexts, Elements, Names, ValueTexts, Values};
        let array = "[1, \"a\\u0041\" ,{\"c\":1,  \"b\":2}, null]";
        for (part, is_binary, json, expected) in [
            (
                Elements,
                false,
                array,
                "1|\"a\\u0041\"|{\"c\":1,  \"b\":2}|null",
            ),
            (Elements, true, array, "1|\"aA\"|{\"b\": 2, \"c\": 1}|null"),
            (
                ElementTexts,
                false,
                array,
                "1|aA|{\"c\":1,  \"b\":2}|<null>",
            ),
            (Elements, false, " [ ] ", ""),
            (Names, false, "{\"b\":1,\"a\\n\":2}", "b|a\n"),
            (Names, true, "{\"b\":1,\"a\":2, \"b\":3}", "a|b"),
            (
                Values,
                false,
                "{\"a\":1,\"b\":\"x\",\"c\":null}",
                "1|\"x\"|null",
            ),
            (
                ValueTexts,
                false,
                "{\"a\":1,\"b\":\"x\",\"c\":null}",
                "1|x|<null>",
            ),
        ] {
            assert_eq!(shown(part, is_binary, json), expected, "{json}");
        }
    }

    #[test]
    fn other_json_has_no_such_parts() {
        for json in ["{\"a\":1}", "5", "[1", "[1 2]", "[1] 2", ""] {
            assert!(read(JsonPart::Elements, false, json).is_err(), "{json}");
        }
        for json in ["[1]", "\"a\"", "{\"a\"}", "{\"a\":1,}"] {
            assert!(read(JsonPart::Values, true, json).is_err(), "{json}");
        }
    }
}
