//! Time zones, which the caller of this crate provides.

use crate::civil::CivilTime;
use crate::duration::SECOND;

/// Access to time zones.
pub trait TimeZones {
    /// The offset of a zone (`Europe/Berlin`) from UTC at a moment, in seconds; `None` if there is
    /// no such zone.
    fn offset_seconds(&self, zone: &str, unix_seconds: i64) -> Option<i32>;
}

/// Knows only UTC.
#[derive(Debug, Clone, Copy, Default)]
pub struct UtcOnly;

impl TimeZones for UtcOnly {
    fn offset_seconds(&self, zone: &str, _: i64) -> Option<i32> {
        (zone.is_empty() || zone == "UTC").then_some(0)
    }
}

/// The time zone of a statement.
#[derive(Clone, Copy)]
pub(crate) struct Zone<'a> {
    pub(crate) zones: &'a dyn TimeZones,
    /// `None` for UTC.
    pub(crate) name: Option<&'a str>,
}

impl Zone<'_> {
    /// UTC.
    pub(crate) const UTC: Self = Zone {
        zones: &UtcOnly,
        name: None,
    };

    fn offset_at(&self, unix_seconds: i64) -> i32 {
        let known = self
            .name
            .and_then(|name| self.zones.offset_seconds(name, unix_seconds));
        known.unwrap_or(0)
    }

    /// The nanoseconds since the epoch and the offset of a time. For a local time that does not
    /// exist or exists twice because of a clock change, the result is the one that Go chooses: the
    /// offset before the change.
    pub(crate) fn resolve(&self, time: CivilTime) -> (i128, i32) {
        let offset = time.offset_seconds.unwrap_or_else(|| {
            let guess = self.offset_at(time.local_seconds);
            self.offset_at(time.local_seconds - i64::from(guess))
        });
        let seconds = time.local_seconds - i64::from(offset);
        let ns = i128::from(seconds) * i128::from(SECOND) + i128::from(time.nanos);
        (ns, offset)
    }
}
