//! `to_char` of intervals, with PostgreSQL's patterns.
//!
//! An interval has no calendar: years and months are those of the interval, hours are not limited to a day,
//! and fields that need a date are refused.

use crate::to_char::{LetterCase, PatternField, PatternPart, ROMAN, TimePattern, lettered, suffix};

const SECOND_NS: i64 = 1_000_000_000;
/// The days of a month in the number of days of an interval.
const MONTH_DAYS: i64 = 30;

/// A pattern asks for a field that intervals do not have (SQLSTATE `22007`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid format specification for an interval value: intervals are not tied to specific calendar dates"
)]
pub struct IntervalPatternError;

/// The parts of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternInterval {
    /// Months, including those of years.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// What is shorter than a day, or written as such.
    pub nanoseconds: i64,
}

/// Formats an interval with a pattern.
///
/// # Errors
/// If the pattern has a field of dates.
pub fn interval_to_char(
    interval: PatternInterval,
    pattern: &TimePattern,
) -> Result<String, IntervalPatternError> {
    let mut out = String::new();
    for part in &pattern.parts {
        match part {
            PatternPart::Text(text) => out.push_str(text),
            PatternPart::Field {
                field,
                is_short,
                ordinal,
            } => {
                let text = written(interval, *field, *is_short)?;
                out.push_str(&text);
                if let Some(letters) = ordinal.filter(|_| field.is_number()) {
                    out.push_str(suffix(&text, letters));
                }
            }
        }
    }
    Ok(out)
}

fn written(
    interval: PatternInterval,
    field: PatternField,
    is_short: bool,
) -> Result<String, IntervalPatternError> {
    // The sign is one of the characters of a number of days, and one more for others.
    let padded = |value: i64, width: usize| {
        if is_short {
            value.to_string()
        } else {
            format!("{value:0width$}")
        }
    };
    let number = |value: i64, width: usize| padded(value, width + usize::from(value < 0));
    let (years, months) = (
        i64::from(interval.months / 12),
        i64::from(interval.months % 12),
    );
    let days = i64::from(interval.days);
    let seconds = interval.nanoseconds / SECOND_NS;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let nanos = interval.nanoseconds % SECOND_NS;
    let all_days = (years * 12 + months) * MONTH_DAYS + days;
    Ok(match field {
        PatternField::Hour12 => {
            let hour = if hours % 12 == 0 { 12 } else { hours % 12 };
            number(hour, 2 + usize::from(hours < 0))
        }
        PatternField::Hour24 => number(hours, 2),
        PatternField::Minute => number(minutes, 2),
        PatternField::Second => number(seconds % 60, 2),
        PatternField::Fraction(digits) => {
            let value = nanos / 10_i64.pow(9 - digits as u32);
            format!("{value:0digits$}")
        }
        PatternField::SecondOfDay => seconds.to_string(),
        PatternField::Meridiem(letters, points) => {
            let text = [["AM", "A.M."], ["PM", "P.M."]][usize::from(hours % 24 >= 12)];
            lettered(text[usize::from(points)], letters)
        }
        PatternField::Year(4) | PatternField::IsoYear(4) => number(years, 4),
        PatternField::Year(digits) | PatternField::IsoYear(digits) => number(
            years % 10_i64.pow(digits as u32),
            digits + usize::from(years < 0),
        ),
        PatternField::YearComma => format!("{},{:03}", years / 1000, years % 1000),
        PatternField::Century => number(years / 100, 2),
        PatternField::Quarter if months == 0 => String::new(),
        PatternField::Quarter => ((months - 1) / 3 + 1).to_string(),
        PatternField::Month => number(months, 2),
        PatternField::MonthRoman(letters) => roman_month(years, months, letters, is_short),
        PatternField::WeekOfMonth => ((days - 1) / 7 + 1).to_string(),
        PatternField::WeekOfYear => padded((all_days - 1) / 7 + 1, 2),
        PatternField::DayOfYear => padded(all_days, 3),
        PatternField::Day => padded(days, 2),
        _ => return Err(IntervalPatternError),
    })
}

/// The month in Roman digits; twelve months are a year and the last month.
fn roman_month(years: i64, months: i64, letters: LetterCase, is_short: bool) -> String {
    let at = match (years, months) {
        (0, 0) => return String::new(),
        (years, 0) if years < 0 => 0,
        (_, 0) => 11,
        (_, months) if months < 0 => 12 + months,
        (_, months) => months - 1,
    };
    let name = usize::try_from(at).ok().and_then(|at| ROMAN.get(at));
    let name = lettered(name.unwrap_or(&""), letters);
    if is_short { name } else { format!("{name:4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are PostgreSQL 15's.
    #[test]
    fn intervals_are_written_as_postgresql_writes_them() {
        let of = |months, days, seconds: i64| PatternInterval {
            months,
            days,
            nanoseconds: seconds * SECOND_NS,
        };
        for (interval, pattern, expected) in [
            (of(0, 3, 54_132), "DD HH24:MI:SS", "03 15:02:12"),
            (of(0, 0, 360_000), "HH24:MI", "100:00"),
            (of(0, 0, 360_000), "HH:MI AM", "04:00 AM"),
            (of(0, -3, -14_706), "DD HH24:MI:SS", "-3 -04:-05:-06"),
            (of(14, 0, 0), "YYYY YY Y,YYY MM RM", "0001 01 0,001 02 II  "),
            (of(0, 40, 0), "DDD DD", "040 40"),
            (of(0, 0, 3600), "FMHH24 \"h\"", "1 h"),
            (of(0, 0, 93_600), "HH24th", "26th"),
        ] {
            let found = interval_to_char(interval, &TimePattern::parse(pattern));
            assert_eq!(found.as_deref(), Ok(expected), "{pattern}");
        }
        let day = interval_to_char(of(0, 1, 0), &TimePattern::parse("Day"));
        assert_eq!(day, Err(IntervalPatternError));
    }
}
