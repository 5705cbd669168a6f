//! Files that look harmless and would come in wrong: each is read right, or says what is wrong.

use crate::{ImportFixture, refused, times_of};

/// Imports a file with options; returns its columns, its rows and what was said.
fn imported(text: &str, options: &[&str]) -> (String, String, String) {
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    let said = place.import(&[options, &[&file]].concat());
    assert!(said.ok, "{text}\n{}{}", said.out, said.err);
    let columns = place.columns("m");
    let rows = place.csv("SELECT * FROM m ORDER BY 1, 2");
    (columns, rows, said.err)
}

#[test]
fn telephone_numbers_stay_texts() {
    let text =
        "time,caller\n2026-01-01T00:00:00Z,+4915112345678\n2026-01-01T00:01:00Z,+442079460000\n";
    let (columns, rows, said) = imported(text, &[]);
    assert_eq!(columns, "time TIMESTAMP time; caller STRING field");
    assert!(rows.contains("+4915112345678"), "{rows}");
    assert!(
        said.contains("begins with a plus, as telephone numbers do"),
        "{said}"
    );
    let (columns, _, _) = imported(text, &["--types", "caller=double"]);
    assert_eq!(columns, "time TIMESTAMP time; caller DOUBLE field");
}

#[test]
fn dashes_are_minuses_and_missing_values() {
    let text = "time;t\n2026-01-01T00:00:00Z;\u{2013}3,5\n2026-01-01T00:01:00Z;\u{2013}\n\
                2026-01-01T00:02:00Z;4,5\n2026-01-01T00:03:00Z;\u{2212}1,0\n";
    let (columns, rows, said) = imported(text, &[]);
    assert_eq!(columns, "time TIMESTAMP time; t DOUBLE field");
    assert_eq!(
        rows,
        "time,t\n2026-01-01T00:00:00Z,-3.5\n2026-01-01T00:02:00Z,4.5\n2026-01-01T00:03:00Z,-1.0\n"
    );
    assert!(said.contains("'\u{2013}' (1) is no value"), "{said}");
}

#[test]
fn amounts_with_a_currency_are_texts_and_the_plan_says_why() {
    let text =
        "time;price\n2026-01-01T00:00:00Z;\u{20ac} 12,50\n2026-01-01T00:01:00Z;\u{20ac} 13,00\n";
    let (columns, _, said) = imported(text, &[]);
    assert_eq!(columns, "time TIMESTAMP time; price STRING field");
    assert!(said.contains("looks like a number with a unit"), "{said}");
}

#[test]
fn codes_for_missing_values_are_named() {
    let text =
        "time,t\n2026-01-01T00:00:00Z,3.5\n2026-01-01T00:01:00Z,-9999\n2026-01-01T00:02:00Z,-4\n";
    let (_, rows, said) = imported(text, &[]);
    assert!(rows.contains(",-9999.0"), "{rows}");
    assert!(
        said.contains("'-9999' (1) is stored as a number") && said.contains("--null=-9999"),
        "{said}"
    );
    let (_, rows, said) = imported(text, &["--null=-9999"]);
    assert!(
        !rows.contains("9999") && !said.contains("is stored as a number"),
        "{rows}{said}"
    );
}

#[test]
fn files_that_were_joined_have_byte_order_marks_between_their_rows() {
    let one = "\u{feff}time;v\n2026-01-01T00:00:00Z;1\n";
    let other = "\u{feff}time;v\n2026-01-01T00:01:00Z;2\n";
    let (_, rows, said) = imported(&format!("{one}{other}"), &[]);
    assert_eq!(
        rows,
        "time,v\n2026-01-01T00:00:00Z,1.0\n2026-01-01T00:01:00Z,2.0\n"
    );
    assert!(said.contains("the header comes again in 1 line"), "{said}");
}

