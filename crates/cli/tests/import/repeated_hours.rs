//! `--repeated-hour order`: the order of the rows says which of two hours a time means.

use crate::ImportFixture;
use std::fmt::Write as _;

const LOGGER: &str = "Zeit;v\n25.10.2026 01:30;1\n25.10.2026 02:00;2\n25.10.2026 02:30;3\n\
                      25.10.2026 02:00;4\n25.10.2026 02:30;5\n25.10.2026 03:00;6\n";

#[test]
fn the_second_pass_begins_where_the_time_goes_back() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", LOGGER);
    let said = place.import(&["--tz", "Europe/Berlin", &file]);
    assert!(
        !said.ok && said.err.contains("or order if the rows"),
        "{}",
        said.err
    );
    let order = ["--tz", "Europe/Berlin", "--repeated-hour", "order"];
    let place = ImportFixture::new();
    let file = place.file("m.csv", LOGGER);
    let said = place.import(&[&order[..], &[&file]].concat());
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT \"Zeit\" AS t, v FROM m ORDER BY 1"),
        "t,v\n2026-10-24T23:30:00Z,1.0\n2026-10-25T00:00:00Z,2.0\n2026-10-25T00:30:00Z,3.0\n\
         2026-10-25T01:00:00Z,4.0\n2026-10-25T01:30:00Z,5.0\n2026-10-25T02:00:00Z,6.0\n"
    );
    // Each series by itself, and a logger of one row an hour.
    let text = "time,device,v\n2026-10-25 01:00,a,1\n2026-10-25 02:00,a,2\n2026-10-25 02:00,b,3\n\
                2026-10-25 02:00,a,4\n2026-10-25 02:00,b,5\n2026-10-25 03:00,b,6\n";
    let file = place.file("n.csv", text);
    let said = place.import(&[&order[..], &[&file]].concat());
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT time, device, v FROM n ORDER BY v"),
        "time,device,v\n2026-10-24T23:00:00Z,a,1.0\n2026-10-25T00:00:00Z,a,2.0\n\
         2026-10-25T00:00:00Z,b,3.0\n2026-10-25T01:00:00Z,a,4.0\n2026-10-25T01:00:00Z,b,5.0\n\
         2026-10-25T02:00:00Z,b,6.0\n"
    );
}

#[test]
fn an_order_that_says_nothing_is_refused() {
    let place = ImportFixture::new();
    let rows: Vec<&str> = LOGGER.lines().collect();
    let mut reversed = vec![rows[0]];
    reversed.extend(rows[1..].iter().rev());
    let file = place.file("m.csv", &(reversed.join("\n") + "\n"));
    let said = place.import(&["--tz", "Europe/Berlin", "--repeated-hour", "order", &file]);
    assert!(!said.ok, "{}", said.out);
    assert!(
        said.err.contains("the row before it is later"),
        "{}",
        said.err
    );
    assert!(said.out.contains("4 refused"), "{}", said.out);
}

/// Imports a file whose order decides; returns its times.
fn ordered(text: &str) -> String {
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    let said = place.import(&["--tz", "Europe/Berlin", "--repeated-hour", "order", &file]);
    assert!(said.ok, "{}{}", said.out, said.err);
    place.csv("SELECT time, a, b FROM m ORDER BY time")
}

#[test]
fn a_file_may_begin_with_two_rows_of_one_minute_in_the_hour() {
    // Each minute has a row for either sensor, and the hour comes twice.
    let mut text = "time,a,b\n".to_owned();
    let mut expected = text.clone();
    for pass in 0..2 {
        for minute in 0..60 {
            writeln!(text, "2026-10-25 02:{minute:02},{minute},").unwrap();
            writeln!(text, "2026-10-25 02:{minute:02},,{pass}").unwrap();
            writeln!(
                expected,
                "2026-10-25T0{pass}:{minute:02}:00Z,{minute}.0,{pass}.0"
            )
            .unwrap();
        }
    }
    assert_eq!(ordered(&text), expected);
    // Behind a pause.
    let text = text.replace("time,a,b\n", "time,a,b\n2026-10-24 20:00,1,1\n");
    let expected = expected.replace("time,a,b\n", "time,a,b\n2026-10-24T18:00:00Z,1.0,1.0\n");
    assert_eq!(ordered(&text), expected);
}

#[test]
fn rows_of_one_repeated_time_alone_are_refused() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,a,b\n2026-10-25 02:00,1,\n2026-10-25 02:00,,2\n",
    );
    let said = place.import(&["--tz", "Europe/Berlin", "--repeated-hour", "order", &file]);
    assert!(!said.ok && said.out.contains("1 refused"), "{}", said.out);
    assert!(
        said.err.contains("give --repeated-hour first or second"),
        "{}",
        said.err
    );
}
