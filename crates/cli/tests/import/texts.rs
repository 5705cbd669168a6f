//! Columns that are text although their cells look like numbers, and columns without any value.

use crate::ImportFixture;

/// Imports a file; returns the columns of its table, and what was said.
fn imported(text: &str) -> (String, String) {
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(said.ok, "{text}{}", said.err);
    (place.columns("m"), said.err)
}

#[test]
fn a_column_of_numbers_that_is_text_says_why() {
    for (text, words) in [
        (
            "time;a\n2026-01-13 10:00;1,5\n2026-01-13 10:01;2.25\n",
            "column 'a' is text: '1,5' and '2.25' have different decimal marks",
        ),
        (
            "time,a\n2026-01-13 10:00,21.5 °C\n2026-01-13 10:01,22 °C\n",
            "column 'a' is text: '21.5 °C' looks like a number with a unit",
        ),
        (
            "Zeit;a\n13.01.2026 10:00;\u{2212}1,5\n13.01.2026 10:01;(2,5)\n13.01.2026 10:02;3,5-\n\
             13.01.2026 10:03;+4,5\n",
            "'(2,5)' is a number in parentheses, which may mean a negative one; '3,5-' is a number with a \
             minus behind it; --types a=double",
        ),
        (
            "time,a\n2026-01-13 10:00,18446744073709551616\n2026-01-13 10:01,1\n",
            "'18446744073709551616' is a whole number that no DOUBLE holds exactly",
        ),
    ] {
        let (columns, said) = imported(text);
        assert!(columns.contains("a STRING field"), "{text}{columns}");
        assert!(said.contains(words), "{text}{said}");
    }
    for (cells, words) in [
        (
            ["7.5 °C", "8.5 °C"],
            "'7.5 °C' looks like a number with a unit",
        ),
        (["<0.5", "7"], "'<0.5' is a bound"),
        (
            ["\"12,34,567.5\"", "7"],
            "'12,34,567.5' has marks between groups",
        ),
    ] {
        let [one, other] = cells;
        let (_, said) = imported(&format!(
            "time,a\n2026-01-13 10:00,{one}\n2026-01-13 10:01,{other}\n"
        ));
        assert!(said.contains(words), "{words}: {said}");
    }
    // Texts that only begin with numbers are no news.
    let (_, said) = imported("time,a\n2026-01-13 10:00,3 pumps failed\n2026-01-13 10:01,ok\n");
    assert!(!said.contains("is text"), "{said}");
}

#[test]
fn the_minus_of_typography_is_a_minus() {
    let place = ImportFixture::new();
    let text =
        "Zeit;a;b\n13.01.2026 10:00;\u{2212}1,5;\u{2212}9007199254740993\n13.01.2026 10:01;2,5;1\n";
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT a, b FROM m ORDER BY \"Zeit\""),
        "a,b\n-1.5,-9007199254740993\n2.5,1\n"
    );
}

#[test]
fn whole_numbers_above_those_of_bigint_are_unsigned() {
    let place = ImportFixture::new();
    let text = "time,n\n2026-01-13 10:00,18446744073709551615\n2026-01-13 10:01,1\n";
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT n FROM m ORDER BY time"),
        "n\n18446744073709551615\n1\n"
    );
}