#[test]
fn a_header_of_thousands_of_long_names_is_read_whole() {
    let columns = 9_000;
    let names: Vec<String> = (0..columns)
        .map(|at| format!("line 7 / tank {at} / temperature at the outlet [°C]"))
        .collect();
    let cells = vec!["1.5"; columns].join(";");
    let text = format!("time;{}\n2026-01-01T00:00:00Z;{cells}\n", names.join(";"));
    assert!(text.find('\n') > Some(300_000));
    let place = ImportFixture::new();
    let file = place.file("m.csv", &text);
    let said = place.import(&["--dry-run", &file]);
    assert!(
        said.out.contains("1 row would be stored"),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn the_time_of_several_columns_gets_a_free_name() {
    let text = "date,hour,time\n2026-01-01,1,12.5\n2026-01-01,2,13.5\n";
    let (columns, rows, _) = imported(text, &["--time-column", "date,hour"]);
    assert_eq!(columns, "timestamp TIMESTAMP time; time DOUBLE field");
    assert_eq!(
        rows,
        "timestamp,time\n2026-01-01T01:00:00Z,12.5\n2026-01-01T02:00:00Z,13.5\n"
    );
}

#[test]
fn a_damaged_header_is_named() {
    let text = "time,Temp [\u{fffd}C],g\u{fc}te\n2026-01-01T00:00:00Z,1.5,2\n";
    let (_, _, said) = imported(text, &[]);
    assert!(
        said.contains("the header has characters that are not UTF-8"),
        "{said}"
    );
}

#[test]
fn whole_numbers_with_a_fraction_of_zero_are_tags_of_whole_numbers() {
    let place = ImportFixture::new();
    let first = place.file("first.csv", "time,v\n2026-01-01T00:00:00Z,1\n");
    assert!(place.import(&[&first]).ok);
    let create = "CREATE TABLE m (time TIMESTAMP, unit BIGINT TAG, running BOOLEAN TAG, v DOUBLE)";
    place.csv(create);
    let text = "time;unit;running;v\n2026-01-01T00:00:00Z;5,0;on;1,5\n2026-01-01T00:00:00Z;6;OFF;2,5\n\
                2026-01-01T00:01:00Z;05;Yes;3,5\n2026-01-01T00:02:00Z;5,5;1;4,5\n\
                2026-01-01T00:03:00Z;1e30;1;5,5\n2026-01-01T00:04:00Z;x;1;6,5\n";
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(
        !said.ok && said.out.contains("3 refused"),
        "{}{}",
        said.out,
        said.err
    );
    for words in [
        "line 5: column 'unit': '5,5' has a fraction, which BIGINT would lose",
        "line 6: column 'unit': '1e30' is beyond BIGINT",
        "line 7: column 'unit': 'x' is not BIGINT",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    let rows = "SELECT unit, running, v FROM m ORDER BY v";
    let expected = "unit,running,v\n5,true,1.5\n6,false,2.5\n5,true,3.5\n";
    assert_eq!(place.csv(rows), expected);
    // The same numbers in JSON lines.
    let json = "{\"time\":\"2026-01-01T00:05:00Z\",\"unit\":5.0,\"running\":true,\"v\":7.5}\n";
    let file = place.file("m.jsonl", json);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert!(place.csv(rows).ends_with("5,true,7.5\n"));
}

#[test]
fn a_float_of_a_parquet_file_is_a_tag_of_whole_numbers() {
    let place = ImportFixture::new();
    let first = place.file("first.csv", "time,v\n2026-01-01T00:00:00Z,1\n");
    assert!(place.import(&[&first]).ok);
    place.csv("CREATE TABLE m (time TIMESTAMP, unit BIGINT TAG, v DOUBLE)");
    let file = place.path("m.parquet");
    let query = "SELECT TIMESTAMP '2026-01-01 00:00:00' AS time, 5.0::DOUBLE AS unit, 1.5::DOUBLE AS v \
                 UNION ALL SELECT TIMESTAMP '2026-01-01 00:01:00', 5.5::DOUBLE, 2.5::DOUBLE";
    let said = crate::marigram(&["export", "--data", place.data(), "--query", query, &file]);
    assert!(said.ok, "{}", said.err);
    let said = place.import(&[&file]);
    assert!(
        !said.ok && said.out.contains("1 refused"),
        "{}{}",
        said.out,
        said.err
    );
    assert_eq!(place.csv("SELECT unit, v FROM m"), "unit,v\n5,1.5\n");
}

#[test]
fn mixed_ends_of_lines_lose_no_row() {
    let (times, _) = times_of(
        "time,v\r\n2026-01-01T00:00:00Z,1\n2026-01-01T00:01:00Z,2\r2026-01-01T00:02:00Z,3\r\n",
    );
    assert_eq!(times.split(' ').count(), 3, "{times}");
}

#[test]
fn times_without_a_date_say_what_is_missing() {
    let error = refused(
        "clock,v\n00:00:01,1\n00:00:02,2\n",
        &["--time-column", "clock"],
    );
    assert!(error.contains("cannot be read"), "{error}");
}
