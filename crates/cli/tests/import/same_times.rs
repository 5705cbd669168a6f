//! Rows of one time and the same tags: only those that replace a value by another one stop an import.

use crate::ImportFixture;

#[test]
fn rows_that_complete_each_other_make_up_one() {
    // Across files.
    let place = ImportFixture::new();
    let one = place.file("f1.csv", "time,device,temp\n2026-01-13 10:00,a,1\n");
    let two = place.file("f2.csv", "time,device,hum\n2026-01-13 10:00,a,50\n");
    let said = place.import(&["--table", "t", &one, &two]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.err.contains(
            "1 row has the time and the tags of another row, and no other value: they make up one"
        ),
        "{}",
        said.err
    );
    assert_eq!(
        place.csv("SELECT device, temp, hum FROM t"),
        "device,temp,hum\na,1.0,50.0\n"
    );
    // Against the table.
    let three = place.file("f3.csv", "time,device,wind\n2026-01-13 10:00,a,7\n");
    let said = place.import(&["--table", "t", &three]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.err
            .contains("0 with others, 1 with values in other columns only"),
        "{}",
        said.err
    );
    assert_eq!(
        place.csv("SELECT device, temp, hum, wind FROM t"),
        "device,temp,hum,wind\na,1.0,50.0,7.0\n"
    );
    // Within a file.
    let within = place.file(
        "w.csv",
        "time,device,temp,hum\n2026-01-13 10:00,a,1,\n2026-01-13 10:00,a,,50\n2026-01-13 10:01,a,2,51\n",
    );
    let said = place.import(&[&within]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT temp, hum FROM w ORDER BY time"),
        "temp,hum\n1.0,50.0\n2.0,51.0\n"
    );
}

#[test]
fn equal_rows_replace_nothing() {
    let place = ImportFixture::new();
    let row = "2026-01-13 10:00,1,x\n";
    let file = place.file(
        "e.csv",
        &format!("time,v,s\n{row}{row}2026-01-13 10:01,2,y\n{row}"),
    );
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert!(said.err.contains("2 rows have the time"), "{}", said.err);
    assert_eq!(
        place.csv("SELECT v, s FROM e ORDER BY time"),
        "v,s\n1.0,x\n2.0,y\n"
    );
    // Overlapping files, as exports by month make them.
    let one = place.file("o1.csv", "time,v\n2026-01-13 10:00,1\n2026-01-13 10:01,2\n");
    let two = place.file("o2.csv", "time,v\n2026-01-13 10:01,2\n2026-01-13 10:02,3\n");
    let said = place.import(&["--table", "o", &one, &two]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT v FROM o ORDER BY time"),
        "v\n1.0\n2.0\n3.0\n"
    );
    // Line protocol.
    let lines = place.file("l.lp", "m,d=a x=1 1\nm,d=a x=1,y=2 1\n");
    let said = place.import(&[&lines]);
    assert!(said.ok, "{}", said.err);
}

#[test]
fn one_value_that_is_replaced_stops_the_import() {
    let place = ImportFixture::new();
    let file = place.file(
        "c.csv",
        "time,a,b\n2026-01-13 10:00,1,\n2026-01-13 10:00,,2\n2026-01-13 10:00,1,3\n\
         2026-01-13 10:01,5,5\n2026-01-13 10:01,5,5\n",
    );
    let said = place.import(&[&file]);
    assert!(!said.ok, "{}", said.out);
    assert!(
        said.err.contains("1 of 5 rows would replace"),
        "{}",
        said.err
    );
    assert!(said.err.contains("line 3, line 4"), "{}", said.err);
    assert!(!place.exists());
    let said = place.import(&["--replace", &file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT a, b FROM c ORDER BY time"),
        "a,b\n1.0,3.0\n5.0,5.0\n"
    );
}

#[test]
fn measured_values_are_no_advice_for_tags() {
    for text in [
        "time,v\n2026-01-13 10:00,1\n2026-01-13 10:00,2\n",
        "time,device,temp\n2026-01-13 10:00,a,1\n2026-01-13 10:00,a,2\n",
        "time,temp,count\n2026-01-13 10:00,1.5,7\n2026-01-13 10:00,2.5,8\n",
        "time,temp\n2026-01-13 10:00,21.5 °C\n2026-01-13 10:00,22 °C\n",
        "time,text,v\n2026-01-13 10:00,started,1\n2026-01-13 10:00,stopped,2\n",
    ] {
        let place = ImportFixture::new();
        let file = place.file("m.csv", text);
        let said = place.import(&["--no-tags", &file]);
        assert!(!said.ok, "{text}{}", said.out);
        assert!(
            said.err.contains("no column that could be a tag"),
            "{text}{}",
            said.err
        );
        assert!(!said.err.contains("--tags"), "{text}{}", said.err);
    }
    let text = "time,channel,v\n2026-01-13 10:00,1,1.5\n2026-01-13 10:00,2,2.5\n";
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    let said = place.import(&["--no-tags", &file]);
    assert!(said.err.contains("--tags channel"), "{}", said.err);
}
