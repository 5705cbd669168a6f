//! Rows that would replace each other are detected before any is written, and the message says what
//! to do.

use crate::ImportFixture;

const SHARED: &str = "time,flow,kind_of_it\n2026-01-01,1,1\n2026-01-01,2,2\n2026-01-02,3,1\n\
                      2026-01-02,4,2\n2026-01-03,5,1\n2026-01-03,6,2\n";

#[test]
fn an_import_stops_before_it_writes() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,v\n2026-01-01,1\n2026-01-01,2\n2026-01-02,3\n",
    );
    let said = place.import(&[&file]);
    assert!(!said.ok);
    for words in [
        "1 of 3 rows would replace",
        "line 2, line 3",
        "--replace",
        "no column",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(!place.exists(), "nothing is made");
    let said = place.import(&["--replace", &file]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.out
            .contains("3 rows read, 3 stored, 1 replaced, 0 refused"),
        "{}",
        said.out
    );
    assert_eq!(place.csv("SELECT v FROM m ORDER BY time"), "v\n2.0\n3.0\n");
}

#[test]
fn columns_that_tell_rows_apart_are_found_or_named() {
    let place = ImportFixture::new();
    let text = "time,where,v\n2026-01-01,a,1\n2026-01-01,b,2\n2026-01-02,a,3\n2026-01-02,b,4\n";
    let file = place.file("m.csv", text);
    let said = place.import(&["--no-tags", &file]);
    assert!(!said.ok);
    assert!(
        said.err
            .contains("column where tells them apart: --tags where"),
        "{}",
        said.err
    );
    let said = place.import(&[&file]);
    assert!(
        said.ok && said.err.contains("tags    where (detected"),
        "{}",
        said.err
    );
    assert_eq!(place.csv("SELECT count(*) AS n FROM m"), "n\n4\n");
    // Numbers become tags only if their names suggest it.
    let file = place.file("n.csv", SHARED);
    assert!(!place.import(&[&file]).ok);
    assert!(place.import(&["--tags", "kind_of_it", &file]).ok);
    assert_eq!(place.csv("SELECT count(*) AS n FROM n"), "n\n6\n");
}

#[test]
fn rows_of_several_files_are_told_apart_by_the_names_of_the_files() {
    let place = ImportFixture::new();
    let one = place.file("pump-1.csv", "time,v\n2026-01-01,1\n2026-01-02,2\n");
    let two = place.file("pump-2.csv", "time,v\n2026-01-01,3\n2026-01-02,4.5\n");
    let said = place.import(&["--table", "pump", &one, &two]);
    assert!(!said.ok && said.err.contains("--file-tag"), "{}", said.err);
    assert!(!place.exists());
    let said = place.import(&[
        "--table",
        "pump",
        "--file-tag",
        "pump=pump-([0-9])",
        &one,
        &two,
    ]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT pump, v FROM pump ORDER BY time, pump"),
        "pump,v\n1,1.0\n2,3.0\n1,2.0\n2,4.5\n"
    );
}

#[test]
fn an_import_run_again_says_what_it_replaced() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,dev,v\n2026-01-01,a,1\n2026-01-02,a,2\n");
    assert!(place.import(&[&file]).ok);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.out
            .contains("2 rows read, 2 stored, 2 replaced, 0 refused"),
        "{}",
        said.out
    );
}

#[test]
fn lines_with_other_fields_of_a_row_replace_nothing() {
    let place = ImportFixture::new();
    let apart = place.file("a.lp", "m,d=a x=1 1\nm,d=a y=2 1\n");
    let said = place.import(&[&apart]);
    assert!(said.ok, "{}", said.err);
    let same = place.file("b.lp", "m,d=a x=1 2\nm,d=a x=2,y=1 2\n");
    let said = place.import(&[&same]);
    assert!(
        !said.ok && said.err.contains("1 of 3 values would replace"),
        "{}",
        said.err
    );
}

