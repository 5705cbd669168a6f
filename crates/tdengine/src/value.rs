//! Values of INSERT and of tags, and what they are in a column of a type.

use crate::duration::TimeShift;
use crate::error::{TaosCode, TaosError, TaosResult};
use crate::precision::TaosPrecision;
use crate::time_text::{parse_time, shift_time, start_of_day};
use crate::types::TaosType;
use jiff::tz::TimeZone;
use std::borrow::Cow;

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosValue<'a> {
    /// `NULL`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A time from which a statement counts, and what is added to it: `now + 1s`.
    Moment(TaosMoment<'a>, TimeShift),
}

/// A time from which a statement counts.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosMoment<'a> {
    /// `now`
    Now,
    /// `today()`
    Today,
    /// Ticks.
    Ticks(i64),
    /// A text.
    Text(Cow<'a, str>),
}

/// What the times of a statement depend on.
#[derive(Clone, Debug)]
pub struct TimeSetting {
    /// The time of the statement, ns.
    pub now_ns: i64,
    /// What integers count.
    pub precision: TaosPrecision,
    /// The zone of texts without one.
    pub zone: TimeZone,
}

/// A value as a column holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredValue<'a> {
    /// None.
    Null,
    /// Of BOOL.
    Bool(bool),
    /// Of integers; within the range of the type.
    Integer(i128),
    /// Of floats.
    Float(f64),
    /// Of texts; not longer than the type allows.
    Text(Cow<'a, str>),
    /// Of VARBINARY and GEOMETRY.
    Bytes(Vec<u8>),
    /// A time, ns.
    Time(i64),
}

impl TaosValue<'_> {
    /// The same value, independent of the text of the statement.
    #[must_use]
    pub fn into_owned(self) -> TaosValue<'static> {
        match self {
            Self::Null => TaosValue::Null,
            Self::Bool(value) => TaosValue::Bool(value),
            Self::Integer(value) => TaosValue::Integer(value),
            Self::Float(value) => TaosValue::Float(value),
            Self::Text(text) => TaosValue::Text(Cow::Owned(text.into_owned())),
            Self::Moment(moment, shift) => TaosValue::Moment(moment.into_owned(), shift),
        }
    }
}

