//! The operators of JSON: `->`, `->>`, `#>`, `#>>` and `@>`, each as a function.
//!
//! JSON is a text, so a part of it is the text as it is written there: that of `jsonb` is in its form already.

use super::binary::JsonReader;
use super::escapes::characters;
use crate::pg_type::{argument_types, marked_field};
use crate::refusal::refused;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use marigram_service::PG_TYPE_KEY;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum JsonOperator {
    /// A member or an element, as JSON or as a text.
    Step { is_text: bool },
    /// What a path leads to, as JSON or as a text.
    Path { is_text: bool },
    /// Whether the first holds the second.
    Contains,
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonOperation {
    name: &'static str,
    operator: JsonOperator,
    signature: Signature,
}

static OPERATIONS: LazyLock<Vec<(&'static str, Arc<ScalarUDF>)>> = LazyLock::new(|| {
    use JsonOperator::{Contains, Path, Step};
    let all = [
        ("->", "json_part", Step { is_text: false }),
        ("->>", "json_part_text", Step { is_text: true }),
        ("#>", "json_at_path", Path { is_text: false }),
        ("#>>", "json_text_at_path", Path { is_text: true }),
        ("@>", "json_contains", Contains),
    ];
    let operations = all.into_iter().map(|(sign, name, operator)| {
        let operation = ScalarUDF::from(JsonOperation {
            name,
            operator,
            signature: Signature::any(2, Volatility::Immutable),
        });
        (sign, Arc::new(operation))
    });
    operations.collect()
});

/// The function of an operator of JSON.
#[must_use]
pub fn json_operation(sign: &str) -> Option<&'static Arc<ScalarUDF>> {
    let mut all = OPERATIONS.iter();
    all.find(|(own, _)| *own == sign)
        .map(|(_, operation)| operation)
}

/// One step into JSON.
enum JsonStep {
    Member(String),
    Element(i64),
    /// A step of a path: what it means depends on the JSON.
    Either(String),
}

