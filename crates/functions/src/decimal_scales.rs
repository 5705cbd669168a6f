//! `scale(number)` and `min_scale(number)`: the decimal places that a number has, and that it needs.
//!
//! Arrow gives all numbers of a column the same scale, and PostgreSQL a scale to each number. So
//! `trim_scale(number)` is evaluated for literals, by the dialect, and refused for other exact numbers;
//! floats and integers have no zeros at their end.

use crate::refusal::refused;
use arrow::array::{ArrayRef, AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The name of the function that removes zeros at the end.
pub const TRIM_SCALE: &str = "trim_scale";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ScaleFunction {
    Scale,
    MinScale,
    TrimScale,
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DecimalScale {
    function: ScaleFunction,
    signature: Signature,
}

/// The functions.
pub(crate) fn functions() -> [ScalarUDF; 3] {
    use ScaleFunction::{MinScale, Scale, TrimScale};
    [Scale, MinScale, TrimScale].map(|function| {
        ScalarUDF::from(DecimalScale {
            function,
            signature: Signature::any(1, Volatility::Immutable),
        })
    })
}

impl ScalarUDFImpl for DecimalScale {
    fn name(&self) -> &'static str {
        match self.function {
            ScaleFunction::Scale => "scale",
            ScaleFunction::MinScale => "min_scale",
            ScaleFunction::TrimScale => TRIM_SCALE,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [kind] if self.function == ScaleFunction::TrimScale => match kind {
                kind if kind.is_decimal() => Err(refused(
                    "0A000",
                    "trim_scale takes a literal: all numbers of a column have the same scale; \
                     round(number, places) sets it",
                )),
                kind if kind.is_numeric() || kind.is_null() => Ok(kind.clone()),
                _ => Err(refused("42883", "trim_scale takes a number")),
            },
            [kind] if kind.is_numeric() || kind.is_null() => Ok(DataType::Int32),
            _ => Err(refused("42883", format!("{} takes a number", self.name()))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(numbers) = args.args.into_iter().next() else {
            return internal_err!("{} takes one argument", self.name());
        };
        if self.function == ScaleFunction::TrimScale {
            return Ok(numbers);
        }
        let is_scalar = matches!(numbers, ColumnarValue::Scalar(_));
        let texts = number_texts(&numbers.into_array(1)?)?;
        let texts = texts.as_string::<i32>().iter();
        let scales: Int32Array = texts
            .map(|text| places(text?, self.function == ScaleFunction::MinScale))
            .collect();
        Ok(if is_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&scales, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(scales))
        })
    }
}

/// Numbers as texts without exponents.
fn number_texts(numbers: &ArrayRef) -> Result<ArrayRef> {
    if !numbers.data_type().is_floating() {
        return Ok(cast(numbers, &DataType::Utf8)?);
    }
    let doubles = cast(numbers, &DataType::Float64)?;
    let doubles = doubles.as_primitive::<arrow::datatypes::Float64Type>();
    let texts = doubles.iter().map(|double| double.map(|it| it.to_string()));
    Ok(Arc::new(texts.collect::<arrow::array::StringArray>()))
}

/// The decimal places of a number's text, without zeros at their end if `only_needed`; `None` for a text
/// that is no finite number.
fn places(text: &str, only_needed: bool) -> Option<i32> {
    if !text.ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    let places = text.split_once('.').map_or("", |(_, places)| places);
    let places = if only_needed {
        places.trim_end_matches('0')
    } else {
        places
    };
    i32::try_from(places.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn places_are_those_of_the_text() {
        for (text, scale, min_scale) in [
            ("8.4100", Some(4), Some(2)),
            ("100", Some(0), Some(0)),
            ("-0.00", Some(2), Some(0)),
            ("NaN", None, None),
            ("inf", None, None),
        ] {
            let found = (places(text, false), places(text, true));
            assert_eq!(found, (scale, min_scale), "{text}");
        }
    }
}
