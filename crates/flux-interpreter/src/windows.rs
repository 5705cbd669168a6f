//! Windows of time: `every` and `period` long, aligned to the Unix epoch with an offset.

use crate::value::{ENDLESS, FluxSpan};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The nanoseconds of a month, roughly.
const MONTH_NS: i128 = 30 * 86_400 * 1_000_000_000;

/// The windows that a time may be in.
const OVERLAP_MAX: i128 = 1000;

/// The windows of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FluxWindows {
    /// From the start of a window to that of the next one.
    pub every: FluxSpan,
    /// How long a window is.
    pub period: FluxSpan,
    /// By how much the windows are shifted.
    pub offset: FluxSpan,
}

/// The first moment of a month, counted from January 1970.
fn month_start(month: i64) -> i64 {
    let year = i16::try_from(1970 + month.div_euclid(12)).ok();
    let of_year = i8::try_from(month.rem_euclid(12) + 1).ok();
    let date = year
        .zip(of_year)
        .and_then(|(year, month)| Date::new(year, month, 1).ok());
    let start = date.and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    let start = start.and_then(|start| i64::try_from(start.timestamp().as_nanosecond()).ok());
    start.unwrap_or(if month < 0 { i64::MIN } else { i64::MAX })
}

/// The month of a time, counted from January 1970.
fn month_of(ns: i64) -> i64 {
    let time = Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    let date = time.to_zoned(TimeZone::UTC).date();
    (i64::from(date.year()) - 1970) * 12 + i64::from(date.month()) - 1
}

impl FluxWindows {
    /// What is wrong with the windows, if anything.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let spans = [self.every, self.period];
        if spans
            .iter()
            .any(|span| span.is_negative() || span.is_zero())
        {
            return Some("every and period are not positive");
        }
        if spans.iter().any(|span| span.months > 0 && span.ns > 0) {
            return Some("a duration mixes months with shorter units");
        }
        let length = |span: FluxSpan| i128::from(span.months) * MONTH_NS + i128::from(span.ns);
        if !self.is_endless() && length(self.period) / length(self.every) > OVERLAP_MAX {
            return Some("a period is longer than 1000 windows");
        }
        None
    }

    /// Whether there is only one window, which never ends.
    pub(crate) fn is_endless(&self) -> bool {
        self.every == ENDLESS
    }

    /// The start of the last window that starts at or before a time.
    pub(crate) fn start(&self, ns: i64) -> i64 {
        let shifted = self.offset.negated().after(ns);
        let start = if self.every.months > 0 {
            let month = month_of(shifted);
            month_start(month - month.rem_euclid(self.every.months))
        } else {
            let every = self.every.ns.max(1);
            shifted.saturating_sub(shifted.rem_euclid(every))
        };
        self.offset.after(start)
    }

    /// The start of the next window.
    pub(crate) fn next(&self, start: i64) -> i64 {
        let unshifted = self.offset.negated().after(start);
        self.offset.after(self.every.after(unshifted))
    }

    /// The start of the window before.
    pub(crate) fn previous(&self, start: i64) -> i64 {
        let unshifted = self.offset.negated().after(start);
        self.offset.after(self.every.negated().after(unshifted))
    }

    /// Where a window ends.
    pub(crate) fn stop(&self, start: i64) -> i64 {
        self.period.after(start)
    }

    /// The start of the first window that a time is in, or that ends after it.
    pub(crate) fn first(&self, ns: i64) -> i64 {
        let mut start = self.start(ns);
        loop {
            let before = self.previous(start);
            if before >= start || self.stop(before) <= ns {
                return start;
            }
            start = before;
        }
    }
}
