//! The operators of JSON that ask for keys, `?`, `?|` and `?&`, and those of `jsonb` that make other JSON: `||`,
//! `-` and `#-`.

use super::binary::binary_text;
use super::columns::write_quoted;
use super::escapes::characters;
use super::steps::{answer_of_two, array_texts, checked, elements, members};
use crate::pg_type::marked_field;
use crate::refusal::refused;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum JsonEdit {
    /// Whether a key is there.
    HasKey,
    /// Whether one of several keys is there.
    HasAny,
    /// Whether several keys are there.
    HasAll,
    /// Both together.
    Concatenate,
    /// Without a key, several keys or an element.
    Remove,
    /// Without what a path leads to.
    RemovePath,
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonEditing {
    name: &'static str,
    edit: JsonEdit,
    signature: Signature,
}

static EDITS: LazyLock<Vec<(&'static str, Arc<ScalarUDF>)>> = LazyLock::new(|| {
    use JsonEdit::{Concatenate, HasAll, HasAny, HasKey, Remove, RemovePath};
    let all = [
        ("?", "json_has_key", HasKey),
        ("?|", "json_has_any_key", HasAny),
        ("?&", "json_has_all_keys", HasAll),
        ("||", "jsonb_concatenated", Concatenate),
        ("-", "jsonb_without", Remove),
        ("#-", "jsonb_without_path", RemovePath),
    ];
    let edits = all.into_iter().map(|(sign, name, edit)| {
        let editing = ScalarUDF::from(JsonEditing {
            name,
            edit,
            signature: Signature::any(2, Volatility::Immutable),
        });
        (sign, Arc::new(editing))
    });
    edits.collect()
});

/// The function of an operator that asks for keys of JSON, or changes `jsonb`.
#[must_use]
pub fn json_edit(sign: &str) -> Option<&'static Arc<ScalarUDF>> {
    let mut all = EDITS.iter();
    all.find(|(own, _)| *own == sign).map(|(_, edit)| edit)
}

impl ScalarUDFImpl for JsonEditing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.edit {
            JsonEdit::HasKey | JsonEdit::HasAny | JsonEdit::HasAll => DataType::Boolean,
            JsonEdit::Concatenate | JsonEdit::Remove | JsonEdit::RemovePath => DataType::Utf8,
        })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kind = self.return_type(&[])?;
        let json = (kind == DataType::Utf8).then_some("jsonb");
        Ok(marked_field(self.name, kind, json))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        answer_of_two(&args, |json, other| self.answer(json, other))
    }
}

/// What an operator takes on its right side.
enum EditOperand {
    Text(String),
    Texts(Vec<String>),
    Number(i64),
}

impl JsonEditing {
    fn answer(&self, json: &ArrayRef, other: &ArrayRef) -> Result<ArrayRef> {
        let rows = json.as_string::<i32>().iter().zip(operands(other)?);
        if self.return_type(&[])? == DataType::Boolean {
            let truths = rows.map(|row| match row {
                (Some(json), Some(keys)) => self.has(json, keys).map(Some),
                _ => Ok(None),
            });
            return Ok(Arc::new(truths.collect::<Result<BooleanArray>>()?));
        }
        let mut out = StringBuilder::new();
        for row in rows {
            let (Some(json), Some(operand)) = row else {
                out.append_null();
                continue;
            };
            let edited = binary_text(&self.edited(json, operand)?)?;
            if out.values_slice().len() + edited.len() > i32::MAX as usize {
                return Err(refused(
                    "54000",
                    "the JSON of these rows is longer than 2 GiB",
                ));
            }
            out.append_value(edited);
        }
        Ok(Arc::new(out.finish()))
    }

    fn has(&self, json: &str, keys: EditOperand) -> Result<bool> {
        let keys = match keys {
            EditOperand::Text(key) if self.edit == JsonEdit::HasKey => vec![key],
            EditOperand::Text(keys) => array_texts(&keys),
            EditOperand::Texts(keys) => keys,
            EditOperand::Number(_) => return Err(no_operator(self.edit)),
        };
        let own = keys_of(json)?;
        let mut found = keys.iter().map(|key| own.contains(key));
        Ok(if self.edit == JsonEdit::HasAll {
            found.all(|is_there| is_there)
        } else {
            found.any(|is_there| is_there)
        })
    }

