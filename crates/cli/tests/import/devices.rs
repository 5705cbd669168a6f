//! Files as loggers, control systems, spreadsheets and other databases write them: `import` reads them
//! without options, or says which option it needs.

use crate::ImportFixture;

/// Imports a file without options; returns the rows of its table, ordered by time.
fn rows(text: &str) -> String {
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(said.ok, "{text}\n{}{}", said.out, said.err);
    let columns = place.columns("m");
    let time = columns.split(' ').next().unwrap_or_default();
    place.csv(&format!("SELECT * FROM m ORDER BY \"{time}\""))
}

/// Imports a file of which some lines are refused; returns its columns, and what was said.
fn with_refusals(text: &str) -> (String, String) {
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(!said.ok, "{text}\n{}{}", said.out, said.err);
    (place.columns("m"), format!("{}{}", said.out, said.err))
}

#[test]
fn rows_below_the_header_that_describe_columns() {
    // Campbell Scientific's TOA5.
    let text = "\"TOA5\",\"CR1000\",\"x\",\"1234\"\n\"TIMESTAMP\",\"RECORD\",\"BattV\",\"AirT\"\n\
                \"TS\",\"RN\",\"Volts\",\"Deg C\"\n\"\",\"\",\"Avg\",\"Avg\"\n\
                \"2024-01-31 12:00:00\",0,12.5,3.4\n\"2024-01-31 12:10:00\",1,12.5,3.5\n";
    assert_eq!(
        rows(text),
        "TIMESTAMP,RECORD,BattV,AirT\n2024-01-31T12:00:00Z,0.0,12.5,3.4\n\
         2024-01-31T12:10:00Z,1.0,12.5,3.5\n"
    );
    for units in [
        "yyyy-mm-dd,degrees,°dH,Bq/m³",
        "Timestamp,Name of it,Another,One more",
    ] {
        let place = ImportFixture::new();
        let file = place.file(
            "m.csv",
            &format!(
                "Timestamp,Temp,Hard,Rn\n{units}\n2024-01-31 12:00,1,2,3\n2024-01-31 12:01,1,2,3\n"
            ),
        );
        let said = place.import(&[&file]);
        assert!(said.ok, "{}", said.err);
        assert!(
            said.err
                .contains("line 2 describes the columns and is skipped"),
            "{}",
            said.err
        );
        assert_eq!(
            place.columns("m"),
            "Timestamp TIMESTAMP time; Temp DOUBLE field; Hard DOUBLE field; Rn DOUBLE field"
        );
    }
}

#[test]
fn a_header_that_comes_again() {
    let place = ImportFixture::new();
    let text = "time,temp\n2024-01-31 12:00,1.5\ntime,temp\n2024-01-31 12:01,1.6\ntime,temp\n";
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.err
            .contains("the header comes again in 2 lines, the first in line 3"),
        "{}",
        said.err
    );
    assert_eq!(place.columns("m"), "time TIMESTAMP time; temp DOUBLE field");
    // InfluxDB's annotated CSV has one header for each table.
    let block = |host: &str| {
        format!(
            "#group,false,false,false,false,true\n#datatype,string,long,dateTime:RFC3339,double,string\n\
             #default,_result,,,,\n,result,table,_time,_value,host\n\
             ,,0,2024-01-31T11:00:00Z,64.3,{host}\n,,0,2024-01-31T11:10:00Z,64.5,{host}\n\n"
        )
    };
    let file = place.file("n.csv", &format!("{}{}", block("a"), block("b")));
    let said = place.import(&[&file]);
    assert!(said.ok, "{}{}", said.out, said.err);
    assert_eq!(
        place.csv(
            "SELECT host, count(_value) AS n, sum(_value) AS s FROM n GROUP BY host ORDER BY 1"
        ),
        "host,n,s\na,2,128.8\nb,2,128.8\n"
    );
}

#[test]
fn rows_that_are_refused_make_no_column_text() {
    let text =
        "Zeit;Wert;Strom\n31.01.2024 12:00;1,5;2\n31.01.2024 12:01;1,6;2\nBericht;fehlt;Ende\n";
    let (columns, said) = with_refusals(text);
    assert_eq!(
        columns,
        "Zeit TIMESTAMP time; Wert DOUBLE field; Strom DOUBLE field"
    );
    assert!(
        said.contains("line 4") && said.contains("'Bericht' is not a time"),
        "{said}"
    );
}

#[test]
fn numbers_with_marks_between_their_groups() {
    for (numbers, v) in [
        (["1 234,5", "12 234,5"], "1234.5"),
        (["1\u{202f}234,5", "12\u{a0}234,5"], "1234.5"),
        (["1'234.5", "12'234.5"], "1234.5"),
        (["\u{2212}3,6", "4,5"], "-3.6"),
    ] {
        let [one, two] = numbers;
        let text = format!("time;v\n31.01.2024 12:00;{one}\n31.01.2024 12:01;{two}\n");
        let rows = rows(&text);
        assert!(rows.contains(&format!("12:00:00Z,{v}\n")), "{rows}");
    }
}

#[test]
fn months_in_other_languages_and_clocks_with_points() {
    for (text, times) in [
        (
            "Horodatage;v\n31 janv. 2024 12:00;1\n15 août 2024 12:10;2\n",
            ["2024-01-31T12:00:00Z", "2024-08-15T12:10:00Z"],
        ),
        (
            "Zeitpunkt;v\n31. Jan. 2024 12:00;1\n1. März 2024 12:10;#NV\n5. Dez. 2024 12:10;2\n",
            ["2024-01-31T12:00:00Z", "2024-12-05T12:10:00Z"],
        ),
        (
            "Tidpunkt;v\n2024-01-31 12.00.00;1\n2024-01-31 12.10.00;2\n",
            ["2024-01-31T12:00:00Z", "2024-01-31T12:10:00Z"],
        ),
        (
            "Fecha;v\n31 de enero de 2024 12:00;1\n1 de febrero de 2024 12:00;2\n",
            ["2024-01-31T12:00:00Z", "2024-02-01T12:00:00Z"],
        ),
    ] {
        let rows = rows(text);
        for time in times {
            assert!(rows.contains(time), "{text}{rows}");
        }
    }
}

