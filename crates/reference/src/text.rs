//! Stored values as PostgreSQL writes them, for messages and for columns that become text.

use crate::definition::{ReferenceColumn, ReferenceType};
use crate::value::{Cell, from_sortable, interval_of};
use arrow::datatypes::IntervalMonthDayNano;

/// A key as in `(a, b)=(1, x)`.
pub(crate) fn key(columns: &[&ReferenceColumn], cells: &[Cell<'_>]) -> String {
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    let values = columns
        .iter()
        .zip(cells)
        .map(|(column, cell)| text(column.kind, cell));
    format!(
        "({})=({})",
        names.join(", "),
        values.collect::<Vec<_>>().join(", ")
    )
}

/// A row as in `(1, null, x)`.
pub(crate) fn row(columns: &[ReferenceColumn], cells: &[Cell<'_>]) -> String {
    /// Longer values are cut, as PostgreSQL does.
    const BYTES_MAX: usize = 64;
    let values = columns.iter().zip(cells).map(|(column, cell)| {
        let mut value = text(column.kind, cell);
        if value.len() > BYTES_MAX {
            value.truncate(value.floor_char_boundary(BYTES_MAX));
            value.push_str("...");
        }
        value
    });
    format!("({})", values.collect::<Vec<_>>().join(", "))
}

/// A value.
pub(crate) fn text(kind: ReferenceType, cell: &Cell<'_>) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Integer(number) => integer(kind, *number),
        Cell::Real(number) if kind == ReferenceType::Float4 => {
            float(&format!("{:e}", *number as f32), 6)
        }
        Cell::Real(number) => float(&format!("{number:e}"), 15),
        Cell::Text(text) => text.clone().into_owned(),
        Cell::Blob(_) | Cell::Bytes(..) => bytes(kind, cell.bytes().unwrap_or_default()),
    }
}

fn integer(kind: ReferenceType, number: i64) -> String {
    match kind {
        ReferenceType::Bool => if number == 0 { "f" } else { "t" }.to_owned(),
        ReferenceType::Date => date(number),
        ReferenceType::Time => time(number),
        ReferenceType::Timestamp => timestamp(number),
        ReferenceType::TimestampTz => format!("{}+00", timestamp(number)),
        ReferenceType::Numeric { scale, .. } => decimal(number.into(), scale),
        _ => number.to_string(),
    }
}

fn bytes(kind: ReferenceType, bytes: &[u8]) -> String {
    match kind {
        ReferenceType::Numeric { scale, .. } => {
            from_sortable(bytes).map_or_else(String::new, |number| decimal(number, scale))
        }
        ReferenceType::Interval => interval_of(bytes).map_or_else(String::new, interval),
        _ => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            format!("\\x{}", digits.collect::<String>())
        }
    }
}

fn decimal(number: i128, scale: i8) -> String {
    if scale <= 0 {
        let zeros = if number == 0 {
            0
        } else {
            scale.unsigned_abs().into()
        };
        return format!("{number}{}", "0".repeat(zeros));
    }
    let scale = scale as usize;
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{fraction}", if number < 0 { "-" } else { "" })
}

/// A float from its shortest digits with an exponent. As in PostgreSQL, the exponent stays only if it is below -4 or
/// at least `exponent_max`.
fn float(scientific: &str, exponent_max: i32) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return match scientific {
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            other => other,
        }
        .to_owned();
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..exponent_max).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    let point = exponent + 1;
    if point <= 0 {
        return format!(
            "{sign}0.{}{digits}",
            "0".repeat(point.unsigned_abs() as usize)
        );
    }
    let point = point as usize;
    match digits.split_at_checked(point) {
        Some((whole, "")) => format!("{sign}{whole}"),
        Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{digits}{}", "0".repeat(point - digits.len())),
    }
}

/// A date from days since 1970 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn date(days: i64) -> String {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    if year < 1 {
        return format!("{:04}-{month:02}-{day:02} BC", 1 - year);
    }
    format!("{year:04}-{month:02}-{day:02}")
}

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;

