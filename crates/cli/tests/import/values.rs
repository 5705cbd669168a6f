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
