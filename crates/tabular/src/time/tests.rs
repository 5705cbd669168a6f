//! Tests of formats, zones and ambiguities.

use super::*;

const NOON: i64 = 1_404_216_000_000_000_000; // 2014-07-01T12:00:00Z

fn reader(order: DateOrder, zone: FileZone) -> TimeReader {
    TimeReader {
        form: TimeFormat::Written(order),
        zone,
    }
}

fn form(cells: &[&str]) -> Result<TimeFormat, FormError> {
    let mut evidence = TimeEvidence::default();
    for (line, cell) in cells.iter().enumerate() {
        evidence.add(cell, line as u64);
    }
    evidence.form("t", None)
}

/// Forms that PostgreSQL or DuckDB read, and those of programs and control systems.
#[test]
fn forms_of_other_programs_are_the_same_moment() {
    for text in [
        "2014-07-01T12",
        "20140701T12",
        "2014-182 12:00",
        "2014-Jul-01 12:00",
        "2014-07-01 12:00:00:000",
        "2014-07-01 14:00:00 Europe/Berlin",
        "2014-07-01 09:00 America/Argentina/Buenos_Aires",
        "2014-07-01 08:00 AM America/New_York",
        "2014-07-01T14:00:00+02:00[Europe/Berlin]",
        "2014-07-01 14:00:00+02:00:00",
        "Tue Jul 01 2014 14:00:00 GMT+0200 (Mitteleuropäische Sommerzeit)",
        "Tue Jul  1 14:00:00 CEST 2014",
        "Tue Jul  1 14:00:00 2014 CEST",
        "2014-7-1 12:0:0",
    ] {
        let read = reader(DateOrder::Ymd, FileZone::utc()).read(text);
        assert_eq!(read, Ok(NOON), "{text}");
    }
    let iso = reader(DateOrder::Ymd, FileZone::utc());
    assert_eq!(iso.read("2014-07-01 12:00:00:250"), Ok(NOON + 250_000_000));
    for text in [
        "2014-366",
        "2014-000",
        "2014-07-01 9:5",
        "2014-07-01 12:00 Nowhere/Land",
        "2014-07-01 12:00 (x",
        "Tue Jul  1 14:00:00 CEST 2014 CEST",
    ] {
        assert!(iso.read(text).is_err(), "{text}");
    }
}

#[test]
fn many_forms_are_one_moment() {
    for (order, text) in [
        (DateOrder::Ymd, "2014-07-01 12:00:00"),
        (DateOrder::Ymd, "2014-07-01T12:00:00Z"),
        (DateOrder::Ymd, "2014/07/01 12:00"),
        (DateOrder::Ymd, "2014-07-01T14:00:00+02:00"),
        (DateOrder::Ymd, "2014-07-01T07:30:00.000-0430"),
        (DateOrder::Ymd, " 2014-07-01 12:00:00 UTC "),
        (DateOrder::Ymd, "20140701 120000"),
        (DateOrder::Ymd, "20140701T120000Z"),
        (DateOrder::Dmy, "01.07.2014 12:00:00"),
        (DateOrder::Dmy, "1.7.14 12:00"),
        (DateOrder::Dmy, "01/07/2014 12:00:00 PM"),
        (DateOrder::Mdy, "7/1/2014 12:00 pm"),
        (DateOrder::Mdy, "07-01-2014 12:00:00"),
        (DateOrder::Dmy, "1 Jul 2014 12:00:00"),
        (DateOrder::Ymd, "01-Jul-2014 12:00:00"),
        (DateOrder::Mdy, "Tue, 1 Jul 2014 12:00:00 +0000"),
        (DateOrder::Ymd, "July 1, 2014 12:00"),
        (DateOrder::Ymd, "Tue Jul  1 12:00:00 2014"),
        (DateOrder::Ymd, "2014-07-01 14:00:00 CEST"),
    ] {
        assert_eq!(
            reader(order, FileZone::utc()).read(text),
            Ok(NOON),
            "{text}"
        );
    }
    let iso = reader(DateOrder::Ymd, FileZone::utc());
    assert_eq!(iso.read("2014-07-01 12:00:00,25"), Ok(NOON + 250_000_000));
    assert_eq!(
        iso.read("2014-07-01T12:00:00.123456789Z"),
        Ok(NOON + 123_456_789)
    );
    assert_eq!(iso.read("1970-01-01"), Ok(0));
    assert_eq!(iso.read("1969-12-31T23:59:59.999999999Z"), Ok(-1));
    assert_eq!(iso.read("2014-06-30 24:00"), Ok(NOON - 43_200_000_000_000));
    assert_eq!(iso.read("1677-09-21T00:12:43.145224192Z"), Ok(i64::MIN));
    assert_eq!(iso.read("2262-04-11T23:47:16.854775807Z"), Ok(i64::MAX));
    assert_eq!(iso.read("9999-01-01"), Err(TimeFault::OutOfRange));
    // The second 60 is the following second, and digits behind nanoseconds round.
    let end = iso.read("2014-07-01 12:01:00");
    assert_eq!(iso.read("2014-07-01 12:00:60"), end);
    assert_eq!(
        iso.read("2014-06-30T23:59:60Z"),
        iso.read("2014-07-01T00:00:00Z")
    );
    assert_eq!(iso.read("2014-07-01 12:00:59.9999999995"), end);
    assert_eq!(iso.read("2014-07-01 12:00:00.0000000014"), Ok(NOON + 1));
    for wrong in [
        "2014-13-01",
        "2014-07-01 25:00:00",
        "2014-07-01 12:00:00.",
        "",
        "x",
        "2014-07-01x",
        "13:00 PM",
    ] {
        assert_eq!(iso.read(wrong), Err(TimeFault::NotATime), "{wrong}");
    }
}

