//! Durations with a sign, and times after them.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use marigram_flux::FluxDuration;
use std::fmt::{self, Write};

/// A duration with a sign: months, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct FluxSpan {
    /// Months.
    pub months: i64,
    /// Nanoseconds.
    pub ns: i64,
}

/// The duration that never ends, `inf`.
pub(crate) const ENDLESS: FluxSpan = FluxSpan {
    months: 0,
    ns: i64::MAX,
};

impl FluxSpan {
    /// The same duration backwards.
    #[must_use]
    pub(crate) const fn negated(self) -> Self {
        Self {
            months: self.months.saturating_neg(),
            ns: self.ns.saturating_neg(),
        }
    }

    /// Whether it goes back.
    pub(crate) const fn is_negative(self) -> bool {
        self.months < 0 || self.ns < 0
    }

    /// Whether it takes no time.
    pub(crate) const fn is_zero(self) -> bool {
        self.months == 0 && self.ns == 0
    }

    /// The time that is this duration after another one. What 64 bits cannot hold is cut.
    pub(crate) fn after(self, ns: i64) -> i64 {
        months_after(ns, self.months).saturating_add(self.ns)
    }
}

fn months_after(ns: i64, months: i64) -> i64 {
    if months == 0 {
        return ns;
    }
    let cut = if months < 0 { i64::MIN } else { i64::MAX };
    let shifted = || {
        let time = Timestamp::from_nanosecond(i128::from(ns)).ok()?;
        let span = Span::new().try_months(months).ok()?;
        let shifted = time.to_zoned(TimeZone::UTC).checked_add(span).ok()?;
        i64::try_from(shifted.timestamp().as_nanosecond()).ok()
    };
    shifted().unwrap_or(cut)
}

impl From<FluxDuration> for FluxSpan {
    fn from(duration: FluxDuration) -> Self {
        Self {
            months: duration.months,
            ns: duration.ns,
        }
    }
}

impl fmt::Display for FluxSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            f.write_char('-')?;
        }
        let duration = FluxDuration {
            months: self.months.saturating_abs(),
            ns: self.ns.saturating_abs(),
        };
        duration.fmt(f)
    }
}
