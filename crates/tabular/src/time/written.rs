//! Parses dates and times of day in any common notation.

use super::months::month_name;
use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};

/// The order of day, month and year if the notation does not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DateOrder {
    /// 2026-04-05
    Ymd,
    /// 05.04.2026
    Dmy,
    /// 04/05/2026
    Mdy,
}

impl DateOrder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ymd, Self::Dmy, Self::Mdy];

    /// The order in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Ymd => "year, month, day",
            Self::Dmy => "day, month, year",
            Self::Mdy => "month, day, year",
        }
    }

    /// The value of the command-line option.
    pub fn option(self) -> &'static str {
        match self {
            Self::Ymd => "ymd",
            Self::Dmy => "dmy",
            Self::Mdy => "mdy",
        }
    }
}

/// A parsed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenTime<'a> {
    /// Date and time of day.
    pub at: DateTime,
    /// Seconds east of UTC, if the text has an offset.
    pub offset_s: Option<i64>,
    /// The name of a zone, if the text has one.
    pub name: Option<&'a str>,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    /// The time.
    pub time: Time,
    /// Whether it is 24:00, the end of the day.
    pub is_end: bool,
    /// Nanoseconds to add: a second for the second 60, and one for a fraction that is rounded up.
    pub carry_ns: i64,
}

impl<'a> WrittenTime<'a> {
    /// Parses a text whose date is in `order`; `None` if it is not.
    pub fn read(text: &'a str, order: DateOrder) -> Option<Self> {
        let text = without_comment(text);
        let Some((date, rest)) = date_of(text, order) else {
            return parse_ctime(text);
        };
        let rest = rest
            .strip_prefix(['T', 't', ' ', ',', ':', '\u{a0}', '\u{202f}'])
            .map(str::trim_start)
            .or((rest.is_empty() || is_run_on(text)).then_some(rest))?;
        if rest.is_empty() {
            let at = date.at(0, 0, 0, 0);
            return Some(Self {
                at,
                offset_s: None,
                name: None,
            });
        }
        // An hour alone: 2026040513, 20260405T13. Behind a blank it may be another number.
        let is_joined = is_run_on(text) || text.contains(['T', 't']) && !text.contains(' ');
        let is_digits = rest.bytes().all(|byte| byte.is_ascii_digit());
        let is_hour = is_joined && rest.len() == 2 && is_digits;
        let hour = is_hour.then(|| format!("{rest}00"));
        let (clock, rest) = match &hour {
            Some(hour) => (clock_of(hour)?.0, ""),
            None => clock_of(rest)?,
        };
        let date = if clock.is_end {
            date.tomorrow().ok()?
        } else {
            date
        };
        let (offset_s, name) = zone_of(rest.trim_start())?;
        let carry = SignedDuration::from_nanos(clock.carry_ns);
        let at = date.to_datetime(clock.time).checked_add(carry).ok()?;
        Some(Self { at, offset_s, name })
    }
}

