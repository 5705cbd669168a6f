//! Parses times in all formats that PostgreSQL reads.

use crate::error::TimeTextError;
use crate::fields::{TimeTextField, fields};
use crate::zones::{abbreviation, database_zone};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Disambiguation, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

/// The context for words such as `now` and for times without a zone.
#[derive(Clone, Debug)]
pub struct ReferenceClock {
    /// The time at which the statement began, if known.
    pub now: Option<Timestamp>,
    /// The session's zone.
    pub zone: TimeZone,
}

impl ReferenceClock {
    /// A clock at a time (ns since 1970), with a zone by its name.
    ///
    /// # Errors
    /// If the zone is unknown, or the time is after the year 9999.
    pub fn new(now_ns: i64, zone: &str) -> Result<Self, TimeTextError> {
        let now = Timestamp::from_nanosecond(i128::from(now_ns));
        let now =
            now.map_err(|error| TimeTextError::Range(now_ns.to_string(), error.to_string()))?;
        Ok(Self {
            now: Some(now),
            zone: zone_of(zone)?,
        })
    }
}

/// A parsed time.
#[derive(Clone, Debug)]
pub struct TimeText {
    /// Date and time on a wall clock.
    local: DateTime,
    /// The zone that the text names.
    zone: Option<TimeZone>,
}

impl TimeText {
    /// Parses a text.
    ///
    /// # Errors
    /// If it is not a valid time.
    pub fn parse(text: &str, clock: &ReferenceClock) -> Result<Self, TimeTextError> {
        let form = || TimeTextError::Form(text.to_owned());
        let mut reading = TimeTextReader::default();
        for field in fields(text).ok_or_else(form)? {
            reading.take(field).map_err(|wrong| wrong.in_text(text))?;
        }
        reading.finish(clock).map_err(|wrong| wrong.in_text(text))
    }

    /// Whether the text names a zone or an offset from UTC.
    pub fn has_zone(&self) -> bool {
        self.zone.is_some()
    }

    /// The wall-clock time, ns since 1970, whatever the zone: PostgreSQL's `timestamp`.
    ///
    /// # Errors
    /// If that is out of range: 1677 to 2262.
    pub fn local_ns(&self) -> Result<i64, TimeTextError> {
        ns_of(TimeZone::UTC.to_ambiguous_zoned(self.local))
    }

    /// The time in UTC, ns since 1970: PostgreSQL's `timestamptz`. A text without a zone uses the
    /// clock's. As in PostgreSQL, an hour that does not exist uses the offset before the change,
    /// and one that occurs twice uses the offset after it.
    ///
    /// # Errors
    /// If that is out of range: 1677 to 2262.
    pub fn utc_ns(&self, clock: &ReferenceClock) -> Result<i64, TimeTextError> {
        let zone = self.zone.as_ref().unwrap_or(&clock.zone);
        ns_of(zone.to_ambiguous_zoned(self.local))
    }
}

fn ns_of(time: jiff::tz::AmbiguousZoned) -> Result<i64, TimeTextError> {
    let range = |reason: &str| TimeTextError::Range(time.datetime().to_string(), reason.to_owned());
    let zoned = time.clone().disambiguate(Disambiguation::Later);
    let zoned = zoned.map_err(|error| range(&error.to_string()))?;
    i64::try_from(zoned.timestamp().as_nanosecond())
        .map_err(|_| range("times range from the year 1677 to 2262"))
}

/// A zone by its name, its usual abbreviation, or its offset from UTC.
///
/// # Errors
/// If there is no such zone.
pub fn zone_of(name: &str) -> Result<TimeZone, TimeTextError> {
    let unknown = || TimeTextError::Zone(name.to_owned());
    if let Some(zone) = abbreviation(name) {
        return Ok(zone);
    }
    if name.starts_with(['+', '-']) {
        let offset = offset_of(name).ok_or_else(unknown)?;
        return Ok(TimeZone::fixed(offset));
    }
    database_zone(name).ok_or_else(unknown)
}

/// `+02`, `+0230`, `-02:30`, `+02:30:15`.
fn offset_of(text: &str) -> Option<Offset> {
    let (sign, digits) = text.split_at(1);
    let parts: Vec<&str> = digits.split(':').collect();
    let number = |part: &str| -> Option<i32> {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { part.parse().ok() } else { None }
    };
    let (hours, minutes, seconds) = match parts[..] {
        [all] if all.len() <= 2 => (number(all)?, 0, 0),
        [all] if all.len() <= 4 => {
            let all = number(all)?;
            (all / 100, all % 100, 0)
        }
        [all] if all.len() == 6 => {
            let all = number(all)?;
            (all / 10_000, all / 100 % 100, all % 100)
        }
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return None,
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return None;
    }
    let all = hours * 3600 + minutes * 60 + seconds;
    Offset::from_seconds(if sign == "-" { -all } else { all }).ok()
}

