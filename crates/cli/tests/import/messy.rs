//! Eleven messy files, one for each common problem and one with all of them: `import` reads each
//! one correctly without any option.

use crate::ImportFixture;
use marigram_fixtures::root;

/// Imports a file and checks the columns of its table, and its rows.
fn comes_in(file: &str, columns: &str, rows: &str) {
    let place = ImportFixture::new();
    let path = root().join("crates/cli/tests/import/messy").join(file);
    let said = place.import(&["--table", "t", &path.display().to_string()]);
    assert!(said.ok, "{file}: {}\n{}", said.out, said.err);
    assert_eq!(place.columns("t"), columns, "{file}: {}", said.err);
    let time = columns.split(' ').next().expect("there are columns");
    let order = format!("SELECT * FROM t ORDER BY \"{time}\", 2");
    assert_eq!(place.csv(&order), rows, "{file}");
}

#[test]
fn a_byte_order_mark_semicolons_and_decimal_commas() {
    comes_in(
        "01_bom_semicolon_comma.csv",
        "Zeitstempel TIMESTAMP time; Pumpe STRING tag; Druck DOUBLE field",
        "Zeitstempel,Pumpe,Druck\n2026-04-05T10:00:00Z,P1,1.5\n2026-04-05T10:00:00Z,P2,2.25\n\
         2026-04-13T10:00:00Z,P1,1234.5\n2026-04-13T10:00:00Z,P2,-0.5\n",
    );
}

#[test]
fn latin1_and_a_row_of_units() {
    comes_in(
        "02_latin1_units.csv",
        "Zeit TIMESTAMP time; Temperatur DOUBLE field; Größe DOUBLE field",
        "Zeit,Temperatur,Größe\n2026-04-05T10:00:00Z,20.5,3.0\n2026-04-05T10:01:00Z,21.0,4.0\n",
    );
}

#[test]
fn lines_before_the_header() {
    comes_in(
        "03_preamble.csv",
        "time TIMESTAMP time; level DOUBLE field; state STRING field",
        "time,level,state\n2026-04-05T10:00:00Z,1.5,ok\n2026-04-05T10:01:00Z,1.75,low\n",
    );
}

#[test]
fn no_header() {
    comes_in(
        "04_no_header.csv",
        "column1 TIMESTAMP time; column2 DOUBLE field; column3 STRING field",
        "column1,column2,column3\n2026-04-05T10:00:00Z,1.5,ok\n2026-04-05T10:01:00Z,1.75,low\n\
         2026-04-05T10:02:00Z,2.0,ok\n",
    );
}

#[test]
fn decimal_commas_in_quotes() {
    comes_in(
        "05_quoted_decimals.csv",
        "time TIMESTAMP time; sensor STRING tag; value DOUBLE field; count DOUBLE field",
        "time,sensor,value,count\n2026-04-05T10:00:00Z,a,1.5,1.0\n\
         2026-04-05T10:00:00Z,b,2.75,2.0\n2026-04-05T10:01:00Z,a,1.625,3.0\n\
         2026-04-05T10:01:00Z,b,,4.0\n",
    );
}

#[test]
fn halves_of_the_day() {
    comes_in(
        "06_am_pm.csv",
        "timestamp TIMESTAMP time; rpm DOUBLE field",
        "timestamp,rpm\n2026-04-05T09:30:00Z,900.0\n2026-04-05T12:15:00Z,950.0\n\
         2026-04-13T00:05:00Z,905.0\n2026-04-13T23:59:59Z,910.0\n",
    );
}

#[test]
fn date_and_time_in_two_columns() {
    comes_in(
        "07_two_columns.tsv",
        "time TIMESTAMP time; Unit STRING tag; Flow DOUBLE field",
        "time,Unit,Flow\n2026-04-05T10:00:00Z,north,1.5\n2026-04-05T10:00:00Z,south,2.5\n\
         2026-04-05T10:00:30Z,north,1.6\n2026-04-05T10:00:30Z,south,2.6\n",
    );
}

#[test]
fn seconds_since_1970() {
    comes_in(
        "08_epoch_seconds.csv",
        "ts TIMESTAMP time; device_id STRING tag; temp DOUBLE field",
        "ts,device_id,temp\n2026-04-05T10:00:00Z,7,20.5\n2026-04-05T10:00:00Z,8,21.5\n\
         2026-04-05T10:01:00Z,7,20.75\n2026-04-05T10:01:00Z,8,21.75\n",
    );
}

#[test]
fn utf16() {
    comes_in(
        "09_utf16.csv",
        "time TIMESTAMP time; ort STRING tag; wert DOUBLE field",
        "time,ort,wert\n2026-04-05T10:00:00Z,Köln,1.5\n2026-04-05T10:00:00Z,München,2.5\n\
         2026-04-05T10:01:00Z,Köln,1.6\n2026-04-05T10:01:00Z,München,2.6\n",
    );
}

#[test]
fn many_ways_to_say_nothing() {
    comes_in(
        "10_pipe_nulls.csv",
        "date TIMESTAMP time; a DOUBLE field; b DOUBLE field; label STRING field",
        "date,a,b,label\n2026-04-05T10:00:00Z,1.0,,x\n2026-04-05T10:01:00Z,,2.0,NA\n\
         2026-04-05T10:02:00Z,,3.0,y\n2026-04-05T10:03:00Z,4.0,,\n",
    );
}

#[test]
fn all_of_it_at_once() {
    comes_in(
        "11_mixture.csv",
        "time TIMESTAMP time; Gerät STRING tag; Temp [°C] DOUBLE field; Feuchte [%] DOUBLE field",
        "time,Gerät,Temp [°C],Feuchte [%]\n2026-04-05T10:00:00Z,Kühler,-4.25,55.0\n\
         2026-04-05T10:00:00Z,Ofen,1020.5,\n2026-04-13T10:00:00Z,Kühler,,54.0\n\
         2026-04-13T10:00:00Z,Ofen,1019.0,12.5\n",
    );
}