fn time(ns: i64) -> String {
    let seconds = ns.div_euclid(SECOND_NS);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(
        "{hour:02}:{minute:02}:{second:02}{}",
        fraction(ns.rem_euclid(SECOND_NS))
    )
}

fn fraction(ns: i64) -> String {
    if ns == 0 {
        return String::new();
    }
    format!(".{ns:09}").trim_end_matches('0').to_owned()
}

fn timestamp(ns: i64) -> String {
    format!(
        "{} {}",
        date(ns.div_euclid(DAY_NS)),
        time(ns.rem_euclid(DAY_NS))
    )
}

/// An interval in PostgreSQL's style `postgres`.
fn interval(value: IntervalMonthDayNano) -> String {
    let mut parts = Vec::new();
    let (years, months) = (value.months / 12, value.months % 12);
    for (number, one, many) in [
        (years, "year", "years"),
        (months, "mon", "mons"),
        (value.days, "day", "days"),
    ] {
        if number != 0 {
            parts.push(format!("{number} {}", if number == 1 { one } else { many }));
        }
    }
    if value.nanoseconds != 0 || parts.is_empty() {
        let sign = if value.nanoseconds < 0 { "-" } else { "" };
        let ns = value.nanoseconds.unsigned_abs();
        let seconds = ns / SECOND_NS as u64;
        parts.push(format!(
            "{sign}{:02}:{:02}:{:02}{}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            fraction((ns % SECOND_NS as u64) as i64)
        ));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_postgresql_writes_them() {
        let integer = |kind, number| text(kind, &Cell::Integer(number));
        assert_eq!(integer(ReferenceType::Bool, 1), "t");
        assert_eq!(integer(ReferenceType::Date, 19_000), "2022-01-08");
        assert_eq!(integer(ReferenceType::Date, -719_163), "0001-12-31 BC");
        assert_eq!(
            integer(ReferenceType::Date, i32::MIN.into()),
            "5877642-06-23 BC"
        );
        assert_eq!(integer(ReferenceType::Time, DAY_NS), "24:00:00");
        assert_eq!(
            integer(ReferenceType::Timestamp, -1),
            "1969-12-31 23:59:59.999999999"
        );
        assert_eq!(
            integer(ReferenceType::TimestampTz, 1_500_000_000),
            "1970-01-01 00:00:01.5+00"
        );
        assert_eq!(
            integer(ReferenceType::Timestamp, i64::MIN),
            "1677-09-21 00:12:43.145224192"
        );
        let numeric = ReferenceType::Numeric {
            precision: 5,
            scale: 2,
        };
        assert_eq!(integer(numeric, -5), "-0.05");
        assert_eq!(
            integer(
                ReferenceType::Numeric {
                    precision: 3,
                    scale: -2
                },
                12
            ),
            "1200"
        );
        assert_eq!(
            text(
                ReferenceType::Bytea,
                &Cell::Blob([1, 255].as_slice().into())
            ),
            "\\x01ff"
        );
    }

    #[test]
    fn floats_have_an_exponent_if_they_are_small_or_large() {
        let float8 = |number| text(ReferenceType::Float8, &Cell::Real(number));
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.25e300, "1.25e+300"),
            (f64::INFINITY, "Infinity"),
            (123_456.75, "123456.75"),
        ] {
            assert_eq!(float8(number), expected);
        }
        assert_eq!(
            text(ReferenceType::Float4, &Cell::Real(f64::from(0.1_f32))),
            "0.1"
        );
        assert_eq!(
            text(ReferenceType::Float4, &Cell::Real(1_234_567.0)),
            "1.234567e+06"
        );
    }

    #[test]
    fn intervals_have_years_to_seconds() {
        let of = |months, days, ns| interval(IntervalMonthDayNano::new(months, days, ns));
        assert_eq!(
            of(14, -3, 3_661_500_000_000),
            "1 year 2 mons -3 days 01:01:01.5"
        );
        assert_eq!(of(0, 0, 0), "00:00:00");
        assert_eq!(of(0, 0, i64::MIN), "-2562047:47:16.854775808");
    }
}