#[test]
fn the_order_of_dates_is_decided_over_all_of_them() {
    assert_eq!(
        form(&["05/04/2026", "13/04/2026"]),
        Ok(TimeFormat::Written(DateOrder::Dmy))
    );
    assert_eq!(
        form(&["05/04/2026", "04/13/2026"]),
        Ok(TimeFormat::Written(DateOrder::Mdy))
    );
    assert_eq!(
        form(&["05.04.2026 10:00"]),
        Ok(TimeFormat::Written(DateOrder::Dmy))
    );
    assert_eq!(
        form(&["2026-04-05"]),
        Ok(TimeFormat::Written(DateOrder::Ymd))
    );
    assert_eq!(
        form(&["20260405", "20260406"]),
        Ok(TimeFormat::Written(DateOrder::Ymd))
    );
    assert_eq!(form(&["1775347200"]), Ok(TimeFormat::Number(Precision::S)));
    let error = form(&["04/04/2026", "05/04/2026"]).unwrap_err().to_string();
    for word in [
        "5 April 2026",
        "4 May 2026",
        "--date-order dmy or mdy",
        "05/04/2026",
    ] {
        assert!(error.contains(word), "{error}");
    }
    for (cells, options) in [
        (&["24-01-02 00:00", "24-01-03 00:01"][..], "ymd or dmy"),
        (&["01-02-03"], "ymd or dmy or mdy"),
        (&["24/01/02"], "ymd or dmy"),
    ] {
        let error = form(cells).unwrap_err().to_string();
        let words = format!("give --date-order {options}");
        assert!(error.ends_with(&words), "{error}");
    }
    assert_eq!(
        form(&["24-01-31", "24-02-01", "75-01-02"]),
        Ok(TimeFormat::Written(DateOrder::Ymd))
    );
    assert_eq!(
        form(&["31/01/75", "24/01/02"]),
        Ok(TimeFormat::Written(DateOrder::Dmy))
    );
    assert_eq!(form(&["24.01.02"]), Ok(TimeFormat::Written(DateOrder::Dmy)));
    assert!(matches!(
        form(&["13/04/2026", "04/13/2026"]),
        Err(FormError::Mixed { .. })
    ));
    assert!(matches!(form(&["soon"]), Err(FormError::Unknown { .. })));
}

#[test]
fn zones_are_what_they_say_or_an_error() {
    let berlin = FileZone::named("Europe/Berlin", None).unwrap();
    let read = |text: &str| reader(DateOrder::Ymd, berlin.clone()).read(text);
    assert_eq!(read("2014-07-01 14:00"), Ok(NOON));
    assert_eq!(read("2014-07-01 12:00Z"), Ok(NOON));
    assert_eq!(read("2014-07-01 14:00 CEST"), Ok(NOON));
    assert!(matches!(
        read("2014-07-01 14:00 CET"),
        Err(TimeFault::OtherZone { .. })
    ));
    let never = read("2026-03-29 02:30").unwrap_err().to_string();
    assert!(
        never.contains("never") && never.contains("60 minutes"),
        "{never}"
    );
    let twice = read("2026-10-25 02:30").unwrap_err().to_string();
    for word in [
        "twice",
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:30:00Z",
        "--repeated-hour",
    ] {
        assert!(twice.contains(word), "{twice}");
    }
    // A zone name after the time says which of the two it is.
    let hour = 3_600_000_000_000;
    let first = read("2026-10-25 02:30 CEST").unwrap();
    assert_eq!(read("2026-10-25 02:30 CET"), Ok(first + hour));
    let told = FileZone::named("Europe/Berlin", Some(RepeatedHour::Second)).unwrap();
    let second = reader(DateOrder::Ymd, told).read("2026-10-25 02:30");
    assert_eq!(second, Ok(first + hour));
    let unknown = reader(DateOrder::Ymd, FileZone::utc()).read("2014-07-01 12:00 EST");
    assert_eq!(unknown, Err(TimeFault::Name("EST".into())));
    assert!(FileZone::named("Europe/Atlantis", None).is_err());
    let fixed = FileZone::named("+02:00", None).unwrap();
    assert_eq!(
        reader(DateOrder::Ymd, fixed).read("2014-07-01 14:00"),
        Ok(NOON)
    );
}

