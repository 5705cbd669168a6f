//! Formats values as PostgreSQL prints them, without an allocation for each.

use bytes::{BufMut, BytesMut};
use chrono::DateTime;
use std::fmt::{Display, LowerExp, Write};

const DAY_US: i64 = 86_400_000_000;

pub(super) fn print(out: &mut BytesMut, value: impl Display) {
    write!(out, "{value}").expect("writing to a BytesMut cannot fail");
}

pub(super) fn write_integer(out: &mut BytesMut, value: impl itoa::Integer) {
    out.put_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest text that reads back as the same float, with an exponent where PostgreSQL uses one.
pub(super) fn write_float<F>(out: &mut BytesMut, value: F)
where
    F: ryu::Float + Copy + Display + LowerExp + Into<f64>,
{
    let wide: f64 = value.into();
    if wide.is_nan() {
        out.put_slice(b"NaN");
    } else if wide.is_infinite() {
        out.put_slice(if wide > 0.0 {
            b"Infinity"
        } else {
            b"-Infinity"
        });
    } else if wide == 0.0 || (1e-4..1e15).contains(&wide.abs()) {
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format_finite(value);
        if text.contains('e') {
            print(out, value);
        } else {
            out.put_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
        }
    } else {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        print(out, format_args!("{mantissa}e{sign}{digits:0>2}"));
    }
}

/// `2024-01-31 12:00:00.5`, as PostgreSQL's style ISO, from microseconds since the Unix epoch.
pub(super) fn write_time(us: i64, out: &mut BytesMut) {
    let (year, month, day) = date(us.div_euclid(DAY_US));
    if !(0..=9999).contains(&year) {
        match DateTime::from_timestamp_micros(us) {
            Some(time) => print(out, time.format("%Y-%m-%d %H:%M:%S")),
            None => return write_no_time(us, out),
        }
        return write_decimals(us.rem_euclid(1_000_000) as u32, out);
    }
    let seconds = (us.rem_euclid(DAY_US) / 1_000_000) as u32;
    let mut text = *b"0000-00-00 00:00:00";
    let year = year as u32;
    for (place, number) in [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, seconds / 3600),
        (14, seconds / 60 % 60),
        (17, seconds % 60),
    ] {
        text[place] += (number / 10) as u8;
        text[place + 1] += (number % 10) as u8;
    }
    out.put_slice(&text);
    write_decimals(us.rem_euclid(1_000_000) as u32, out);
}

/// Writes a time outside the range of the calendar library.
pub(super) fn write_no_time(us: i64, out: &mut BytesMut) {
    out.put_slice(if us < 0 { b"-infinity" } else { b"infinity" });
}

/// Year, month and day of a day since the Unix epoch, in the proleptic Gregorian calendar, after
/// Howard Hinnant's `civil_from_days` (<https://howardhinnant.github.io/date_algorithms.html>).
fn date(day: i64) -> (i64, u32, u32) {
    // Count from 0000-03-01, so that a leap day is the last day of its year.
    let since = day + 719_468;
    let (era, of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * march_month + 2) / 5 + 1) as u32;
    let month = (if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    }) as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// `12:00:00.5` from microseconds since midnight.
pub(super) fn write_clock(us: i64, out: &mut BytesMut) {
    let seconds = us / 1_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    print(
        out,
        format_args!("{hours:02}:{minutes:02}:{:02}", seconds % 60),
    );
    write_decimals((us % 1_000_000) as u32, out);
}

fn write_decimals(us: u32, out: &mut BytesMut) {
    if us == 0 {
        return;
    }
    let (mut text, mut left) = (*b".000000", us);
    for digit in text[1..].iter_mut().rev() {
        *digit += (left % 10) as u8;
        left /= 10;
    }
    let zeros = text.iter().rev().take_while(|digit| **digit == b'0');
    let length = text.len() - zeros.count();
    out.put_slice(&text[..length]);
}

pub(super) fn write_bytes(bytes: &[u8], binary: bool, out: &mut BytesMut) {
    if binary {
        out.put_slice(bytes);
        return;
    }
    out.put_slice(b"\\x");
    for byte in bytes {
        let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
        out.put_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
}