#[test]
fn compact_times() {
    for (cells, times) in [
        (
            ["20240131", "20240201"],
            ["2024-01-31T00:00:00Z", "2024-02-01T00:00:00Z"],
        ),
        (
            ["2024013112", "2024020100"],
            ["2024-01-31T12:00:00Z", "2024-02-01T00:00:00Z"],
        ),
        (
            ["202401311200", "202402011230"],
            ["2024-01-31T12:00:00Z", "2024-02-01T12:30:00Z"],
        ),
        (
            ["20240131120000", "20240201123015"],
            ["2024-01-31T12:00:00Z", "2024-02-01T12:30:15Z"],
        ),
        (
            ["20240131T120000Z", "20240201T123015Z"],
            ["2024-01-31T12:00:00Z", "2024-02-01T12:30:15Z"],
        ),
        (
            ["1706702400", "1706702401"],
            ["2024-01-31T12:00:00Z", "2024-01-31T12:00:01Z"],
        ),
        (
            ["1706702400.25", "1706702401"],
            ["2024-01-31T12:00:00.250Z", "2024-01-31T12:00:01Z"],
        ),
        (
            ["1706702400000000", "1706702401000000"],
            ["2024-01-31T12:00:00Z", "2024-01-31T12:00:01Z"],
        ),
    ] {
        let [one, two] = cells;
        let rows = rows(&format!("time,v\n{one},1\n{two},2\n"));
        for time in times {
            assert!(rows.contains(time), "{cells:?}\n{rows}");
        }
    }
}

#[test]
fn the_days_of_spreadsheets_are_asked_for() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,v\n45322.5,1\n45322.541666667,2\n");
    let said = place.import(&[&file]);
    assert!(
        !said.ok && said.err.contains("--time-format excel"),
        "{}",
        said.err
    );
    let said = place.import(&["--time-format", "excel", &file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT time FROM m ORDER BY 1"),
        "time\n2024-01-31T12:00:00Z\n2024-01-31T13:00:00Z\n"
    );
}

#[test]
fn a_day_that_does_not_exist_is_named_as_such() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,v\n2024-02-30 12:00,1\n");
    let said = place.import(&[&file]);
    let words = "column 'time': '2024-02-30 12:00' is not a time: the calendar has no such day";
    assert!(!said.ok && said.err.contains(words), "{}", said.err);
    let (_, said) = with_refusals("time,v\n2024-02-28 12:00,1\n2024-02-30 12:00,2\n");
    assert!(
        said.contains("line 3") && said.contains("no such day"),
        "{said}"
    );
    let (_, said) = with_refusals("Datum;v\n31.04.2024;1\n01.05.2024;2\n13.05.2024;2\n");
    assert!(
        said.contains("line 2") && said.contains("no such day"),
        "{said}"
    );
}

#[test]
fn an_open_quotation_mark_is_named_with_its_line() {
    let (_, said) = with_refusals(
        "time,s,v\n2024-02-28 12:00,a,1\n2024-02-28 12:01,\"b,2\n2024-02-28 12:02,c,3\n",
    );
    let words = "line 3: the quotation mark that opens in line 3 is never closed";
    assert!(said.contains(words), "{said}");
    let (_, said) = with_refusals(
        "time,s,v\n2024-02-28 12:00,a,1\n2024-02-28 12:01,\"b,2\n2024-02-28 12:02,c,3\n\
         2024-02-28 12:03,\"d\",4\n2024-02-28 12:04,d,4\n",
    );
    assert!(
        said.contains("opens in line 3 closes in line 5 only"),
        "{said}"
    );
    // A text of several lines is fine.
    let text = "time,s,v\n2024-02-28 12:00,\"one\ntwo, three\n\",1\n2024-02-28 12:01,b,2\n";
    assert_eq!(rows(text).matches("one").count(), 1);
}

#[test]
fn the_zone_in_the_name_of_the_time() {
    // Onset HOBO.
    let text = "\"Plot Title: Keller\"\n\"#\",\"Date Time, GMT+01:00\",\"Temp, °C\",\"Host\"\n\
                1,01/31/24 12:00:00 PM,21.5,\n2,01/31/24 12:10:00 PM,21.6,\n3,01/31/24 12:20:00 PM,,Logged\n";
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    let said = place.import(&[&file]);
    assert!(
        said.ok && said.err.contains("zone GMT+01:00"),
        "{}",
        said.err
    );
    let sql = "SELECT \"#\", \"Date Time, GMT+01:00\" AS t FROM m ORDER BY 1 LIMIT 1";
    assert_eq!(place.csv(sql), "#,t\n1.0,2024-01-31T11:00:00Z\n");
}

#[test]
fn home_assistant_has_words_for_no_value() {
    let text = "entity_id,state,last_changed\nsensor.t,21.5,2024-01-31T12:00:00.123Z\n\
                sensor.t,unavailable,2024-01-31T12:01:00.123Z\nsensor.t,unknown,2024-01-31T12:02:00Z\n\
                sensor.t,21.7,2024-01-31T12:03:00Z\n";
    let rows = rows(text);
    assert!(
        rows.contains("sensor.t,21.5") || rows.contains("21.5"),
        "{rows}"
    );
    assert!(!rows.contains("unavailable"), "{rows}");
}
