//! `import` reports its decisions; what it cannot decide is an error that says how the user can.

use crate::ImportFixture;

#[test]
fn an_ambiguous_date_is_an_error_with_both_readings() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,v\n05/04/2026,1\n06/04/2026,2\n");
    let said = place.import(&[&file]);
    assert!(!said.ok);
    for words in ["5 April 2026", "4 May 2026", "--date-order dmy or mdy"] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(place.import(&["--date-order", "dmy", &file]).ok);
    assert_eq!(
        place.csv("SELECT time FROM m ORDER BY time"),
        "time\n2026-04-05T00:00:00Z\n2026-04-06T00:00:00Z\n"
    );
}

#[test]
fn zones_and_changes_of_clocks() {
    let place = ImportFixture::new();
    let text = "time,v\n2026-03-29 01:30,1\n2026-03-29 02:30,2\n2026-03-29 03:30,3\n\
                2026-10-25 01:30,4\n2026-10-25 02:30,5\n2026-10-25 03:30,6\n";
    let file = place.file("m.csv", text);
    let said = place.import(&["--tz", "Europe/Berlin", &file]);
    assert!(!said.ok, "two rows are refused");
    for words in [
        "line 3",
        "never",
        "line 6",
        "twice",
        "--repeated-hour",
        "4 stored",
        "2 refused",
    ] {
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains(words), "{words}: {all}");
    }
    assert_eq!(
        place.csv("SELECT time, v FROM m ORDER BY time"),
        "time,v\n2026-03-29T00:30:00Z,1.0\n2026-03-29T01:30:00Z,3.0\n2026-10-24T23:30:00Z,4.0\n\
         2026-10-25T02:30:00Z,6.0\n"
    );
    let named = place.file(
        "n.csv",
        "time,v\n2026-10-25 02:30 CEST,1\n2026-10-25 02:30 CET,2\n",
    );
    assert!(place.import(&[&named]).ok);
    assert_eq!(
        place.csv("SELECT time FROM n ORDER BY time"),
        "time\n2026-10-25T00:30:00Z\n2026-10-25T01:30:00Z\n"
    );
    let several = place.file("o.csv", "time,v\n2026-10-25 02:30 IST,1\n");
    let said = place.import(&[&several]);
    assert!(
        !said.ok && said.err.contains("IST") && said.err.contains("--tz"),
        "{}",
        said.err
    );
}

/// A value in the wrong column is worse than none.
#[test]
fn rows_with_more_cells_than_the_header_are_refused() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,v\n2024-01-01 00:00,1,5\n2024-01-01 00:01,2,5\n",
    );
    let said = place.import(&[&file]);
    let all = "the header names 2 columns, but rows have 3 cells";
    assert!(!said.ok && said.err.contains(all), "{}", said.err);
    let file = place.file("n.csv", "time;v;w\n2024-01-01 00:00;1,5;0.123\n");
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(place.csv("SELECT v, w FROM n"), "v,w\n1.5,0.123\n");
}

#[test]
fn names_match_without_case_and_stay_as_they_are() {
    let place = ImportFixture::new();
    let first = place.file("a.csv", "ts,dev,v\n2026-01-01,a,1\n2026-01-01,b,2\n");
    assert!(place.import(&["--table", "t", &first]).ok);
    assert_eq!(
        place.columns("t"),
        "ts TIMESTAMP time; dev STRING tag; v DOUBLE field"
    );
    let second = place.file("b.csv", "TS,DEV,V\n2026-01-02,a,3\n");
    assert!(place.import(&["--table", "t", &second]).ok);
    assert_eq!(
        place.columns("t"),
        "ts TIMESTAMP time; dev STRING tag; v DOUBLE field"
    );
    assert_eq!(
        place.csv("SELECT count(*) AS n, count(v) AS v FROM t"),
        "n,v\n3,3\n"
    );
    let third = place.file("c.csv", "TS,DEV,V,extra\n2026-01-03,a,3,4\n");
    let said = place.import(&["--table", "t", "--strict", &third]);
    assert!(
        !said.ok && said.err.contains("extra") && said.err.contains("--strict"),
        "{}",
        said.err
    );
    let said = place.import(&["--table", "t", &third]);
    assert!(
        said.ok && said.err.contains("'extra' is new"),
        "{}",
        said.err
    );
}

#[test]
fn a_column_that_turns_text_names_its_cells() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,v\n2026-01-01,1\n2026-01-02,kaputt\n2026-01-03,3\n",
    );
    let said = place.import(&[&file]);
    assert!(
        said.ok && said.err.contains("line 3 'kaputt'"),
        "{}",
        said.err
    );
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,v\n2026-01-01,1\n2026-01-02,kaputt\n2026-01-03,3\n",
    );
    assert!(
        place
            .import(&["--null", "kaputt", &file])
            .out
            .contains("1 without a value skipped")
    );
    assert_eq!(place.columns("m"), "time TIMESTAMP time; v DOUBLE field");
}

