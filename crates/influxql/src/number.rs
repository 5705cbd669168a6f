//! Floats as Go prints them.

use std::fmt;

/// Prints three decimals, as in the float literals of a printed statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedFloat(pub(crate) f64);

impl fmt::Display for FixedFloat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() {
            write!(f, "{:.3}", self.0)
        } else {
            write_special(f, self.0)
        }
    }
}

/// Prints the shortest digits that parse to the same value, with an exponent from 1e+06 on and
/// below 1e-04, as in a printed `fill(1.5)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortestFloat(pub(crate) f64);

impl fmt::Display for ShortestFloat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_finite() {
            return write_special(f, self.0);
        }
        let scientific = format!("{:e}", self.0);
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        if self.0 == 0.0 || (-4..=5).contains(&exponent) {
            return write!(f, "{}", self.0);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(f, "{digits}e{sign}{:02}", exponent.unsigned_abs())
    }
}

fn write_special(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    f.write_str(if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    })
}

#[cfg(test)]
mod tests {
    use super::{FixedFloat, ShortestFloat};

    #[test]
    fn floats_are_printed_as_go_does() {
        for (value, shortest, fixed) in [
            (0.0, "0", "0.000"),
            (1.5, "1.5", "1.500"),
            (-2.0, "-2", "-2.000"),
            (0.0001, "0.0001", "0.000"),
            (0.000_01, "1e-05", "0.000"),
            (1e6, "1e+06", "1000000.000"),
            (123_456.0, "123456", "123456.000"),
            (1_234_567.5, "1.2345675e+06", "1234567.500"),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NAN, "NaN", "NaN"),
        ] {
            assert_eq!(ShortestFloat(value).to_string(), shortest);
            assert_eq!(FixedFloat(value).to_string(), fixed);
        }
    }
}