/// Whether date and time of day are written together as digits: to the hour, minute or second.
fn is_run_on(text: &str) -> bool {
    matches!(text.len(), 10 | 12 | 14) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Up to `max` digits at the start of `text`: their value, their count, and the rest.
fn number(text: &str, max: usize) -> Option<(i64, usize, &str)> {
    let len = text
        .bytes()
        .take(max)
        .take_while(u8::is_ascii_digit)
        .count();
    let value = text[..len].parse().ok()?;
    Some((value, len, &text[len..]))
}

/// A text without what follows its zone: `GMT+0100 (CET)` in JavaScript, `+01:00[Europe/Berlin]` in Java.
fn without_comment(text: &str) -> &str {
    let begin = if text.ends_with(')') {
        text.rfind(" (")
    } else if text.ends_with(']') {
        text.rfind('[')
    } else {
        None
    };
    begin.map_or(text, |begin| &text[..begin])
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Parses `Tue Jul  1 12:00:00 2014`, C's notation; a zone may stand before or behind the year.
fn parse_ctime(text: &str) -> Option<WrittenTime<'_>> {
    let (month, rest) = month_name(without_day_name(text))?;
    let (day, _, rest) = number(rest.trim_start(), 2)?;
    let (clock, rest) = clock_of(rest.trim_start())?;
    let rest = rest.trim_start();
    let (before, rest) = match rest.rsplit_once(' ') {
        Some((zone, year)) if year.bytes().all(|byte| byte.is_ascii_digit()) => (zone, year),
        _ => ("", rest),
    };
    let (year, 4, behind) = number(rest, 4)? else {
        return None;
    };
    let zone = if before.is_empty() { behind } else { before };
    if !before.is_empty() && !behind.is_empty() {
        return None;
    }
    let (offset_s, name) = zone_of(zone.trim())?;
    let carry = SignedDuration::from_nanos(clock.carry_ns);
    let at = date(year, month, day)?.to_datetime(clock.time);
    let at = at.checked_add(carry).ok()?;
    Some(WrittenTime { at, offset_s, name })
}

/// `Tue, 1 Jul 2014` without its first word.
fn without_day_name(text: &str) -> &str {
    let len = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_day = (3..=9).contains(&len) && DAYS.contains(&&*text[..3].to_ascii_lowercase());
    if is_day {
        text[len..].trim_start_matches([',', ' '])
    } else {
        text
    }
}

/// What follows a day without the letters that make it an ordinal: `1er janvier`, `March 2nd, 2026`.
fn without_ordinal(rest: &str) -> &str {
    const ORDINALS: [&str; 8] = ["er", "st", "nd", "rd", "th", "º", "°", "ª"];
    let mut found = ORDINALS.iter().filter_map(|word| rest.strip_prefix(word));
    let found = found.find(|after| after.starts_with([' ', ',']));
    found.unwrap_or(rest)
}

fn date_of(text: &str, order: DateOrder) -> Option<(Date, &str)> {
    let text = without_day_name(text);
    if let Some((month, rest)) = month_name(text) {
        let (day, _, rest) = number(rest.trim_start_matches([' ', '-', '/']), 2)?;
        let rest = without_ordinal(rest).trim_start_matches([',', ' ', '-', '/']);
        if let Some((year, 4, after)) = number(rest, 4) {
            return Some((date(year, month, day)?, after));
        }
        return None;
    }
    let (first, first_len, rest) = number(text, 8)?;
    if first_len == 8 {
        // 20260405: a year comes first, so the order is certain.
        let rest = rest.strip_prefix('_').unwrap_or(rest);
        return (order == DateOrder::Ymd)
            .then(|| date(first / 10_000, first / 100 % 100, first % 100))
            .flatten()
            .map(|date| (date, rest));
    }
    let unmarked = without_ordinal(rest);
    let is_before_name = unmarked.trim_start().starts_with(char::is_alphabetic);
    let rest = if is_before_name { unmarked } else { rest };
    let mark = rest
        .chars()
        .next()
        .filter(|mark| matches!(mark, '-' | '/' | '.' | ' '))?;
    let rest = rest[1..].trim_start_matches(' ');
    // "1 de enero de 2024"
    let named = rest.strip_prefix("de ").unwrap_or(rest);
    if let Some((month, rest)) = month_name(named) {
        if first_len == 4 {
            // 2026-Apr-05
            let (day, _, rest) = number(rest.strip_prefix(mark)?, 2)?;
            return Some((date(first, month, day)?, rest));
        }
        let rest = rest.trim_start_matches([mark, ' ', ',']);
        let rest = rest.strip_prefix("de ").unwrap_or(rest);
        let (year, len, rest) = number(rest, 4)?;
        return Some((date(full_year(year, len)?, month, first)?, rest));
    }
    if first_len == 4 && mark == '-' && order == DateOrder::Ymd {
        // 2026-095: the day of the year.
        let (day, digits, after) = number(rest, 4)?;
        if digits == 3 {
            let first_day = date(first, 1, 1)?;
            let on = first_day.checked_add(SignedDuration::from_hours(24 * (day - 1)));
            let on = on
                .ok()
                .filter(|on| day > 0 && i64::from(on.year()) == first)?;
            return Some((on, after));
        }
    }
    let (second, second_len, rest) = number(rest, 2)?;
    let rest = rest.strip_prefix(mark)?;
    let rest = rest.trim_start_matches(' ');
    let (third, third_len, rest) = number(rest, 4)?;
    if second_len > 2 {
        return None;
    }
    let date = match (order, first_len, third_len) {
        (DateOrder::Ymd, 4, 1 | 2) => date(first, second, third)?,
        (DateOrder::Ymd, 2, 2) if mark != '.' => date(full_year(first, first_len)?, second, third)?,
        (DateOrder::Dmy, 1 | 2, 2 | 4) => date(full_year(third, third_len)?, second, first)?,
        (DateOrder::Mdy, 1 | 2, 2 | 4) if mark != '.' => {
            date(full_year(third, third_len)?, first, second)?
        }
        _ => return None,
    };
    Some((date, rest))
}

/// Whether a text begins with two digits that may be a year, a day or a month: `24-01-02`.
pub fn has_short_year(text: &str) -> bool {
    let mut parts = text.trim().split(['-', '/', ' ']);
    let is_short = |part: &str| part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(is_short) && parts.next().is_some_and(is_short)
}

fn full_year(year: i64, digits: usize) -> Option<i64> {
    match digits {
        4 => Some(year),
        2 => Some(if year < 70 { 2000 + year } else { 1900 + year }),
        _ => None,
    }
}

fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    Date::new(
        year.try_into().ok()?,
        month.try_into().ok()?,
        day.try_into().ok()?,
    )
    .ok()
}

