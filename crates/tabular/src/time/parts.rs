//! The columns that together make up a time: date, time of day, AM or PM, zone, or plain numbers.
//!
//! Loggers and spreadsheets spread a time over several columns. A column that is left out moves
//! every row by hours, and nobody sees it. Therefore names and values both speak for a part, and
//! where only one of them does, the caller asks the user.

use super::written::half_word;
use super::{FileZone, RepeatedHour, offset_of, zone_of};
use jiff::tz::TimeZone;
use std::fmt;

/// What a column adds to a time. The order is that of the text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimePart {
    /// A date, with or without a time of day.
    Date,
    /// A year.
    Year,
    /// A month, as a number.
    Month,
    /// A day of the month.
    Day,
    /// A time of day.
    Clock,
    /// An hour.
    Hour,
    /// A minute.
    Minute,
    /// A second.
    Second,
    /// Milliseconds beside a time without fractions of seconds.
    Millisecond,
    /// AM or PM.
    Half,
    /// A zone: a name or an offset.
    Zone,
}

impl fmt::Display for TimePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Date => "date",
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Clock => "time of day",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
            Self::Millisecond => "milliseconds",
            Self::Half => "AM or PM",
            Self::Zone => "time zone",
        })
    }
}

const YEARS: &[&str] = &[
    "year", "yyyy", "yy", "yr", "jahr", "année", "annee", "año", "ano", "anno", "år", "jaar", "rok",
];
const MONTHS: &[&str] = &[
    "month", "mon", "mo", "mm", "monat", "mois", "mes", "mês", "mese", "månad", "maand", "måned",
];
const DAYS: &[&str] = &[
    "day",
    "dd",
    "dy",
    "day_of_month",
    "dayofmonth",
    "dom",
    "tag",
    "jour",
    "día",
    "dia",
    "giorno",
    "dag",
];
const HOURS: &[&str] = &[
    "hour",
    "hours",
    "hh",
    "hr",
    "hrs",
    "h",
    "stunde",
    "std",
    "heure",
    "hora",
    "ora",
    "timme",
    "uur",
    "hour_of_day",
    "hourofday",
];
const MINUTES: &[&str] = &[
    "minute", "minutes", "min", "mins", "mi", "mm", "mn", "mnt", "minuten", "minuto", "minutos",
    "minuti", "minuut", "minut", "minuter", "minuta",
];
const SECONDS: &[&str] = &[
    "second", "seconds", "sec", "secs", "ss", "sc", "seg", "sekunde", "sekunden", "seconde",
    "segundo", "secondo", "sekund",
];
const MILLISECONDS: &[&str] = &[
    "millitm",
    "ms",
    "msec",
    "millis",
    "millisecond",
    "milliseconds",
    "millisekunde",
    "millisekunden",
    "millisecondes",
];
const HALVES: &[&str] = &[
    "am/pm", "am_pm", "ampm", "am-pm", "am pm", "a/p", "meridiem",
];
const ZONES: &[&str] = &[
    "tz",
    "timezone",
    "time_zone",
    "time zone",
    "time-zone",
    "tzname",
    "tz_name",
    "zeitzone",
    "fuseau",
    "fuseau_horaire",
    "fuseau horaire",
    "zona_horaria",
    "tidszon",
    "tijdzone",
    "utc_offset",
    "utc offset",
    "utcoffset",
    "tz_offset",
    "tzoffset",
    "timezone_offset",
    "time_offset",
    "gmt_offset",
    "gmtoffset",
    "gmt offset",
];

impl TimePart {
    /// Whether a column of this name is likely to be this part, and no other value.
    pub fn is_named(self, name: &str) -> bool {
        let trimmed = name.trim().trim_start_matches('#');
        let lower = trimmed.to_lowercase();
        let names = match self {
            Self::Year => YEARS,
            // MM and mm stand beside each other in tables of weather stations.
            Self::Month if trimmed == "mm" => return false,
            Self::Month => MONTHS,
            Self::Day => DAYS,
            Self::Hour => HOURS,
            Self::Minute if trimmed == "MM" => return false,
            Self::Minute => MINUTES,
            Self::Second => SECONDS,
            Self::Millisecond => MILLISECONDS,
            Self::Half => HALVES,
            Self::Zone => ZONES,
            Self::Date | Self::Clock => return false,
        };
        let is_longer = |known: &&str| known.contains("offset") && lower.starts_with(*known);
        names.contains(&lower.as_str()) || names.iter().any(is_longer)
    }