#[test]
fn identifiers_keep_their_zeros() {
    let place = ImportFixture::new();
    let text = "time,plz,ref,v\n2026-01-13 10:00,01067,1E5,1\n2026-01-13 10:01,80331,200,2\n";
    let file = place.file("m.csv", text);
    let said = place.import(&["--no-tags", &file]);
    assert!(said.ok, "{}", said.err);
    for words in [
        "column 'plz' is STRING because '01067' begins with a zero",
        "--types plz=double",
        "column 'ref' is STRING because '1E5' among whole numbers may be a name",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert_eq!(
        place.csv("SELECT plz, ref, v FROM m ORDER BY time"),
        "plz,ref,v\n01067,1E5,1.0\n80331,200,2.0\n"
    );
    let said = place.import(&["--table", "n", "--types", "plz=double,ref=double", &file]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.err
            .contains("begins with a zero, which DOUBLE does not keep"),
        "{}",
        said.err
    );
    assert_eq!(
        place.csv("SELECT plz FROM n ORDER BY time"),
        "plz\n1067.0\n80331.0\n"
    );
    // Measured values are numbers, even with zeros before them.
    let (columns, said) = imported("time,t\n2026-01-13 10:00,05\n2026-01-13 10:01,-03\n");
    assert!(columns.contains("t DOUBLE field"), "{columns}{said}");
}

#[test]
fn a_column_without_a_value_is_left_out() {
    let place = ImportFixture::new();
    let first = place.file(
        "gr.csv",
        "time,temp,msg\n2026-01-13 10:00,1,\n2026-01-13 10:01,2,\n",
    );
    let said = place.import(&["--table", "gr", &first]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.err
            .contains("column 'msg' has no value; it is left out; --types msg=string creates it"),
        "{}",
        said.err
    );
    assert_eq!(
        place.columns("gr"),
        "time TIMESTAMP time; temp DOUBLE field"
    );
    let text = "time,temp,msg\n2026-01-13 10:02,3,\n2026-01-13 10:03,4.5,hot\n";
    let second = place.file("gr.csv", text);
    let said = place.import(&["--table", "gr", &second]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT temp, msg FROM gr WHERE msg IS NOT NULL"),
        "temp,msg\n4.5,hot\n"
    );
    // Another file of the same import may have its values.
    let said = place.import(&["--table", "both", &first, &second]);
    assert!(said.ok, "{}", said.err);
    assert!(place.columns("both").contains("msg STRING field"));
    let said = place.import(&["--table", "told", "--types", "msg=string", &first]);
    assert!(said.ok, "{}", said.err);
    assert!(place.columns("told").contains("msg STRING field"));
}

#[test]
fn a_text_in_a_column_of_numbers_says_how_to_change_it() {
    let place = ImportFixture::new();
    let first = place.file("gr.csv", "time,temp,msg\n2026-01-13 10:00,1,2\n");
    assert!(place.import(&["--table", "gr", &first]).ok);
    let text = "time,temp,msg\n2026-01-13 10:02,3,hot\n2026-01-13 10:03,5,7 °C\n";
    let second = place.file("gr.csv", text);
    let said = place.import(&["--table", "gr", &second]);
    assert!(!said.ok);
    for words in [
        "line 2: column 'msg': 'hot' is not a number; ALTER TABLE gr ALTER COLUMN msg TYPE STRING",
        "line 3: column 'msg': '7 °C' is not a number: it looks like a number with a unit",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    place.csv("ALTER TABLE gr ALTER COLUMN msg TYPE STRING");
    let said = place.import(&["--table", "gr", &second]);
    assert!(said.ok, "{}", said.err);
}

#[test]
fn types_of_unknown_columns_are_an_error() {
    let place = ImportFixture::new();
    let file = place.file("gr.csv", "time,dev,v\n2026-01-13 10:00,a,1\n");
    let said = place.import(&["--types", "nosuch=double", &file]);
    assert!(
        !said.ok
            && said
                .err
                .contains("no column 'nosuch' for a type; the file has: time, dev, v"),
        "{}",
        said.err
    );
    let said = place.import(&["--types", "time=double", &file]);
    assert!(!said.ok && said.err.contains("is the time"), "{}", said.err);
    let said = place.import(&["--types", "dev=double", "--tags", "dev", &file]);
    assert!(!said.ok && said.err.contains("is a tag"), "{}", said.err);
    assert!(!place.exists());
    let said = place.import(&["--types", "V=bigint", &file]);
    assert!(said.ok, "{}", said.err);
    assert!(place.columns("gr").contains("v BIGINT field"));
    let lines = place.file("m.lp", "m x=1 1\n");
    let said = place.import(&["--types", "x=double", &lines]);
    assert!(
        !said.ok && said.err.contains("for CSV and JSON"),
        "{}",
        said.err
    );
}

#[test]
fn rows_of_delimiters_only_are_no_rows() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "Zeit;v\n13.01.2026 10:00;1\n;\n;;\n ; \n13.01.2026 10:01;2\n;\n",
    );
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.out.contains("2 stored") && said.out.contains("4 without a value skipped"),
        "{}",
        said.out
    );
}

#[test]
fn the_only_value_of_a_file_is_no_tag() {
    let place = ImportFixture::new();
    let text = "time,msg\n2026-01-13 10:00,start\n2026-01-13 10:01,stop\n2026-01-13 10:02,start\n2026-01-13 10:02,start\n";
    let file = place.file("log.csv", text);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.columns("log"),
        "time TIMESTAMP time; msg STRING field"
    );
    let file = place.file("two.csv", &(text.to_owned() + "2026-01-13 10:02,stop\n"));
    let said = place.import(&[&file]);
    assert!(
        !said.ok && said.err.contains("would replace"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("--tags"), "{}", said.err);
}
