//! Time zones in the formats that PostgreSQL reads, and the clock of a zone.
//!
//! `AT TIME ZONE` takes abbreviations, names and POSIX notation; `SET TIME ZONE` also takes numbers
//! of hours. In POSIX notation, which includes `+02` and `UTC+2`, a positive offset is west of UTC.

use crate::abbreviations::{ZoneAbbreviation, abbreviated};
use crate::error::TimeTextError;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Disambiguation, Offset, TimeZone};
use std::fmt::Write as _;

const SECOND_NS: i64 = 1_000_000_000;
const HOUR_S: i32 = 3600;
/// Default rules for a zone that has daylight saving time but no rules: those of the United States.
const USUAL_RULES: &str = "M3.2.0,M11.1.0";
/// Largest offset of a zone, in hours.
const HOURS_MAX: f64 = 168.0;

fn unknown(name: &str) -> TimeTextError {
    TimeTextError::Zone(name.to_owned())
}

/// The zone that a text means in `AT TIME ZONE`.
///
/// # Errors
/// If there is no such zone.
pub fn named_zone(name: &str) -> Result<TimeZone, TimeTextError> {
    abbreviation(name)
        .or_else(|| database_zone(name))
        .or_else(|| posix_zone(name))
        .ok_or_else(|| unknown(name))
}

/// The zone of a session from the argument of `SET TIME ZONE`, and its name from then on.
///
/// # Errors
/// If there is no such zone.
pub fn session_zone(text: &str) -> Result<(String, TimeZone), TimeTextError> {
    if let Ok(hours) = text.trim().parse::<f64>() {
        let seconds = (hours * f64::from(HOUR_S)).round();
        let is_one = hours.abs() < HOURS_MAX && !text.contains(['n', 'N', 'i', 'I']);
        let zone = is_one.then(|| fixed(seconds as i32)).flatten();
        let zone = zone.ok_or_else(|| unknown(text))?;
        return Ok((fixed_name(seconds as i32), zone));
    }
    if let Some(zone) = database_zone(text) {
        let name = match zone.iana_name() {
            Some(name) => name.to_owned(),
            None => "UTC".to_owned(),
        };
        return Ok((name, zone));
    }
    let zone = posix_zone(text).ok_or_else(|| unknown(text))?;
    Ok((text.to_owned(), zone))
}

/// A zone with a fixed offset from UTC in seconds, and its name.
///
/// # Errors
/// If the offset is too large.
pub fn zone_of_seconds(seconds: i64) -> Result<(String, TimeZone), TimeTextError> {
    let bad = || unknown(&format!("{seconds} seconds"));
    let seconds = i32::try_from(seconds).map_err(|_| bad())?;
    Ok((fixed_name(seconds), fixed(seconds).ok_or_else(bad)?))
}

fn fixed(seconds: i32) -> Option<TimeZone> {
    Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}

/// PostgreSQL's name for a zone that is a number of hours: `<+02>-02`.
fn fixed_name(seconds: i32) -> String {
    let part = |negative: bool| {
        let sign = if negative { '-' } else { '+' };
        let all = seconds.unsigned_abs();
        let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
        match (minutes, seconds) {
            (0, 0) => format!("{sign}{hours:02}"),
            (_, 0) => format!("{sign}{hours:02}:{minutes:02}"),
            _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
        }
    };
    format!("<{}>{}", part(seconds < 0), part(seconds >= 0))
}

/// The zone of an abbreviation.
pub(crate) fn abbreviation(name: &str) -> Option<TimeZone> {
    match abbreviated(&name.to_ascii_lowercase())? {
        ZoneAbbreviation::Seconds(0) => Some(TimeZone::UTC),
        ZoneAbbreviation::Seconds(seconds) => fixed(seconds),
        ZoneAbbreviation::Zone(zone) => TimeZone::get(zone).ok(),
    }
}

