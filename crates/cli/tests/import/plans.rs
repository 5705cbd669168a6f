//! What an import says before it writes: missing tags, the range of times, and one plan for all formats.

use crate::{CommandOutput, ImportFixture};

fn said(output: &CommandOutput) -> String {
    format!("{}{}", output.out, output.err)
}

#[test]
fn rows_without_a_tag_are_told() {
    let place = ImportFixture::new();
    let text = "time,site,v\n2026-01-01,a,1\n2026-01-01,,2\n2026-01-02,a,3\n2026-01-02,,4\n";
    let file = place.file("m.csv", text);
    let told = place.import(&["--tags", "site", &file]);
    assert!(told.ok, "{}", told.err);
    let words =
        "2 of 4 rows for table 'm' have no value for the tag 'site' (the first is in line 3)";
    assert!(told.err.contains(words), "{}", told.err);
    // A file that lacks the column of the table's tag.
    let file = place.file("n.csv", "time,v\n2026-01-03,5\n");
    let told = place.import(&["--table", "m", &file]);
    assert!(told.ok, "{}", told.err);
    let words = "1 of 1 row for table 'm' have no value for the tag 'site'";
    assert!(told.err.contains(words), "{}", told.err);
    // Line protocol.
    let lines = "w,site=a v=1 1767225600000000000\nw v=2 1767225600000000000\n";
    let file = place.file("w.lp", lines);
    let told = place.import(&["--dry-run", &file]);
    let words =
        "1 of 2 rows for table 'w' have no value for the tag 'site' (the first is in line 2)";
    assert!(told.ok && told.out.contains(words), "{}", said(&told));
    // Nothing is missing.
    let file = place.file("o.csv", "time,site,v\n2026-01-01,a,1\n2026-01-01,b,2\n");
    let told = place.import(&["--tags", "site", &file]);
    assert!(
        told.ok && !told.err.contains("no value for the tag"),
        "{}",
        told.err
    );
}

#[test]
fn whole_numbers_come_into_a_bigint_however_they_are_written() {
    let place = ImportFixture::new();
    let create = "CREATE TABLE m (time TIMESTAMP, n BIGINT, i INT, u BIGINT UNSIGNED)";
    let file = place.file("x.csv", "time,v\n2026-01-01,1\n");
    assert!(place.import(&[&file]).ok);
    place.csv(create);
    let text = "time,n,i,u\n2026-01-01,5.0,1e3,18446744073709551615\n2026-01-02,5.5,1,1\n\
                2026-01-03,1e30,1,1\n2026-01-04,-9007199254740993,-7.00,3e0\n2026-01-05,1,1,-1\n";
    let file = place.file("m.csv", text);
    let told = place.import(&[&file]);
    assert!(!told.ok, "three rows are refused");
    for words in [
        "line 3: column 'n': '5.5' has a fraction, which BIGINT would lose",
        "line 4: column 'n': '1e30' is beyond BIGINT",
        "line 6: column 'u': '-1' is beyond BIGINT UNSIGNED",
        "ALTER COLUMN n TYPE DOUBLE",
        "2 stored",
    ] {
        assert!(said(&told).contains(words), "{words}: {}", said(&told));
    }
    assert_eq!(
        place.csv("SELECT n, i, u FROM m ORDER BY time"),
        "n,i,u\n5,1000,18446744073709551615\n-9007199254740993,-7,3\n"
    );
    let lines = "{\"time\":\"2026-02-01\",\"n\":7.0}\n{\"time\":\"2026-02-02\",\"n\":7.25}\n";
    let told = place.import(&["--table", "m", &place.file("j.jsonl", lines)]);
    assert!(
        said(&told).contains("'7.25' has a fraction"),
        "{}",
        said(&told)
    );
    assert_eq!(
        place.csv("SELECT n FROM m WHERE time >= '2026-02-01'"),
        "n\n7\n"
    );
    let columns = "time TIMESTAMP time; n BIGINT field; i INT field; u BIGINT UNSIGNED field";
    assert_eq!(place.columns("m"), columns);
}

#[test]
fn the_range_of_times_is_shown_and_odd_ones_are_noted() {
    let place = ImportFixture::new();
    let text = "time,v\n2026-01-01T00:00:00Z,1\n1970-01-01T00:00:07Z,2\n2199-01-01T00:00:00Z,3\n";
    let file = place.file("m.csv", text);
    let told = place.import(&["--dry-run", &file]);
    assert!(told.ok, "{}", said(&told));
    for words in [
        "times   1970-01-01T00:00:07Z to 2199-01-01T00:00:00Z",
        "1 of 3 rows have times before 1980: the first, in line 3, is 1970-01-01T00:00:07Z",
        "1 of 3 rows have times in the future: the first, in line 4, is 2199-01-01T00:00:00Z",
    ] {
        assert!(told.out.contains(words), "{words}: {}", told.out);
    }
    let file = place.file("w.lp", "w,site=a v=1 1767225600000000000\n");
    let told = place.import(&[&file]);
    assert!(told.ok, "{}", said(&told));
    let words = "table   w: 1 row, 2026-01-01T00:00:00Z to 2026-01-01T00:00:00Z";
    assert!(told.err.contains(words), "{}", told.err);
    assert!(
        told.err.contains("tags site; fields v DOUBLE"),
        "{}",
        told.err
    );
}

/// A table as Parquet of another program: a query's answer has no roles.
fn parquet(place: &ImportFixture, name: &str, query: &str) -> String {
    let path = place.path(name);
    let arguments = [
        "export",
        "--data",
        place.data(),
        "--force",
        "--query",
        query,
        &path,
    ];
    let done = crate::marigram(&arguments);
    assert!(done.ok, "{}", done.err);
    path
}

