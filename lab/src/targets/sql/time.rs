//! Times as text.

use crate::data::SECOND_NS;

const DAY_S: i64 = 86_400;

/// `2024-01-01T00:00:30.000000000` for `ns` nanoseconds since the Unix epoch, with `decimals` of
/// the nine decimals; UTC, without a zone at its end. What is cut off is rounded down.
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
}