    fn edited(&self, json: &str, operand: EditOperand) -> Result<String> {
        match (self.edit, operand) {
            (JsonEdit::Concatenate, EditOperand::Text(other)) => concatenated(json, &other),
            (JsonEdit::RemovePath, EditOperand::Texts(path)) => without_path(json, &path),
            (JsonEdit::RemovePath, EditOperand::Text(path)) => {
                without_path(json, &array_texts(&path))
            }
            (JsonEdit::Remove, EditOperand::Text(key)) => without(json, &[key]),
            (JsonEdit::Remove, EditOperand::Texts(keys)) => without(json, &keys),
            (JsonEdit::Remove, EditOperand::Number(at)) => without_element(json, at),
            (edit, _) => Err(no_operator(edit)),
        }
    }
}

fn no_operator(edit: JsonEdit) -> datafusion::common::DataFusionError {
    let sign = match edit {
        JsonEdit::HasKey => "?",
        JsonEdit::HasAny => "?|",
        JsonEdit::HasAll => "?&",
        JsonEdit::Concatenate => "||",
        JsonEdit::Remove => "-",
        JsonEdit::RemovePath => "#-",
    };
    refused(
        "42883",
        format!("JSON has no operator {sign} for this type"),
    )
}

/// The values on the right side; `None` for NULL.
fn operands(values: &ArrayRef) -> Result<Vec<Option<EditOperand>>> {
    if let Some(lists) = values.as_list_opt::<i32>() {
        let texts = lists.iter().map(|list| {
            let Some(list) = list else {
                return Ok(None);
            };
            let names = cast(&list, &DataType::Utf8)?;
            let names = names.as_string::<i32>().iter().flatten();
            Ok(Some(EditOperand::Texts(names.map(str::to_owned).collect())))
        });
        return texts.collect();
    }
    if values.data_type().is_integer() {
        let numbers = cast(values, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>().iter();
        return Ok(numbers.map(|at| at.map(EditOperand::Number)).collect());
    }
    let texts = cast(values, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>().iter();
    Ok(texts
        .map(|text| text.map(|text| EditOperand::Text(text.to_owned())))
        .collect())
}

/// The keys of an object, the texts of an array, or a text itself.
fn keys_of(json: &str) -> Result<Vec<String>> {
    let json = checked(json)?;
    if json.starts_with('{') {
        let members = members(json)?.into_iter();
        return Ok(members.map(|(name, _)| name.into_owned()).collect());
    }
    let values = elements_or_whole(json)?.into_iter();
    let texts = values.filter(|value| value.starts_with('"'));
    texts
        .map(|text| characters(text).map(Cow::into_owned))
        .collect()
}

/// Two objects become one; anything else becomes one array.
fn concatenated(one: &str, other: &str) -> Result<String> {
    let (one, other) = (checked(one)?, checked(other)?);
    if one.starts_with('{') && other.starts_with('{') {
        let members = [members(one)?, members(other)?].concat();
        return Ok(object(members));
    }
    let all = [elements_or_whole(one)?, elements_or_whole(other)?].concat();
    Ok(format!("[{}]", all.join(",")))
}

/// The elements of an array, or the only value that other JSON is.
fn elements_or_whole(json: &str) -> Result<Vec<&str>> {
    if json.starts_with('[') {
        elements(json)
    } else {
        Ok(vec![json])
    }
}

/// A name as JSON writes it.
fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    write_quoted(name, &mut out);
    out
}

fn object<'a>(members: impl IntoIterator<Item = (Cow<'a, str>, &'a str)>) -> String {
    let members = members.into_iter();
    let members = members.map(|(name, value)| format!("{}:{value}", quoted(&name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// An object without keys, or an array without texts.
fn without(json: &str, keys: &[String]) -> Result<String> {
    let json = checked(json)?;
    if json.starts_with('{') {
        let members = members(json)?.into_iter();
        return Ok(object(
            members.filter(|(name, _)| !keys.iter().any(|key| key == name)),
        ));
    }
    if !json.starts_with('[') {
        return Err(refused("22023", "cannot delete from scalar"));
    }
    let mut kept = Vec::new();
    for element in elements(json)? {
        let is_key = element.starts_with('"') && {
            let text = characters(element)?;
            keys.iter().any(|key| *key == text)
        };
        if !is_key {
            kept.push(element);
        }
    }
    Ok(format!("[{}]", kept.join(",")))
}

/// The position of an element, where negative numbers count from the end.
fn place(count: usize, at: i64) -> Option<usize> {
    let at = if at < 0 {
        at.checked_add(i64::try_from(count).ok()?)?
    } else {
        at
    };
    usize::try_from(at).ok().filter(|at| *at < count)
}

fn without_element(json: &str, at: i64) -> Result<String> {
    let json = checked(json)?;
    if json.starts_with('{') {
        return Err(refused(
            "22023",
            "cannot delete from object using integer index",
        ));
    }
    if !json.starts_with('[') {
        return Err(refused("22023", "cannot delete from scalar"));
    }
    let mut kept = elements(json)?;
    if let Some(at) = place(kept.len(), at) {
        kept.remove(at);
    }
    Ok(format!("[{}]", kept.join(",")))
}

/// JSON without what a path leads to.
fn without_path(json: &str, path: &[String]) -> Result<String> {
    let json = checked(json)?;
    if !json.starts_with(['{', '[']) {
        return Err(refused("22023", "cannot delete path in scalar"));
    }
    edited_at(json, path)
}

/// The same; a scalar on the way is no error. The text is as deep as the JSON, whose depth the reader bounds.
fn edited_at(json: &str, path: &[String]) -> Result<String> {
    let Some((step, rest)) = path.split_first() else {
        return Ok(json.to_owned());
    };
    if json.starts_with('{') {
        let mut kept = Vec::new();
        for (name, value) in members(json)? {
            if name != step.as_str() {
                kept.push(format!("{}:{value}", quoted(&name)));
            } else if !rest.is_empty() {
                kept.push(format!("{}:{}", quoted(&name), edited_at(value, rest)?));
            }
        }
        return Ok(format!("{{{}}}", kept.join(",")));
    }
    if !json.starts_with('[') {
        return Ok(json.to_owned());
    }
    let Ok(at) = step.parse() else {
        let message = format!("path element is not an integer: \"{step}\"");
        return Err(refused("22P02", message));
    };
    let mut kept: Vec<String> = elements(json)?.into_iter().map(str::to_owned).collect();
    if let Some(at) = place(kept.len(), at) {
        if rest.is_empty() {
            kept.remove(at);
        } else {
            kept[at] = edited_at(&kept[at], rest)?;
        }
    }
    Ok(format!("[{}]", kept.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::ScalarValue;

    fn shown(sign: &str, json: &str, other: ScalarValue) -> Result<String> {
        let edit = json_edit(sign).expect("an operator");
        let editing = edit
            .inner()
            .downcast_ref::<JsonEditing>()
            .expect("its type");
        let json: ArrayRef = Arc::new(arrow::array::StringArray::from(vec![json]));
        let answer = editing.answer(&json, &other.to_array()?)?;
        Ok(ScalarValue::try_from_array(&answer, 0)?.to_string())
    }

    #[test]
    fn answers_are_those_of_postgresql() {
        let object = r#"{"a": 1, "b": {"c": [1, 2]}}"#;
        for (sign, json, other, expected) in [
            ("?", object, "a", "true"),
            ("?", object, "c", "false"),
            ("?", r#"["a", 1]"#, "a", "true"),
            ("?", r#""a""#, "a", "true"),
            ("?", "1", "1", "false"),
            ("?|", object, "{x,b}", "true"),
            ("?&", object, "{x,b}", "false"),
            ("?&", object, "{a,b}", "true"),
            ("||", object, r#"{"b": 2}"#, r#"{"a": 1, "b": 2}"#),
            ("||", "[1]", "[2]", "[1, 2]"),
            ("||", "[1]", r#"{"a": 1}"#, r#"[1, {"a": 1}]"#),
            ("||", "1", "null", "[1, null]"),
            ("-", object, "b", r#"{"a": 1}"#),
            ("-", r#"["a", "b", "a", 1]"#, "a", r#"["b", 1]"#),
            ("#-", object, "{b,c,-1}", r#"{"a": 1, "b": {"c": [1]}}"#),
            ("#-", object, "{b}", r#"{"a": 1}"#),
            ("#-", object, "{a,x}", r#"{"a": 1, "b": {"c": [1, 2]}}"#),
            ("#-", object, "{}", r#"{"a": 1, "b": {"c": [1, 2]}}"#),
        ] {
            let answer = shown(sign, json, other.into()).expect("an answer");
            assert_eq!(answer, expected, "{json} {sign} {other}");
        }
        let element = |at| shown("-", "[1, 2, 3]", ScalarValue::Int32(Some(at)));
        assert_eq!(element(0).expect("an array"), "[2, 3]");
        assert_eq!(element(-1).expect("an array"), "[1, 2]");
        assert_eq!(element(9).expect("an array"), "[1, 2, 3]");
    }

    #[test]
    fn what_postgresql_refuses_is_refused() {
        for (sign, json, other) in [
            ("-", "1", ScalarValue::from("a")),
            ("-", r#"{"a": 1}"#, ScalarValue::Int64(Some(0))),
            ("#-", "1", "{a}".into()),
            ("#-", "[1]", "{a}".into()),
            ("?", r#"{"a": 1}"#, ScalarValue::Int64(Some(0))),
            ("||", "{", "[1]".into()),
        ] {
            assert!(
                shown(sign, json, other.clone()).is_err(),
                "{json} {sign} {other}"
            );
        }
    }
}
