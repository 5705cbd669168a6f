//! Floats as PostgreSQL prints them.

/// The digits up to which PostgreSQL prints a `real` without an exponent.
const FLOAT_FIXED: i64 = 6;
/// The digits up to which PostgreSQL prints a `double precision` without an exponent.
const DOUBLE_FIXED: i64 = 15;

/// A `double precision` as PostgreSQL prints it: its shortest digits.
pub fn double_text(value: f64) -> String {
    float_text(value, &format!("{value:e}"), DOUBLE_FIXED)
}

/// A `real` as PostgreSQL prints it: its shortest digits.
pub fn real_text(value: f32) -> String {
    float_text(f64::from(value), &format!("{value:e}"), FLOAT_FIXED)
}

/// A float from its shortest digits with an exponent (`1.5e-7`): PostgreSQL writes exponents below
/// -4, and from `fixed` on.
fn float_text(value: f64, scientific: &str, fixed: i64) -> String {
    if !value.is_finite() {
        let infinite = if value > 0.0 { "Infinity" } else { "-Infinity" };
        return if value.is_nan() { "NaN" } else { infinite }.to_owned();
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    if !(-4..fixed).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}
