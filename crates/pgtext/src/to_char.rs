//! `to_char` of times, with PostgreSQL's patterns.

use jiff::Zoned;
use jiff::civil::Weekday;
use std::fmt::Write as _;

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimePattern {
    pub(crate) parts: Vec<PatternPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternPart {
    Text(String),
    Field {
        field: PatternField,
        /// Without leading zeros and surrounding blanks (`FM`).
        is_short: bool,
        /// `TH` or `th`.
        ordinal: Option<LetterCase>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterCase {
    Upper,
    Capital,
    Lower,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternField {
    Hour12,
    Hour24,
    Minute,
    Second,
    /// Digits of a fractional second.
    Fraction(usize),
    SecondOfDay,
    /// With or without points.
    Meridiem(LetterCase, bool),
    Era(LetterCase, bool),
    /// The last digits of the year.
    Year(usize),
    YearComma,
    IsoYear(usize),
    Century,
    Quarter,
    Month,
    MonthName(LetterCase),
    MonthShort(LetterCase),
    MonthRoman(LetterCase),
    WeekOfMonth,
    WeekOfYear,
    IsoWeek,
    DayOfYear,
    IsoDayOfYear,
    Day,
    DayName(LetterCase),
    DayShort(LetterCase),
    WeekDay,
    IsoWeekDay,
    Julian,
    Zone(LetterCase),
    ZoneHours,
    ZoneMinutes,
    Offset,
}

use LetterCase::{Capital, Lower, Upper};

/// Names of fields that are case-sensitive, longer ones before their prefixes; those of the second
/// list also match in lower case.
const EXACT: &[(&str, PatternField)] = &[
    ("A.M.", PatternField::Meridiem(Upper, true)),
    ("P.M.", PatternField::Meridiem(Upper, true)),
    ("a.m.", PatternField::Meridiem(Lower, true)),
    ("p.m.", PatternField::Meridiem(Lower, true)),
    ("AM", PatternField::Meridiem(Upper, false)),
    ("PM", PatternField::Meridiem(Upper, false)),
    ("am", PatternField::Meridiem(Lower, false)),
    ("pm", PatternField::Meridiem(Lower, false)),
    ("A.D.", PatternField::Era(Upper, true)),
    ("B.C.", PatternField::Era(Upper, true)),
    ("a.d.", PatternField::Era(Lower, true)),
    ("b.c.", PatternField::Era(Lower, true)),
    ("AD", PatternField::Era(Upper, false)),
    ("BC", PatternField::Era(Upper, false)),
    ("ad", PatternField::Era(Lower, false)),
    ("bc", PatternField::Era(Lower, false)),
    ("MONTH", PatternField::MonthName(Upper)),
    ("Month", PatternField::MonthName(Capital)),
    ("month", PatternField::MonthName(Lower)),
    ("MON", PatternField::MonthShort(Upper)),
    ("Mon", PatternField::MonthShort(Capital)),
    ("mon", PatternField::MonthShort(Lower)),
    ("DAY", PatternField::DayName(Upper)),
    ("Day", PatternField::DayName(Capital)),
    ("day", PatternField::DayName(Lower)),
    ("DY", PatternField::DayShort(Upper)),
    ("Dy", PatternField::DayShort(Capital)),
    ("dy", PatternField::DayShort(Lower)),
    ("RM", PatternField::MonthRoman(Upper)),
    ("rm", PatternField::MonthRoman(Lower)),
    ("TZH", PatternField::ZoneHours),
    ("TZM", PatternField::ZoneMinutes),
    ("tzh", PatternField::ZoneHours),
    ("tzm", PatternField::ZoneMinutes),
    ("TZ", PatternField::Zone(Upper)),
    ("tz", PatternField::Zone(Lower)),
    ("OF", PatternField::Offset),
    ("of", PatternField::Offset),
];
const EITHER_CASE: &[(&str, PatternField)] = &[
    ("HH24", PatternField::Hour24),
    ("HH12", PatternField::Hour12),
    ("HH", PatternField::Hour12),
    ("MI", PatternField::Minute),
    ("SSSSS", PatternField::SecondOfDay),
    ("SSSS", PatternField::SecondOfDay),
    ("SS", PatternField::Second),
    ("MS", PatternField::Fraction(3)),
    ("US", PatternField::Fraction(6)),
    ("FF1", PatternField::Fraction(1)),
    ("FF2", PatternField::Fraction(2)),
    ("FF3", PatternField::Fraction(3)),
    ("FF4", PatternField::Fraction(4)),
    ("FF5", PatternField::Fraction(5)),
    ("FF6", PatternField::Fraction(6)),
    ("Y,YYY", PatternField::YearComma),
    ("YYYY", PatternField::Year(4)),
    ("YYY", PatternField::Year(3)),
    ("YY", PatternField::Year(2)),
    ("Y", PatternField::Year(1)),
    ("IYYY", PatternField::IsoYear(4)),
    ("IYY", PatternField::IsoYear(3)),
    ("IY", PatternField::IsoYear(2)),
    ("IDDD", PatternField::IsoDayOfYear),
    ("ID", PatternField::IsoWeekDay),
    ("IW", PatternField::IsoWeek),
    ("I", PatternField::IsoYear(1)),
    ("CC", PatternField::Century),
    ("Q", PatternField::Quarter),
    ("MM", PatternField::Month),
    ("WW", PatternField::WeekOfYear),
    ("W", PatternField::WeekOfMonth),
    ("DDD", PatternField::DayOfYear),
    ("DD", PatternField::Day),
    ("D", PatternField::WeekDay),
    ("J", PatternField::Julian),
];

pub(crate) const ROMAN: [&str; 12] = [
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
];
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl TimePattern {
    /// Parses a pattern. Text that is not a field stands for itself.
    pub fn parse(pattern: &str) -> Self {
        let mut parts: Vec<PatternPart> = Vec::new();
        let mut rest = pattern;
        let text = |parts: &mut Vec<PatternPart>, c: char| match parts.last_mut() {
            Some(PatternPart::Text(text)) => text.push(c),
            _ => parts.push(PatternPart::Text(c.to_string())),
        };
        while let Some(first) = rest.chars().next() {
            if first == '"' {
                let mut quoted = rest[1..].char_indices();
                let mut end = rest.len();
                while let Some((at, c)) = quoted.next() {
                    match c {
                        '"' => {
                            end = 2 + at;
                            break;
                        }
                        '\\' => {
                            if let Some((_, escaped)) = quoted.next() {
                                text(&mut parts, escaped);
                            }
                        }
                        other => text(&mut parts, other),
                    }
                }
                rest = &rest[end..];
                continue;
            }
            if let Some(quote) = rest.strip_prefix("\\\"") {
                text(&mut parts, '"');
                rest = quote;
                continue;
            }
            let (mut is_short, mut head) = (false, rest);
            loop {
                match head.get(..2) {
                    Some("FM" | "fm") => is_short = true,
                    Some("TM" | "tm" | "FX" | "fx") => {}
                    _ => break,
                }
                head = &head[2..];
            }
            let Some((field, length)) = field_at(head) else {
                if head.len() < rest.len() {
                    rest = head;
                } else {
                    text(&mut parts, first);
                    rest = &rest[first.len_utf8()..];
                }
                continue;
            };
            rest = &head[length..];
            let ordinal = match rest.get(..2) {
                Some("TH") => Some(Upper),
                Some("th") => Some(Lower),
                _ => None,
            };
            if ordinal.is_some() {
                rest = &rest[2..];
            }
            parts.push(PatternPart::Field {
                field,
                is_short,
                ordinal,
            });
        }
        Self { parts }
    }
}

impl PatternField {
    /// Whether a text of it begins with a digit.
    pub(crate) fn begins_with_digit(self) -> bool {
        self.is_number()
    }

    /// Whether it is a number, which the letters of an ordinal may follow.
    pub(crate) fn is_number(self) -> bool {
        !matches!(
            self,
            Self::Meridiem(..)
                | Self::Era(..)
                | Self::MonthName(_)
                | Self::MonthShort(_)
                | Self::MonthRoman(_)
                | Self::DayName(_)
                | Self::DayShort(_)
                | Self::Zone(_)
                | Self::ZoneHours
                | Self::ZoneMinutes
                | Self::Offset
        )
    }
}

/// The field at the start of a pattern, and the length of its name in bytes.
fn field_at(pattern: &str) -> Option<(PatternField, usize)> {
    let exact = EXACT.iter().find(|(name, _)| pattern.starts_with(name));
    let either = || {
        EITHER_CASE.iter().find(|(name, _)| {
            let head = pattern.get(..name.len());
            head.is_some_and(|head| head == *name || head == name.to_ascii_lowercase())
        })
    };
    let found = exact.or_else(either);
    found.map(|(name, field)| (*field, name.len()))
}

/// Formats a time with a pattern. `has_zone` is false for times without a zone, which have no zone
/// abbreviation.
pub fn time_to_char(time: &Zoned, pattern: &TimePattern, has_zone: bool) -> String {
    let mut out = String::new();
    for part in &pattern.parts {
        match part {
            PatternPart::Text(text) => out.push_str(text),
            PatternPart::Field {
                field,
                is_short,
                ordinal,
            } => {
                let text = written(time, *field, *is_short, has_zone);
                out.push_str(&text);
                if let Some(letters) = ordinal.filter(|_| field.is_number()) {
                    out.push_str(suffix(&text, letters));
                }
            }
        }
    }
    out
}

fn written(time: &Zoned, field: PatternField, is_short: bool, has_zone: bool) -> String {
    let number = |value: i64, width: usize| {
        if is_short {
            value.to_string()
        } else {
            format!("{value:0width$}")
        }
    };
    let name = |name: &str, letters: LetterCase, width: usize| {
        let name = lettered(name, letters);
        if is_short {
            name
        } else {
            format!("{name:width$}")
        }
    };
    let date = time.date();
    let year = i64::from(time.year());
    // The year before 1 is 1 BC.
    let shown_year = if year <= 0 { 1 - year } else { year };
    let nanos = i64::from(time.subsec_nanosecond());
    let hour = i64::from(time.hour());
    let iso = date.iso_week_date();
    let sunday_one = i64::from(time.weekday().to_sunday_one_offset());
    let monday_one = i64::from(time.weekday().to_monday_one_offset());
    let last_digits = |year: i64, digits: usize| match digits {
        4 => number(year, 4),
        digits => number(year % 10_i64.pow(digits as u32), digits),
    };
    match field {
        PatternField::Hour12 => number(if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
        PatternField::Hour24 => number(hour, 2),
        PatternField::Minute => number(time.minute().into(), 2),
        PatternField::Second => number(time.second().into(), 2),
        PatternField::Fraction(digits) => {
            let value = nanos / 10_i64.pow(9 - digits as u32);
            format!("{value:0digits$}")
        }
        PatternField::SecondOfDay => {
            (hour * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second())).to_string()
        }
        PatternField::Meridiem(letters, points) => {
            let text = [["AM", "A.M."], ["PM", "P.M."]][usize::from(hour >= 12)];
            lettered(text[usize::from(points)], letters)
        }
        PatternField::Era(letters, points) => {
            let text = [["AD", "A.D."], ["BC", "B.C."]][usize::from(year <= 0)];
            lettered(text[usize::from(points)], letters)
        }
        PatternField::Year(digits) => last_digits(shown_year, digits),
        PatternField::YearComma => format!("{},{:03}", shown_year / 1000, shown_year % 1000),
        PatternField::IsoYear(digits) => last_digits(iso.year().into(), digits),
        PatternField::Century => {
            let century = if year > 0 {
                (year - 1) / 100 + 1
            } else {
                year / 100 - 1
            };
            number(century, if century < 0 { 3 } else { 2 })
        }
        PatternField::Quarter => ((i64::from(time.month()) - 1) / 3 + 1).to_string(),
        PatternField::Month => number(time.month().into(), 2),
        PatternField::MonthName(letters) => name(MONTHS[month(time)], letters, 9),
        PatternField::MonthShort(letters) => lettered(&MONTHS[month(time)][..3], letters),
        PatternField::MonthRoman(letters) => name(ROMAN[month(time)], letters, 4),
        PatternField::WeekOfMonth => ((i64::from(time.day()) - 1) / 7 + 1).to_string(),
        PatternField::WeekOfYear => number((i64::from(date.day_of_year()) - 1) / 7 + 1, 2),
        PatternField::IsoWeek => number(iso.week().into(), 2),
        PatternField::DayOfYear => number(date.day_of_year().into(), 3),
        PatternField::IsoDayOfYear => number((i64::from(iso.week()) - 1) * 7 + monday_one, 3),
        PatternField::Day => number(time.day().into(), 2),
        PatternField::DayName(letters) => name(day_name(time.weekday()), letters, 9),
        PatternField::DayShort(letters) => lettered(&day_name(time.weekday())[..3], letters),
        PatternField::WeekDay => sunday_one.to_string(),
        PatternField::IsoWeekDay => monday_one.to_string(),
        PatternField::Julian => {
            let since_1970 = date.to_datetime(jiff::civil::Time::midnight());
            let epoch = jiff::civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
            let days = since_1970.duration_since(epoch).as_hours() / 24;
            (days + 2_440_588).to_string()
        }
        _ => written_zone(time, field, is_short, has_zone),
    }
}

/// A field that the time zone tells; empty for every other one.
fn written_zone(time: &Zoned, field: PatternField, is_short: bool, has_zone: bool) -> String {
    match field {
        PatternField::Zone(letters) => {
            let zone = time.time_zone().to_offset_info(time.timestamp());
            let letters_of_zone = zone.abbreviation();
            if has_zone {
                lettered(letters_of_zone, letters)
            } else {
                String::new()
            }
        }
        PatternField::ZoneHours => {
            let (sign, hours, _) = offset(time, has_zone);
            format!("{sign}{hours:02}")
        }
        PatternField::ZoneMinutes => format!("{:02}", offset(time, has_zone).2),
        PatternField::Offset => {
            let (sign, hours, minutes) = offset(time, has_zone);
            let width = if is_short { 1 } else { 2 };
            let mut text = format!("{sign}{hours:0width$}");
            if minutes != 0 {
                let _ = write!(text, ":{minutes:02}");
            }
            text
        }
        _ => String::new(),
    }
}

/// Sign, hours and minutes of the offset from UTC.
fn offset(time: &Zoned, has_zone: bool) -> (char, i32, i32) {
    let seconds = if has_zone { time.offset().seconds() } else { 0 };
    let sign = if seconds < 0 { '-' } else { '+' };
    (sign, seconds.abs() / 3600, seconds.abs() / 60 % 60)
}

fn month(time: &Zoned) -> usize {
    (time.month() - 1) as usize
}

fn day_name(day: Weekday) -> &'static str {
    match day {
        Weekday::Sunday => "Sunday",
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
    }
}

pub(crate) fn lettered(text: &str, letters: LetterCase) -> String {
    match letters {
        Upper => text.to_uppercase(),
        Capital => text.to_owned(),
        Lower => text.to_lowercase(),
    }
}

/// The suffix of an ordinal number.
pub(crate) fn suffix(number: &str, letters: LetterCase) -> &'static str {
    let mut last = number.bytes().rev();
    let (ones, tens) = (last.next(), last.next());
    let at = match (tens, ones) {
        (Some(b'1'), _) => 0,
        (_, Some(b'1')) => 1,
        (_, Some(b'2')) => 2,
        (_, Some(b'3')) => 3,
        _ => 0,
    };
    match letters {
        Lower => ["th", "st", "nd", "rd"][at],
        _ => ["TH", "ST", "ND", "RD"][at],
    }
}
