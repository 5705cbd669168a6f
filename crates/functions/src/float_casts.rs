//! Texts and wider numbers as floats. Numbers that a float cannot hold are errors, as in PostgreSQL:
//! Arrow makes them infinite or zero.

use crate::arithmetic::overflow;
use crate::refusal::refused;
use arrow::array::{ArrayRef, AsArray, Float32Array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use std::sync::Arc;

/// Whether a text that was read as this float denotes a number that is too large or too small.
fn is_out_of_range(text: &str, float: f64) -> bool {
    if float.is_infinite() {
        return !text.contains(['i', 'I']);
    }
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    float == 0.0 && digits.contains(|digit: char| matches!(digit, '1'..='9'))
}

/// Whether a text is a number that a float type can hold.
pub(crate) fn is_read_exactly(text: &str, kind: &DataType) -> bool {
    text.trim().parse::<f64>().is_ok_and(|float| {
        let float = if *kind == DataType::Float32 {
            f64::from(float as f32)
        } else {
            float
        };
        !is_out_of_range(text, float)
    })
}

/// Reads texts as floats of a type; `gives_null` says whether what is no number becomes NULL.
///
/// # Errors
/// 22003 for numbers out of range, and Arrow's errors.
pub(crate) fn read_floats(
    values: &ArrayRef,
    kind: &DataType,
    gives_null: bool,
) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: gives_null,
        ..CastOptions::default()
    };
    let floats = cast_with_options(values, kind, &options)?;
    let texts = cast(values, &DataType::Utf8)?;
    let wide = cast(&floats, &DataType::Float64)?;
    let wide = wide.as_primitive::<Float64Type>();
    for (text, float) in texts.as_string::<i32>().iter().zip(wide) {
        if let (Some(text), Some(float)) = (text, float)
            && is_out_of_range(text, float)
            && !gives_null
        {
            let name = match kind {
                DataType::Float32 => "real",
                _ => "double precision",
            };
            let text = text.escape_debug();
            let message = format!("\"{text}\" is out of range for type {name}");
            return Err(refused("22003", message));
        }
    }
    Ok(floats)
}

/// Whether a REAL can hold a double, more or less exactly.
pub(crate) fn is_narrow(float: f64) -> bool {
    float.is_infinite() || !(float as f32).is_infinite()
}

/// Doubles and decimals as REAL; `gives_null` says whether one that is too large becomes NULL.
///
/// # Errors
/// 22003 for numbers that are too large.
pub(crate) fn narrow_floats(values: &ArrayRef, gives_null: bool) -> Result<ArrayRef> {
    let wide = cast(values, &DataType::Float64)?;
    let narrow = wide
        .as_primitive::<Float64Type>()
        .iter()
        .map(|float| match float {
            Some(float) if !is_narrow(float) && gives_null => Ok(None),
            Some(float) if !is_narrow(float) => Err(overflow()),
            float => Ok(float.map(|float| float as f32)),
        });
    Ok(Arc::new(narrow.collect::<Result<Float32Array>>()?))
}
