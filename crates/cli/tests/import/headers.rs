//! Headers between the rows: a value belongs to the column that the last header above it names.

use crate::ImportFixture;

#[test]
fn rows_below_another_header_are_read_by_its_names() {
    let place = ImportFixture::new();
    let text = "time,temp,hum\n2026-01-01 00:00,20,50\n2026-01-01 00:01,21,51\ntime,hum,temp\n\
                2026-01-01 00:02,52,22\ntime,temp,wind\n2026-01-01 00:03,23,7\n\
                time,temp,hum\n2026-01-01 00:04,24,54\n2026-01-01 00:05,24,54,9\n";
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    for words in [
        "line 4 is another header: time, hum, temp",
        "line 6 is another header: time, temp, wind",
        "the header comes again in 1 line, the first in line 8",
        "line 10: 4 values for 3 columns",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(
        said.out
            .contains("6 rows read, 5 stored, 0 replaced, 1 refused"),
        "{}",
        said.out
    );
    assert_eq!(
        place.csv("SELECT temp, hum, wind FROM m ORDER BY time"),
        "temp,hum,wind\n20.0,50.0,\n21.0,51.0,\n22.0,52.0,\n23.0,,7.0\n24.0,54.0,\n"
    );
}

#[test]
fn annotated_csv_of_several_schemas() {
    let place = ImportFixture::new();
    let block = |tag: &str, rows: &str| {
        format!(
            "#group,false,false,true,false,true,true\n\
             #datatype,string,long,dateTime:RFC3339,double,string,string\n#default,_result,,,,,\n\
             ,result,table,_time,_value,_measurement,{tag}\n{rows}\n"
        )
    };
    let text = [
        block("station", ",,0,2026-01-01T00:00:00Z,21.5,weather,north\n"),
        block("host", ",,1,2026-01-01T00:00:00Z,7,cpu,h1\n"),
        block("host", ",,2,2026-01-01T00:00:00Z,8,cpu,h2\n"),
        block("station", ",,3,2026-01-01T01:00:00Z,9,weather,south\n"),
    ]
    .concat();
    let file = place.file("flux.csv", &text);
    let said = place.import(&["--tags", "_measurement,station,host", &file]);
    assert!(said.ok, "{}", said.err);
    for words in [
        "line 10 is another header",
        "the header comes again in 1 line, the first in line 22",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert_eq!(
        place.csv("SELECT _measurement, station, host, _value FROM flux ORDER BY _value"),
        "_measurement,station,host,_value\ncpu,,h1,7.0\ncpu,,h2,8.0\nweather,south,,9.0\nweather,north,,21.5\n"
    );
}

#[test]
fn a_header_without_the_time_stops_the_import() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,temp\n2026-01-01 00:00,20\nZeitstempel,temp\n2026-01-01 00:01,21\n",
    );
    let said = place.import(&[&file]);
    assert!(!said.ok);
    for words in [
        "line 3 is another header (Zeitstempel, temp)",
        "no column 'time'",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(!place.exists());
}

#[test]
fn exports_that_were_joined_keep_their_columns() {
    let place = ImportFixture::new();
    let text = "time,a,b\n2026-01-01T00:00:00Z,1,x\ntime,b,a\n2026-01-01T00:00:01Z,time,2\ntime,a,b\n\
                2026-01-01T00:00:02Z,3,y\n";
    let file = place.file("m.csv", text);
    place.file(
        "m.csv.layout.json",
        r#"{"version":1,"table":"m","time":"time","tags":[],"fields":[["a","BIGINT"],["b","STRING"]]}"#,
    );
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT a, b FROM m ORDER BY time"),
        "a,b\n1,x\n2,time\n3,y\n"
    );
}

#[test]
fn a_name_that_a_spreadsheet_breaks_is_one_name() {
    let place = ImportFixture::new();
    let text = "time,\"Temp\n[°C]\"\n2026-01-13 10:00,1\ntime,\"Temp\n[°C]\"\n2026-01-13 10:01,2\n";
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert!(!said.err.contains("twice"), "{}", said.err);
    assert_eq!(
        place.csv("SELECT \"Temp [°C]\" AS t FROM m ORDER BY time"),
        "t\n1.0\n2.0\n"
    );
}

#[test]
fn names_of_several_files_match_without_case() {
    let place = ImportFixture::new();
    let first = place.file(
        "a.csv",
        "Time,Device,Temp\n2026-01-01 00:00,d1,20\n2026-01-01 00:00,d2,21\n",
    );
    let second = place.file(
        "b.csv",
        "TIME,DEVICE,TEMP\n2026-01-01 00:01,d1,22\n2026-01-01 00:01,d2,23\n",
    );
    let said = place.import(&["--table", "m", &first, &second]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT * FROM m ORDER BY \"Temp\""),
        "Time,Device,Temp\n2026-01-01T00:00:00Z,d1,20.0\n2026-01-01T00:00:00Z,d2,21.0\n\
         2026-01-01T00:01:00Z,d1,22.0\n2026-01-01T00:01:00Z,d2,23.0\n"
    );
    // Two columns of one file are two columns.
    let both = place.file("c.csv", "time,v,V\n2026-01-01 00:00,1,2\n");
    let said = place.import(&["--table", "n", "--no-tags", &both]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(place.csv("SELECT v, \"V\" FROM n"), "v,V\n1.0,2.0\n");
}

#[test]
fn without_a_header_every_line_is_a_row() {
    let place = ImportFixture::new();
    let text = "never,20\n2026-01-01 00:00,21\n2026-01-01 00:01,22\n";
    let file = place.file("m.csv", text);
    let said = place.import(&[
        "--no-header",
        "--no-tags",
        "--time-column",
        "column1",
        &file,
    ]);
    assert!(!said.ok, "{}", said.out);
    assert!(said.out.contains("3 rows read, 2 stored"), "{}", said.out);
    assert!(said.out.contains("1 refused"), "{}", said.out);
}