/// What is wrong with a text, without the text itself.
#[derive(Debug)]
enum TimeTextProblem {
    Form,
    Moment,
    Range(String),
    Zone(String),
}

impl TimeTextProblem {
    fn in_text(self, text: &str) -> TimeTextError {
        match self {
            Self::Form => TimeTextError::Form(text.to_owned()),
            Self::Moment => TimeTextError::Moment(text.to_owned()),
            Self::Range(reason) => TimeTextError::Range(text.to_owned(), reason),
            Self::Zone(zone) => TimeTextError::Zone(zone),
        }
    }
}

/// Words for a day or a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SpecialTime {
    Epoch,
    Now,
    /// Midnight of a day, counted from today.
    Day(i64),
}

/// What has been read so far.
#[derive(Debug, Default)]
struct TimeTextReader {
    year: Option<i32>,
    month: Option<i32>,
    day: Option<i32>,
    /// Numbers of a date whose order is still unknown.
    numbers: Vec<String>,
    day_of_year: Option<i32>,
    /// Hours, minutes, seconds and ns.
    time: Option<(i32, i32, i32, i32)>,
    is_afternoon: Option<bool>,
    is_bc: bool,
    special: Option<SpecialTime>,
    zone: Option<TimeZone>,
    after_t: bool,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// The index of a name, from 0; at least three of its letters suffice.
fn named(names: &[&str], word: &str) -> Option<usize> {
    if word == "sept" {
        return (names.len() == 12).then_some(8);
    }
    let is_it = |name: &&str| word.len() == 3 && name.starts_with(word) || **name == *word;
    names.iter().position(is_it)
}

impl TimeTextReader {
    fn take(&mut self, field: TimeTextField) -> Result<(), TimeTextProblem> {
        match field {
            TimeTextField::Time(text) => self.clock_time(&text),
            TimeTextField::Date(text)
                if text.contains('/') && text.starts_with(char::is_alphabetic) =>
            {
                self.named_zone(&text)
            }
            TimeTextField::Date(text) => self.date(&text),
            TimeTextField::Offset(text) => {
                let offset = offset_of(&text).ok_or(TimeTextProblem::Zone(text))?;
                self.set_zone(TimeZone::fixed(offset))
            }
            TimeTextField::Number(text) => self.number(text),
            TimeTextField::Word(word) => self.word(&word),
        }
    }

    fn set_zone(&mut self, zone: TimeZone) -> Result<(), TimeTextProblem> {
        match self.zone.replace(zone) {
            // "UTC+2" is not "UTC" and "+2", which has the opposite sign.
            Some(_) => Err(TimeTextProblem::Form),
            None => Ok(()),
        }
    }

    fn named_zone(&mut self, name: &str) -> Result<(), TimeTextProblem> {
        let zone = zone_of(name).map_err(|_| TimeTextProblem::Zone(name.to_owned()))?;
        self.set_zone(zone)
    }

    fn word(&mut self, word: &str) -> Result<(), TimeTextProblem> {
        if word == "t" {
            self.after_t = true;
            return Ok(());
        }
        if let Some(month) = named(&MONTHS, word) {
            return set(&mut self.month, month as i32 + 1);
        }
        if named(&DAYS, word).is_some() || ["tues", "wednes", "thur", "thurs"].contains(&word) {
            return Ok(());
        }
        let special = match word {
            "am" | "pm" => return set(&mut self.is_afternoon, word == "pm"),
            "bc" => {
                self.is_bc = true;
                return Ok(());
            }
            "allballs" => {
                self.set_zone(TimeZone::UTC)?;
                return set(&mut self.time, (0, 0, 0, 0));
            }
            "epoch" => SpecialTime::Epoch,
            "now" => SpecialTime::Now,
            "today" => SpecialTime::Day(0),
            "tomorrow" => SpecialTime::Day(1),
            "yesterday" => SpecialTime::Day(-1),
            "ad" | "at" | "on" | "dst" => return Ok(()),
            // An unknown word makes the text invalid; it does not count as an unknown zone.
            _ => return self.named_zone(word).map_err(|_| TimeTextProblem::Form),
        };
        set(&mut self.special, special)
    }

    fn clock_time(&mut self, text: &str) -> Result<(), TimeTextProblem> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let parts: Vec<&str> = whole.split(':').collect();
        let mut numbers = [0; 3];
        if parts.len() < 2 || parts.len() > 3 || !fraction.is_empty() && parts.len() < 3 {
            return Err(TimeTextProblem::Form);
        }
        for (number, part) in numbers.iter_mut().zip(&parts) {
            *number = digits(part)?;
        }
        let [hours, minutes, seconds] = numbers;
        set(&mut self.time, (hours, minutes, seconds, nanos(fraction)?))
    }