impl TaosMoment<'_> {
    fn into_owned(self) -> TaosMoment<'static> {
        match self {
            Self::Now => TaosMoment::Now,
            Self::Today => TaosMoment::Today,
            Self::Ticks(ticks) => TaosMoment::Ticks(ticks),
            Self::Text(text) => TaosMoment::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl Default for TimeSetting {
    fn default() -> Self {
        Self {
            now_ns: 0,
            precision: TaosPrecision::Milli,
            zone: TimeZone::UTC,
        }
    }
}

impl TimeSetting {
    /// The setting of a statement; a zone that nobody knows is UTC.
    #[must_use]
    pub fn in_zone(now_ns: i64, precision: TaosPrecision, zone: &str) -> Self {
        Self {
            now_ns,
            precision,
            zone: TimeZone::get(zone).unwrap_or(TimeZone::UTC),
        }
    }

    /// A time that a duration was added to, ns; months are those of the calendar.
    ///
    /// # Errors
    /// If it is beyond 64 bits of nanoseconds.
    pub fn shifted_ns(&self, time_ns: i64, shift: TimeShift) -> TaosResult<i64> {
        shift_time(time_ns, shift, &self.zone)
    }

    /// The month of a time in the zone: months since January of the year 0.
    #[must_use]
    pub fn month_of(&self, time_ns: i64) -> i64 {
        let time = jiff::Timestamp::from_nanosecond(time_ns.into()).unwrap_or_default();
        let date = time.to_zoned(self.zone.clone()).date();
        i64::from(date.year()) * 12 + i64::from(date.month()) - 1
    }

    /// The first moment of a month that [`TimeSetting::month_of`] gave, ns.
    #[must_use]
    pub fn month_start_ns(&self, month: i64) -> Option<i64> {
        let year = i16::try_from(month.div_euclid(12)).ok()?;
        let number = i8::try_from(month.rem_euclid(12) + 1).ok()?;
        let date = jiff::civil::Date::new(year, number, 1).ok()?;
        let start = date.to_zoned(self.zone.clone()).ok()?;
        i64::try_from(start.timestamp().as_nanosecond()).ok()
    }

    /// Nanoseconds that the zone's clocks are ahead of UTC at a time.
    #[must_use]
    pub fn zone_offset_ns(&self, time_ns: i64) -> i64 {
        let time = jiff::Timestamp::from_nanosecond(time_ns.into()).unwrap_or_default();
        i64::from(self.zone.to_offset(time).seconds()) * 1_000_000_000
    }

    /// Day of the month, of the week (Monday is 1) and of the year of a time in the zone.
    #[must_use]
    pub fn day_of(&self, time_ns: i64) -> (i64, i64, i64) {
        let time = jiff::Timestamp::from_nanosecond(time_ns.into()).unwrap_or_default();
        let date = time.to_zoned(self.zone.clone()).date();
        (
            i64::from(date.day()),
            i64::from(date.weekday().to_monday_one_offset()),
            i64::from(date.day_of_year()),
        )
    }

    /// The week of the year by ISO 8601.
    #[must_use]
    pub fn week_of(&self, time_ns: i64) -> i64 {
        let time = jiff::Timestamp::from_nanosecond(time_ns.into()).unwrap_or_default();
        let date = time.to_zoned(self.zone.clone()).date();
        i64::from(date.iso_week_date().week())
    }

    /// A moment, ns.
    ///
    /// # Errors
    /// If it is no time, or beyond 64 bits of nanoseconds.
    pub fn moment_ns(&self, moment: &TaosMoment<'_>, shift: TimeShift) -> TaosResult<i64> {
        let base = match moment {
            TaosMoment::Now => self.precision.truncate_ns(self.now_ns),
            TaosMoment::Today => start_of_day(self.now_ns, &self.zone),
            TaosMoment::Ticks(ticks) => self.ticks_ns(*ticks)?,
            TaosMoment::Text(text) => self.text_ns(text)?,
        };
        shift_time(base, shift, &self.zone).map(|time| self.precision.truncate_ns(time))
    }

    /// The time of a number of ticks, ns.
    ///
    /// # Errors
    /// If it is beyond 64 bits of nanoseconds.
    pub fn ticks_ns(&self, ticks: i64) -> TaosResult<i64> {
        let time = self.precision.to_ns(ticks);
        time.ok_or_else(|| {
            TaosError::with_message(TaosCode::ValueOutOfRange, "Timestamp data out of range")
        })
    }

    /// The time of a text, ns.
    ///
    /// # Errors
    /// If it is no time.
    pub fn text_ns(&self, text: &str) -> TaosResult<i64> {
        match parse_time(text, &self.zone) {
            Some(time) => Ok(self.precision.truncate_ns(time)),
            None => Err(TaosError::about(TaosCode::IncorrectTimestamp, text)),
        }
    }
}

/// What a value is in a column.
///
/// # Errors
/// If the column cannot hold it; the message names the column.
pub fn stored_value<'a>(
    value: &TaosValue<'a>,
    kind: TaosType,
    (setting, column): (&TimeSetting, &str),
) -> TaosResult<StoredValue<'a>> {
    let wrong = || TaosError::about(TaosCode::WrongValueType, column);
    if *value == TaosValue::Null {
        return Ok(StoredValue::Null);
    }
    if let Some((low, high)) = kind.integer_range() {
        let number = match value {
            TaosValue::Bool(value) => i128::from(*value),
            TaosValue::Integer(value) => *value,
            TaosValue::Float(value) => rounded(*value).ok_or_else(wrong)?,
            TaosValue::Text(text) => {
                let text = text.trim();
                let whole = text.parse().ok();
                let parts = || text.parse().ok().and_then(rounded);
                whole.or_else(parts).ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        };
        if !(low..=high).contains(&number) {
            return Err(TaosError::about(TaosCode::ValueOutOfRange, column));
        }
        return Ok(StoredValue::Integer(number));
    }
    match kind {
        TaosType::Bool => match value {
            TaosValue::Bool(value) => Ok(StoredValue::Bool(*value)),
            TaosValue::Integer(value) => Ok(StoredValue::Bool(*value != 0)),
            TaosValue::Float(value) => Ok(StoredValue::Bool(*value != 0.0)),
            TaosValue::Text(text) if text.eq_ignore_ascii_case("true") => {
                Ok(StoredValue::Bool(true))
            }
            TaosValue::Text(text) if text.eq_ignore_ascii_case("false") => {
                Ok(StoredValue::Bool(false))
            }
            _ => Err(wrong()),
        },
        TaosType::Float | TaosType::Double => {
            let number = match value {
                TaosValue::Bool(value) => f64::from(u8::from(*value)),
                TaosValue::Integer(value) => *value as f64,
                TaosValue::Float(value) => *value,
                TaosValue::Text(text) => text.trim().parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            };
            let is_single = kind == TaosType::Float;
            if !number.is_finite() || (is_single && !(number as f32).is_finite()) {
                return Err(TaosError::about(TaosCode::ValueOutOfRange, column));
            }
            Ok(StoredValue::Float(number))
        }
        TaosType::Timestamp => time_value(value, setting, &wrong).map(StoredValue::Time),
        TaosType::VarBinary(length) | TaosType::Geometry(length) => {
            let TaosValue::Text(text) = value else {
                return Err(wrong());
            };
            let bytes = binary(text).ok_or_else(wrong)?;
            fits(bytes.len(), length, column)?;
            Ok(StoredValue::Bytes(bytes))
        }
        _ => {
            let TaosValue::Text(text) = value else {
                return Err(wrong());
            };
            match kind {
                TaosType::VarChar(length) => fits(text.len(), length, column)?,
                TaosType::NChar(length) => fits(text.chars().count(), length, column)?,
                _ => {}
            }
            Ok(StoredValue::Text(text.clone()))
        }
    }
}

