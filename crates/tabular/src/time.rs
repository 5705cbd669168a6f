//! Parses the times in files, and describes the common format of a column's times.

mod counted;
mod digits;
mod evidence;
mod months;
mod parts;
mod pattern;
mod written;
mod zone;

pub use counted::TimeCount;
pub use digits::DigitPattern;
pub use evidence::{FormError, TimeEvidence};
pub use parts::{CellZone, OffsetUnit, TimePart, cell_zone, is_half_of_day, is_zone};
pub use pattern::check_pattern;
pub use written::{
    DateOrder, TimeOfDay, WrittenTime, clock_of, has_short_year, is_clock, is_impossible_day,
    is_spreadsheet_clock, spreadsheet_clock, zone_of,
};
pub use zone::{FileZone, RepeatedHour, TimeFault, offset_of};

use pattern::read_pattern;
use std::fmt;
use std::str::FromStr;

/// Unit of a time that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl Precision {
    /// Nanoseconds of one unit.
    pub fn ns(self) -> i64 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
        }
    }

    /// The unit in which `number` is a time between 1973 and 2286 (seconds below 10^10, then a
    /// thousand times as much for each finer unit).
    pub fn guess(number: f64) -> Self {
        match number.abs() {
            n if n < 1e11 => Self::S,
            n if n < 1e14 => Self::Ms,
            n if n < 1e17 => Self::Us,
            _ => Self::Ns,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::S => "seconds",
            Self::Ms => "milliseconds",
            Self::Us => "microseconds",
            Self::Ns => "nanoseconds",
        })
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "s" => Ok(Self::S),
            "ms" => Ok(Self::Ms),
            "us" | "u" => Ok(Self::Us),
            "ns" | "n" => Ok(Self::Ns),
            other => Err(format!(
                "'{other}' is not a unit of time: use s, ms, us or ns"
            )),
        }
    }
}

/// The format of a column's times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// An integer or fraction in this unit since the epoch.
    Number(Precision),
    /// As people and loggers write times, with the date in this order.
    Written(DateOrder),
    /// A strftime pattern.
    Pattern(String),
    /// Days since 1899-12-30, as spreadsheets store times.
    SpreadsheetDays,
    /// A number of units since another day.
    Counted(TimeCount),
}

impl TimeFormat {
    /// Whether its times are moments, which need no zone.
    pub fn is_moment(&self) -> bool {
        match self {
            Self::Number(_) => true,
            Self::Counted(count) => count.is_utc(),
            _ => false,
        }
    }
}

/// Reads the times of a column.
#[derive(Clone, Debug)]
pub struct TimeReader {
    /// The format of all of them.
    pub form: TimeFormat,
    /// The zone of times that name none.
    pub zone: FileZone,
}

impl TimeReader {
    /// Parses a time; returns nanoseconds since the epoch.
    ///
    /// # Errors
    /// If the text is not a time in this format, or does not exist in its zone.
    pub fn read(&self, text: &str) -> Result<i64, TimeFault> {
        let text = text.trim();
        match &self.form {
            TimeFormat::Number(precision) => {
                read_number(text, *precision).ok_or(TimeFault::NotATime)
            }
            TimeFormat::Counted(count) if count.is_utc() => {
                FileZone::utc().place(&self.written(text)?)
            }
            _ => self.zone.place(&self.written(text)?),
        }
    }

    /// Like [`read`](Self::read), for a time whose zone is in a cell of its own: an offset, a name,
    /// or a number in `unit`.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if the cell names no zone.
    pub fn read_beside_zone(
        &self,
        text: &str,
        zone: &str,
        unit: Option<OffsetUnit>,
    ) -> Result<i64, TimeFault> {
        let mut written = self.written(text.trim())?;
        if written.offset_s.is_some() || written.name.is_some() {
            // The text itself says more than the cell beside it.
            return self.zone.place(&written);
        }
        match cell_zone(zone, unit, self.zone.repeated_hour()) {
            None => Err(TimeFault::Name(zone.trim().to_owned())),
            Some(CellZone::Rules(zone)) => zone.place(&written),
            Some(CellZone::Offset(offset)) => {
                written.offset_s = Some(offset);
                self.zone.place(&written)
            }
            Some(CellZone::Name(name)) => {
                written.name = Some(name);
                self.zone.place(&written)
            }
        }
    }

    /// Date, time of day and zone of a text that is no number of units since 1970.
    fn written<'t>(&self, text: &'t str) -> Result<WrittenTime<'t>, TimeFault> {
        match &self.form {
            TimeFormat::Pattern(pattern) => read_pattern(text, pattern),
            TimeFormat::SpreadsheetDays => Ok(WrittenTime {
                at: spreadsheet_time(text).ok_or(TimeFault::NotATime)?,
                offset_s: None,
                name: None,
            }),
            TimeFormat::Counted(count) => Ok(WrittenTime {
                at: count.read(text).ok_or(TimeFault::NotATime)?,
                offset_s: None,
                name: None,
            }),
            TimeFormat::Written(order) => WrittenTime::read(text, *order).ok_or_else(|| {
                if is_impossible_day(text) {
                    TimeFault::NoSuchDay
                } else {
                    TimeFault::NotATime
                }
            }),
            TimeFormat::Number(_) => Err(TimeFault::NotATime),
        }
    }
}

/// A number of days since 1899-12-30 as a time, rounded to milliseconds: a spreadsheet holds no more.
fn spreadsheet_time(text: &str) -> Option<jiff::civil::DateTime> {
    let days: f64 = text.replace(',', ".").parse().ok()?;
    if !(1.0..2_958_466.0).contains(&days) {
        return None;
    }
    let ms = (days * 86_400_000.0).round() as i64;
    let begin = jiff::civil::date(1899, 12, 30).at(0, 0, 0, 0);
    begin
        .checked_add(jiff::SignedDuration::from_millis(ms))
        .ok()
}

fn read_number(text: &str, precision: Precision) -> Option<i64> {
    if let Ok(whole) = text.parse::<i64>() {
        return whole.checked_mul(precision.ns());
    }
    i64::try_from(decimal_ns(&text.replace(',', "."), precision.ns())?).ok()
}

/// Digits of a number of units of time; more say nothing in nanoseconds.
const DIGITS_MAX: usize = 30;

/// A number with places, and perhaps an exponent, of units of `unit_ns`: exact, rounded to nanoseconds.
fn decimal_ns(text: &str, unit_ns: i64) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.strip_prefix(['-', '+']) {
        Some(digits) => (if mantissa.starts_with('-') { -1 } else { 1 }, digits),
        None => (1, mantissa),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    if places.contains('.') {
        return None;
    }
    let places = &places[..places.len().min(DIGITS_MAX.saturating_sub(whole.len()))];
    let all = format!("{whole}{places}");
    if all.is_empty() || all.len() > DIGITS_MAX {
        return None;
    }
    let units = all.parse::<i128>().ok()?;
    let scale = i32::try_from(places.len()).ok()?.checked_sub(exponent)?;
    let power = 10_i128.checked_pow(scale.unsigned_abs())?;
    let ns = if scale <= 0 {
        units.checked_mul(power)?.checked_mul(unit_ns.into())?
    } else {
        let (whole, rest) = (units / power, units % power);
        let part = rest.checked_mul(unit_ns.into());
        let part = part.map_or(0, |part| (part + power / 2) / power);
        whole.checked_mul(unit_ns.into())?.checked_add(part)?
    };
    Some(sign * ns)
}

#[cfg(test)]
mod tests;
