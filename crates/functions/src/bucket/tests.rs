//! Compares buckets with results worked out by hand, and checks their invariant.

use super::*;
use crate::duration::parse_interval;
use chrono_tz::{America, Asia, Australia, Europe, Pacific};

fn ns(text: &str) -> i64 {
    let time = DateTime::parse_from_rfc3339(text).unwrap();
    time.timestamp_nanos_opt().unwrap()
}

fn bucket(width: &str, zone: Option<Tz>, time: &str) -> String {
    let mut buckets = TimeBuckets::new(parse_interval(width).unwrap(), None, zone).unwrap();
    let start = buckets.floor(ns(time)).unwrap();
    DateTime::<Utc>::from_timestamp_nanos(start)
        .format("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

#[test]
fn without_a_zone_buckets_are_counted_from_a_monday() {
    assert_eq!(
        bucket("10m", None, "2024-05-01T12:34:56Z"),
        "2024-05-01T12:30:00Z"
    );
    assert_eq!(
        bucket("1w", None, "2024-05-01T12:34:56Z"),
        "2024-04-29T00:00:00Z"
    );
    assert_eq!(
        bucket("1mo", None, "2024-05-01T12:34:56Z"),
        "2024-05-01T00:00:00Z"
    );
    assert_eq!(
        bucket("1y", None, "1969-12-31T23:59:59Z"),
        "1969-01-01T00:00:00Z"
    );
    assert_eq!(
        bucket("1d", None, "1969-12-31T23:59:59Z"),
        "1969-12-31T00:00:00Z"
    );
}

#[test]
fn days_of_a_zone_begin_at_its_midnight() {
    let berlin = Some(Europe::Berlin);
    assert_eq!(
        bucket("1d", berlin, "2024-03-31T12:00:00Z"),
        "2024-03-30T23:00:00Z"
    );
    assert_eq!(
        bucket("1d", berlin, "2024-03-31T22:00:00Z"),
        "2024-03-31T22:00:00Z"
    );
    assert_eq!(
        bucket("1d", berlin, "2024-10-27T22:59:59Z"),
        "2024-10-26T22:00:00Z"
    );
    assert_eq!(
        bucket("1mo", berlin, "2024-04-01T00:00:00Z"),
        "2024-03-31T22:00:00Z"
    );
    // This midnight does not exist in Beirut: clocks go from 00:00 to 01:00.
    assert_eq!(
        bucket("1d", Some(Asia::Beirut), "2022-03-27T10:00:00Z"),
        "2022-03-26T22:00:00Z"
    );
    // Samoa skipped 30 December 2011.
    assert_eq!(
        bucket("1d", Some(Pacific::Apia), "2011-12-30T12:00:00Z"),
        "2011-12-30T10:00:00Z"
    );
}

#[test]
fn an_hour_that_comes_twice_is_two_buckets() {
    let berlin = Some(Europe::Berlin);
    assert_eq!(
        bucket("1h", berlin, "2024-10-27T00:30:00Z"),
        "2024-10-27T00:00:00Z"
    );
    assert_eq!(
        bucket("1h", berlin, "2024-10-27T01:30:00Z"),
        "2024-10-27T01:00:00Z"
    );
    assert_eq!(
        bucket("6h", berlin, "2024-10-27T03:00:00Z"),
        "2024-10-26T22:00:00Z"
    );
    assert_eq!(
        bucket("2h", berlin, "2024-03-31T01:30:00Z"),
        "2024-03-31T01:00:00Z"
    );
    // Lord Howe Island shifts by half an hour: the hour from 01:00 lasts 90 minutes.
    let howe = Some(Australia::Lord_Howe);
    assert_eq!(
        bucket("1h", howe, "2024-04-06T15:10:00Z"),
        "2024-04-06T14:00:00Z"
    );
    assert_eq!(
        bucket("1h", howe, "2024-04-06T15:30:00Z"),
        "2024-04-06T15:30:00Z"
    );
    // St. John's set clocks back at 00:01: the bucket that began at midnight continues.
    let john = Some(America::St_Johns);
    assert_eq!(
        bucket("1h", john, "2005-10-30T02:45:00Z"),
        "2005-10-30T02:30:00Z"
    );
}

#[test]
fn later_times_are_never_in_earlier_buckets() {
    let zones = [
        Europe::Berlin,
        America::St_Johns,
        America::Havana,
        Australia::Lord_Howe,
        Asia::Beirut,
        Pacific::Apia,
    ];
    for zone in zones {
        for width in ["15m", "1h", "2h", "6h", "1d", "1w", "1mo"] {
            let mut buckets =
                TimeBuckets::new(parse_interval(width).unwrap(), None, Some(zone)).unwrap();
            for year in [2005, 2011, 2024] {
                let mut time = ns(&format!("{year}-01-01T00:00:00Z"));
                let mut last = i64::MIN;
                for _ in 0..365 * 24 * 4 {
                    let start = buckets.floor(time).unwrap();
                    assert!(start <= time, "{zone} {width} {}", naive(time));
                    assert!(start >= last, "{zone} {width} {}", naive(time));
                    assert_eq!(
                        buckets.floor(start),
                        Ok(start),
                        "{zone} {width} {}",
                        naive(time)
                    );
                    last = start;
                    time += 15 * 60_000_000_000;
                }
            }
        }
    }
}

#[test]
fn an_origin_and_an_offset_hold_on_the_clocks_of_a_zone() {
    let floor = |width: &str, origin: Option<&str>, offset: &str, time: &str| {
        let width = parse_interval(width).unwrap();
        let buckets = TimeBuckets::new(width, origin.map(ns), Some(Europe::Berlin)).unwrap();
        let mut buckets = buckets
            .with_offset(parse_interval(offset).unwrap())
            .unwrap();
        naive(buckets.floor(ns(time)).unwrap()).to_string()
    };
    // Days from 6:00 to 6:00, across the change to summer time: 23 hours.
    let day = |time| floor("1d", None, "6h", time);
    assert_eq!(day("2024-03-31T03:59:59Z"), "2024-03-30 05:00:00");
    assert_eq!(day("2024-03-31T04:00:00Z"), "2024-03-31 04:00:00");
    // Weeks from Sunday, 6:00.
    let week = |time| floor("1w", Some("2024-01-06T23:00:00Z"), "6h", time);
    assert_eq!(week("2024-03-31T03:59:59Z"), "2024-03-24 05:00:00");
    assert_eq!(week("2024-03-31T04:00:00Z"), "2024-03-31 04:00:00");
    // Months from the tenth; quarters a month later.
    let month = |time| floor("1mo", None, "9d", time);
    assert_eq!(month("2024-04-09T21:59:59Z"), "2024-03-09 23:00:00");
    assert_eq!(month("2024-04-09T22:00:00Z"), "2024-04-09 22:00:00");
    let quarter = |time| floor("3mo", None, "1mo", time);
    assert_eq!(quarter("2024-04-30T12:00:00Z"), "2024-01-31 23:00:00");
}

#[test]
fn odd_widths_and_far_times_are_errors() {
    let buckets = |width: &str| TimeBuckets::new(parse_interval(width).unwrap(), None, None);
    assert!(buckets("1 month 1 day").is_err());
    assert!(buckets("0s").is_err());
    assert!(buckets("7d").unwrap().floor(i64::MIN).is_err());
    assert!(buckets("1y").unwrap().floor(i64::MIN).is_err());
    let far = TimeBuckets::new(parse_interval("1d").unwrap(), None, Some(Europe::Berlin));
    assert!(far.unwrap().floor(i64::MAX).is_err());
    for (months, days, nanos) in [(i32::MAX, 0, 0), (i32::MIN, 0, 0), (0, i32::MAX, i64::MAX)] {
        let offset = CalendarInterval {
            months,
            days,
            nanos,
        };
        assert!(buckets("1d").unwrap().with_offset(offset).is_err());
    }
}

#[test]
fn the_next_bucket_begins_where_this_one_ends() {
    const MINUTE_NS: i64 = 60_000_000_000;
    let zones = [
        Europe::Berlin,
        America::New_York,
        Australia::Lord_Howe,
        Pacific::Apia,
    ];
    let changes = [
        "2024-03-29T00:00:00Z",
        "2024-10-26T00:00:00Z",
        "2011-12-28T00:00:00Z",
    ];
    for width in ["25m", "1h", "5h", "1d", "36h", "1 month"] {
        for zone in zones.into_iter().map(Some).chain([None]) {
            for from in changes.map(ns) {
                let interval = parse_interval(width).unwrap();
                let mut buckets = TimeBuckets::new(interval, None, zone).unwrap();
                let mut known = buckets.clone();
                let mut due = buckets.next(from).unwrap().unwrap();
                for time in (from..from + 12 * DAY_NS).step_by(MINUTE_NS as usize) {
                    if time == due {
                        assert_eq!(known.floor(time).unwrap(), time, "{width} {zone:?}");
                        due = buckets.next(due).unwrap().unwrap();
                    }
                    let start = known.floor(time).unwrap();
                    assert!(start <= time && time < due, "{width} {zone:?} at {time}");
                    let same = buckets.next(start).unwrap();
                    assert_eq!(same, Some(due), "{width} {zone:?} at {time}");
                }
            }
        }
    }
}