/// Whether a text has the form of a date whose day no calendar has, such as 30 February.
pub fn is_impossible_day(text: &str) -> bool {
    let text = text.trim();
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let Some(mark) = text[..end]
        .chars()
        .find(|mark| matches!(mark, '-' | '/' | '.'))
    else {
        return false;
    };
    let parts: Option<Vec<i64>> = text[..end]
        .split(mark)
        .map(|part| part.parse::<u32>().ok().map(i64::from))
        .collect();
    let Some([first, second, third]) = parts.as_deref() else {
        return false;
    };
    let orders = [
        (first, second, third),
        (third, second, first),
        (third, first, second),
    ];
    let is_date = |(year, month, day): (&i64, &i64, &i64)| date(*year, *month, *day).is_some();
    let is_like = |(year, month, day): (&i64, &i64, &i64)| {
        *year > 999 && (1..=12).contains(month) && (29..=31).contains(day)
    };
    !orders.into_iter().any(is_date) && orders.into_iter().any(is_like)
}

/// Whether a text is a time of day with the day that spreadsheets and Access put before it if there is
/// none: `30.12.1899 12:00:00`.
pub fn is_spreadsheet_clock(text: &str) -> bool {
    spreadsheet_clock(text.trim()).is_some()
}

/// The time of day in [`is_spreadsheet_clock`]'s text.
pub fn spreadsheet_clock(text: &str) -> Option<&str> {
    let (date, clock) = text.split_once([' ', 'T'])?;
    let days = [
        "30.12.1899",
        "1899-12-30",
        "12/30/1899",
        "30/12/1899",
        "1899-12-31",
        "31.12.1899",
        "12/31/1899",
        "31/12/1899",
    ];
    (days.contains(&date) && is_clock(clock)).then_some(clock)
}

/// Whether a text is a time of day and nothing else.
pub fn is_clock(text: &str) -> bool {
    clock_of(text.trim()).is_some_and(|(_, rest)| zone_of(rest.trim_start()).is_some())
}

/// The time of day at the start of `text`, and the rest.
pub fn clock_of(text: &str) -> Option<(TimeOfDay, &str)> {
    let (mut hour, digits, rest) = number(text, 6)?;
    let (mut minute, mut second, mut ns, mut carry_ns) = (0, 0, 0, 0);
    let mut rest = rest;
    if digits == 6 || digits == 4 {
        // 120000, after a date without marks.
        (hour, minute, second) = match digits {
            6 => (hour / 10_000, hour / 100 % 100, hour % 100),
            _ => (hour / 100, hour % 100, 0),
        };
    } else if digits <= 2
        && let Some(mark) = clock_mark(rest)
    {
        let (found, minute_digits, after) = number(&rest[1..], 2)?;
        (minute, rest) = (found, after);
        if let Some(after) = rest.strip_prefix(mark) {
            let (found, _, after) = number(after, 2)?;
            (second, rest) = (found, after);
            // 12:00:00:250: milliseconds, as control systems write them.
            if let Some(after) = rest.strip_prefix(':')
                && let Some((found, 3, after)) = number(after, 3)
            {
                (ns, rest) = (found * 1_000_000, after);
            }
        } else if minute_digits != 2 {
            // 9:5:3 is a time of day, and 9:5 may be a ratio.
            return None;
        }
    } else if digits > 2 {
        return None;
    }
    if let Some(after) = rest.strip_prefix(['.', ',']) {
        let len = after.bytes().take_while(u8::is_ascii_digit).count();
        let kept = len.min(9);
        ns = after[..kept].parse::<i64>().ok()? * 10i64.pow(9 - kept as u32);
        // Further digits round.
        carry_ns = i64::from(after.as_bytes()[kept..len].first() >= Some(&b'5'));
        rest = &after[len..];
    }
    let plain_hour = digits <= 2 && clock_mark(&text[digits..]).is_none();
    let (half, rest) = half_of_day(rest);
    if plain_hour && half.is_none() {
        return None;
    }
    if let Some(afternoon) = half {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if afternoon { 12 } else { 0 };
    }
    let is_end = hour == 24 && minute == 0 && second == 0 && ns == 0;
    // A leap second counts as the following second, as in POSIX and PostgreSQL.
    if second == 60 {
        carry_ns += 1_000_000_000;
    }
    let time = Time::new(
        if is_end { 0 } else { hour.try_into().ok()? },
        minute.try_into().ok()?,
        if second == 60 {
            59
        } else {
            second.try_into().ok()?
        },
        ns.try_into().ok()?,
    );
    Some((
        TimeOfDay {
            time: time.ok()?,
            is_end,
            carry_ns,
        },
        rest,
    ))
}

