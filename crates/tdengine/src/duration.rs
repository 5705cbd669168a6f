//! Durations: a number and a unit, as in `10s` and `1n`.

use crate::error::{TaosCode, TaosError, TaosResult};
use crate::precision::TaosPrecision;
use std::fmt;

/// A unit of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaosUnit {
    /// Nanosecond.
    Nanosecond,
    /// Microsecond.
    Microsecond,
    /// Millisecond.
    Millisecond,
    /// Second.
    Second,
    /// Minute.
    Minute,
    /// Hour.
    Hour,
    /// Day of 24 hours.
    Day,
    /// Seven days.
    Week,
    /// Month of the calendar.
    Month,
    /// Year of the calendar.
    Year,
}

impl TaosUnit {
    const ALL: [Self; 10] = [
        Self::Nanosecond,
        Self::Microsecond,
        Self::Millisecond,
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Year,
    ];

    /// The unit of a letter, in either case.
    #[must_use]
    pub fn from_letter(letter: u8) -> Option<Self> {
        let letter = letter.to_ascii_lowercase();
        Self::ALL.into_iter().find(|unit| unit.letter() == letter)
    }

    /// Its letter.
    #[must_use]
    pub fn letter(self) -> u8 {
        match self {
            Self::Nanosecond => b'b',
            Self::Microsecond => b'u',
            Self::Millisecond => b'a',
            Self::Second => b's',
            Self::Minute => b'm',
            Self::Hour => b'h',
            Self::Day => b'd',
            Self::Week => b'w',
            Self::Month => b'n',
            Self::Year => b'y',
        }
    }

    /// Nanoseconds, for units of a fixed length.
    #[must_use]
    pub fn ns(self) -> Option<i64> {
        Some(match self {
            Self::Nanosecond => 1,
            Self::Microsecond => 1_000,
            Self::Millisecond => 1_000_000,
            Self::Second => 1_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Hour => 3_600_000_000_000,
            Self::Day => 86_400_000_000_000,
            Self::Week => 604_800_000_000_000,
            Self::Month | Self::Year => return None,
        })
    }
}

/// A duration as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaosDuration {
    /// How many.
    pub count: i64,
    /// Of what.
    pub unit: TaosUnit,
}

/// A duration as it is added to a time: months of the calendar, and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TimeShift {
    /// Months.
    pub months: i64,
    /// Nanoseconds.
    pub ns: i64,
}

impl TaosDuration {
    /// Reads digits and a letter.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let (letter, digits) = text.as_bytes().split_last()?;
        let unit = TaosUnit::from_letter(*letter)?;
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let count = text.get(..digits.len())?.parse().ok()?;
        Some(Self { count, unit })
    }

    /// What it adds to a time.
    ///
    /// # Errors
    /// If it does not fit 64 bits of nanoseconds.
    pub fn shift(self) -> TaosResult<TimeShift> {
        let too_long = || TaosError::about(TaosCode::ValueOutOfRange, &self.to_string());
        let shift = match self.unit {
            TaosUnit::Month => TimeShift {
                months: self.count,
                ns: 0,
            },
            TaosUnit::Year => TimeShift {
                months: self.count.checked_mul(12).ok_or_else(too_long)?,
                ns: 0,
            },
            unit => {
                let each = unit.ns().unwrap_or(1);
                TimeShift {
                    months: 0,
                    ns: self.count.checked_mul(each).ok_or_else(too_long)?,
                }
            }
        };
        Ok(shift)
    }

    /// The ticks of a duration of a fixed length.
    #[must_use]
    pub fn ticks(self, precision: TaosPrecision) -> Option<i64> {
        let ns = self.count.checked_mul(self.unit.ns()?)?;
        Some(precision.ticks(ns))
    }
}

impl fmt::Display for TaosDuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.count, char::from(self.unit.letter()))
    }
}

impl TimeShift {
    /// Both, one after the other.
    ///
    /// # Errors
    /// If the sum does not fit.
    pub fn plus(self, other: Self) -> TaosResult<Self> {
        let too_long = || TaosError::new(TaosCode::ValueOutOfRange);
        Ok(Self {
            months: self.months.checked_add(other.months).ok_or_else(too_long)?,
            ns: self.ns.checked_add(other.ns).ok_or_else(too_long)?,
        })
    }

    /// Backwards.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            months: self.months.saturating_neg(),
            ns: self.ns.saturating_neg(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_all_units() {
        for unit in TaosUnit::ALL {
            let text = format!("12{}", char::from(unit.letter()));
            let read = TaosDuration::from_text(&text).unwrap();
            assert_eq!((read.count, read.unit), (12, unit));
            assert_eq!(read.to_string(), text);
        }
        assert_eq!(TaosDuration::from_text("1x"), None);
        assert_eq!(TaosDuration::from_text("s"), None);
        assert_eq!(TaosDuration::from_text("99999999999999999999s"), None);
        let year = TaosDuration::from_text("2Y").unwrap().shift().unwrap();
        assert_eq!(year.months, 24);
        let long = TaosDuration::from_text("9223372036854775807w").unwrap();
        assert!(long.shift().is_err());
        let second = TaosDuration::from_text("1s").unwrap();
        assert_eq!(second.ticks(TaosPrecision::Micro), Some(1_000_000));
    }
}
