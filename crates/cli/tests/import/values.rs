//! Rows without values, and values that line protocol cannot hold.

use super::ImportFixture;

#[test]
fn rows_without_a_value_are_skipped_and_counted() {
    let place = ImportFixture::new();
    let csv = "time,site,temp,note\n2026-01-01T00:00:00Z,a,1.5,x\n2026-01-01T01:00:00Z,a,n/a,\n\
               2026-01-01T02:00:00Z,a,,\n2026-01-01T03:00:00Z,a,,y\n";
    let file = place.file("gaps.csv", csv);
    let said = place.import(&["--tags", "site", "--dry-run", &file]);
    assert!(
        said.ok && said.out.contains("2 rows would be stored, 0 refused"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("2 without a value skipped"),
        "{}",
        said.out
    );
    let said = place.import(&["--tags", "site", &file]);
    assert!(said.ok, "{}", said.err);
    assert!(said.out.contains("4 rows read, 2 stored"), "{}", said.out);
    assert!(
        said.out.contains("0 refused, 2 without a value skipped"),
        "{}",
        said.out
    );
    assert_eq!(place.csv("SELECT count(*) AS n FROM gaps"), "n\n2\n");
}

#[test]
fn fields_of_a_table_are_not_proposed_as_tags() {
    let place = ImportFixture::new();
    let row = |id: &str| format!("2026-01-01T00:00:00Z,{id},1\n");
    let first = place.file("first.csv", &format!("time,id,v\n{}", row("a")));
    let said = place.import(&["--no-tags", "--table", "m", &first]);
    assert!(said.ok, "{}", said.err);
    let second = place.file(
        "second.csv",
        &format!("time,id,v\n{}{}", row("b"), row("c")),
    );
    let said = place.import(&["--table", "m", &second]);
    assert!(
        !said.ok && said.err.contains("the table has it as a field"),
        "{}",
        said.err
    );
    assert!(said.err.contains("--table NAME --tags id"), "{}", said.err);
}

#[test]
fn a_table_that_is_there_is_a_reason_to_think_of_the_zone() {
    let place = ImportFixture::new();
    let file = place.file("local.csv", "time,v\n2026-01-01 00:00:00,1\n");
    let said = place.import(&["--tz", "Europe/Berlin", &file]);
    assert!(said.ok && !said.err.contains("note"), "{}", said.err);
    let said = place.import(&["--dry-run", &file]);
    assert!(
        said.ok
            && said
                .out
                .contains("if its rows came with --tz, give it again"),
        "{}",
        said.out
    );
}

#[test]
fn local_times_are_exported_with_their_offset() {
    let place = ImportFixture::new();
    let text = "time,v\n2026-10-25 01:30,1\n2026-10-25 02:30 CEST,2\n2026-10-25 02:30 CET,3\n2026-12-01 00:00:00.5,4\n";
    let file = place.file("m.csv", text);
    let said = place.import(&["--tz", "Europe/Berlin", &file]);
    assert!(said.ok, "{}", said.err);
    let out = place.path("local.csv");
    let export = [
        "export",
        "--data",
        place.data(),
        "--table",
        "m",
        "--tz",
        "Europe/Berlin",
        &out,
    ];
    let said = crate::marigram(&export);
    assert!(said.ok, "{}", said.err);
    let written = std::fs::read_to_string(&out).expect("it is written");
    assert_eq!(
        written,
        "time,v\n2026-10-25T01:30:00+02:00,1.0\n2026-10-25T02:30:00+02:00,2.0\n\
         2026-10-25T02:30:00+01:00,3.0\n2026-12-01T00:00:00.500+01:00,4.0\n"
    );
    let other = ImportFixture::new();
    let said = other.import(&["--table", "m", &out]);
    assert!(said.ok, "{}", said.err);
    let all = "SELECT * FROM m ORDER BY time";
    assert_eq!(other.csv(all), place.csv(all));
}

#[test]
fn an_empty_parquet_file_makes_an_empty_table() {
    let place = ImportFixture::new();
    let first = place.file("first.csv", "time,v\n2026-01-01,1\n");
    assert!(place.import(&[&first]).ok);
    place.csv("CREATE TABLE e (time TIMESTAMP TIME, d STRING TAG, n BIGINT, v DOUBLE)");
    let file = place.path("e.parquet");
    let said = crate::marigram(&["export", "--data", place.data(), "--table", "e", &file]);
    assert!(said.ok, "{}", said.err);
    let other = ImportFixture::new();
    let said = other.import(&[&file]);
    assert!(
        said.ok && said.out.contains("0 rows read"),
        "{}{}",
        said.out,
        said.err
    );
    assert_eq!(other.columns("e"), place.columns("e"));
}