/// The mark between hours and minutes: a colon; an h (`12h30`, as in France); or a point, if seconds
/// follow behind another one (`12.30.00`, as in Sweden and Italy). `12.30` alone may be a number.
fn clock_mark(rest: &str) -> Option<char> {
    let bytes = rest.as_bytes();
    let is_dotted = matches!(bytes, [b'.', a, b, b'.', c, d, ..]
        if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()));
    match bytes.first() {
        Some(b':') => Some(':'),
        Some(b'.') if is_dotted => Some('.'),
        Some(b'h') if rest.len() == 3 => Some('h'),
        _ => None,
    }
}

/// AM or PM (`true`) at the start of `text`, and the rest.
fn half_of_day(text: &str) -> (Option<bool>, &str) {
    // Some weather stations write 12:00a and 12:00p.
    match text {
        "a" | "A" => return (Some(false), ""),
        "p" | "P" => return (Some(true), ""),
        _ => {}
    }
    match half_word(text.trim_start()) {
        Some((afternoon, rest)) => (Some(afternoon), rest),
        None => (None, text),
    }
}

/// AM or PM (`true`) at the very start of `text`, and the rest: `am`, `a.m.`, and `a. m.` as in Spanish,
/// with a blank of any kind.
pub(super) fn half_word(text: &str) -> Option<(bool, &str)> {
    let afternoon = match text.bytes().next()? {
        b'a' | b'A' => false,
        b'p' | b'P' => true,
        _ => return None,
    };
    let rest = &text[1..];
    let (rest, is_dotted) = match rest.strip_prefix('.') {
        Some(rest) => (rest.trim_start(), true),
        None => (rest, false),
    };
    let rest = rest.strip_prefix(['m', 'M'])?;
    let rest = match rest.strip_prefix('.') {
        Some(after) if is_dotted => after,
        _ => rest,
    };
    // `09:00 America/Bogota` has a zone.
    (!rest.starts_with(char::is_alphabetic)).then_some((afternoon, rest))
}

/// Whether a text has the form of a zone's long name, such as `America/Argentina/Buenos_Aires`.
pub(super) fn is_place(text: &str) -> bool {
    const BYTES_MAX: usize = 40;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    text.len() <= BYTES_MAX
        && text.contains('/')
        && text.as_bytes()[0].is_ascii_alphabetic()
        && text.bytes().all(is_part)
        && !text.split('/').any(str::is_empty)
}

/// The offset or zone name that makes up all of `text`; `None` if it is neither.
pub fn zone_of(text: &str) -> Option<(Option<i64>, Option<&str>)> {
    // UTC+2, GMT-05:00
    let text = match text.get(..3) {
        Some("UTC" | "GMT") if text[3..].starts_with(['+', '-']) => &text[3..],
        _ => text,
    };
    let bytes = text.as_bytes();
    match bytes {
        // `Uhr` is German for "o'clock".
        [] | b"Uhr" => Some((None, None)),
        [b'Z' | b'z'] => Some((Some(0), None)),
        [sign @ (b'+' | b'-'), ..] => {
            let (hours, digits, rest) = number(&text[1..], 4)?;
            let (hours, minutes) = match (digits, rest) {
                (1 | 2, "") => (hours, 0),
                (4, "") => (hours / 100, hours % 100),
                (2, rest) => match number(rest.strip_prefix(':')?, 2)? {
                    (minutes, 2, "" | ":00") => (hours, minutes),
                    _ => return None,
                },
                _ => return None,
            };
            let seconds = hours * 3600 + minutes * 60;
            (hours < 24 && minutes < 60)
                .then_some((Some(if *sign == b'-' { -seconds } else { seconds }), None))
        }
        _ => {
            let is_short = bytes.len() <= 6 && bytes.iter().all(u8::is_ascii_alphabetic);
            (is_short || is_place(text)).then_some((None, Some(text)))
        }
    }
}