fn time_value(
    value: &TaosValue<'_>,
    setting: &TimeSetting,
    wrong: &dyn Fn() -> TaosError,
) -> TaosResult<i64> {
    match value {
        TaosValue::Integer(ticks) => {
            let ticks = i64::try_from(*ticks).map_err(|_| wrong())?;
            setting.ticks_ns(ticks)
        }
        TaosValue::Text(text) => match text.trim().parse() {
            Ok(ticks) => setting.ticks_ns(ticks),
            Err(_) => setting.text_ns(text),
        },
        TaosValue::Moment(moment, shift) => setting.moment_ns(moment, *shift),
        _ => Err(wrong()),
    }
}

fn fits(length: usize, most: u32, column: &str) -> TaosResult<()> {
    if u64::try_from(length).is_ok_and(|length| length <= u64::from(most)) {
        return Ok(());
    }
    Err(TaosError::about(TaosCode::ValueTooLong, column))
}

/// A float as the nearest integer.
fn rounded(value: f64) -> Option<i128> {
    (value.abs() < 2e19).then(|| value.round() as i128)
}

/// The bytes of a text: `\x` and hexadecimal digits, or the text itself.
fn binary(text: &str) -> Option<Vec<u8>> {
    let Some(digits) = text
        .strip_prefix("\\x")
        .or_else(|| text.strip_prefix("\\X"))
    else {
        return Some(text.as_bytes().to_vec());
    };
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| Some(digit(pair[0])? * 16 + digit(pair[1])?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> TimeSetting {
        TimeSetting {
            now_ns: 1_700_000_000_123_456_789,
            precision: TaosPrecision::Milli,
            zone: TimeZone::UTC,
        }
    }

    fn stored<'a>(value: &TaosValue<'a>, kind: TaosType) -> TaosResult<StoredValue<'a>> {
        stored_value(value, kind, (&setting(), "c"))
    }

    #[test]
    fn values_become_what_the_column_holds() {
        let text = |text: &'static str| TaosValue::Text(Cow::Borrowed(text));
        assert_eq!(
            stored(&TaosValue::Integer(127), TaosType::TinyInt),
            Ok(StoredValue::Integer(127))
        );
        let error = stored(&TaosValue::Integer(128), TaosType::TinyInt).unwrap_err();
        assert_eq!(error.code, TaosCode::ValueOutOfRange);
        assert_eq!(
            stored(&text("12"), TaosType::Int),
            Ok(StoredValue::Integer(12))
        );
        assert!(stored(&text("x"), TaosType::Int).is_err());
        assert_eq!(
            stored(&text("TRUE"), TaosType::Bool),
            Ok(StoredValue::Bool(true))
        );
        assert!(stored(&text("abc"), TaosType::VarChar(2)).is_err());
        assert!(stored(&text("日本"), TaosType::NChar(2)).is_ok());
        assert!(stored(&text("日本"), TaosType::VarChar(2)).is_err());
        let bytes = stored(&text("\\x0aFf"), TaosType::VarBinary(2));
        assert_eq!(bytes, Ok(StoredValue::Bytes(vec![10, 255])));
        assert!(stored(&text("\\x0"), TaosType::VarBinary(2)).is_err());
        assert!(stored(&TaosValue::Float(1e39), TaosType::Float).is_err());
        assert_eq!(
            stored(&TaosValue::Null, TaosType::Int),
            Ok(StoredValue::Null)
        );
        let second = TimeShift {
            months: 0,
            ns: 1_000_000_000,
        };
        let later = TaosValue::Moment(TaosMoment::Now, second);
        assert_eq!(
            stored(&later, TaosType::Timestamp),
            Ok(StoredValue::Time(1_700_000_001_123_000_000))
        );
        assert_eq!(
            stored(&TaosValue::Integer(5), TaosType::Timestamp),
            Ok(StoredValue::Time(5_000_000))
        );
        let error = stored(&text("soon"), TaosType::Timestamp).unwrap_err();
        assert_eq!(error.code, TaosCode::IncorrectTimestamp);
    }
}
