//! `to_timestamp(text, pattern)` and `to_date(text, pattern)`: times read with the patterns of
//! `to_char`.

use crate::to_char::{MONTHS, PatternField, PatternPart, ROMAN, TimePattern};
use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};

/// Why a text is not the time that a pattern describes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternTimeError {
    /// The text has something else in the place of a field (SQLSTATE `22007`).
    #[error("invalid value \"{0}\" for \"{1}\"")]
    Value(String, &'static str),
    /// The hour does not suit `HH12` (`22007`).
    #[error("hour \"{0}\" is invalid for the 12-hour clock")]
    HalfDay(i64),
    /// There is no such time (`22008`).
    #[error("date/time field value out of range: \"{0}\"")]
    Range(String),
    /// A field that only `to_char` knows (`0A000`).
    #[error("formatting field \"{0}\" is only supported in to_char")]
    OnlyWritten(&'static str),
}

impl PatternTimeError {
    /// Its SQLSTATE.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Value(..) | Self::HalfDay(_) => "22007",
            Self::Range(_) => "22008",
            Self::OnlyWritten(_) => "0A000",
        }
    }
}

/// A time as a text tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternTime {
    /// What the clocks show.
    pub civil: DateTime,
    /// The seconds from UTC to the east, if the text names them.
    pub offset: Option<i32>,
}

/// Reads a time.
///
/// # Errors
/// If the text does not suit the pattern, or there is no such time.
pub fn time_from_pattern(
    text: &str,
    pattern: &TimePattern,
) -> Result<PatternTime, PatternTimeError> {
    let mut reader = PatternReader {
        rest: text.trim_start(),
        surplus: 0,
        passed: None,
        fields: ReadFields::default(),
    };
    for (at, part) in pattern.parts.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        match part {
            PatternPart::Text(text) => text.chars().for_each(|c| reader.pass(c)),
            PatternPart::Field {
                field,
                is_short,
                ordinal,
            } => {
                let is_free = *is_short
                    || ordinal.is_some()
                    || match pattern.parts.get(at + 1) {
                        None => true,
                        Some(PatternPart::Text(text)) => {
                            !text.starts_with(|c: char| c.is_ascii_digit())
                        }
                        Some(PatternPart::Field { field, .. }) => !field.begins_with_digit(),
                    };
                reader.read(*field, is_free)?;
                if ordinal.is_some() {
                    let letters = reader.rest.char_indices().nth(2);
                    let end = letters.map_or(reader.rest.len(), |(at, _)| at);
                    reader.rest = &reader.rest[end..];
                }
            }
        }
    }
    reader.fields.time(text)
}

/// What was read.
#[derive(Debug, Default)]
struct ReadFields {
    year: Option<i64>,
    /// The digits that the pattern's year has.
    year_digits: usize,
    century: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week_of_month: Option<i64>,
    week_of_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    is_iso: bool,
    julian: Option<i64>,
    hour: i64,
    is_half_day: bool,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    second_of_day: Option<i64>,
    nanosecond: i64,
    is_before_christ: bool,
    offset_sign: i64,
    offset_hours: Option<i64>,
    offset_minutes: i64,
}

struct PatternReader<'a> {
    rest: &'a str,
    /// Separators that were passed beyond those that the pattern has.
    surplus: i64,
    /// The last separator that a mark of the pattern passed.
    passed: Option<char>,
    fields: ReadFields,
}