/// A zone of the IANA database by its name, in any case.
pub(crate) fn database_zone(name: &str) -> Option<TimeZone> {
    match name.to_ascii_lowercase().as_str() {
        "utc" => Some(TimeZone::UTC),
        // Zones that only jiff knows, and those that depend on the machine.
        "etc/unknown" | "localtime" | "posixrules" => None,
        _ => TimeZone::get(name).ok(),
    }
}

/// A zone in POSIX notation: `EST5EDT`, `<+02>-02`, `UTC+3`, `+02:30`.
fn posix_zone(text: &str) -> Option<TimeZone> {
    let (letters, rest) = letters(text)?;
    let (west_s, rest) = offset(rest)?;
    if rest.is_empty() {
        return fixed(-west_s);
    }
    let (summer, rest) = letters_of_summer(rest)?;
    let (summer_west_s, rest) = match rest.strip_prefix(',') {
        Some(_) => (west_s - HOUR_S, rest),
        None if rest.is_empty() => (west_s - HOUR_S, rest),
        None => offset(rest)?,
    };
    let rules = match rest.strip_prefix(',') {
        Some(rules) => rules,
        None if rest.is_empty() => USUAL_RULES,
        None => return None,
    };
    let posix = format!(
        "<{}>{}<{}>{},{rules}",
        padded(letters),
        clock(west_s),
        padded(summer),
        clock(summer_west_s)
    );
    TimeZone::posix(&posix).ok()
}

/// The letters before an offset, and the rest.
fn letters(text: &str) -> Option<(&str, &str)> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>');
    }
    let is_end = |c: char| c.is_ascii_digit() || ",+-".contains(c);
    let end = text.find(is_end)?;
    let (letters, rest) = text.split_at(end);
    let is_word = letters.chars().all(|c| c.is_ascii_alphabetic());
    is_word.then_some((letters, rest))
}

fn letters_of_summer(text: &str) -> Option<(&str, &str)> {
    if text.starts_with('<') {
        return letters(text);
    }
    let is_end = |c: char| c.is_ascii_digit() || ",+-".contains(c);
    let end = text.find(is_end).unwrap_or(text.len());
    let (letters, rest) = text.split_at(end);
    let is_word = !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic());
    is_word.then_some((letters, rest))
}

/// Seconds west of UTC, and the rest: `5`, `-5:30`.
fn offset(text: &str) -> Option<(i32, &str)> {
    let (sign, text) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, text),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':');
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut seconds = 0;
    let parts: Vec<&str> = digits.split(':').collect();
    for (part, (width, max)) in parts.iter().zip([(HOUR_S, 167), (60, 59), (1, 59)]) {
        let number: i32 = part.parse().ok().filter(|number| *number <= max)?;
        seconds += number * width;
    }
    (parts.len() <= 3).then_some((sign * seconds, rest))
}

/// Letters that jiff accepts as a name: three or more.
fn padded(letters: &str) -> String {
    format!("{letters:+<3}")
}

fn clock(seconds: i32) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let all = seconds.unsigned_abs();
    format!("{sign}{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60)
}

/// The clock of a zone. It caches the offset around the time of the last request, so that
/// neighbouring times cost one comparison.
#[derive(Clone, Debug)]
pub struct ZoneClock {
    zone: TimeZone,
    /// The interval in which `offset_ns` applies; both ends in ns since 1970 in UTC.
    span: std::ops::Range<i64>,
    offset_ns: i64,
}

/// Distance from a change of offset beyond which local times are unambiguous.
const DOUBT_NS: i64 = 2 * 86_400 * SECOND_NS;

