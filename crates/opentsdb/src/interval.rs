//! Lengths of time: `500ms`, `10s`, `1m`, `2h`, `1d`, `1w`, `1n` (a month), `1y`.

use crate::error::QueryFault;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalUnit {
    /// `ms`
    Millisecond,
    /// `s`
    Second,
    /// `m`
    Minute,
    /// `h`
    Hour,
    /// `d`
    Day,
    /// `w`
    Week,
    /// `n`: a month; 30 days where no calendar counts.
    Month,
    /// `y`: a year; 365 days where no calendar counts.
    Year,
}

impl IntervalUnit {
    /// Its length, ms.
    pub const fn length_ms(self) -> i64 {
        const DAY: i64 = 86_400_000;
        match self {
            Self::Millisecond => 1,
            Self::Second => 1000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 30 * DAY,
            Self::Year => 365 * DAY,
        }
    }
}

/// Reads a length of time: a number from 1, and its unit.
pub(crate) fn parse_interval(text: &str) -> Result<(u32, IntervalUnit), QueryFault> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let shown: String = text.chars().take(50).collect();
    let unit = match suffix {
        "ms" => IntervalUnit::Millisecond,
        "s" => IntervalUnit::Second,
        "m" => IntervalUnit::Minute,
        "h" => IntervalUnit::Hour,
        "d" => IntervalUnit::Day,
        "w" => IntervalUnit::Week,
        "n" => IntervalUnit::Month,
        "y" => IntervalUnit::Year,
        _ => {
            return Err(QueryFault::new(format!(
                "Invalid duration (suffix): {shown}"
            )));
        }
    };
    match number.parse() {
        Ok(0) => Err(QueryFault::new(format!(
            "Zero or negative duration: {shown}"
        ))),
        Ok(number) => Ok((number, unit)),
        Err(_) => Err(QueryFault::new(format!(
            "Invalid duration (number): {shown}"
        ))),
    }
}

/// Reads a length of time, ms.
pub(crate) fn parse_interval_ms(text: &str) -> Result<i64, QueryFault> {
    let (count, unit) = parse_interval(text)?;
    // At most 2^32 years: it fits.
    Ok(i64::from(count).saturating_mul(unit.length_ms()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_a_number_and_a_unit() {
        for (text, ms) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("1m", 60_000),
            ("2h", 7_200_000),
            ("1w", 604_800_000),
            ("1n", 2_592_000_000),
            ("1y", 31_536_000_000),
        ] {
            assert_eq!(parse_interval_ms(text), Ok(ms));
        }
        let fault = |text: &str| parse_interval_ms(text).unwrap_err().message;
        assert_eq!(fault("1q"), "Invalid duration (suffix): 1q");
        assert_eq!(fault("m"), "Invalid duration (number): m");
        assert_eq!(fault("0m"), "Zero or negative duration: 0m");
        assert_eq!(
            fault("99999999999m"),
            "Invalid duration (number): 99999999999m"
        );
        assert!(parse_interval_ms("").is_err() && parse_interval_ms("-1m").is_err());
    }
}