impl ScalarUDFImpl for JsonOperation {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.operator {
            JsonOperator::Contains => DataType::Boolean,
            _ => DataType::Utf8,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kind = self.return_type(&argument_types(&args))?;
        let is_json = match self.operator {
            JsonOperator::Step { is_text } | JsonOperator::Path { is_text } => !is_text,
            JsonOperator::Contains => false,
        };
        // A part of JSON has the type of the whole.
        let whole = args.arg_fields.first().filter(|_| is_json);
        let json = whole.and_then(|whole| whole.metadata().get(PG_TYPE_KEY));
        Ok(marked_field(self.name, kind, json.map(String::as_str)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        answer_of_two(&args, |json, other| self.answer(json, other))
    }
}

/// The value of an operator of JSON with two arguments, of which `answer` gets the first one as texts.
///
/// # Errors
/// Those of `answer`.
pub(super) fn answer_of_two(
    args: &ScalarFunctionArgs,
    answer: impl FnOnce(&ArrayRef, &ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let [json, other] = args.args.as_slice() else {
        return internal_err!("an operator of JSON takes two arguments");
    };
    let scalars = [json, other].map(|value| matches!(value, ColumnarValue::Scalar(_)));
    let is_scalar = scalars == [true, true];
    let rows = if is_scalar { 1 } else { args.number_rows };
    let json = cast(&json.to_array(rows)?, &DataType::Utf8)?;
    let answer = answer(&json, &other.to_array(rows)?)?;
    Ok(if is_scalar {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?)
    } else {
        ColumnarValue::Array(answer)
    })
}

impl JsonOperation {
    fn answer(&self, json: &ArrayRef, other: &ArrayRef) -> Result<ArrayRef> {
        let json = json.as_string::<i32>();
        let is_text = match self.operator {
            JsonOperator::Contains => {
                let other = cast(other, &DataType::Utf8)?;
                let pairs = json.iter().zip(other.as_string::<i32>());
                let truths = pairs.map(|pair| match pair {
                    (Some(json), Some(other)) => contains(json, other, true).map(Some),
                    _ => Ok(None),
                });
                return Ok(Arc::new(truths.collect::<Result<BooleanArray>>()?));
            }
            JsonOperator::Step { is_text } | JsonOperator::Path { is_text } => is_text,
        };
        let is_path = matches!(self.operator, JsonOperator::Path { .. });
        let mut found = StringBuilder::new();
        for (json, steps) in json.iter().zip(steps_of(other, is_path)?) {
            match (json, steps) {
                (Some(json), Some(steps)) => found.append_option(part_at(json, &steps, is_text)?),
                _ => found.append_null(),
            }
        }
        Ok(Arc::new(found.finish()))
    }
}

/// The steps that each value stands for.
fn steps_of(values: &ArrayRef, is_path: bool) -> Result<Vec<Option<Vec<JsonStep>>>> {
    if let (Some(lists), true) = (values.as_list_opt::<i32>(), is_path) {
        let steps = lists.iter().map(|list| {
            let Some(list) = list else {
                return Ok(None);
            };
            let names = cast(&list, &DataType::Utf8)?;
            let names = names.as_string::<i32>().iter().flatten();
            Ok(Some(
                names
                    .map(|name| JsonStep::Either(name.to_owned()))
                    .collect(),
            ))
        });
        return steps.collect();
    }
    if values.data_type().is_integer() && !is_path {
        let numbers = cast(values, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>().iter();
        return Ok(numbers
            .map(|at| Some(vec![JsonStep::Element(at?)]))
            .collect());
    }
    if values.data_type().is_nested() {
        return Err(refused("42883", "JSON has no such operator for arrays"));
    }
    let texts = cast(values, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>().iter();
    let steps = texts.map(|text| {
        let text = text?;
        Some(if is_path {
            array_texts(text)
                .into_iter()
                .map(JsonStep::Either)
                .collect()
        } else {
            vec![JsonStep::Member(text.to_owned())]
        })
    });
    Ok(steps.collect())
}

/// The elements of an array as the text of PostgreSQL writes it, `{a,"b c"}`.
pub(super) fn array_texts(text: &str) -> Vec<String> {
    let text = text.trim();
    let inner = text.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let inner = inner.unwrap_or(text);
    if inner.trim().is_empty() {
        return Vec::new();
    }
    let parts = inner.split(',').map(|part| {
        let part = part.trim();
        let quoted = part.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        quoted.unwrap_or(part).to_owned()
    });
    parts.collect()
}

/// What the steps lead to.
fn part_at<'a>(json: &'a str, steps: &[JsonStep], is_text: bool) -> Result<Option<Cow<'a, str>>> {
    let mut reader = JsonReader::new(json);
    let mut part = reader.raw_value()?;
    reader.end()?;
    for step in steps {
        match next_part(part, step)? {
            Some(next) => part = next,
            None => return Ok(None),
        }
    }
    if !is_text {
        return Ok(Some(Cow::Borrowed(part)));
    }
    match part {
        "null" => Ok(None),
        text if text.starts_with('"') => characters(text).map(Some),
        other => Ok(Some(Cow::Borrowed(other))),
    }
}

fn next_part<'a>(json: &'a str, step: &JsonStep) -> Result<Option<&'a str>> {
    let is_object = json.starts_with('{');
    let number = match step {
        JsonStep::Element(number) => Some(*number),
        JsonStep::Either(text) => text.parse().ok(),
        JsonStep::Member(_) => None,
    };
    match (step, number) {
        (JsonStep::Member(name) | JsonStep::Either(name), _) if is_object => {
            let mut found = None;
            for (own, value) in members(json)? {
                // The last of equal names counts.
                if own == name.as_str() {
                    found = Some(value);
                }
            }
            Ok(found)
        }
        (_, Some(number)) if json.starts_with('[') => {
            let elements = elements(json)?;
            let from_end = elements.len() as i64;
            let at = if number < 0 {
                from_end + number
            } else {
                number
            };
            Ok(usize::try_from(at)
                .ok()
                .and_then(|at| elements.get(at).copied()))
        }
        _ => Ok(None),
    }
}

/// The elements of an array.
pub(super) fn elements(json: &str) -> Result<Vec<&str>> {
    let mut reader = JsonReader::new(json);
    let mut found = Vec::new();
    reader.next_if(b'[');
    if reader.next_if(b']') {
        return Ok(found);
    }
    loop {
        found.push(reader.raw_value()?);
        if reader.next_if(b']') {
            return Ok(found);
        }
        if !reader.next_if(b',') {
            return Err(reader.invalid());
        }
    }
}

