//! Compares buckets with an independent implementation of time zones (jiff), around every clock
//! change of five zones up to 2050.

use super::*;
use crate::duration::parse_interval;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone as OtherZone;

const MINUTE_NS: i64 = 60_000_000_000;

/// The clocks of a zone: the offset that they show from each time on.
struct OracleClocks {
    zone: OtherZone,
    /// The first time and the offset of each span, in order.
    spans: Vec<(i64, i64)>,
}

fn other_ns(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap()
}

impl OracleClocks {
    fn for_zone(name: &str) -> Self {
        let zone = OtherZone::get(name).unwrap();
        let from: Timestamp = "1700-01-01T00:00:00Z".parse().unwrap();
        let to: Timestamp = "2050-01-01T00:00:00Z".parse().unwrap();
        let offset_ns = |time| i64::from(zone.to_offset(time).seconds()) * 1_000_000_000;
        let mut spans = vec![(other_ns(from), offset_ns(from))];
        let changes = zone.following(from).map(|change| change.timestamp());
        for time in changes.take_while(|time| *time < to) {
            let offset = offset_ns(time);
            if spans.last().unwrap().1 != offset {
                spans.push((other_ns(time), offset));
            }
        }
        Self { zone, spans }
    }

    /// The start of a bucket of less than a day: the time when clocks last showed a multiple of the
    /// width, or were set forward past one.
    fn start_within_day(&self, time: i64, width: i64) -> i64 {
        let slot = |wall: i64| (wall - MONDAY_NS).div_euclid(width);
        let mut end = time;
        for (at, (from, offset)) in self.spans.iter().enumerate().rev() {
            if *from > time {
                continue;
            }
            let start = slot(end + offset) * width + MONDAY_NS - offset;
            if start >= *from {
                return start;
            }
            let before = self.spans[at - 1].1;
            if before < *offset && slot(from + offset) > slot(from - 1 + before) {
                return *from;
            }
            end = from - 1;
        }
        panic!("the bucket begins before the first span");
    }

    /// The start of a bucket of days: the last of these days that had begun.
    fn start_of_days(&self, time: i64, first: fn(Date) -> Date) -> i64 {
        let date = Timestamp::from_nanosecond(i128::from(time)).unwrap();
        let date = date.to_zoned(self.zone.clone()).date();
        let days = (-1..=1).map(|days| {
            let day = first(date.checked_add(jiff::Span::new().days(days)).unwrap());
            let noon = day.at(12, 0, 0, 0).to_zoned(self.zone.clone()).unwrap();
            other_ns(noon.start_of_day().unwrap().timestamp())
        });
        days.filter(|start| *start <= time).max().unwrap()
    }

    fn start(&self, width: &str, time: i64) -> i64 {
        match width {
            "1d" => self.start_of_days(time, |date| date),
            "1w" => self.start_of_days(time, |date| {
                let since_monday = i64::from(date.weekday().to_monday_zero_offset());
                date.checked_sub(jiff::Span::new().days(since_monday))
                    .unwrap()
            }),
            "1mo" => self.start_of_days(time, Date::first_of_month),
            _ => {
                let width = parse_interval(width).unwrap().fixed_ns().unwrap();
                self.start_within_day(time, width)
            }
        }
    }
}

#[test]
fn buckets_agree_with_another_implementation_around_every_change() {
    let zones = [
        "Europe/Berlin",
        "America/New_York",
        "America/Sao_Paulo",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "America/St_Johns",
    ];
    let mut changes = 0;
    for name in zones {
        let clocks = OracleClocks::for_zone(name);
        let zone: Tz = name.parse().unwrap();
        for width in ["15m", "1h", "2h", "6h", "1d", "1w", "1mo"] {
            let mut buckets =
                TimeBuckets::new(parse_interval(width).unwrap(), None, Some(zone)).unwrap();
            for (change, _) in &clocks.spans[1..] {
                changes += 1;
                let around = (-2 * 24 * 4..=2 * 24 * 4).map(|quarter| quarter * 15 * MINUTE_NS);
                let near = [-1, 1, -MINUTE_NS, MINUTE_NS];
                for time in around.chain(near).map(|since| change + since) {
                    assert_eq!(
                        naive(buckets.floor(time).unwrap()),
                        naive(clocks.start(width, time)),
                        "{width} of {} in {name}, where clocks were set at {}",
                        naive(time),
                        naive(*change),
                    );
                }
            }
        }
    }
    assert!(changes > 7 * 600, "{changes} changes were looked at");
}
