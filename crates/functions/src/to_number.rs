//! `to_number(text, pattern)`. The digits after the point of a literal pattern are those of the answer's
//! type; a pattern that is not literal gives ten.

use crate::refusal::refused;
use arrow::array::{ArrayRef, AsArray, StringBuilder};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use marigram_pgtext::NumberPattern;
use std::sync::Arc;

/// The digits of a number of 128 bits.
const DIGITS: u8 = 38;
/// The digits after the point where the pattern is not known.
const SCALE: i8 = 10;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToNumber {
    signature: Signature,
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(ToNumber {
        signature: Signature::exact(vec![DataType::Utf8, DataType::Utf8], Volatility::Immutable),
    })
}

fn parsed(pattern: &str) -> Result<NumberPattern> {
    NumberPattern::parse(pattern).map_err(|error| refused("42601", format!("'{pattern}': {error}")))
}

impl ScalarUDFImpl for ToNumber {
    fn name(&self) -> &'static str {
        "to_number"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(DIGITS, SCALE))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let pattern = args.scalar_arguments.get(1).copied().flatten();
        let pattern = pattern.and_then(|pattern| pattern.try_as_str().flatten());
        let scale = match pattern {
            None => SCALE,
            Some(pattern) => {
                let (_, after) = parsed(pattern)?.digits_max();
                let after = i8::try_from(after).ok();
                let after = after.filter(|after| after.unsigned_abs() <= DIGITS);
                after.ok_or_else(|| {
                    let message = format!("a pattern has at most {DIGITS} digits after the point");
                    refused("22003", message)
                })?
            }
        };
        let kind = DataType::Decimal128(DIGITS, scale);
        Ok(Arc::new(Field::new(self.name(), kind, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [texts, patterns] = arrays.as_slice() else {
            return internal_err!("to_number takes two arguments");
        };
        let (texts, patterns) = (
            cast(texts, &DataType::Utf8)?,
            cast(patterns, &DataType::Utf8)?,
        );
        let mut numbers = StringBuilder::new();
        let mut last: Option<(&str, NumberPattern)> = None;
        let rows = texts.as_string::<i32>().iter();
        for (text, written) in rows.zip(patterns.as_string::<i32>()) {
            // PostgreSQL returns NULL for an empty pattern, too.
            let (Some(text), Some(written)) = (text, written.filter(|w| !w.is_empty())) else {
                numbers.append_null();
                continue;
            };
            let pattern = match &last {
                Some((known, pattern)) if *known == written => pattern,
                _ => &last.insert((written, parsed(written)?)).1,
            };
            let number = pattern.read(text);
            numbers.append_value(
                number.map_err(|error| refused(error.sqlstate(), error.to_string()))?,
            );
        }
        let strict = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let numbers: ArrayRef = Arc::new(numbers.finish());
        let numbers = cast_with_options(&numbers, args.return_type(), &strict)
            .map_err(|_| refused("22003", "numeric field overflow"))?;
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&numbers, 0)?)
        } else {
            ColumnarValue::Array(numbers)
        })
    }
}
