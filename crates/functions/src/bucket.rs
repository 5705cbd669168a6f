//! Buckets of time: determines which bucket holds a time, by an origin or by the calendar of a time
//! zone.
//!
//! Invariant: buckets follow one another without gap or overlap. A later time is never in an
//! earlier bucket, even when the offset of the zone changes.

use crate::duration::CalendarInterval;
use chrono::{DateTime, Datelike, Days, Months, NaiveDateTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use marigram_model::DAY_NS;

/// Monday, 3 January 2000, 00:00: the default origin of buckets of days and less.
const MONDAY_NS: i64 = 946_857_600_000_000_000;
/// 1 January 2000, 00:00: the default origin of buckets of months.
const CENTURY_NS: i64 = 946_684_800_000_000_000;

/// Why buckets do not exist, or a time has no bucket.
pub(crate) type BucketError = String;

/// Buckets of one width.
#[derive(Clone, Debug)]
pub struct TimeBuckets {
    width: BucketWidth,
    /// The origin: UTC, or wall time if there is a zone.
    origin_ns: i64,
    zone: Option<Tz>,
    /// The last bucket found (its first time, first time of the next), for zones and months.
    last: Option<(i64, i64)>,
}

#[derive(Clone, Copy, Debug)]
enum BucketWidth {
    Fixed(i64),
    Months(i32),
}

impl TimeBuckets {
    /// Buckets of `width`, counted from `origin_ns` (UTC), by the clocks of `zone` if given.
    ///
    /// # Errors
    /// If the width is not positive, or mixes months with days.
    pub fn new(
        width: CalendarInterval,
        origin_ns: Option<i64>,
        zone: Option<Tz>,
    ) -> Result<Self, BucketError> {
        let width = match width {
            CalendarInterval {
                months,
                days: 0,
                nanos: 0,
            } if months != 0 => BucketWidth::Months(months),
            CalendarInterval { months: 0, .. } => match width.fixed_ns() {
                Some(ns) => BucketWidth::Fixed(ns),
                None => return Err("the bucket's width does not fit into 64 bits of ns".into()),
            },
            _ => return Err("a bucket is of months, or of days and less, not of both".into()),
        };
        let positive = match width {
            BucketWidth::Fixed(ns) => ns > 0,
            BucketWidth::Months(months) => months > 0,
        };
        if !positive {
            return Err("a bucket's width must be positive".into());
        }
        let origin_ns = match (origin_ns, zone) {
            (Some(origin_ns), Some(zone)) => wall_ns(origin_ns, zone)?,
            (Some(origin_ns), None) => origin_ns,
            (None, _) => match width {
                BucketWidth::Fixed(_) => MONDAY_NS,
                BucketWidth::Months(_) => CENTURY_NS,
            },
        };
        Ok(Self {
            width,
            origin_ns,
            zone,
            last: None,
        })
    }

    /// The same buckets, each of which begins later by `offset` (by the clocks of the zone).
    ///
    /// # Errors
    /// If the first bucket would begin outside the range of i64 nanoseconds.
    pub fn with_offset(mut self, offset: CalendarInterval) -> Result<Self, BucketError> {
        let months = Months::new(offset.months.unsigned_abs());
        let origin = naive(self.origin_ns);
        let origin = if offset.months < 0 {
            origin.checked_sub_months(months)
        } else {
            origin.checked_add_months(months)
        };
        self.origin_ns = origin
            .and_then(|origin| origin.and_utc().timestamp_nanos_opt())
            .and_then(|origin| {
                let days = i64::from(offset.days).checked_mul(DAY_NS)?;
                origin.checked_add(days)?.checked_add(offset.nanos)
            })
            .ok_or("the offset is too large")?;
        self.last = None;
        Ok(self)
    }

    /// The first time of the bucket that holds `time` (both ns, UTC).
    ///
    /// # Errors
    /// If it is outside the range of i64 nanoseconds.
    pub fn floor(&mut self, time: i64) -> Result<i64, BucketError> {
        let found = match (self.width, self.zone) {
            (BucketWidth::Fixed(ns), None) => return fixed_floor(time, ns, self.origin_ns),
            (BucketWidth::Fixed(ns), Some(zone)) if ns < DAY_NS => {
                if let Some((start, end)) = self.last
                    && start <= time
                    && time < end
                {
                    return Ok(start);
                }
                let start = within_day(time, ns, self.origin_ns, zone)?;
                self.last = self.whole(start, ns, zone);
                return Ok(start);
            }
            _ => match self.last {
                Some((start, end)) if start <= time && time < end => return Ok(start),
                _ => self.on_calendar(time)?,
            },
        };
        self.last = Some(found);
        Ok(found.0)
    }

    /// The width if all buckets have the same, ns.
    pub fn fixed_ns(&self) -> Option<i64> {
        match (self.width, self.zone) {
            (BucketWidth::Fixed(ns), None) => Some(ns),
            _ => None,
        }
    }

    /// The bucket that holds `time`: its first time, and a time before which no other bucket
    /// begins. `near` is a bucket that was found before.
    ///
    /// # Errors
    /// Those of [`floor`](Self::floor).
    pub fn span(&mut self, time: i64, near: (i64, i64)) -> Result<(i64, i64), BucketError> {
        if let Some(ns) = self.fixed_ns() {
            // Times arrive in order, so it is usually the next bucket.
            let next = near.1.checked_add(ns);
            if let Some(end) = next.filter(|end| near.0 < near.1 && near.1 <= time && time < *end) {
                return Ok((near.1, end));
            }
            let start = self.floor(time)?;
            return Ok((start, start.saturating_add(ns)));
        }
        let start = self.floor(time)?;
        let end = match self.last {
            Some((known, end)) if known == start => end,
            _ => time.saturating_add(1),
        };
        Ok((start, end))
    }

    /// The bucket of less than a day that begins at `start`, if clocks do not change within it.
    fn whole(&self, start: i64, width: i64, zone: Tz) -> Option<(i64, i64)> {
        let end = start.checked_add(width)?;
        let (first, last) = (wall_ns(start, zone).ok()?, wall_ns(end - 1, zone).ok()?);
        let on_grid = fixed_floor(first, width, self.origin_ns) == Ok(first);
        (on_grid && last - first == width - 1).then_some((start, end))
    }

    /// A bucket of days or months, and the start of the next one.
    fn on_calendar(&self, time: i64) -> Result<(i64, i64), BucketError> {
        let mut number = self.number(time)?;
        let mut start = self.start(number)?;
        // Near a change of offset, the wall time may be in an adjacent bucket.
        while start > time {
            number -= 1;
            start = self.start(number)?;
        }
        let mut end = self.start(number + 1).unwrap_or(i64::MAX);
        while end <= time && end != i64::MAX {
            number += 1;
            (start, end) = (end, self.start(number + 1).unwrap_or(i64::MAX));
        }
        Ok((start, end))
    }

    /// The approximate number of the bucket that holds a time, counted from the origin.
    fn number(&self, time: i64) -> Result<i64, BucketError> {
        let wall = match self.zone {
            Some(zone) => wall_ns(time, zone)?,
            None => time,
        };
        match self.width {
            BucketWidth::Fixed(ns) => Ok(wall
                .checked_sub(self.origin_ns)
                .ok_or_else(out_of_range)?
                .div_euclid(ns)),
            BucketWidth::Months(months) => {
                let (wall, origin) = (naive(wall), naive(self.origin_ns));
                let since = (i64::from(wall.year()) - i64::from(origin.year())) * 12
                    + i64::from(wall.month())
                    - i64::from(origin.month());
                Ok(since.div_euclid(i64::from(months)))
            }
        }
    }

    /// The first time of a bucket.
    fn start(&self, number: i64) -> Result<i64, BucketError> {
        let wall = match self.width {
            BucketWidth::Fixed(ns) => number
                .checked_mul(ns)
                .and_then(|since| self.origin_ns.checked_add(since))
                .map(naive),
            BucketWidth::Months(months) => {
                let months = number
                    .checked_mul(i64::from(months))
                    .ok_or_else(out_of_range)?;
                let origin = naive(self.origin_ns);
                let count = u32::try_from(months.unsigned_abs()).map_err(|_| out_of_range())?;
                if months < 0 {
                    origin.checked_sub_months(Months::new(count))
                } else {
                    origin.checked_add_months(Months::new(count))
                }
            }
        };
        let wall = wall.ok_or_else(out_of_range)?;
        match self.zone {
            Some(zone) => earliest(wall, zone),
            None => wall
                .and_utc()
                .timestamp_nanos_opt()
                .ok_or_else(out_of_range),
        }
    }
}

fn out_of_range() -> BucketError {
    "the bucket begins before the earliest possible time (1677-09-21)".into()
}

fn fixed_floor(time: i64, width: i64, origin: i64) -> Result<i64, BucketError> {
    // Move the origin close to the epoch, so that the difference fits.
    let shift = origin.rem_euclid(width);
    let since = i128::from(time) - i128::from(shift);
    let start = i128::from(time) - since.rem_euclid(i128::from(width));
    i64::try_from(start).map_err(|_| out_of_range())
}

fn naive(ns: i64) -> NaiveDateTime {
    DateTime::<Utc>::from_timestamp_nanos(ns).naive_utc()
}

/// The wall time at `time`, as ns since the epoch.
fn wall_ns(time: i64, zone: Tz) -> Result<i64, BucketError> {
    let utc = naive(time);
    let offset = zone.offset_from_utc_datetime(&utc).fix().local_minus_utc();
    time.checked_add(i64::from(offset) * 1_000_000_000)
        .ok_or_else(out_of_range)
}

/// The first time at which clocks show `wall`, or the end of the gap in which they never do.
fn earliest(wall: NaiveDateTime, zone: Tz) -> Result<i64, BucketError> {
    let found = zone
        .from_local_datetime(&wall)
        .earliest()
        .or_else(|| after_gap(wall, zone));
    found
        .and_then(|time| time.timestamp_nanos_opt())
        .ok_or_else(out_of_range)
}

fn after_gap(wall: NaiveDateTime, zone: Tz) -> Option<DateTime<Tz>> {
    if let Some(end) = GapInfo::new(&wall, &zone).and_then(|gap| gap.end) {
        return Some(end);
    }
    // A gap of a whole day (Samoa, 2011): use the next wall time that exists.
    let next = wall
        .date()
        .checked_add_days(Days::new(1))?
        .and_time(wall.time());
    zone.from_local_datetime(&next).earliest()
}

/// A bucket of less than a day by a zone's clock. When clocks are set back, the repeated hour makes
/// two buckets; when they are set forward, a bucket may begin at the change.
fn within_day(time: i64, width: i64, origin: i64, zone: Tz) -> Result<i64, BucketError> {
    let wall = naive(fixed_floor(wall_ns(time, zone)?, width, origin)?);
    let starts = zone.from_local_datetime(&wall);
    let candidates = [
        starts.latest(),
        starts.earliest(),
        after_gap_if_none(&starts, wall, zone),
    ];
    let start = candidates
        .into_iter()
        .flatten()
        .filter_map(|start| start.timestamp_nanos_opt())
        .find(|start| *start <= time);
    match start {
        Some(start) => Ok(before_change(time, start, width, origin, zone)),
        // The change hides the start of the bucket, so its wall time has not occurred yet: count
        // from here.
        None => {
            let offset = zone
                .offset_from_utc_datetime(&naive(time))
                .fix()
                .local_minus_utc();
            let offset = TimeDelta::seconds(i64::from(offset));
            wall.checked_sub_signed(offset)
                .and_then(|start| start.and_utc().timestamp_nanos_opt())
                .ok_or_else(out_of_range)
        }
    }
}

/// The latest start of a bucket that is not after `time`, if clocks changed between `start` and
/// `time`: by the clock before the change, another bucket may have begun since.
fn before_change(time: i64, start: i64, width: i64, origin: i64, zone: Tz) -> i64 {
    let offset = |at: i64| wall_ns(at, zone).ok().map(|wall| wall - at);
    let (Some(before), Some(after)) = (offset(start), offset(time)) else {
        return start;
    };
    if before == after {
        return start;
    }
    let wall = time
        .checked_add(before)
        .and_then(|wall| fixed_floor(wall, width, origin).ok());
    let Some(mut last) = wall.and_then(|wall| wall.checked_sub(before)) else {
        return start;
    };
    while last > start && offset(last) != Some(before) {
        last -= width;
    }
    last.max(start)
}

fn after_gap_if_none(
    starts: &chrono::LocalResult<DateTime<Tz>>,
    wall: NaiveDateTime,
    zone: Tz,
) -> Option<DateTime<Tz>> {
    matches!(starts, chrono::LocalResult::None)
        .then(|| after_gap(wall, zone))
        .flatten()
}

#[path = "bucket/nests.rs"]
mod nests;
#[path = "bucket/next.rs"]
mod next;
#[cfg(test)]
#[path = "bucket/oracle.rs"]
mod oracle;
#[cfg(test)]
#[path = "bucket/tests.rs"]
mod tests;
