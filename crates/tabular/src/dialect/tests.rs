//! Tests of delimiters, headers, and the rows around them.

use super::*;

fn sniffed(sample: &str) -> TextDialect {
    sniff(sample, &DialectOptions::default()).unwrap().unwrap()
}

#[test]
fn delimiters_are_told_by_rows_of_one_width() {
    for (sample, delimiter) in [
        ("time,a,b\n2026-01-01,1,2\n", b','),
        ("time;a\n01.01.2026 00:00;1,5\n01.01.2026 00:01;2,5\n", b';'),
        ("time\ta\n2026-01-01\t1,5\n", b'\t'),
        ("time|a\n2026-01-01|x y\n", b'|'),
        (
            "time,text\n2026-01-01,\"a;b\"\n2026-01-02,\"c;d;e\"\n",
            b',',
        ),
        // Decimal commas are in every row, too.
        (
            "2026-01-01T10:00:00Z;a;1,5;ok\n2026-01-01T10:00:00Z;b;2,5;low\n",
            b';',
        ),
        (
            "2026-01-01 10:00:00,123;1,5;2,5\n2026-01-01 10:00:01,123;1,6;2,6\n",
            b';',
        ),
        // A last column that is often empty.
        (
            "time;v;state\n2026-01-01;1,5;\n2026-01-02;2,5;low\n2026-01-03;;ok\n2026-01-04;2,5;\n",
            b';',
        ),
    ] {
        assert_eq!(sniffed(sample).delimiter, delimiter, "{sample}");
    }
}

#[test]
fn headers_preambles_and_units_are_found() {
    let plain = sniffed("time,a\n2026-01-01,1\n");
    assert_eq!((plain.header_line, plain.data_after), (Some(1), 1));
    let none = sniffed("2026-01-01 00:00,1,a\n2026-01-01 00:01,2,b\n");
    assert_eq!((none.header_line, none.data_after), (None, 0));
    assert_eq!(none.names, ["column1", "column2", "column3"]);
    let report = sniffed(
        "Report of plant 7\nSerial;4711\n\nZeit;Temp;Druck\n;°C;bar\n01.04.2026;1,5;2\n\
         02.04.2026;1,6;3\n",
    );
    assert_eq!((report.header_line, report.data_after), (Some(4), 5));
    assert_eq!(report.names, ["Zeit", "Temp", "Druck"]);
    assert_eq!(report.units.unwrap(), ["", "°C", "bar"]);
    let numbered = sniffed("time,1,2\n2026-01-01,5,6\n2026-01-02,5,6\n");
    assert_eq!(numbered.header_line, Some(1));
    assert_eq!(numbered.names, ["time", "1", "2"]);
    let trailing = sniffed("time;a;\n2026-01-01;1;\n2026-01-02;2;\n");
    assert_eq!(trailing.names, ["time", "a"]);
    let epoch = sniffed("ts,v\n1767225600,1\n1767225601,2\n");
    assert_eq!((epoch.header_line, epoch.data_after), (Some(1), 1));
}

#[test]
fn rows_whose_time_cannot_be_read_are_no_header() {
    let rows = "2024-03-01 00:00,a,1\n2024-03-02 00:00,a,2\n2024-03-03 00:00,a,2\n";
    for bad in [
        "2024-02-30 00:00,a,1\n",
        ",a,1\n",
        "bad,a,1\n",
        "2024-02-30 00:00,a,1\n2024-02-31 00:00,b,1\n",
        "# a comment\n",
    ] {
        for header in ["time,dev,v", "when_measured,dev,v"] {
            let found = sniffed(&format!("{header}\n{bad}{rows}"));
            assert_eq!(found.header_line, Some(1), "{header} {bad}");
            assert_eq!(found.data_after, 1, "{header} {bad}");
        }
        let told = sniffed(&format!("Plant 7\ntime,dev,v\n{bad}{rows}"));
        assert_eq!((told.header_line, told.data_after), (Some(2), 2), "{bad}");
    }
    let bare = sniffed(&format!("2024-02-30 00:00,a,1\n{rows}"));
    assert_eq!((bare.header_line, bare.data_after), (None, 0));
    let numbered = sniffed("time,1,2\nbad,5,6\n2026-01-01,5,6\n2026-01-02,5,6\n");
    assert_eq!(numbered.header_line, Some(1));
    let two = sniffed("Kessel,Ofen,Ofen\nZeit,Temp,Druck\n2026-01-01,5,6\n2026-01-02,5,6\n");
    assert_eq!(two.names, ["Zeit", "Temp", "Druck"]);
}

#[test]
fn rows_that_describe_the_columns_are_no_data() {
    for below in [
        "TS,RN,Deg C\n,,Avg\n",
        "yyyy-mm-dd,number,degrees\n",
        "Timestamp,Number of the row,Temperature of the boiler\n",
    ] {
        let rows = "2024-01-31 12:00:00,0,3.4\n2024-01-31 12:10:00,1,3.5\n";
        let found = sniffed(&format!("TIMESTAMP,RECORD,AirT\n{below}{rows}"));
        let lines = below.lines().count() as u64;
        assert_eq!(found.header_line, Some(1), "{below}");
        assert_eq!(found.data_after, 1 + lines, "{below}");
        assert_eq!(found.described.len() as u64, lines, "{below}");
    }
    let found = sniffed("t,Temp\ns,°C\n0.0,21.5\n0.1,21.5\n");
    assert_eq!((found.data_after, found.units.is_some()), (2, true));
}

#[test]
fn what_is_told_goes_first() {
    let told = DialectOptions {
        skip: Some(2),
        ..DialectOptions::default()
    };
    let dialect = sniff("x,y\nz,w\ntime,a\n2026-01-01,1\n", &told)
        .unwrap()
        .unwrap();
    assert_eq!((dialect.header_line, dialect.data_after), (Some(3), 3));
    let told = DialectOptions {
        header: Some(false),
        ..DialectOptions::default()
    };
    // Every line is a row, also one that will be refused.
    let dialect = sniff("time,a\n2026-01-01,1\n", &told).unwrap().unwrap();
    assert_eq!((dialect.header_line, dialect.data_after), (None, 0));
    let told = DialectOptions {
        delimiter: Some(b','),
        ..DialectOptions::default()
    };
    let dialect = sniff("time;a\n2026-01-01;1,5\n", &told).unwrap().unwrap();
    assert_eq!(dialect.delimiter, b',');
    assert_eq!(sniff("", &DialectOptions::default()).unwrap(), None);
}