impl ZoneClock {
    /// The clock of a zone.
    pub fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            span: 0..0,
            offset_ns: 0,
        }
    }

    /// The zone.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The offset from UTC at a time, ns.
    pub fn offset_ns(&mut self, utc_ns: i64) -> i64 {
        if self.span.contains(&utc_ns) {
            return self.offset_ns;
        }
        let at = timestamp(utc_ns);
        self.offset_ns = i64::from(self.zone.to_offset(at).seconds()) * SECOND_NS;
        let ns = |time: Timestamp| {
            let ns = time.as_nanosecond();
            i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
        };
        let after = self.zone.following(at).next();
        let end = after.map_or(i64::MAX, |change| ns(change.timestamp()));
        // A change at exactly this time counts as the previous change.
        let begin = match utc_ns.checked_add(1) {
            Some(next) => self.zone.preceding(timestamp(next)).next(),
            None => None,
        };
        let begin = begin.map_or(i64::MIN, |change| ns(change.timestamp()));
        self.span = begin.min(utc_ns)..end.max(utc_ns);
        self.offset_ns
    }

    /// The wall-clock time at a time, as ns since 1970; `None` if it is outside 1677 to 2262.
    pub fn local_ns(&mut self, utc_ns: i64) -> Option<i64> {
        utc_ns.checked_add(self.offset_ns(utc_ns))
    }

    /// The time in UTC of a wall-clock time. As in PostgreSQL, an hour that occurs twice means the
    /// second occurrence, and a skipped hour uses the offset before the change.
    pub fn utc_ns(&mut self, local_ns: i64) -> Option<i64> {
        let likely = local_ns.checked_sub(self.offset_ns)?;
        let (begin, end) = (self.span.start, self.span.end);
        if likely.saturating_sub(DOUBT_NS) > begin && likely.saturating_add(DOUBT_NS) < end {
            return Some(likely);
        }
        let zoned = self.zone.to_ambiguous_zoned(datetime(local_ns)?);
        let zoned = zoned.disambiguate(Disambiguation::Later).ok()?;
        let utc_ns = i64::try_from(zoned.timestamp().as_nanosecond()).ok()?;
        self.offset_ns(utc_ns);
        Some(utc_ns)
    }

    /// The beginning of the unit, on the zone's clock, that contains a time. Units up to an hour
    /// keep the offset at that time; days and longer units begin when the clock shows it.
    pub fn truncated(&mut self, utc_ns: i64, unit: TimeUnit) -> Option<i64> {
        let local_ns = self.local_ns(utc_ns)?;
        let begin = unit.begin(local_ns)?;
        if unit.is_day_or_longer() {
            self.utc_ns(begin)
        } else {
            utc_ns.checked_sub(local_ns - begin)
        }
    }

    /// Adds months and days on the zone's clock, and then ns.
    pub fn plus(&mut self, utc_ns: i64, months: i32, days: i32, ns: i64) -> Option<i64> {
        let mut time = utc_ns;
        if months != 0 {
            let local = datetime(self.local_ns(time)?)?;
            let span = jiff::Span::new().try_months(months).ok()?;
            time = self.utc_ns(wall_ns(local.checked_add(span).ok()?)?)?;
        }
        if days != 0 {
            let local = datetime(self.local_ns(time)?)?;
            let span = jiff::Span::new().try_days(days).ok()?;
            time = self.utc_ns(wall_ns(local.checked_add(span).ok()?)?)?;
        }
        time.checked_add(ns)
    }

    /// A time in PostgreSQL's `timestamptz` format: `2014-07-01 02:00:00+02`. It has as many
    /// decimals as needed.
    pub fn text(&mut self, utc_ns: i64) -> Option<String> {
        let offset = self.offset_ns(utc_ns) / SECOND_NS;
        let local = datetime(self.local_ns(utc_ns)?)?;
        let mut text = local_text(local);
        let (sign, all) = (if offset < 0 { '-' } else { '+' }, offset.abs());
        let _ = write!(text, "{sign}{:02}", all / 3600);
        let (minutes, seconds) = (all / 60 % 60, all % 60);
        if minutes != 0 || seconds != 0 {
            let _ = write!(text, ":{minutes:02}");
        }
        if seconds != 0 {
            let _ = write!(text, ":{seconds:02}");
        }
        Some(text)
    }
}