impl PatternReader<'_> {
    /// Passes a character of the pattern that is no field: a separator passes any separator or
    /// nothing, another character passes one character.
    fn pass(&mut self, mark: char) {
        let Some(c) = self.rest.chars().next() else {
            return;
        };
        if mark.is_alphanumeric() {
            if self.surplus > 0 {
                self.surplus -= 1;
            } else {
                self.rest = &self.rest[c.len_utf8()..];
            }
        } else if c.is_alphanumeric() {
            self.surplus -= 1;
        } else {
            self.passed = Some(c);
            self.rest = &self.rest[c.len_utf8()..];
        }
    }

    /// Passes the blanks around a field.
    fn pass_blanks(&mut self) {
        let trimmed = self.rest.trim_start();
        self.surplus += self.rest[..self.rest.len() - trimmed.len()].chars().count() as i64;
        self.rest = trimmed;
    }

    /// A number of at most `width` digits, or of as many as there are.
    fn number(
        &mut self,
        name: &'static str,
        width: usize,
        is_free: bool,
    ) -> Result<(i64, usize), PatternTimeError> {
        let text = self.rest;
        let shown = || text.chars().take(width).collect::<String>();
        let sign = usize::from(text.starts_with(['-', '+']));
        let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let length = if is_free {
            sign + digits
        } else {
            (sign + digits).min(width)
        };
        // Longer numbers are out of every range.
        let value = text[..length].parse::<i64>();
        let value = value.ok().filter(|value| value.abs() < 1_000_000_000);
        let value = value.ok_or_else(|| PatternTimeError::Value(shown(), name))?;
        self.rest = &text[length..];
        Ok((value, length))
    }

    /// The place in a list of the name with which the rest begins.
    fn name<'n>(
        &mut self,
        field: &'static str,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<usize, PatternTimeError> {
        let mut longest: Option<(usize, usize)> = None;
        for (at, name) in names.enumerate() {
            let head = self.rest.get(..name.len());
            if head.is_some_and(|head| head.eq_ignore_ascii_case(name))
                && longest.is_none_or(|(_, length)| length < name.len())
            {
                longest = Some((at, name.len()));
            }
        }
        let Some((at, length)) = longest else {
            let word = self.rest.split(' ').next().unwrap_or_default();
            return Err(PatternTimeError::Value(word.to_owned(), field));
        };
        self.rest = &self.rest[length..];
        Ok(at)
    }

    fn read(&mut self, field: PatternField, is_free: bool) -> Result<(), PatternTimeError> {
        self.pass_blanks();
        if self.rest.is_empty() {
            return Ok(());
        }
        self.surplus = 0;
        self.read_field(field, is_free)?;
        self.passed = None;
        self.pass_blanks();
        Ok(())
    }

    fn read_field(&mut self, field: PatternField, is_free: bool) -> Result<(), PatternTimeError> {
        match field {
            PatternField::Hour12 => {
                self.fields.hour = self.number("HH12", 2, is_free)?.0;
                self.fields.is_half_day = true;
            }
            PatternField::Hour24 => self.fields.hour = self.number("HH24", 2, is_free)?.0,
            PatternField::Minute => self.fields.minute = self.number("MI", 2, is_free)?.0,
            PatternField::Second => self.fields.second = self.number("SS", 2, is_free)?.0,
            PatternField::Fraction(width) => {
                let (value, length) = self.number("FF", width, is_free)?;
                let scale = 9_u32.saturating_sub(u32::try_from(length).unwrap_or(9));
                self.fields.nanosecond = value * 10_i64.pow(scale);
            }
            PatternField::SecondOfDay => {
                self.fields.second_of_day = Some(self.number("SSSS", 5, is_free)?.0);
            }
            PatternField::Meridiem(..) => {
                let at = self.name("AM", ["am", "a.m.", "pm", "p.m."].into_iter())?;
                self.fields.is_afternoon = Some(at > 1);
                self.fields.is_half_day = true;
            }
            PatternField::Era(..) => {
                let at = self.name("AD", ["ad", "a.d.", "bc", "b.c."].into_iter())?;
                self.fields.is_before_christ = at > 1;
            }
            PatternField::MonthName(_) | PatternField::MonthShort(_) => {
                let short = MONTHS.iter().map(|name| &name[..3]);
                let at = self.name("MONTH", MONTHS.iter().copied().chain(short))?;
                self.fields.month = Some(at as i64 % 12 + 1);
            }
            PatternField::MonthRoman(_) => {
                self.fields.month = Some(self.name("RM", ROMAN.iter().copied())? as i64 + 1);
            }
            PatternField::DayName(_) | PatternField::DayShort(_) => {
                let short = DAYS.iter().map(|name| &name[..3]);
                self.name("DAY", DAYS.iter().copied().chain(short))?;
            }
            PatternField::Zone(_) => return Err(PatternTimeError::OnlyWritten("TZ")),
            PatternField::Offset => return Err(PatternTimeError::OnlyWritten("OF")),
            PatternField::ZoneHours => {
                // A mark of the pattern may have passed the sign.
                let is_signed = self.rest.starts_with(['-', '+']);
                let is_west = self.rest.starts_with('-') || !is_signed && self.passed == Some('-');
                self.fields.offset_sign = if is_west { -1 } else { 1 };
                self.rest = self.rest.trim_start_matches(['-', '+']);
                self.fields.offset_hours = Some(self.number("TZH", 2, is_free)?.0);
            }
            PatternField::ZoneMinutes => {
                self.fields.offset_minutes = self.number("TZM", 2, is_free)?.0;
            }
            _ => return self.read_date(field, is_free),
        }
        Ok(())
    }

    /// Reads a field that is a number of a date.
    fn read_date(&mut self, field: PatternField, is_free: bool) -> Result<(), PatternTimeError> {
        match field {
            PatternField::Year(digits) | PatternField::IsoYear(digits) => {
                let name = ["Y", "YY", "YYY", "YYYY"][digits.clamp(1, 4) - 1];
                let (year, length) = self.number(name, digits, is_free)?;
                let is_partial = digits < 4 && length <= digits;
                self.fields.year = Some(if is_partial { near_2020(year) } else { year });
                self.fields.year_digits = digits;
                self.fields.is_iso |= matches!(field, PatternField::IsoYear(_));
            }
            PatternField::YearComma => {
                let thousands = self.number("Y,YYY", 9, true)?.0;
                self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
                let rest = self.number("Y,YYY", 3, false)?.0;
                self.fields.year = Some(thousands.saturating_mul(1000).saturating_add(rest));
                self.fields.year_digits = 4;
            }
            PatternField::Century => self.fields.century = Some(self.number("CC", 2, is_free)?.0),
            PatternField::Month => self.fields.month = Some(self.number("MM", 2, is_free)?.0),
            PatternField::Day => self.fields.day = Some(self.number("DD", 2, is_free)?.0),
            PatternField::DayOfYear => {
                self.fields.day_of_year = Some(self.number("DDD", 3, is_free)?.0);
            }
            PatternField::IsoDayOfYear => {
                self.fields.day_of_year = Some(self.number("IDDD", 3, is_free)?.0);
                self.fields.is_iso = true;
            }
            PatternField::WeekOfMonth => {
                self.fields.week_of_month = Some(self.number("W", 1, is_free)?.0);
            }
            PatternField::WeekOfYear => {
                self.fields.week_of_year = Some(self.number("WW", 2, is_free)?.0);
            }
            PatternField::IsoWeek => {
                self.fields.iso_week = Some(self.number("IW", 2, is_free)?.0);
                self.fields.is_iso = true;
            }
            PatternField::IsoWeekDay => {
                self.fields.iso_day = Some(self.number("ID", 1, is_free)?.0);
                self.fields.is_iso = true;
            }
            PatternField::Julian => self.fields.julian = Some(self.number("J", 9, true)?.0),
            // These are read and ignored.
            PatternField::Quarter => drop(self.number("Q", 1, is_free)?),
            PatternField::WeekDay => drop(self.number("D", 1, is_free)?),
            _ => {}
        }
        Ok(())
    }
}

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// The year with these last digits that is nearest to 2020.
fn near_2020(year: i64) -> i64 {
    match year {
        0..70 | 100..520 => year + 2000,
        70..100 => year + 1900,
        520..1000 => year + 1000,
        other => other,
    }
}

