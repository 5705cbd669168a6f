//! Finds time zones by name.

use std::str::FromStr;

/// The IANA zone with a name, regardless of case.
pub fn find_zone(text: &str) -> Option<chrono_tz::Tz> {
    let exact = chrono_tz::Tz::from_str(text).ok();
    let like = || {
        chrono_tz::TZ_VARIANTS
            .iter()
            .find(|z| z.name().eq_ignore_ascii_case(text))
    };
    exact.or_else(|| like().copied())
}
