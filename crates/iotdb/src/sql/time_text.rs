//! Times and lengths of time in statements.

use super::ast::TreeSpan;
use super::cursor::SqlCursor;
use super::zone_text::{digits, number, zone_offset};
use crate::status::{IotDbFault, StatusCode};
use jiff::civil::{Date, DateTime, Time};

/// Milliseconds of the units of a length of time. The longer names come first.
const UNITS: [(&str, i64); 6] = [
    ("ms", 1),
    ("w", 604_800_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
];

impl SqlCursor<'_> {
    /// Reads a length of time, such as `1d12h` or `1mo`; `None` if none follows.
    ///
    /// # Errors
    /// If it is shorter than a millisecond, or too long.
    pub(super) fn span(&mut self) -> Result<Option<TreeSpan>, IotDbFault> {
        let mut rest = self.rest();
        let begin = rest;
        let mut span = TreeSpan::default();
        while rest.starts_with(|char: char| char.is_ascii_digit()) {
            let (count, after) = digits(rest);
            let Ok(count) = count.parse::<i64>() else {
                return Err(self.expected("a shorter time"));
            };
            let lower = after.get(..2).unwrap_or(after).to_ascii_lowercase();
            let added = if lower.starts_with("mo") {
                rest = &after[2..];
                count
                    .checked_add(span.months)
                    .map(|months| (months, span.ms))
            } else if lower.starts_with('y') {
                rest = &after[1..];
                let months = count.checked_mul(12);
                months
                    .and_then(|months| months.checked_add(span.months))
                    .map(|months| (months, span.ms))
            } else if let Some((unit, ms)) = UNITS.iter().find(|(unit, _)| lower.starts_with(unit))
            {
                rest = &after[unit.len()..];
                let ms = count.checked_mul(*ms);
                ms.and_then(|ms| ms.checked_add(span.ms))
                    .map(|ms| (span.months, ms))
            } else if lower.starts_with("us") || lower.starts_with("ns") {
                return Err(IotDbFault::semantic(
                    "times have milliseconds here: us and ns are too short",
                ));
            } else {
                break;
            };
            let Some((months, ms)) = added else {
                return Err(self.expected("a shorter time"));
            };
            span = TreeSpan { months, ms };
        }
        if rest.len() == begin.len() {
            return Ok(None);
        }
        self.advance(begin.len() - rest.len());
        Ok(Some(span))
    }

    /// Reads a time: a number of milliseconds, a date with or without a time, or `now()`, each with
    /// lengths of time added or subtracted. `None` if none follows.
    ///
    /// # Errors
    /// If there is no such time.
    pub(super) fn time(&mut self) -> Result<Option<i64>, IotDbFault> {
        let mut time = if self.keyword("now") {
            self.expect_sign("(")?;
            self.expect_sign(")")?;
            self.context.now_ms
        } else if let Some(time) = self.date_time()? {
            time
        } else if let Some(number) = self.whole_number()? {
            return Ok(Some(number));
        } else {
            return Ok(None);
        };
        loop {
            let is_plus = match self.rest().as_bytes().first() {
                Some(b'+') => true,
                Some(b'-') => false,
                _ => return Ok(Some(time)),
            };
            self.advance(1);
            let Some(span) = self.span()? else {
                return Err(self.expected("a length of time"));
            };
            if span.months != 0 {
                return Err(IotDbFault::unsupported(
                    "months and years cannot be added to a time here",
                ));
            }
            let ms = if is_plus { span.ms } else { -span.ms };
            time = time.saturating_add(ms);
        }
    }

    /// Reads an integer, with or without a sign.
    pub(super) fn whole_number(&mut self) -> Result<Option<i64>, IotDbFault> {
        let rest = self.rest();
        let unsigned = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let (number, after) = digits(unsigned);
        if number.is_empty() || after.starts_with(['.', 'e', 'E']) {
            return Ok(None);
        }
        let text = &rest[..rest.len() - after.len()];
        let number = text.strip_prefix('+').unwrap_or(text).parse();
        let number = number.map_err(|_| self.expected("an integer of 64 bits"))?;
        self.advance(text.len());
        Ok(Some(number))
    }

    /// Reads a date with or without a time and a zone.
    pub(super) fn date_time(&mut self) -> Result<Option<i64>, IotDbFault> {
        let rest = self.rest();
        let Some((date, mut after)) = date(rest) else {
            return Ok(None);
        };
        let mut clock = Time::midnight();
        let mut zone = None;
        let of_day = after.strip_prefix(['T', 't', ' ']);
        if let Some((time, rest)) = of_day.and_then(clock_time) {
            clock = time;
            after = rest;
            if let Some((offset, rest)) = zone_offset(after) {
                zone = Some(offset);
                after = rest;
            }
        }
        let local = DateTime::from_parts(date, clock);
        let zone = zone.unwrap_or_else(|| self.context.zone.clone());
        let time = zone.to_ambiguous_timestamp(local).compatible();
        let time =
            time.map_err(|error| IotDbFault::new(StatusCode::SQL_PARSE, error.to_string()))?;
        self.advance(rest.len() - after.len());
        Ok(Some(time.as_millisecond()))
    }
}

/// `2026-01-31`, also with `/` or `.`.
fn date(text: &str) -> Option<(Date, &str)> {
    let (year, rest) = number(text, (4, 4))?;
    let separator = rest.chars().next().filter(|char| "-/.".contains(*char))?;
    let (month, rest) = number(rest.strip_prefix(separator)?, (1, 2))?;
    let (day, rest) = number(rest.strip_prefix(separator)?, (1, 2))?;
    let date = Date::new(year as i16, month as i8, day as i8).ok()?;
    Some((date, rest))
}

/// `12:30:01.5`; seconds may be left out.
fn clock_time(text: &str) -> Option<(Time, &str)> {
    let (hour, rest) = number(text, (1, 2))?;
    let (minute, mut rest) = number(rest.strip_prefix(':')?, (1, 2))?;
    let (mut second, mut nanosecond) = (0, 0);
    if let Some((seconds, after)) = rest.strip_prefix(':').and_then(|it| number(it, (1, 2))) {
        second = seconds;
        rest = after;
        if let Some(after) = rest.strip_prefix('.') {
            let (fraction, after) = digits(after);
            let nine = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
            nanosecond = nine.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
            rest = after;
        }
    }
    let time = Time::new(hour as i8, minute as i8, second as i8, nanosecond as i32).ok()?;
    Some((time, rest))
}