#[test]
fn an_export_comes_back_with_roles_and_types() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "ts,dev,n,s\n2026-01-01,a,1,NA\n2026-01-01,b,2,\" sp \"\n",
    );
    let import = [
        "--table",
        "m",
        "--types",
        "n=int",
        "--tags",
        "dev",
        file.as_str(),
    ];
    assert!(place.import(&import).ok);
    for name in ["x.csv", "x.csv.gz", "x.lp", "x.parquet", "x.tsfile"] {
        let to = place.path(name);
        let export = ["export", "--data", place.data(), "--table", "m", &to];
        let said = crate::marigram(&export);
        assert!(said.ok, "{name}: {}", said.err);
        let said = place.import(&["--table", &format!("from {name}"), &to]);
        assert!(said.ok, "{name}: {}", said.err);
        let table = format!("from {name}");
        assert_eq!(
            place.columns(&table),
            place.columns("m"),
            "{name}: {}",
            said.err
        );
        let rows = |table: &str| place.csv(&format!("SELECT * FROM \"{table}\" ORDER BY dev"));
        assert_eq!(rows(&table), rows("m"), "{name}");
    }
}

#[test]
fn an_empty_tag_goes_out_as_lines() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,dev,v\n2026-01-01,,1\n2026-01-02,a,2\n2026-01-03,,3\n",
    );
    assert!(place.import(&["--tags", "dev", &file]).ok);
    assert!(
        !place
            .csv("ALTER TABLE m ADD site STRING TAG")
            .contains("error")
    );
    let to = place.path("m.lp");
    let said = crate::marigram(&["export", "--data", place.data(), "--table", "m", &to]);
    assert!(said.ok, "{}", said.err);
    let lines = std::fs::read_to_string(&to).unwrap();
    assert!(lines.contains("\nm v=1.0 1767225600000000000\n"), "{lines}");
}

#[test]
fn a_time_of_day_that_is_missing_refuses_its_row() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "date,time,v\n2026-04-05,10:00,1\n2026-04-06,,2\n2026-04-07,12:00,3\n",
    );
    let said = place.import(&[&file]);
    let all = format!("{}{}", said.out, said.err);
    assert!(!said.ok, "{all}");
    for words in [
        "line 3",
        "no time of day (column 'time' is empty)",
        "2 stored",
        "1 refused",
    ] {
        assert!(all.contains(words), "{words}: {all}");
    }
}

#[test]
fn times_of_which_some_name_a_zone_are_told() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,v\n2026-04-05 10:00Z,1\n2026-04-05 10:01,2\n2026-04-05 10:02+02:00,3\n",
    );
    let said = place.import(&[&file]);
    let all = format!("{}{}", said.out, said.err);
    let note = "2 of 3 times name a time zone; the others are read as UTC (--tz Europe/Berlin for another)";
    assert!(said.ok && all.contains(note), "{all}");
}

#[test]
fn a_type_that_the_table_does_not_have_is_refused() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,v\n2026-04-05 10:00,1\n");
    assert!(place.import(&[&file]).ok);
    let said = place.import(&["--types", "v=string", &file]);
    let words = "column 'v' of table 'm' is DOUBLE";
    assert!(!said.ok && said.err.contains(words), "{}", said.err);
    assert!(
        said.err
            .contains("ALTER TABLE m ALTER COLUMN v TYPE STRING"),
        "{}",
        said.err
    );
    assert!(place.import(&["--types", "v=double", &file]).ok);
}

/// Rows of data are no header, whatever is wrong with them.
#[test]
fn a_first_row_whose_time_cannot_be_read_is_refused() {
    let place = ImportFixture::new();
    let rows = "2024-03-01 00:00,a,1\n2024-03-02 00:00,a,2\n";
    for (at, bad) in ["2024-02-30 00:00,a,1", ",a,1", "bad,a,1", "# comment"]
        .into_iter()
        .enumerate()
    {
        let file = place.file(&format!("f{at}.csv"), &format!("time,dev,v\n{bad}\n{rows}"));
        let said = place.import(&["--yes", &file]);
        let all = format!("{}{}", said.out, said.err);
        assert!(!said.ok, "{bad}: {all}");
        for words in ["line 2", "2 stored", "1 refused"] {
            assert!(all.contains(words), "{bad}: {words}: {all}");
        }
        let columns = place.columns(&format!("f{at}"));
        assert_eq!(
            columns,
            "time TIMESTAMP time; dev STRING tag; v DOUBLE field"
        );
    }
}

#[test]
fn a_header_alone_holds_no_rows() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,v\n");
    let said = place.import(&[&file]);
    assert!(
        !said.ok && said.err.contains("no rows below its header"),
        "{}",
        said.err
    );
}

