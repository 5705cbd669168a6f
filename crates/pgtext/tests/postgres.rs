//! Compares with the answers of PostgreSQL 15 (`golden/ask.py`), and lists intended differences.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use marigram_pgtext::{
    ReferenceClock, TimePattern, TimeText, TimeTextError, similar_to_regex, time_to_char,
};

/// Lines of a golden file, in columns.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
}

fn outcome_text(result: Result<i64, TimeTextError>) -> String {
    match result {
        Ok(ns) => ns.div_euclid(1000).to_string(),
        Err(error) => error.to_string(),
    }
}

/// Prints all differences, so that one run shows everything.
fn assert_none(differing: &[String]) {
    assert!(
        differing.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

/// Texts that this crate accepts and PostgreSQL refuses, or that the two read differently: to
/// PostgreSQL, `pm-0330` is a zone name, and after a date with letters it accepts neither `T` nor,
/// without a blank, a zone.
fn differs_on_purpose(text: &str) -> bool {
    let lower = text.to_lowercase();
    let meridiem = ["am+", "pm+", "am-", "pm-"];
    let after_letters = lower.split_once("jul").is_some_and(|(before, after)| {
        let after = after.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '-' && c != ' ' && c != ',');
        let mark = end.and_then(|end| after[end..].chars().next());
        let is_date = lower.contains("-jul") || before.is_empty() && lower.contains("jul-");
        matches!(mark, Some('t'))
            || is_date && (matches!(mark, Some('z' | '+')) || lower.ends_with("-0330"))
    });
    let others = [
        // Julian days, full day names, and marks without meaning.
        "J2451187",
        "Thursday 2014-07-03",
        "2014-07-01;",
        "2014--07-01",
        "2014-07-01-",
    ];
    meridiem.iter().any(|part| lower.contains(part)) || after_letters || others.contains(&text)
}

#[test]
fn times_are_read_as_postgresql_reads_them() {
    let clock = ReferenceClock::new(1_700_000_000_000_000_000, "Europe/Berlin").unwrap();
    let (mut differing, mut read) = (Vec::new(), 0);
    for line in lines(include_str!("golden/times.tsv")) {
        let [text, timestamp, timestamptz] = line[..] else {
            panic!("{line:?}");
        };
        let parsed = TimeText::parse(text, &clock);
        let (local, utc) = match &parsed {
            Ok(time) => (
                outcome_text(time.local_ns()),
                outcome_text(time.utc_ns(&clock)),
            ),
            Err(error) => (error.to_string(), error.to_string()),
        };
        for (ours, theirs) in [(local, timestamp), (utc, timestamptz)] {
            let refused = theirs.starts_with("22") && theirs.len() == 5;
            let is_same = if refused {
                ours.parse::<i64>().is_err()
            } else {
                // Nanoseconds do not reach back to the year 44.
                ours == theirs || ours.contains("1677") && theirs.starts_with('-')
            };
            read += usize::from(!refused);
            if !is_same && !differs_on_purpose(text) {
                differing.push(format!("{text:?}: {ours}, PostgreSQL {theirs}"));
            }
        }
    }
    assert_none(&differing);
    assert!(read > 1000, "{read}");
}

#[test]
fn times_are_written_as_postgresql_writes_them() {
    let mut differing = Vec::new();
    let zone = TimeZone::get("Asia/Kolkata").unwrap();
    for line in lines(include_str!("golden/to_char.tsv")) {
        let [time, pattern, timestamp, timestamptz, "|"] = line[..] else {
            panic!("{line:?}");
        };
        let time: DateTime = time.parse().unwrap();
        let time = time.to_zoned(TimeZone::UTC).unwrap();
        let parsed = TimePattern::parse(pattern);
        let in_zone = time.with_time_zone(zone.clone());
        for (ours, theirs) in [
            (time_to_char(&time, &parsed, false), timestamp),
            (time_to_char(&in_zone, &parsed, true), timestamptz),
        ] {
            if ours != theirs {
                differing.push(format!(
                    "{time} {pattern:?}: {ours:?}, PostgreSQL {theirs:?}"
                ));
            }
        }
    }
    assert_none(&differing);
}

#[test]
fn texts_are_similar_to_patterns_as_in_postgresql() {
    let plain = |text: &str| {
        let (mut plain, mut rest) = (String::new(), text.chars());
        while let Some(c) = rest.next() {
            match (c, rest.clone().next()) {
                ('\\', Some('n')) => plain.push('\n'),
                ('\\', Some(_)) => plain.push('\\'),
                _ => {
                    plain.push(c);
                    continue;
                }
            }
            rest.next();
        }
        plain
    };
    let mut differing = Vec::new();
    for line in lines(include_str!("golden/similar.tsv")) {
        let [text, pattern, theirs] = line[..] else {
            panic!("{line:?}");
        };
        let (text, pattern) = (plain(text), plain(pattern));
        let regex = similar_to_regex(&pattern, Some('\\')).map_err(|error| error.to_string());
        let regex = regex.and_then(|regex| {
            regex::Regex::new(&regex).map_err(|error| format!("{regex}: {error}"))
        });
        let ours = match &regex {
            Ok(regex) => regex.is_match(&text).to_string(),
            Err(error) => error.clone(),
        };
        if ours != theirs && !(theirs == "2201B" && regex.is_err()) {
            differing.push(format!("{text:?} {pattern:?}: {ours}, PostgreSQL {theirs}"));
        }
    }
    assert_none(&differing);
}

#[test]
fn words_for_moments_need_one() {
    let mut clock = ReferenceClock::new(1_700_000_000_000_000_000, "Europe/Berlin").unwrap();
    let read = |text: &str, clock: &ReferenceClock| TimeText::parse(text, clock)?.utc_ns(clock);
    assert_eq!(read("now", &clock), Ok(1_700_000_000_000_000_000));
    // Midnight in Berlin.
    assert_eq!(read("today", &clock), Ok(1_699_916_400_000_000_000));
    assert_eq!(
        read("yesterday 01:00", &clock),
        Ok(1_699_833_600_000_000_000)
    );
    assert_eq!(read("tomorrow UTC", &clock), Ok(1_700_006_400_000_000_000));
    clock.now = None;
    assert_eq!(
        read("now", &clock),
        Err(TimeTextError::Moment("now".to_owned()))
    );
    assert_eq!(read("epoch", &clock), Ok(0));
}

proptest::proptest! {
    /// Texts from outside never panic.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,24}", dated in "[-0-9:./TZA-Za-z+ ]{0,32}") {
        let clock = ReferenceClock::new(0, "UTC").unwrap();
        for text in [&text, &dated] {
            if let Ok(time) = TimeText::parse(text, &clock) {
                let _ = (time.local_ns(), time.utc_ns(&clock));
            }
            let _ = similar_to_regex(text, Some('\\'));
            let pattern = TimePattern::parse(text);
            let time = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
            let _ = time_to_char(&time, &pattern, true);
        }
    }
}
