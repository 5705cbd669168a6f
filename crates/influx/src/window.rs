//! Groups of time: the start and end of the group that contains a time.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use marigram_influxql::TimeZones;
use marigram_influxql::time_range::{TIME_MAX_NS, TIME_MIN_NS};

/// Groups of time with one length; with length 0 there is one group, which contains all times of a
/// statement.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// Length in nanoseconds; 0 for no groups.
    pub every_ns: i64,
    /// The offset of the groups.
    pub offset_ns: i64,
    /// The first time of the statement, included.
    pub start_ns: i64,
    /// The last time of the statement, included.
    pub end_ns: i64,
    /// The zone whose local time is divided into groups.
    pub zone: Option<TimeZone>,
}

impl Windows {
    /// Whether there are groups.
    pub(crate) const fn is_grouped(&self) -> bool {
        self.every_ns != 0
    }

    /// How far the zone is ahead of UTC at a time, in nanoseconds.
    pub(crate) fn zone_offset(&self, ns: i64) -> i64 {
        self.zone.as_ref().map_or(0, |zone| offset_ns(zone, ns))
    }

    /// The group of a time: its first time, and the first time after it.
    pub(crate) fn window(&self, time: i64) -> (i64, i64) {
        if self.every_ns == 0 {
            return (self.start_ns, self.end_ns.saturating_add(1));
        }
        let every = self.every_ns;
        let time = time.wrapping_sub(self.offset_ns);
        let zone = self.zone_offset(time);
        let passed = time.wrapping_add(zone).rem_euclid(every);
        let mut start = if TIME_MIN_NS.saturating_add(passed) >= time {
            TIME_MIN_NS
        } else {
            time - passed
        };
        // The offset may have changed within the group.
        let changed = zone - self.zone_offset(start);
        if changed != 0 && changed.abs() < every {
            start = start.saturating_add(changed);
        }
        start = start.wrapping_add(self.offset_ns);
        let left = every - passed;
        let mut end = if TIME_MAX_NS - left <= time {
            TIME_MAX_NS
        } else {
            time + left
        };
        let end_zone = self.zone_offset(end);
        let changed = zone - end_zone;
        if changed != 0
            && changed.abs() < every
            && (changed > 0 || self.zone_offset(end.saturating_add(changed)) == end_zone)
        {
            end = end.saturating_add(changed);
        }
        (start, end.wrapping_add(self.offset_ns))
    }
}

fn offset_ns(zone: &TimeZone, ns: i64) -> i64 {
    let Ok(time) = Timestamp::from_nanosecond(i128::from(ns)) else {
        return 0;
    };
    i64::from(zone.to_offset(time).seconds()) * 1_000_000_000
}

/// The time zones of the IANA database, which the program includes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BundledZones;

impl TimeZones for BundledZones {
    fn offset_seconds(&self, zone: &str, unix_seconds: i64) -> Option<i32> {
        let zone = named_zone(zone)?;
        let time = Timestamp::from_second(unix_seconds).ok()?;
        Some(zone.to_offset(time).seconds())
    }
}

/// The zone of an IANA name.
pub(crate) fn named_zone(name: &str) -> Option<TimeZone> {
    match name {
        "" | "UTC" => Some(TimeZone::UTC),
        "Local" => None,
        name => TimeZone::get(name).ok(),
    }
}
