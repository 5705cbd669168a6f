//! Numbers and times as Go prints them.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};
use std::io::Write as _;

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// Writes a float as Go's `encoding/json` does: with an exponent below 1e-6 and from 1e21 on. What is
/// no number in JSON is null.
pub(super) fn write_json_float(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    if !value.is_finite() {
        out.extend_from_slice(b"null");
    } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        // Go writes the sign of every exponent.
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                print(out, format_args!("{digits}e+{exponent}"));
            }
            _ => out.extend_from_slice(text.as_bytes()),
        }
    } else {
        write_plain_float(out, value);
    }
}

/// Writes a float without an exponent, in as few digits as it needs.
pub(super) fn write_plain_float(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    if (1e-4..1e15).contains(&size) {
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format_finite(value);
        out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
    } else if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"+Inf" } else { b"-Inf" });
    } else {
        print(out, format_args!("{value}"));
    }
}

/// Writes an integer.
pub(super) fn write_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes a time (ns since 1970 in UTC) as RFC 3339 with the decimals that it needs, as it is in
/// `zone`.
pub(super) fn write_rfc3339(out: &mut Vec<u8>, time_ns: i64, zone: Option<Tz>) {
    let (mut seconds, ns) = (
        time_ns.div_euclid(1_000_000_000),
        time_ns.rem_euclid(1_000_000_000),
    );
    let mut offset_s = 0;
    if let (Some(zone), Some(utc)) = (zone, DateTime::from_timestamp(seconds, 0)) {
        let offset = zone.offset_from_utc_datetime(&utc.naive_utc());
        offset_s = offset.fix().local_minus_utc();
        seconds += i64::from(offset_s);
    }
    let (year, month, day) = civil(seconds.div_euclid(DAY_S));
    let of_day = seconds.rem_euclid(DAY_S);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    digits(out, year, 4);
    for (mark, value) in [
        (b'-', month),
        (b'-', day),
        (b'T', hour),
        (b':', minute),
        (b':', second),
    ] {
        out.push(mark);
        digits(out, value, 2);
    }
    if ns > 0 {
        out.push(b'.');
        digits(out, ns, 9);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    if offset_s == 0 {
        out.push(b'Z');
    } else {
        out.push(if offset_s < 0 { b'-' } else { b'+' });
        let minutes = i64::from(offset_s.abs() / 60);
        digits(out, minutes / 60, 2);
        out.push(b':');
        digits(out, minutes % 60, 2);
    }
}

/// Writes a number that is not negative with leading zeros.
fn digits(out: &mut Vec<u8>, mut value: i64, width: usize) {
    let start = out.len();
    out.resize(start + width, b'0');
    for place in out[start..].iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Year, month and day of a day since 1970, in the Gregorian calendar (Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn print(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a Vec takes all bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// What InfluxDB 1.6.7 answered as JSON and as CSV.
    #[test]
    fn floats_are_printed_as_go_prints_them() {
        for (value, json, csv) in [
            (-0.0, "-0", "-0"),
            (9.9e-7, "9.9e-7", "0.00000099"),
            (1e-6, "0.000001", "0.000001"),
            (1e21, "1e+21", "1000000000000000000000"),
            (1e20, "100000000000000000000", "100000000000000000000"),
            (1e16, "10000000000000000", "10000000000000000"),
            (
                123_456_789_012_345_680_000.0,
                "123456789012345680000",
                "123456789012345680000",
            ),
            (123_456_789.125, "123456789.125", "123456789.125"),
            (100.0, "100", "100"),
            (0.1, "0.1", "0.1"),
            (-1e-10, "-1e-10", "-0.0000000001"),
            (3e22, "3e+22", "30000000000000000000000"),
            (3e-7, "3e-7", "0.0000003"),
        ] {
            assert_eq!(text(|out| write_json_float(out, value)), json);
            assert_eq!(text(|out| write_plain_float(out, value)), csv);
        }
        assert_eq!(text(|out| write_json_float(out, f64::NAN)), "null");
    }

    #[test]
    fn times_have_the_decimals_that_they_need() {
        let plain = |time_ns| text(|out| write_rfc3339(out, time_ns, None));
        assert_eq!(plain(1_000_000_000), "1970-01-01T00:00:01Z");
        assert_eq!(plain(1_500_000_123), "1970-01-01T00:00:01.500000123Z");
        assert_eq!(plain(10_000), "1970-01-01T00:00:00.00001Z");
        assert_eq!(plain(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(plain(951_782_400_000_000_000), "2000-02-29T00:00:00Z");
        assert_eq!(plain(i64::MIN), "1677-09-21T00:12:43.145224192Z");
        assert_eq!(plain(i64::MAX), "2262-04-11T23:47:16.854775807Z");
        let zoned = |zone: &str| text(|out| write_rfc3339(out, 1, zone.parse().ok()));
        assert_eq!(
            zoned("Europe/Berlin"),
            "1970-01-01T01:00:00.000000001+01:00"
        );
        assert_eq!(
            zoned("America/New_York"),
            "1969-12-31T19:00:00.000000001-05:00"
        );
    }
}
