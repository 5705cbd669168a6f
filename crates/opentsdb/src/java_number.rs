//! Numbers as Java writes them, which is how OpenTSDB's JSON shows floats.

use std::fmt::Write;

/// Absolute values from here on, and below [`PLAIN_MIN`], are written with an exponent.
const PLAIN_MAX: f64 = 1e7;
const PLAIN_MIN: f64 = 1e-3;

/// The largest number up to which every integer is a float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Adds a float as `Double.toString` of Java writes it: `6.0`, `1.0E7`, `4.9E-324`.
pub fn push_double(number: f64, text: &mut String) {
    if number.is_nan() {
        text.push_str("NaN");
        return;
    }
    if number.is_infinite() {
        text.push_str(if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        });
        return;
    }
    let size = number.abs();
    // Writing to a String cannot fail.
    if size == 0.0 || (PLAIN_MIN..PLAIN_MAX).contains(&size) {
        let _ = write!(text, "{number:?}");
        return;
    }
    let shortest = format!("{number:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    text.push_str(digits);
    if !digits.contains('.') {
        text.push_str(".0");
    }
    let _ = write!(text, "E{exponent}");
}

/// Adds a stored value as OpenTSDB writes it where it computed nothing: a whole number without a
/// point.
pub(crate) fn push_stored(number: f64, text: &mut String) {
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        let _ = write!(text, "{}", number as i64);
    } else {
        push_double(number, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn java(number: f64) -> String {
        let mut text = String::new();
        push_double(number, &mut text);
        text
    }

    #[test]
    fn floats_are_those_of_java() {
        for (number, expected) in [
            (6.0, "6.0"),
            (-0.5, "-0.5"),
            (0.0, "0.0"),
            (781.54, "781.54"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-12_345_678.9, "-1.23456789E7"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "5.0E-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(java(number), expected);
        }
        let stored = |number| {
            let mut text = String::new();
            push_stored(number, &mut text);
            text
        };
        assert_eq!(stored(6.0), "6");
        assert_eq!(stored(-3e9), "-3000000000");
        assert_eq!(stored(6.5), "6.5");
        assert_eq!(stored(1e17), "1.0E17");
    }

    proptest! {
        #[test]
        fn every_float_comes_back(number in proptest::num::f64::NORMAL | proptest::num::f64::ZERO) {
            prop_assert_eq!(java(number).parse::<f64>().unwrap(), number);
        }
    }
}
