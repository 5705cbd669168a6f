//! Times in a format that the user gives as a strftime pattern.

use super::{TimeFault, WrittenTime};
use jiff::Zoned;
use jiff::fmt::strtime::{self, BrokenDownTime};

/// Reads a text by a pattern.
pub(super) fn read_pattern<'t>(text: &'t str, pattern: &str) -> Result<WrittenTime<'t>, TimeFault> {
    let (pattern, text, name) = without_zone_name(pattern, text);
    let parsed = BrokenDownTime::parse(pattern, text).map_err(|_| TimeFault::NotATime)?;
    let date = parsed.to_date().map_err(|_| TimeFault::NotATime)?;
    let time = parsed.to_time().unwrap_or(jiff::civil::Time::midnight());
    let written = WrittenTime {
        at: date.to_datetime(time),
        offset_s: parsed.offset().map(|offset| i64::from(offset.seconds())),
        name: name.filter(|name| !name.is_empty()),
    };
    Ok(written)
}

/// A pattern and a text without the zone's name at their end, which the parser cannot interpret, and the
/// name.
fn without_zone_name<'p, 't>(
    pattern: &'p str,
    text: &'t str,
) -> (&'p str, &'t str, Option<&'t str>) {
    match pattern.trim_end().strip_suffix("%Z") {
        Some(pattern) => {
            let cut = text
                .rfind(|char: char| !char.is_ascii_alphabetic())
                .map_or(0, |at| at + 1);
            (
                pattern.trim_end(),
                text[..cut].trim_end(),
                Some(&text[cut..]),
            )
        }
        None => (pattern, text, None),
    }
}

/// Checks that a pattern is one, and that it tells a date.
///
/// # Errors
/// What is wrong with it.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let sample = sample();
    let directives = directives(pattern)?;
    if directives.is_empty() {
        return Err(
            "it has no directive, such as %Y for the year, so each time would be this very text"
                .to_owned(),
        );
    }
    let (last, before) = (directives.last(), directives.len() - 1);
    for (at, directive) in directives.iter().enumerate() {
        if *directive == "%Z" {
            if at < before || !pattern.trim_end().ends_with("%Z") {
                return Err("%Z, the name of a zone, can stand at the end only".to_owned());
            }
            continue;
        }
        let is_read = strtime::format(directive, &sample)
            .is_ok_and(|text| BrokenDownTime::parse(directive, &text).is_ok());
        if !is_read {
            return Err(format!(
                "{directive} is not known; there are %Y %m %d %H %M %S %f %y %b %B %j %I %p %z %Z and others \
                 of strftime"
            ));
        }
    }
    let has_name = last.is_some_and(|last| *last == "%Z");
    let text = if has_name {
        let (before, _, _) = without_zone_name(pattern, "");
        strtime::format(before, &sample).map(|text| format!("{text} UTC"))
    } else {
        strtime::format(pattern, &sample)
    };
    let text = text.map_err(|error| error.to_string())?;
    let (bare, text, _) = without_zone_name(pattern, &text);
    let parsed = BrokenDownTime::parse(bare, text)
        .map_err(|_| "its parts run together, so that no text can be read by it".to_owned())?;
    if parsed.to_date().is_err() {
        return Err("it tells no whole date, such as %Y, %m and %d do together".to_owned());
    }
    let is_clock = |directive: &&str| directive.ends_with(['H', 'k', 'I', 'l', 'M', 'S', 'T', 'R']);
    // An hour up to 12 without its half of the day is another one than that of the sample.
    let has_hour = parsed
        .to_time()
        .is_ok_and(|time| time.hour() == sample.hour());
    if directives.iter().any(is_clock) && !has_hour {
        return Err(
            "it tells no time of day: hours are %H, or %I with %p; minutes and seconds need hours"
                .to_owned(),
        );
    }
    Ok(())
}

/// A time that has all parts, each with all its digits.
fn sample() -> Zoned {
    let at = jiff::civil::date(2026, 11, 26).at(21, 34, 56, 123_456_789);
    at.to_zoned(jiff::tz::TimeZone::UTC).unwrap_or_default()
}

/// The directives of a pattern, with their flags.
fn directives(pattern: &str) -> Result<Vec<&str>, String> {
    let mut found = Vec::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        let after = &rest[at + 1..];
        let is_flag = |char: char| char.is_ascii_digit() || "-_^#:.".contains(char);
        let letter = after.trim_start_matches(is_flag);
        let Some(char) = letter.chars().next() else {
            return Err("it ends within a directive; a percent sign itself is %%".to_owned());
        };
        let len = 1 + after.len() - letter.len() + char.len_utf8();
        let directive = &rest[at..at + len];
        if directive != "%%" {
            found.push(directive);
        }
        rest = &rest[at + len..];
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_checked_before_any_time_is_read() {
        for pattern in [
            "%d.%m.%Y %H:%M:%S",
            "%Y-%m-%dT%H:%M:%S%.f%z",
            "%Y%m%d%H%M%S",
            "%d|%m|%Y %Hh%M",
            "%F %T %Z",
            "%b %e, %Y %I:%M %p",
            "%Y-%j",
            "%d/%m/%y",
            "100%% %F",
            "%d.%m.%Y %H:%M:%S,%3f",
            "%Y-%m-%d %H:%M:%S%:z",
        ] {
            assert_eq!(check_pattern(pattern), Ok(()), "{pattern}");
        }
        for (pattern, words) in [
            ("%Q", "no whole date"),
            ("%J", "%J is not known"),
            ("%d.%m.%Y %q", "%q is not known"),
            ("%Y-%m-%d %ä", "%ä is not known"),
            ("%Y-%m", "no whole date"),
            ("%H:%M", "no whole date"),
            ("%F %I:%M", "%I with %p"),
            ("%F %M", "minutes and seconds need hours"),
            ("%F %", "ends within a directive"),
            ("%F %Z %H", "at the end only"),
            ("YYYY-MM-DD", "no directive"),
            ("", "no directive"),
        ] {
            let error = check_pattern(pattern).expect_err(pattern);
            assert!(error.contains(words), "{pattern}: {error}");
        }
    }
}