/// The members of an object.
pub(super) fn members(json: &str) -> Result<Vec<(Cow<'_, str>, &str)>> {
    let mut reader = JsonReader::new(json);
    let mut found = Vec::new();
    reader.next_if(b'{');
    if reader.next_if(b'}') {
        return Ok(found);
    }
    loop {
        let name = characters(reader.raw_name()?)?;
        if !reader.next_if(b':') {
            return Err(reader.invalid());
        }
        found.push((name, reader.raw_value()?));
        if reader.next_if(b'}') {
            return Ok(found);
        }
        if !reader.next_if(b',') {
            return Err(reader.invalid());
        }
    }
}

/// Whether JSON holds other JSON. `is_whole`: an array as a whole also holds a value that is one of its elements.
fn contains(json: &str, other: &str, is_whole: bool) -> Result<bool> {
    let (json, other) = (checked(json)?, checked(other)?);
    match (json.as_bytes().first(), other.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => {
            let own = members(json)?;
            for (name, value) in members(other)? {
                // The last of equal names counts.
                let found = own.iter().rev().find(|(own, _)| *own == name);
                let is_held = match found {
                    Some((_, own)) => contains(own, value, false)?,
                    None => false,
                };
                if !is_held {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Some(b'['), Some(b'[')) => {
            let own = elements(json)?;
            for value in elements(other)? {
                if !holds_any(&own, value)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Some(b'{'), _) | (_, Some(b'{' | b'[')) => Ok(false),
        (Some(b'['), _) => Ok(is_whole && holds_any(&elements(json)?, other)?),
        _ => same_scalar(json, other),
    }
}

fn holds_any(elements: &[&str], value: &str) -> Result<bool> {
    for element in elements {
        if contains(element, value, false)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A value without the blanks around it.
pub(super) fn checked(json: &str) -> Result<&str> {
    let mut reader = JsonReader::new(json);
    let value = reader.raw_value()?;
    reader.end()?;
    Ok(value)
}

/// Whether two texts, numbers or words are equal.
fn same_scalar(one: &str, other: &str) -> Result<bool> {
    if one.starts_with('"') && other.starts_with('"') {
        return Ok(characters(one)? == characters(other)?);
    }
    let numbers = (one.parse::<f64>(), other.parse::<f64>());
    Ok(match numbers {
        (Ok(one), Ok(other)) => one.total_cmp(&other).is_eq(),
        _ => one == other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sign: &str, json: &str, other: ScalarValue) -> String {
        let operation = json_operation(sign).unwrap();
        let operator = operation.inner().downcast_ref::<JsonOperation>().unwrap();
        let json: ArrayRef = Arc::new(arrow::array::StringArray::from(vec![json]));
        let answer = operator.answer(&json, &other.to_array().unwrap()).unwrap();
        ScalarValue::try_from_array(&answer, 0).unwrap().to_string()
    }

    #[test]
    fn parts_are_found_as_by_postgresql() {
        let json = r#"{"a": {"b": [1, "x\n", null]}, "c": 2, "c": 3}"#;
        for (sign, other, expected) in [
            ("->", "a", r#"{"b": [1, "x\n", null]}"#),
            ("->>", "c", "3"),
            ("->", "none", "NULL"),
            ("#>", "{a,b,0}", "1"),
            ("#>>", "{a,b,-2}", "x\n"),
            ("#>>", "{a, b, 2}", "NULL"),
            ("#>", "{a,c}", "NULL"),
            ("@>", r#"{"a": {"b": ["x\u000a"]}}"#, "true"),
            ("@>", r#"{"a": {"b": 1}}"#, "false"),
        ] {
            assert_eq!(shown(sign, json, other.into()), expected, "{sign} {other}");
        }
        assert_eq!(shown("->", "[1, 2]", ScalarValue::Int32(Some(-1))), "2");
        assert_eq!(shown("->", "[1, 2]", "0".into()), "NULL");
        assert_eq!(shown("@>", "[1, [2]]", "1.0".into()), "true");
        assert_eq!(shown("@>", "[1, [2]]", "[2]".into()), "false");
    }
}