    /// A time of digits without a colon: 101530.5.
    fn digits_of_time(&mut self, text: &str) -> Result<(), TimeTextProblem> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let all = digits(whole)?;
        let time = match whole.len() {
            4 => (all / 100, all % 100, 0),
            6 => (all / 10_000, all / 100 % 100, all % 100),
            _ => return Err(TimeTextProblem::Form),
        };
        set(&mut self.time, (time.0, time.1, time.2, nanos(fraction)?))
    }

    fn number(&mut self, text: String) -> Result<(), TimeTextProblem> {
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        if self.after_t || self.has_whole_date() {
            return self.digits_of_time(&text);
        }
        match (whole.len(), fraction.is_empty()) {
            (8, true) => {
                let all = digits(whole)?;
                set(&mut self.year, all / 10_000)?;
                set(&mut self.month, all / 100 % 100)?;
                set(&mut self.day, all % 100)
            }
            (4, false) if fraction.len() == 3 => {
                set(&mut self.year, digits(whole)?)?;
                set(&mut self.day_of_year, digits(fraction)?)
            }
            (1..=4, true) => {
                self.numbers.push(text);
                Ok(())
            }
            _ => Err(TimeTextProblem::Form),
        }
    }

    fn has_whole_date(&self) -> bool {
        let named = [self.year, self.month, self.day];
        let known = named.iter().flatten().count() + self.numbers.len();
        known >= 3 || self.day_of_year.is_some()
    }

    /// Numbers, and possibly a month name, with marks between them.
    fn date(&mut self, text: &str) -> Result<(), TimeTextProblem> {
        if let Some((time, offset)) = text.split_once('-')
            && (self.after_t || self.has_whole_date())
        {
            self.digits_of_time(time)?;
            return self.take(TimeTextField::Offset(format!("-{offset}")));
        }
        let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
        let month_at = parts
            .iter()
            .position(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()));
        if let Some(at) = month_at {
            let month = named(&MONTHS, parts[at]).ok_or(TimeTextProblem::Form)?;
            set(&mut self.month, month as i32 + 1)?;
        }
        let numbers = parts.iter().enumerate();
        let numbers = numbers.filter(|(at, _)| Some(*at) != month_at);
        let numbers: Vec<String> = numbers.map(|(_, part)| (*part).to_owned()).collect();
        if parts.len() != 3 {
            return Err(TimeTextProblem::Form);
        }
        self.numbers.extend(numbers);
        Ok(())
    }

    /// Identifies year, month and day among the numbers: the year has three digits or more, or
    /// comes last if no number has; the month comes before the day.
    fn place_numbers(&mut self) -> Result<(), TimeTextProblem> {
        let numbers = std::mem::take(&mut self.numbers);
        let mut rest = Vec::new();
        for number in &numbers {
            if number.len() >= 3 && self.year.is_none() {
                self.year = Some(digits(number)?);
            } else {
                rest.push(number);
            }
        }
        let mut rest = rest.into_iter();
        if self.month.is_none() {
            let month = rest.next().ok_or(TimeTextProblem::Form)?;
            self.month = Some(digits(month)?);
        }
        if self.day.is_none() {
            let day = rest.next().ok_or(TimeTextProblem::Form)?;
            self.day = Some(digits(day)?);
        }
        if self.year.is_none() {
            let year = digits(rest.next().ok_or(TimeTextProblem::Form)?)?;
            // As in PostgreSQL, for two digits.
            self.year = Some(if year < 70 { 2000 + year } else { 1900 + year });
        }
        match rest.next() {
            Some(_) => Err(TimeTextProblem::Form),
            None => Ok(()),
        }
    }

    fn finish(mut self, clock: &ReferenceClock) -> Result<TimeText, TimeTextProblem> {
        if let Some(special) = self.special {
            return self.moment(special, clock);
        }
        let has_date = self.year.is_some() || self.month.is_some() || !self.numbers.is_empty();
        if !has_date || self.after_t && self.time.is_none() {
            return Err(TimeTextProblem::Form);
        }
        let date = match self.day_of_year {
            Some(day) => self.date_of_year(day)?,
            None => {
                if self.year.is_none() || self.month.is_none() || self.day.is_none() {
                    self.place_numbers()?;
                } else if !self.numbers.is_empty() {
                    return Err(TimeTextProblem::Form);
                }
                self.calendar_date()?
            }
        };
        Ok(TimeText {
            local: self.at_time(date)?,
            zone: self.zone,
        })
    }

    fn moment(
        self,
        special: SpecialTime,
        clock: &ReferenceClock,
    ) -> Result<TimeText, TimeTextProblem> {
        let has_date = self.year.is_some() || self.month.is_some() || !self.numbers.is_empty();
        if has_date {
            return Err(TimeTextProblem::Form);
        }
        let zone = self.zone.clone().unwrap_or_else(|| clock.zone.clone());
        let local = match special {
            SpecialTime::Epoch | SpecialTime::Now if self.time.is_some() => {
                return Err(TimeTextProblem::Form);
            }
            SpecialTime::Epoch => {
                return Ok(TimeText {
                    local: DateTime::constant(1970, 1, 1, 0, 0, 0, 0),
                    zone: Some(TimeZone::UTC),
                });
            }
            SpecialTime::Now => {
                let now = Zoned::new(clock.now.ok_or(TimeTextProblem::Moment)?, zone.clone());
                return Ok(TimeText {
                    local: now.datetime(),
                    zone: Some(TimeZone::fixed(now.offset())),
                });
            }
            SpecialTime::Day(days) => {
                let now = clock.now.ok_or(TimeTextProblem::Moment)?;
                let today = now.to_zoned(zone).date();
                let day = today.checked_add(SignedDuration::from_hours(24 * days));
                self.at_time(day.map_err(|error| TimeTextProblem::Range(error.to_string()))?)?
            }
        };
        Ok(TimeText {
            local,
            zone: self.zone,
        })
    }

    fn checked_year(&self) -> Result<i16, TimeTextProblem> {
        let year = self.year.ok_or(TimeTextProblem::Form)?;
        let year = if self.is_bc { 1 - year } else { year };
        i16::try_from(year)
            .map_err(|_| TimeTextProblem::Range(format!("the year {year} is out of range")))
    }

    fn date_of_year(&self, day: i32) -> Result<Date, TimeTextProblem> {
        let year = self.checked_year()?;
        let first =
            Date::new(year, 1, 1).map_err(|error| TimeTextProblem::Range(error.to_string()))?;
        if day < 1 || day > i32::from(first.days_in_year()) {
            return Err(TimeTextProblem::Range(format!(
                "the year {year} has no day {day}"
            )));
        }
        let within = SignedDuration::from_hours(24 * i64::from(day - 1));
        first
            .checked_add(within)
            .map_err(|error| TimeTextProblem::Range(error.to_string()))
    }

    fn calendar_date(&self) -> Result<Date, TimeTextProblem> {
        let year = self.checked_year()?;
        let (month, day) = (self.month.unwrap_or(0), self.day.unwrap_or(0));
        let none = |what: String| TimeTextProblem::Range(format!("there is no {what}"));
        let month = i8::try_from(month).map_err(|_| none(format!("month {month}")))?;
        if !(1..=12).contains(&month) {
            return Err(none(format!("month {month}")));
        }
        let day = i8::try_from(day).map_err(|_| none(format!("day {day}")))?;
        Date::new(year, month, day)
            .map_err(|_| none(format!("day {day} in month {month} of {year}")))
    }

    /// The clock time on a date; 24:00 and second 60 roll over to what follows.
    fn at_time(&self, date: Date) -> Result<DateTime, TimeTextProblem> {
        let (hours, minutes, seconds, nanos) = self.time.unwrap_or((0, 0, 0, 0));
        let none = |what: String| TimeTextProblem::Range(format!("there is no {what}"));
        let hours = match self.is_afternoon {
            None => hours,
            Some(_) if self.time.is_none() || hours > 12 => {
                return Err(none(format!("hour {hours} AM or PM")));
            }
            Some(is_afternoon) => hours % 12 + if is_afternoon { 12 } else { 0 },
        };
        let is_midnight = hours == 24 && (minutes, seconds, nanos) == (0, 0, 0);
        if hours > 23 && !is_midnight || minutes > 59 || seconds > 60 {
            return Err(none(format!("time {hours}:{minutes:02}:{seconds:02}")));
        }
        let since = i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds);
        let midnight = date.to_datetime(Time::midnight());
        midnight
            .checked_add(SignedDuration::new(since, nanos))
            .map_err(|error| TimeTextProblem::Range(error.to_string()))
    }
}

fn set<T>(place: &mut Option<T>, value: T) -> Result<(), TimeTextProblem> {
    match place.replace(value) {
        Some(_) => Err(TimeTextProblem::Form),
        None => Ok(()),
    }
}

fn digits(text: &str) -> Result<i32, TimeTextProblem> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number.ok_or(TimeTextProblem::Form)
}

/// The digits after the point of a second, as ns; PostgreSQL keeps six of them, this crate keeps
/// nine.
fn nanos(fraction: &str) -> Result<i32, TimeTextProblem> {
    if fraction.is_empty() {
        return Ok(0);
    }
    let nine: String = fraction
        .chars()
        .chain(std::iter::repeat('0'))
        .take(9)
        .collect();
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TimeTextProblem::Form);
    }
    digits(&nine)
}
