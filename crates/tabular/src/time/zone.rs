//! Time zones of files, and the hours that clocks show twice or never.

use super::written::{WrittenTime, is_place};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// Why a text is not a valid time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeFault {
    /// It does not have the column's format.
    #[error("is not a time")]
    NotATime,
    /// It has the form of a time, but its day is none, such as 30 February.
    #[error("is not a time: the calendar has no such day")]
    NoSuchDay,
    /// It does not fit i64 nanoseconds.
    #[error("is not a time between 1677 and 2262")]
    OutOfRange,
    /// Clocks skipped it.
    #[error("was never shown by the clocks of {zone}, which went forward by {by}")]
    Never {
        /// The zone.
        zone: String,
        /// The change.
        by: String,
    },
    /// Clocks showed it twice.
    #[error(
        "was shown twice by the clocks of {zone}, at {first} and at {second}; say which with \
         --repeated-hour first or second, or order if the rows have the order of their times"
    )]
    Twice {
        /// The zone.
        zone: String,
        /// The first moment.
        first: String,
        /// The second one.
        second: String,
    },
    /// A zone name that is ambiguous or unknown.
    #[error(
        "has the zone '{0}', which is unknown or ambiguous; give --tz, such as --tz Europe/Berlin"
    )]
    Name(String),
    /// A zone name that does not belong to the given zone.
    #[error("has the zone '{name}', which does not belong to {zone}")]
    OtherZone {
        /// The name.
        name: String,
        /// The given zone.
        zone: String,
    },
}

/// Which moment a time means that clocks show twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedHour {
    /// The first one.
    First,
    /// The second one.
    Second,
}

/// The zone of a file's times that name none.
#[derive(Clone, Debug)]
pub struct FileZone {
    told: Option<(String, TimeZone)>,
    repeated: Option<RepeatedHour>,
}

impl FileZone {
    /// UTC, as the default.
    pub fn utc() -> Self {
        Self {
            told: None,
            repeated: None,
        }
    }

    /// UTC as the default, and a choice for the times that clocks of other zones show twice.
    pub fn with_repeated_hour(repeated: Option<RepeatedHour>) -> Self {
        Self {
            told: None,
            repeated,
        }
    }

    /// The zone of this name: `Europe/Berlin`, `UTC`, `+01:00`.
    ///
    /// # Errors
    /// If there is no such zone.
    pub fn named(name: &str, repeated: Option<RepeatedHour>) -> Result<Self, String> {
        let zone =
            match WrittenTime::read(&format!("2000-01-01 00:00{name}"), super::DateOrder::Ymd) {
                Some(WrittenTime {
                    offset_s: Some(offset),
                    ..
                }) => Offset::from_seconds(offset as i32)
                    .map(TimeZone::fixed)
                    .map_err(|error| error.to_string())?,
                _ => TimeZone::get(name).map_err(|_| {
                    format!("'{name}' is not a time zone; give one such as Europe/Berlin or +01:00")
                })?,
            };
        Ok(Self {
            told: Some((name.to_owned(), zone)),
            repeated,
        })
    }

    /// The same zone, in which times that clocks show twice mean this moment.
    #[must_use]
    pub fn repeating(&self, hour: RepeatedHour) -> Self {
        Self {
            told: self.told.clone(),
            repeated: Some(hour),
        }
    }

    /// Which moment times mean that clocks show twice, if that was given.
    pub fn repeated_hour(&self) -> Option<RepeatedHour> {
        self.repeated
    }

    /// Its name; `None` if none was given.
    pub fn name(&self) -> Option<&str> {
        self.told.as_ref().map(|(name, _)| name.as_str())
    }

