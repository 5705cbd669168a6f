//! Where the windows of INTERVAL begin and end.

use crate::run::{fault, taos};
use marigram_sql::SqlResult;
use marigram_tdengine::{TaosCode, TaosDuration, TaosUnit, TimeSetting, TimeShift};

/// Most windows that a row belongs to.
const OVERLAPS_MAX: i64 = 100_000;

/// The month from which windows of months count: January 1900.
const FIRST_MONTH: i64 = 1900 * 12;

/// The windows of INTERVAL.
#[derive(Clone, Debug)]
pub(crate) struct IntervalSpec {
    width: TimeShift,
    sliding: TimeShift,
    offset: TimeShift,
    /// Days and weeks begin at midnight of the zone.
    is_local: bool,
    setting: TimeSetting,
}

impl IntervalSpec {
    /// The windows of a clause.
    ///
    /// # Errors
    /// If the durations contradict each other.
    pub(crate) fn new(
        width: TaosDuration,
        sliding: Option<TaosDuration>,
        offset: Option<TaosDuration>,
        setting: &TimeSetting,
    ) -> SqlResult<Self> {
        let slide = sliding.unwrap_or(width);
        let is_local = matches!(slide.unit, TaosUnit::Day | TaosUnit::Week);
        let (width, sliding) = (width.shift().map_err(taos)?, slide.shift().map_err(taos)?);
        let offset = match offset {
            Some(offset) => offset.shift().map_err(taos)?,
            None => TimeShift::default(),
        };
        let length = |shift: TimeShift| {
            let months = shift.months.saturating_mul(30 * 86_400_000_000_000);
            months.saturating_add(shift.ns)
        };
        if length(sliding) > length(width) {
            return Err(fault(TaosCode::SlidingTooBig));
        }
        if length(offset) >= length(width) {
            return Err(fault(TaosCode::OffsetTooBig));
        }
        if length(width) / length(sliding).max(1) > OVERLAPS_MAX {
            return Err(fault(TaosCode::SlidingTooBig));
        }
        if width.months == 0 && width.ns < setting.precision.tick_ns() {
            return Err(fault(TaosCode::IntervalTooSmall));
        }
        if (width.months == 0) != (sliding.months == 0) {
            return Err(crate::run::unsupported(
                "a SLIDING of another kind than its INTERVAL",
            ));
        }
        Ok(Self {
            width,
            sliding,
            offset,
            is_local,
            setting: setting.clone(),
        })
    }

    /// The width and the first beginning, where all windows are equally wide, do not overlap and follow
    /// UTC, ns.
    pub(crate) fn fixed(&self) -> Option<(i64, i64)> {
        let is_utc = !self.is_local
            || (self.setting.zone_offset_ns(0) == 0
                && self.setting.zone_offset_ns(self.setting.now_ns) == 0);
        let is_fixed = self.width.months == 0 && self.offset.months == 0;
        (is_utc && is_fixed && self.width == self.sliding)
            .then_some((self.width.ns, self.offset.ns))
    }

    /// The beginning of the first window that a time belongs to.
    pub(crate) fn first_start(&self, time: i64) -> i64 {
        if self.width.months == 0 {
            let offset = self.fixed_offset(time);
            let slide = self.sliding.ns.max(1);
            let before = time.saturating_sub(self.width.ns).saturating_sub(offset);
            let place = before.div_euclid(slide) + 1;
            return place.saturating_mul(slide).saturating_add(offset);
        }
        let slide = self.sliding.months.max(1);
        let shifted = time.saturating_sub(self.offset.ns);
        let month = self.setting.month_of(shifted) - FIRST_MONTH;
        let mut place = month.div_euclid(slide);
        // Earlier windows may reach to this time, too.
        for _ in 0..=self.width.months / slide {
            let start = self.month_start(place - 1);
            if self.end(start) <= time {
                break;
            }
            place -= 1;
        }
        self.month_start(place)
    }

    fn fixed_offset(&self, time: i64) -> i64 {
        let zone = if self.is_local {
            self.setting.zone_offset_ns(time)
        } else {
            0
        };
        self.offset.ns.saturating_sub(zone)
    }

    fn month_start(&self, place: i64) -> i64 {
        let month = place.saturating_mul(self.sliding.months.max(1)) + FIRST_MONTH;
        let start = self.setting.month_start_ns(month).unwrap_or(i64::MIN / 2);
        start.saturating_add(self.offset.ns)
    }

    /// The beginning of the next window.
    pub(crate) fn next_start(&self, start: i64) -> i64 {
        if self.width.months == 0 {
            return start.saturating_add(self.sliding.ns.max(1));
        }
        self.shifted(start, self.sliding)
    }

    /// The end of a window, which does not belong to it.
    pub(crate) fn end(&self, start: i64) -> i64 {
        if self.width.months == 0 {
            return start.saturating_add(self.width.ns);
        }
        self.shifted(start, self.width)
    }

    fn shifted(&self, start: i64, shift: TimeShift) -> i64 {
        let month = self.setting.month_of(start.saturating_sub(self.offset.ns));
        let to = self
            .setting
            .month_start_ns(month.saturating_add(shift.months));
        to.map_or(i64::MAX, |to| to.saturating_add(self.offset.ns))
    }

    /// How many windows begin within a range of times, about.
    pub(crate) fn count_within(&self, min: i64, max: i64) -> i64 {
        let slide = match self.sliding.months {
            0 => self.sliding.ns.max(1),
            months => months.saturating_mul(28 * 86_400_000_000_000),
        };
        max.saturating_sub(min) / slide
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_tdengine::{TaosPrecision, parse_time};

    fn spec(width: &str, sliding: Option<&str>, offset: Option<&str>, zone: &str) -> IntervalSpec {
        let read = |text: &str| TaosDuration::from_text(text).expect("a duration");
        let setting = TimeSetting::in_zone(0, TaosPrecision::Milli, zone);
        IntervalSpec::new(read(width), sliding.map(read), offset.map(read), &setting)
            .expect("windows")
    }

    fn time_of(text: &str) -> i64 {
        let zone = TimeSetting::default().zone;
        parse_time(text, &zone).expect("a time")
    }

    #[test]
    fn windows_of_days_follow_the_zone() {
        let days = spec("1d", None, None, "Asia/Shanghai");
        let start = days.first_start(time_of("2024-05-01 20:00:00"));
        assert_eq!(start, time_of("2024-05-01 16:00:00"));
        assert_eq!(days.end(start), time_of("2024-05-02 16:00:00"));
        assert_eq!(days.fixed(), None);
    }

    #[test]
    fn windows_of_months_follow_the_calendar() {
        let months = spec("1n", None, None, "UTC");
        let start = months.first_start(time_of("2024-02-29 20:00:00"));
        assert_eq!(start, time_of("2024-02-01"));
        assert_eq!(months.end(start), time_of("2024-03-01"));
        let years = spec("1y", Some("6n"), None, "UTC");
        let start = years.first_start(time_of("2024-02-29"));
        assert_eq!(start, time_of("2023-07-01"));
        assert_eq!(years.next_start(start), time_of("2024-01-01"));
    }

    #[test]
    fn windows_overlap_by_their_slide() {
        let windows = spec("10s", Some("4s"), Some("1s"), "UTC");
        let second = 1_000_000_000;
        // Windows begin at 1, 5, 9, 13 …; the last one that begins before 14 is 13.
        assert_eq!(windows.first_start(14 * second), 5 * second);
        assert_eq!(windows.first_start(-1), -7 * second);
    }
}