/// Days from noon before 4714-11-24 BC to 1970-01-01.
const JULIAN_1970: i64 = 2_440_588;

impl ReadFields {
    /// The year, as astronomers count: 0 is 1 BC.
    fn astronomical_year(&self) -> i64 {
        let year = match (self.century, self.year) {
            (Some(century), Some(year)) if self.year_digits < 4 => {
                (century - 1) * 100 + year.rem_euclid(100)
            }
            (Some(century), None) => (century - 1) * 100 + 1,
            (_, year) => year.unwrap_or(0),
        };
        if self.is_before_christ && year > 0 {
            1 - year
        } else if year < 0 {
            // The year -1 is 1 BC.
            year + 1
        } else {
            year
        }
    }

    fn date(&self) -> Option<Date> {
        let year = i16::try_from(self.astronomical_year()).ok()?;
        if let Some(julian) = self.julian {
            let days = jiff::Span::new().try_days(julian - JULIAN_1970).ok()?;
            return jiff::civil::date(1970, 1, 1).checked_add(days).ok();
        }
        if self.is_iso {
            let week = self.iso_week.unwrap_or(1);
            let day = self.iso_day.unwrap_or(1);
            let day = Weekday::from_monday_one_offset(i8::try_from(day).ok()?).ok()?;
            let week = i8::try_from(week).ok()?;
            let first = ISOWeekDate::new(year, week, day).ok()?.date();
            let more = self.day_of_year.map_or(0, |day| day - 1);
            let more = jiff::Span::new().try_days(more).ok()?;
            return first.checked_add(more).ok();
        }
        // A zero stands for a field that is not given.
        let given = |field: Option<i64>| field.filter(|value| *value != 0);
        let from_first = |days: i64, first: Date| {
            let days = jiff::Span::new().try_days(days).ok()?;
            first.checked_add(days).ok()
        };
        let months_first = |month: i64| Date::new(year, i8::try_from(month).ok()?, 1).ok();
        if let Some(day) = given(self.day_of_year)
            && given(self.month).is_none()
            && given(self.day).is_none()
        {
            let in_year = Date::new(year, 1, 1).ok()?;
            let last = i64::from(in_year.days_in_year());
            return (1..=last)
                .contains(&day)
                .then(|| from_first(day - 1, in_year))?;
        }
        if let Some(week) = given(self.week_of_year) {
            return from_first((week - 1) * 7, Date::new(year, 1, 1).ok()?);
        }
        let month = given(self.month).unwrap_or(1);
        if let Some(week) = given(self.week_of_month) {
            return from_first((week - 1) * 7, months_first(month)?);
        }
        let day = i8::try_from(given(self.day).unwrap_or(1)).ok()?;
        Date::new(year, i8::try_from(month).ok()?, day).ok()
    }