#[test]
fn a_dry_run_writes_nothing() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "ts;dev;v\n05.04.2026 10:00;a;1,5\n05.04.2026 10:00;b;2\n",
    );
    let said = place.import(&["--dry-run", &file]);
    assert!(said.ok, "{}", said.err);
    for words in [
        "m.csv → new table m",
        "delimiter ';', decimal ','",
        "header in line 1",
        "ts, day, month, year, no zone in the file: UTC",
        "tags    dev",
        "v DOUBLE",
        "ts=05.04.2026 10:00 · dev=a · v=1,5",
        "2 rows would be stored",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert!(!place.exists());
}

#[test]
fn a_dry_run_names_the_rows_that_would_be_refused() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,tz,v\n2024-01-31 12:00,IST,1\n2024-01-31 12:01,CET,1\n",
    );
    let said = place.import(&["--dry-run", &file]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.out.contains("1 row would be stored, 1 refused"),
        "{}",
        said.out
    );
    for words in ["line 2", "'IST'", "--tz"] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    let said = place.import(&["--tz", "Asia/Kolkata", "--dry-run", &file]);
    assert!(
        said.err.contains("'CET', which does not belong to"),
        "{}",
        said.err
    );
}

#[test]
fn rows_that_would_change_stored_ones_stop_the_import() {
    let place = ImportFixture::new();
    let first = place.file(
        "a.csv",
        "time,v,n\n2026-01-01,1,x\n2026-01-02,2,\n2026-01-03,3,\n",
    );
    assert!(place.import(&["--table", "m", &first]).ok);
    // The file of another device, with the same times.
    let other = place.file(
        "b.csv",
        "time,v,n\n2026-01-01,11,x\n2026-01-02,2,\n2026-01-04,4,\n",
    );
    for arguments in [vec!["--yes"], vec![], vec!["--dry-run"]] {
        let said = place.import(&[&["--table", "m", &other], arguments.as_slice()].concat());
        assert!(!said.ok, "{}", said.out);
        for words in [
            "2 rows are in the table already: 1 with the same values, 1 with others",
            "nothing was written",
            "line 2: v is 1, and would be 11",
            "--tag NAME=VALUE",
            "--file-tag NAME=REGEX",
            "--replace",
        ] {
            assert!(said.err.contains(words), "{words}: {}", said.err);
        }
    }
    assert_eq!(
        place.csv("SELECT v FROM m ORDER BY time"),
        "v\n1.0\n2.0\n3.0\n"
    );
    // A missing value replaces nothing, and equal rows change nothing.
    let fewer = place.file("c.csv", "time,v\n2026-01-01,1\n2026-01-02,2\n");
    let said = place.import(&["--table", "m", &fewer]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.err.contains("2 with the same values, 0 with others"),
        "{}",
        said.err
    );
    let said = place.import(&["--table", "m", "--replace", &other]);
    assert!(
        said.ok && said.out.contains("3 stored, 2 replaced"),
        "{}",
        said.out
    );
    assert_eq!(
        place.csv("SELECT v FROM m ORDER BY time"),
        "v\n11.0\n2.0\n3.0\n4.0\n"
    );
    // Line protocol is compared in the same way, with tags and all types.
    let lines = place.file(
        "d.lp",
        "p,d=a x=1i,s=\"q\",b=t 1767225600000000000\np,d=b x=2i 1767225600000000000\n",
    );
    assert!(place.import(&[&lines]).ok);
    let said = place.import(&[&lines]);
    assert!(
        said.ok && said.err.contains("2 with the same values, 0 with others"),
        "{}",
        said.err
    );
    let lines = place.file(
        "d.lp",
        "p,d=a s=\"r\" 1767225600000000000\np,d=c x=2i 1767225600000000000\n",
    );
    let said = place.import(&[&lines]);
    assert!(
        !said.ok && said.err.contains("line 1: s is 'q', and would be 'r'"),
        "{}",
        said.err
    );
}
