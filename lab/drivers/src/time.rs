//! Times as text, as RFC 3339 writes them.

use marigram_lab::data::SECOND_NS;

const DAY_S: i64 = 86_400;

/// `2024-01-01T00:00:30.000000000` for `ns` nanoseconds since the Unix epoch, with `decimals` of
/// the nine decimals; UTC, without a zone at its end. The rest is rounded down.
#[must_use]
pub fn rfc3339(ns: i64, decimals: usize) -> String {
    let (second, fraction) = (ns.div_euclid(SECOND_NS), ns.rem_euclid(SECOND_NS));
    let (year, month, day) = date(second.div_euclid(DAY_S));
    let second = second.rem_euclid(DAY_S);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if decimals > 0 {
        text.push('.');
        text.push_str(&format!("{fraction:09}")[..decimals.min(9)]);
    }
    text
}

/// Nanoseconds since the Unix epoch of `2024-01-01T00:00:30.5Z`: up to nine decimals, `T` or a
/// space between date and time, UTC whether it ends with `Z` or not. `None` for anything else.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let day = day(date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute) = (time.next()?.ok()?, time.next()?.ok()?);
    let second = day * DAY_S + hour * 3600 + minute * 60 + time.next()?.ok()?;
    let ns: i64 = match fraction.len() {
        0..=9 => format!("{fraction:0<9}").parse().ok()?,
        _ => return None,
    };
    second.checked_mul(SECOND_NS)?.checked_add(ns)
}

/// The inverse of [`date`]; `None` if there is no such month or day.
fn day(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Year, month and day of a day counted from the Unix epoch, in the Gregorian calendar: H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn date(day: i64) -> (i64, i64, i64) {
    // Years begin in March, so that the leap day is the last of its year.
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_days_years_before_the_epoch_and_decimals() {
        assert_eq!(rfc3339(0, 0), "1970-01-01T00:00:00");
        assert_eq!(rfc3339(-1, 9), "1969-12-31T23:59:59.999999999");
        let leap = 1_709_164_800 * SECOND_NS + 123_456_789;
        assert_eq!(rfc3339(leap, 6), "2024-02-29T00:00:00.123456");
        assert_eq!(
            rfc3339(1_704_067_199 * SECOND_NS, 3),
            "2023-12-31T23:59:59.000"
        );
    }

    #[test]
    fn times_come_back_from_their_text() {
        for ns in [0, -1, 1_709_164_800_123_456_789, -9_000_000_000_000_000_000] {
            assert_eq!(parse_rfc3339(&rfc3339(ns, 9)), Some(ns));
            assert_eq!(parse_rfc3339(&format!("{}Z", rfc3339(ns, 9))), Some(ns));
        }
        assert_eq!(parse_rfc3339("1970-01-01 00:01:00"), Some(60 * SECOND_NS));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.5Z"), Some(500_000_000));
        assert_eq!(parse_rfc3339("1969-12-31 23:59:59.000"), Some(-SECOND_NS));
        let wrong = [
            "",
            "1970-01-01",
            "1970-13-01T00:00:00",
            "1970-01-01T00:00:xxZ",
            "2024-01-01T00:00:00+01",
            "2024-01-01T00:00:00.x",
        ];
        assert!(wrong.iter().all(|text| parse_rfc3339(text).is_none()));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.0000000001Z"), None);
    }
}
