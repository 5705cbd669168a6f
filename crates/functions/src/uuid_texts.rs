//! Casts to `uuid`. A UUID is a text here: that of PostgreSQL, with lower-case digits in five groups.

use crate::pg_type::{argument_types, marked_field};
use crate::refusal::refused;
use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;

/// The function to which casts to `uuid` are rewritten.
pub const UUID_READER: &str = "read_uuid";

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UuidReading {
    signature: Signature,
}

/// The function of this module.
pub(crate) fn uuid_reader() -> ScalarUDF {
    ScalarUDF::from(UuidReading {
        signature: Signature::any(1, Volatility::Immutable),
    })
}

impl ScalarUDFImpl for UuidReading {
    fn name(&self) -> &'static str {
        UUID_READER
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
        if is_text {
            return Ok(DataType::Utf8);
        }
        Err(refused("42846", "only a text can be read as uuid"))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kind = self.return_type(&argument_types(&args))?;
        Ok(marked_field(UUID_READER, kind, Some("uuid")))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(texts) = args.args.into_iter().next() else {
            return internal_err!("{UUID_READER} takes one argument");
        };
        let is_scalar = matches!(texts, ColumnarValue::Scalar(_));
        let texts = cast(&texts.into_array(1)?, &DataType::Utf8)?;
        let read = texts.as_string::<i32>().iter();
        let read = read.map(|text| text.map(uuid_of).transpose());
        let read: ArrayRef = Arc::new(read.collect::<Result<StringArray>>()?);
        Ok(if is_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&read, 0)?)
        } else {
            ColumnarValue::Array(read)
        })
    }
}

/// A UUID in PostgreSQL's form.
///
/// # Errors
/// 22P02 if the text is none.
fn uuid_of(text: &str) -> Result<String> {
    let wrong = || {
        let message = format!("invalid input syntax for type uuid: \"{text}\"");
        refused("22P02", message)
    };
    let trimmed = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or_else(wrong)?,
        None => text,
    };
    let mut digits = String::with_capacity(32);
    let mut after_group = false;
    for character in trimmed.chars() {
        // A hyphen may follow any group of four digits.
        if character == '-' && after_group && digits.len() < 32 {
            after_group = false;
            continue;
        }
        if !character.is_ascii_hexdigit() {
            return Err(wrong());
        }
        digits.push(character.to_ascii_lowercase());
        after_group = digits.len().is_multiple_of(4);
    }
    if digits.len() != 32 {
        return Err(wrong());
    }
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| &digits[group]);
    Ok(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_read_as_by_postgresql() {
        let expected = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            expected,
            "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(uuid_of(text).unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "no",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-",
        ] {
            assert!(uuid_of(text).is_err(), "{text}");
        }
    }
}