    /// The moment that a text means, ns since the epoch.
    ///
    /// # Errors
    /// If there is no such moment, or there are two.
    pub fn place(&self, written: &WrittenTime<'_>) -> Result<i64, TimeFault> {
        if let Some(offset) = written.offset_s {
            return moment(written.at, offset);
        }
        if let Some(name) = written.name.filter(|name| is_place(name)) {
            let zone = Self::named(name, self.repeated);
            let zone = zone.map_err(|_| TimeFault::Name(name.to_owned()))?;
            return zone.place(&WrittenTime {
                name: None,
                ..*written
            });
        }
        let Some((zone_name, zone)) = &self.told else {
            let offset = match written.name {
                None => 0,
                Some(name) => offset_of(name).ok_or_else(|| TimeFault::Name(name.to_owned()))?,
            };
            return moment(written.at, offset);
        };
        let found = zone.to_ambiguous_timestamp(written.at).offset();
        if let Some(name) = written.name {
            return named(written.at, name, found, zone_name, zone);
        }
        match found {
            AmbiguousOffset::Unambiguous { offset } => moment(written.at, seconds(offset)),
            AmbiguousOffset::Gap { before, after } => Err(TimeFault::Never {
                zone: zone_name.clone(),
                by: format!("{} minutes", (seconds(after) - seconds(before)) / 60),
            }),
            AmbiguousOffset::Fold { before, after } => match self.repeated {
                Some(RepeatedHour::First) => moment(written.at, seconds(before)),
                Some(RepeatedHour::Second) => moment(written.at, seconds(after)),
                None => Err(TimeFault::Twice {
                    zone: zone_name.clone(),
                    first: utc(written.at, before),
                    second: utc(written.at, after),
                }),
            },
        }
    }
}

/// A time followed by a zone name, in a given zone: the name says which of two hours it means.
fn named(
    at: DateTime,
    name: &str,
    found: AmbiguousOffset,
    zone_name: &str,
    zone: &TimeZone,
) -> Result<i64, TimeFault> {
    let candidates = match found {
        AmbiguousOffset::Unambiguous { offset } => [offset, offset],
        AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => {
            [before, after]
        }
    };
    for offset in candidates {
        let Ok(time) = offset.to_timestamp(at) else {
            continue;
        };
        let info = zone.to_offset_info(time);
        if info.offset() == offset && info.abbreviation().eq_ignore_ascii_case(name) {
            return moment(at, seconds(offset));
        }
    }
    // UTC and its synonyms are always valid.
    match name.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" => moment(at, 0),
        _ => Err(TimeFault::OtherZone {
            name: name.to_owned(),
            zone: zone_name.to_owned(),
        }),
    }
}

fn seconds(offset: Offset) -> i64 {
    i64::from(offset.seconds())
}

fn utc(at: DateTime, offset: Offset) -> String {
    match offset.to_timestamp(at) {
        Ok(time) => time.to_string(),
        Err(_) => at.to_string(),
    }
}

fn moment(at: DateTime, offset_s: i64) -> Result<i64, TimeFault> {
    let days = i64::from(
        at.date()
            .since((jiff::Unit::Day, jiff::civil::date(1970, 1, 1)))
            .map_err(|_| TimeFault::OutOfRange)?
            .get_days(),
    );
    let clock = i64::from(at.hour()) * 3600 + i64::from(at.minute()) * 60 + i64::from(at.second());
    let seconds = days * 86_400 + clock - offset_s;
    let ns = i128::from(seconds) * 1_000_000_000 + i128::from(at.subsec_nanosecond());
    i64::try_from(ns).map_err(|_| TimeFault::OutOfRange)
}

/// The offset in seconds east of UTC of a zone name that has the same meaning everywhere; `None`
/// for others. `EST`, `CST`, `PST`, `MST`, `IST`, `BST` and the like are ambiguous.
pub fn offset_of(name: &str) -> Option<i64> {
    const HOUR: i64 = 3600;
    Some(match name.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" | "UT" | "WET" => 0,
        "CET" | "MEZ" | "WEST" => HOUR,
        "CEST" | "MESZ" | "EET" | "SAST" => 2 * HOUR,
        "EEST" | "MSK" => 3 * HOUR,
        "AWST" | "HKT" => 8 * HOUR,
        "JST" | "KST" => 9 * HOUR,
        "ACST" => 9 * HOUR + HOUR / 2,
        "AEST" => 10 * HOUR,
        "ACDT" => 10 * HOUR + HOUR / 2,
        "AEDT" => 11 * HOUR,
        "NZST" => 12 * HOUR,
        "NZDT" => 13 * HOUR,
        "PDT" => -7 * HOUR,
        "MDT" => -6 * HOUR,
        "AKDT" => -8 * HOUR,
        "AKST" => -9 * HOUR,
        "HST" => -10 * HOUR,
        _ => return None,
    })
}