#[test]
fn years_of_two_digits_are_asked_for() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,v\n24-01-02 00:00,1\n24-01-03 00:01,2\n");
    let said = place.import(&[&file]);
    let words = "'24-01-02 00:00' is 2 January 2024 or 24 January 2002";
    assert!(!said.ok && said.err.contains(words), "{}", said.err);
    assert!(place.import(&["--date-order", "ymd", &file]).ok);
    let times = place.csv("SELECT time FROM m ORDER BY 1");
    assert_eq!(times, "time\n2024-01-02T00:00:00Z\n2024-01-03T00:01:00Z\n");
    // Columns beside the time are not asked for.
    let file = place.file("n.csv", "time,seen\n2024-01-01,24-01-02 00:00\n");
    let said = place.import(&["--types", "seen=timestamp", &file]);
    assert!(!said.ok, "{}{}", said.out, said.err);
}

#[test]
fn an_export_keeps_the_declared_order_of_columns() {
    let place = ImportFixture::new();
    let file = place.file("x.csv", "time,v\n2026-01-01,1\n");
    assert!(place.import(&[&file]).ok);
    place.csv(
        "CREATE TABLE t (v DOUBLE FIELD, dev STRING TAG, ts TIMESTAMP TIME, w BIGINT FIELD, \
         site STRING TAG)",
    );
    place.csv("INSERT INTO t (v, dev, ts, w, site) VALUES (1, 'a', '2024-01-01', 5, 's')");
    for name in ["x.csv.gz", "x.lp", "x.parquet", "x.tsfile"] {
        let to = place.path(name);
        let export = ["export", "--data", place.data(), "--table", "t", &to];
        assert!(crate::marigram(&export).ok);
        let table = format!("from {name}");
        let said = place.import(&["--table", &table, &to]);
        assert!(said.ok, "{name}: {}", said.err);
        assert_eq!(place.columns(&table), place.columns("t"), "{name}");
        let rows = place.csv(&format!("SELECT * FROM \"{table}\""));
        assert_eq!(rows, place.csv("SELECT * FROM t"), "{name}");
    }
}

/// A quotation mark in a name misled the search for the end of a line that has a line break in a text.
#[test]
fn line_breaks_beside_odd_names_come_back() {
    let place = ImportFixture::new();
    let file = place.file("x.csv", "time,v\n2026-01-01,1\n");
    assert!(place.import(&[&file]).ok);
    for (at, name) in ["quo\"\"te", "end\\"].into_iter().enumerate() {
        place.csv(&format!(
            "CREATE TABLE t{at} (time TIMESTAMP TIME, \"{name}\" STRING FIELD, s STRING FIELD)"
        ));
        place.csv(&format!(
            "INSERT INTO t{at} VALUES ('2026-01-01', 'end\\', E'two\\nlines'), \
             ('2026-01-02', E'two\\nlines', 'end\\')"
        ));
        let to = place.path(&format!("t{at}.lp"));
        let table = format!("t{at}");
        let export = ["export", "--data", place.data(), "--table", &table, &to];
        assert!(crate::marigram(&export).ok);
        place.csv(&format!("ALTER TABLE t{at} RENAME TO old{at}"));
        let said = place.import(&[&to]);
        assert!(said.ok, "{name}: {}{}", said.out, said.err);
        let rows = |table: &str| place.csv(&format!("SELECT * FROM {table}{at} ORDER BY time"));
        assert_eq!(rows("t"), rows("old"), "{name}");
    }
}

#[test]
fn lines_without_a_time_are_not_in_the_future() {
    let place = ImportFixture::new();
    let file = place.file("m.lp", "cpu,host=a v=1\ncpu,host=b v=2\n");
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    for word in ["future", "replace"] {
        assert!(!said.err.contains(word), "{word}: {}", said.err);
    }
    assert!(said.out.contains("2 stored, 0 replaced"), "{}", said.out);
}

#[test]
fn a_layout_in_a_comment_gives_the_same_table() {
    let place = ImportFixture::new();
    let layout = r#"#marigram {"version":1,"table":"t","time":"time","is_time_zoned":true,"tags":[["n","BIGINT"]],"fields":[["z","TIMESTAMPTZ"],["i","INT"]]}"#;
    let rows = "time,n,z,i\n2026-01-01T00:00:00Z,5,2026-01-02T00:00:00Z,7\n";
    let file = place.file("t.csv", &format!("{layout}\n{rows}"));
    let said = place.import(&["--tags", "i", &file]);
    assert!(
        !said.ok && said.err.contains("the layout of this export"),
        "{}",
        said.err
    );
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.columns("t"),
        "time TIMESTAMPTZ time; n BIGINT tag; z TIMESTAMPTZ field; i INT field"
    );
}