    /// The greatest and smallest numbers of this part.
    pub fn range(self) -> Option<(f64, f64)> {
        match self {
            Self::Year => Some((1.0, 2262.0)),
            Self::Month => Some((1.0, 12.0)),
            Self::Day => Some((1.0, 31.0)),
            Self::Hour => Some((0.0, 24.0)),
            Self::Minute => Some((0.0, 59.0)),
            Self::Second => Some((0.0, 60.0)),
            Self::Millisecond => Some((0.0, 999.0)),
            Self::Date | Self::Clock | Self::Half | Self::Zone => None,
        }
    }
}

/// Whether a text is AM or PM and nothing else. A letter alone may be a status.
pub fn is_half_of_day(text: &str) -> bool {
    half_word(text.trim()).is_some_and(|(_, rest)| rest.is_empty())
}

/// Whether a text ends in AM or PM, perhaps of one letter.
pub(super) fn ends_with_half(cell: &str) -> bool {
    let cell = cell.trim();
    let Some(at) = cell.rfind(['a', 'A', 'p', 'P']) else {
        return false;
    };
    let last = &cell[at..];
    last.len() == 1 || half_word(last).is_some_and(|(_, rest)| rest.is_empty())
}

/// Names of zones that mean several ones: they are zones, but `--tz` must decide.
const SEVERAL: [&str; 16] = [
    "EST", "EDT", "CST", "CDT", "MST", "PST", "IST", "BST", "AST", "ADT", "SST", "GST", "WST",
    "NST", "PKT", "BRT",
];

/// Whether a text is the name of a zone or an offset from UTC, and nothing else.
pub fn is_zone(text: &str) -> bool {
    let text = text.trim();
    if text.starts_with(['+', '-']) {
        // "-5" may be a number: only a form with minutes is an offset for certain.
        return text.len() >= 5 && matches!(zone_of(text), Some((Some(_), _)));
    }
    if text.eq_ignore_ascii_case("z") || matches!(zone_of(text), Some((Some(_), _))) {
        return true;
    }
    let upper = text.to_ascii_uppercase();
    if offset_of(text).is_some() || SEVERAL.contains(&upper.as_str()) {
        return true;
    }
    text.contains('/') && !text.contains(' ') && TimeZone::get(text).is_ok()
}

/// The unit of offsets that are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetUnit {
    /// 2, 5.5
    Hours,
    /// 120
    Minutes,
    /// 7200
    Seconds,
}

impl OffsetUnit {
    /// Seconds of one unit.
    pub fn seconds(self) -> f64 {
        match self {
            Self::Hours => 3600.0,
            Self::Minutes => 60.0,
            Self::Seconds => 1.0,
        }
    }
}

impl fmt::Display for OffsetUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hours => "hours",
            Self::Minutes => "minutes",
            Self::Seconds => "seconds",
        })
    }
}

/// A zone in a cell of its own.
#[derive(Clone, Debug)]
pub enum CellZone<'a> {
    /// Seconds east of UTC.
    Offset(i64),
    /// A name such as CET, whose meaning the zone of the file may decide.
    Name(&'a str),
    /// A zone with rules, such as Europe/Berlin.
    Rules(FileZone),
}

/// The zone that a cell names; numbers are in `unit`. `None` if it names none.
pub fn cell_zone(
    text: &str,
    unit: Option<OffsetUnit>,
    repeated: Option<RepeatedHour>,
) -> Option<CellZone<'_>> {
    let text = text.trim();
    if let Some(unit) = unit
        && let Ok(number) = text.replace(',', ".").parse::<f64>()
    {
        let seconds = number * unit.seconds();
        // Offsets are smaller than a day and whole seconds.
        let is_offset = seconds.abs() < 86_400.0 && seconds.fract() == 0.0;
        return is_offset.then_some(CellZone::Offset(seconds as i64));
    }
    match zone_of(text) {
        Some((Some(offset), _)) => Some(CellZone::Offset(offset)),
        Some((None, Some(name))) => Some(CellZone::Name(name)),
        _ => match TimeZone::get(text) {
            Ok(_) => FileZone::named(text, repeated).ok().map(CellZone::Rules),
            Err(_) => None,
        },
    }
}