/// A time in UTC as text, without a zone.
pub(crate) fn utc_text(utc_ns: i64) -> Option<String> {
    datetime(utc_ns).map(local_text)
}

fn local_text(local: DateTime) -> String {
    let nanos = local.subsec_nanosecond();
    let mut text = local.strftime("%Y-%m-%d %H:%M:%S").to_string();
    if nanos != 0 {
        let digits = format!(".{nanos:09}");
        text.push_str(digits.trim_end_matches('0'));
    }
    text
}

/// Converts ns since 1970; jiff's range includes every i64.
fn timestamp(utc_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(utc_ns)).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn datetime(local_ns: i64) -> Option<DateTime> {
    let time = Timestamp::from_nanosecond(i128::from(local_ns)).ok()?;
    Some(TimeZone::UTC.to_datetime(time))
}

fn wall_ns(local: DateTime) -> Option<i64> {
    let time = TimeZone::UTC.to_timestamp(local).ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

/// A unit of `date_trunc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// A number of ns: an hour or less.
    Ns(i64),
    /// A day.
    Day,
    /// Seven days from Monday.
    Week,
    /// A number of months.
    Months(i64),
    /// A number of years; a century begins in its year 1, a decade in its year 0.
    Years(i64),
}

impl TimeUnit {
    /// A unit by its name in PostgreSQL.
    pub fn named(name: &str) -> Option<Self> {
        let lower = name.trim().to_ascii_lowercase();
        Some(match lower.as_str() {
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => {
                Self::Ns(1_000)
            }
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => {
                Self::Ns(1_000_000)
            }
            "second" | "seconds" | "s" | "sec" | "secs" => Self::Ns(SECOND_NS),
            "minute" | "minutes" | "m" | "min" | "mins" => Self::Ns(60 * SECOND_NS),
            "hour" | "hours" | "h" | "hr" | "hrs" => Self::Ns(3600 * SECOND_NS),
            "day" | "days" | "d" => Self::Day,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" | "mons" => Self::Months(1),
            "quarter" | "quarters" | "qtr" => Self::Months(3),
            "year" | "years" | "y" | "yr" | "yrs" => Self::Months(12),
            "decade" | "decades" | "dec" | "decs" => Self::Years(10),
            "century" | "centuries" | "cent" | "c" => Self::Years(100),
            "millennium" | "millennia" | "mil" | "mils" => Self::Years(1000),
            _ => return None,
        })
    }

    fn is_day_or_longer(self) -> bool {
        !matches!(self, Self::Ns(_))
    }

    /// The beginning of the unit on a wall clock that contains a wall-clock time.
    fn begin(self, local_ns: i64) -> Option<i64> {
        const DAY_NS: i64 = 86_400 * SECOND_NS;
        let floor = |width: i64| local_ns.checked_sub(local_ns.rem_euclid(width));
        match self {
            Self::Ns(width) => floor(width),
            Self::Day => floor(DAY_NS),
            Self::Week => {
                let days = local_ns.div_euclid(DAY_NS);
                // Day 0 was a Thursday.
                let monday = days - (days + 3).rem_euclid(7);
                monday.checked_mul(DAY_NS)
            }
            Self::Months(count) => {
                let date = datetime(local_ns)?.date();
                let months = i64::from(date.year()) * 12 + i64::from(date.month()) - 1;
                let first = months - months.rem_euclid(count);
                first_of(first.div_euclid(12), first.rem_euclid(12) + 1)
            }
            Self::Years(count) => {
                let year = i64::from(datetime(local_ns)?.year());
                let first = match count {
                    10 => year - year.rem_euclid(10),
                    count => year - (year - 1).rem_euclid(count),
                };
                first_of(first, 1)
            }
        }
    }
}

/// Midnight of a month's first day.
fn first_of(year: i64, month: i64) -> Option<i64> {
    let (year, month) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?);
    let date = jiff::civil::Date::new(year, month, 1).ok()?;
    wall_ns(date.to_datetime(jiff::civil::Time::midnight()))
}
