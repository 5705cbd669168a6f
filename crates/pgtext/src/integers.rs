//! Interprets integers as times.
//!
//! `1404172800` may be seconds, milliseconds, microseconds or nanoseconds since 1970. It means the
//! only one of them that is between 1990 and 2100; if none is, the meaning is unknown.

use crate::zones::utc_text;

/// 1990-01-01 and 2100-01-01, s since 1970: no integer is between them in two units.
const PLAUSIBLE_S: std::ops::Range<i128> = 631_152_000..4_102_444_800;
/// Units with their names, the functions that convert them, and their length in ns.
const UNITS: [(&str, &str, i128); 4] = [
    ("seconds", "to_timestamp_seconds", 1_000_000_000),
    ("milliseconds", "to_timestamp_millis", 1_000_000),
    ("microseconds", "to_timestamp_micros", 1_000),
    ("nanoseconds", "to_timestamp_nanos", 1),
];

/// An integer that is not a plausible time in any unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{value} is not a time without a unit: {readings}; write {functions}, or a text such as '2014-07-01 10:15'"
)]
pub struct IntegerTimeError {
    value: i128,
    readings: String,
    functions: String,
}

/// The time that an integer stands for, ns since 1970.
///
/// # Errors
/// If it is between 1990 and 2100 in no unit.
pub fn integer_time(value: i128) -> Result<i64, IntegerTimeError> {
    let plausible = UNITS.iter().find(|(_, _, unit_ns)| {
        let per_second = 1_000_000_000 / unit_ns;
        (PLAUSIBLE_S.start * per_second..PLAUSIBLE_S.end * per_second).contains(&value)
    });
    if let Some((_, _, unit_ns)) = plausible
        && let Ok(ns) = i64::try_from(value * unit_ns)
    {
        return Ok(ns);
    }
    let reading = |(name, _, unit_ns): &(&str, &str, i128)| {
        let ns = value.checked_mul(*unit_ns);
        let ns = ns.and_then(|ns| i64::try_from(ns).ok());
        let shown = ns
            .and_then(utc_text)
            .map(|time| format!("{time} in {name}"));
        shown.unwrap_or_else(|| format!("beyond the year 2262 in {name}"))
    };
    let readings: Vec<String> = UNITS.iter().map(reading).collect();
    let functions: Vec<String> = UNITS
        .iter()
        .map(|(_, function, _)| format!("{function}({value})"))
        .collect();
    Err(IntegerTimeError {
        value,
        readings: format!("it would be {}", readings.join(", ")),
        functions: functions.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_is_plausible_or_none() {
        let second = 1_404_172_800_i128;
        for unit in [1, 1_000, 1_000_000, 1_000_000_000] {
            assert_eq!(integer_time(second * unit), Ok(1_404_172_800_000_000_000));
        }
        for value in [
            0,
            7,
            -1_404_172_800,
            20_140_701,
            1_404_172_800_000_000_000_000,
        ] {
            let error = integer_time(value).unwrap_err().to_string();
            assert!(error.contains("to_timestamp_millis("), "{error}");
        }
        let error = integer_time(20_140_701).unwrap_err().to_string();
        assert!(error.contains("1970-08-22 02:38:21 in seconds"), "{error}");
        assert!(
            error.contains("1970-01-01 05:35:40.701 in milliseconds"),
            "{error}"
        );
    }
}
