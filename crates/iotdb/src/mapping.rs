//! How trees are kept in tables: an IoTDB database is a table, a device a series, a measurement a field.

use crate::path::TreePath;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The tag that holds the path of a device.
pub const DEVICE_TAG: &str = "device";

/// Nanoseconds of a millisecond.
const MS_NS: i64 = 1_000_000;

/// The databases to which a device may belong, the nearest one first.
pub fn databases_above(device: &TreePath) -> impl Iterator<Item = TreePath> {
    let counts = (2..=device.nodes().len()).rev();
    counts.map(|count| device.prefix(count))
}

/// The database that is created for a device that belongs to none; `None` if the device is the root, or
/// not below it.
pub fn default_database(device: &TreePath) -> Option<TreePath> {
    let is_below = device.is_absolute() && device.nodes().len() >= 2;
    is_below.then(|| device.prefix(2))
}

/// A time in nanoseconds, if it has one.
pub fn ms_to_ns(time_ms: i64) -> Option<i64> {
    time_ms.checked_mul(MS_NS)
}

/// A time in milliseconds.
pub fn ns_to_ms(time_ns: i64) -> i64 {
    time_ns.div_euclid(MS_NS)
}

/// The begin of a day in UTC, ms; `None` if `yyyymmdd` is no day.
pub fn day_to_ms(day: i32) -> Option<i64> {
    let (year, month, day) = (day / 10_000, day / 100 % 100, day % 100);
    let (year, month) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?);
    let date = Date::new(year, month, i8::try_from(day).ok()?).ok()?;
    let begin = date.to_zoned(TimeZone::UTC).ok()?;
    Some(begin.timestamp().as_millisecond())
}

/// A number as Java writes it: at least one digit behind the point, and an exponent outside of 0.001 to
/// 10,000,000.
pub fn java_double(value: f64) -> String {
    java_text(value, format!("{value:e}"))
}

/// The same for a 32-bit float.
pub fn java_float(value: f32) -> String {
    java_text(f64::from(value), format!("{value:e}"))
}

fn java_text(value: f64, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        return format!("{digits}{point}E{exponent}");
    }
    let plain = plain_digits(&scientific);
    let point = if plain.contains('.') { "" } else { ".0" };
    format!("{plain}{point}")
}

/// A number in the form `d.ddde±n` without its exponent.
fn plain_digits(scientific: &str) -> String {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let digits: String = digits.chars().filter(|char| *char != '.').collect();
    let whole = exponent + 1;
    if whole <= 0 {
        let zeros = "0".repeat(whole.unsigned_abs() as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = whole as usize;
    if digits.len() <= whole {
        let zeros = "0".repeat(whole - digits.len());
        return format!("{sign}{digits}{zeros}");
    }
    let (before, after) = digits.split_at(whole);
    format!("{sign}{before}.{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_databases() {
        let device = TreePath::parse("root.a.b.c").expect("a path");
        let all: Vec<String> = databases_above(&device).map(|it| it.to_string()).collect();
        assert_eq!(all, ["root.a.b.c", "root.a.b", "root.a"]);
        let default = default_database(&device).map(|it| it.to_string());
        assert_eq!(default.as_deref(), Some("root.a"));
        for text in ["root", "a.b"] {
            assert_eq!(
                default_database(&TreePath::parse(text).expect("a path")),
                None
            );
        }
    }

    #[test]
    fn days_are_times() {
        assert_eq!(day_to_ms(19_700_102), Some(86_400_000));
        assert_eq!(day_to_ms(20_240_229), Some(1_709_164_800_000));
        assert_eq!([20_230_229, 0, -1, i32::MAX].map(day_to_ms), [None; 4]);
    }

    #[test]
    fn numbers_are_javas() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-12.5, "-12.5"),
            (100.0, "100.0"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-1.25e300, "-1.25E300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(java_double(value), text);
        }
        assert_eq!(
            (java_float(0.1), java_float(3.4e38)),
            ("0.1".to_owned(), "3.4E38".to_owned())
        );
    }
}