    fn clock(&self) -> Option<Time> {
        let (hour, minute, second) = match self.second_of_day {
            Some(all) if all >= 0 => (all / 3600, all / 60 % 60, all % 60),
            Some(_) => return None,
            None => (self.hour, self.minute, self.second),
        };
        let hour = match self.is_afternoon {
            Some(true) if self.second_of_day.is_none() && hour < 12 => hour + 12,
            Some(false) if self.second_of_day.is_none() && hour == 12 => 0,
            _ => hour,
        };
        Time::new(
            i8::try_from(hour).ok()?,
            i8::try_from(minute).ok()?,
            i8::try_from(second).ok()?,
            i32::try_from(self.nanosecond).ok()?,
        )
        .ok()
    }

    fn time(&self, text: &str) -> Result<PatternTime, PatternTimeError> {
        if self.is_half_day && self.second_of_day.is_none() && !(1..=12).contains(&self.hour) {
            return Err(PatternTimeError::HalfDay(self.hour));
        }
        let range = || PatternTimeError::Range(text.to_owned());
        let (date, clock) = self.date().zip(self.clock()).ok_or_else(range)?;
        let offset = match self.offset_hours {
            Some(hours) if (0..=15).contains(&hours) && (0..60).contains(&self.offset_minutes) => {
                let seconds = self.offset_sign * (hours * 3600 + self.offset_minutes * 60);
                Some(i32::try_from(seconds).map_err(|_| range())?)
            }
            Some(_) => return Err(range()),
            None => None,
        };
        Ok(PatternTime {
            civil: date.to_datetime(clock),
            offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are PostgreSQL 15's, with `!` and the SQLSTATE before an error; those of the years
    /// before 1 are left out, because Marigram has no such times.
    #[test]
    fn times_are_read_as_postgresql_reads_them() {
        let mut wrong = Vec::new();
        for line in include_str!("../tests/golden/to_timestamp.tsv").lines() {
            let [text, pattern, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let read = time_from_pattern(text, &TimePattern::parse(pattern));
            let found = match read {
                Ok(time) => {
                    let seconds = i64::from(time.offset.unwrap_or(0));
                    let utc = time.civil - jiff::SignedDuration::from_secs(seconds);
                    format!("{}+00", utc.to_string().replace('T', " "))
                }
                Err(error) => format!("!{}", error.sqlstate()),
            };
            let expected = match expected.split_once(':') {
                Some((state, _)) if expected.starts_with('!') => state,
                _ => expected,
            };
            if found != expected {
                wrong.push(format!("{text:?} {pattern:?}: {found}, not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