#[test]
fn parquet_has_the_same_plan_as_csv() {
    let place = ImportFixture::new();
    let text = "time,device,v,n\n2026-01-01,a,1.5,1\n2026-01-01,b,2.5,2\n2026-01-02,a,3,3\n\
                2026-01-02,b,4,4\n";
    assert!(
        place
            .import(&["--table", "x", &place.file("x.csv", text)])
            .ok
    );
    let query = "SELECT time + INTERVAL '0 seconds' AS at, device || '' AS device, v * 1 AS v, \
                 n::INT AS n FROM x";
    let file = parquet(&place, "p.parquet", query);
    let told = place.import(&["--dry-run", "--table", "p", &file]);
    assert!(told.ok, "{}", said(&told));
    for words in [
        "p.parquet → new table p",
        "  form    Parquet",
        "  time    at, TIMESTAMP",
        "  tags    device (detected; --tags sets them)",
        "  fields  v DOUBLE, n INT",
        "  sample  at=2026-01-01T00:00:00",
        "device=a · v=1.5 · n=1",
        "  times   2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z",
        "4 rows would be stored, 0 refused",
    ] {
        assert!(told.out.contains(words), "{words}: {}", told.out);
    }
    let told = place.import(&["--table", "p", &file]);
    assert!(told.ok, "{}", said(&told));
    assert_eq!(
        place.columns("p"),
        "at TIMESTAMP time; device STRING tag; v DOUBLE field; n INT field"
    );
    // Again: the same rows, and the names of the table in another case.
    let query = query
        .replace("AS v", "AS \"V\"")
        .replace("AS at", "AS \"AT\"");
    let file = parquet(&place, "q.parquet", &query);
    let told = place.import(&["--table", "p", "--strict", &file]);
    assert!(told.ok, "{}", said(&told));
    assert!(
        told.err.contains("4 rows are in the table already"),
        "{}",
        told.err
    );
    assert_eq!(place.csv("SELECT count(v) AS n FROM p"), "n\n4\n");
    let told = place.import(&["--no-tags", "--table", "s", &file]);
    assert!(
        !told.ok && told.err.contains("would replace others"),
        "{}",
        told.err
    );
    let told = place.import(&["--no-tags", "--table", "s", "--replace", &file]);
    assert!(
        told.ok && told.out.contains("2 replaced"),
        "{}",
        said(&told)
    );
}

#[test]
fn strict_refuses_new_columns_in_every_format() {
    let place = ImportFixture::new();
    let text = "time,site,v\n2026-01-01,a,1\n2026-01-01,b,2\n";
    assert!(
        place
            .import(&["--table", "t", "--tags", "site", &place.file("t.csv", text)])
            .ok
    );
    let csv = place.file("a.csv", "time,site,v,extra\n2026-01-02,a,1,9\n");
    let json = place.file(
        "a.jsonl",
        "{\"time\":\"2026-01-02\",\"site\":\"a\",\"v\":1,\"extra\":9}\n",
    );
    let lines = place.file("a.lp", "t,site=a v=1,extra=9 1767312000000000000\n");
    let query = "SELECT time, site, v, v + 8 AS extra FROM t WHERE site = 'a'";
    let parquet = parquet(&place, "a.parquet", query);
    for (file, has_table) in [
        (&csv, true),
        (&json, true),
        (&lines, false),
        (&parquet, true),
    ] {
        let table: &[&str] = if has_table { &["--table", "t"] } else { &[] };
        let told = place.import(&[table, &["--strict", file]].concat());
        let words = "column 'extra' is not in table 't', which has: time, site, v; --strict";
        assert!(
            !told.ok && told.err.contains(words),
            "{file}: {}",
            said(&told)
        );
    }
    assert_eq!(
        place.columns("t"),
        "time TIMESTAMP time; site STRING tag; v DOUBLE field"
    );
}

#[test]
fn options_of_other_formats_are_refused() {
    let place = ImportFixture::new();
    assert!(
        place
            .import(&[&place.file("x.csv", "time,v\n2026-01-01,1\n")])
            .ok
    );
    let parquet = parquet(&place, "a.parquet", "SELECT * FROM x");
    let lines = place.file("a.lp", "w v=1 1767225600000000000\n");
    let json = place.file("a.jsonl", "{\"time\":\"2026-01-02\",\"v\":1}\n");
    for (file, options, words) in [
        (
            &parquet,
            &["--delimiter", ";"][..],
            "--delimiter is for CSV",
        ),
        (
            &parquet,
            &["--tz", "Europe/Berlin"],
            "--tz is for CSV and JSON lines",
        ),
        (&json, &["--skip", "1"], "--skip is for CSV"),
        (&lines, &["--tags", "v"], "says which are its tags"),
        (&lines, &["--table", "t"], "names its table"),
        (&lines, &["--time-column", "v"], "ends with its time"),
        (&lines, &["--null", "x"], "--null is for CSV and JSON lines"),
    ] {
        let told = place.import(&[options, &["--dry-run", file]].concat());
        assert!(
            !told.ok && told.err.contains(words),
            "{words}: {}",
            said(&told)
        );
    }
    // What makes sense, works.
    let told = place.import(&["--tag", "site=north", &lines]);
    assert!(told.ok, "{}", said(&told));
    assert_eq!(place.csv("SELECT site, v FROM w"), "site,v\nnorth,1.0\n");
    let clash = place.file("b.lp", "w,site=south v=1 1767225600000000000\n");
    let told = place.import(&["--tag", "site=north", &clash]);
    assert!(
        !told.ok && told.err.contains("a column 'site' themselves"),
        "{}",
        told.err
    );
}