#[test]
fn patterns_read_offsets_and_names() {
    let read = |pattern: &str, text: &str| {
        let form = TimeFormat::Pattern(pattern.to_owned());
        TimeReader {
            form,
            zone: FileZone::utc(),
        }
        .read(text)
    };
    assert_eq!(read("%d.%m.%Y %H:%M:%S", "01.07.2014 12:00:00"), Ok(NOON));
    assert_eq!(read("%d/%m/%Y %I:%M %p", "01/07/2014 12:00 PM"), Ok(NOON));
    assert_eq!(
        read("%Y-%m-%d %H:%M %z", "2014-07-01 14:00 +0200"),
        Ok(NOON)
    );
    assert_eq!(read("%Y-%m-%d %H:%M %Z", "2014-07-01 14:00 CEST"), Ok(NOON));
    let error = read("%Y-%m-%d %H:%M %Z", "2014-07-01 14:00 IST");
    assert_eq!(error, Err(TimeFault::Name("IST".into())));
    assert_eq!(
        read("%Y-%m-%d", "2014-07-01"),
        Ok(NOON - 43_200_000_000_000)
    );
    assert_eq!(read("%Y-%m-%d", "tomorrow"), Err(TimeFault::NotATime));
}

#[test]
fn the_unit_of_numbers_is_guessed() {
    for (text, precision) in [
        ("1404216000", Precision::S),
        ("1404216000000", Precision::Ms),
        ("1404216000000000", Precision::Us),
        ("1404216000000000000", Precision::Ns),
    ] {
        let found = form(&[text]).unwrap();
        assert_eq!(found, TimeFormat::Number(precision));
        let reader = TimeReader {
            form: found,
            zone: FileZone::utc(),
        };
        assert_eq!(reader.read(text), Ok(NOON));
    }
    assert_eq!(read_number("1.5", Precision::S), Some(1_500_000_000));
    // Exact, where a double would be a hundred nanoseconds off.
    for (text, ns) in [
        ("1700000000.123456789", 1_700_000_000_123_456_789),
        ("1700000000,5", 1_700_000_000_500_000_000),
        ("-0.25", -250_000_000),
        ("1.7e9", 1_700_000_000_000_000_000),
        ("17e-1", 1_700_000_000),
        ("0.0000000005", 1),
        (".5", 500_000_000),
    ] {
        assert_eq!(read_number(text, Precision::S), Some(ns), "{text}");
    }
    for text in ["1.2.3", "", ".", "1e", "1e40", "inf", "1ä.5"] {
        assert_eq!(read_number(text, Precision::S), None, "{text}");
    }
    assert_eq!(read_number("9223372036854775807", Precision::S), None);
    assert_eq!(read_number("NaN", Precision::Ns), None);
}

#[test]
fn no_text_panics() {
    use proptest::prelude::*;
    proptest!(|(text in "[0-9a-zA-Zäµ:./+, -]{0,24}")| {
        for order in DateOrder::ALL {
            let _ = WrittenTime::read(&text, order);
        }
        let mut evidence = TimeEvidence::default();
        evidence.add(&text, 1);
        let _ = evidence.form("t", None);
    });
}

#[test]
fn halves_of_the_day_in_spanish_and_ordinals_of_days() {
    let read = |text: &str, order| reader(order, FileZone::utc()).read(text);
    let morning = read("2026-01-25 09:00", DateOrder::Ymd);
    for text in [
        "25/1/2026 9:00:00 a. m.",
        "25/1/2026 9:00:00 a.\u{a0}m.",
        "25/1/2026 9:00:00\u{202f}a.\u{202f}m.",
        "25/1/2026 9:00 a.m.",
        "25/1/2026 9:00 AM",
        "25/1/2026\u{a0}09:00",
    ] {
        assert_eq!(read(text, DateOrder::Dmy), morning, "{text}");
    }
    let afternoon = read("2026-01-25 13:05:09", DateOrder::Ymd);
    assert_eq!(read("25/1/2026 1:05:09 p. m.", DateOrder::Dmy), afternoon);
    let first = read("2026-01-01 10:00", DateOrder::Ymd);
    for text in [
        "1er janvier 2026 10:00",
        "1st January 2026 10:00",
        "January 1st, 2026 10:00",
        "1º de enero de 2026 10:00",
    ] {
        assert_eq!(read(text, DateOrder::Dmy), first, "{text}");
    }
    assert!(is_half_of_day("p.\u{a0}m.") && is_half_of_day("AM") && !is_half_of_day("p"));
    for text in ["1er", "1er ", "1er 2 2026", "a. m.", "1:00 a. x"] {
        assert!(read(text, DateOrder::Dmy).is_err(), "{text}");
    }
}
