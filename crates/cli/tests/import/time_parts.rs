//! Times that are spread over several columns: what belongs to them is used and said, and what may
//! belong to them is asked for. None of it is left out silently.

use crate::{ImportFixture, refused, times_of};

#[test]
fn a_zone_beside_the_time_is_used() {
    for (text, times) in [
        (
            "time,tz,v\n2024-01-31 12:00,Europe/Berlin,1\n2024-07-31 12:00,Europe/Berlin,2\n",
            "2024-01-31T11:00:00Z 2024-07-31T10:00:00Z",
        ),
        (
            "time,v,tz\n2024-01-31 12:00,1,Europe/Berlin\n2024-01-31 12:00,2,America/New_York\n",
            "2024-01-31T11:00:00Z 2024-01-31T17:00:00Z",
        ),
        (
            "timestamp,offset,v\n2024-01-31 12:00,+02:00,1\n2024-01-31 12:01,-0330,2\n",
            "2024-01-31T10:00:00Z 2024-01-31T15:31:00Z",
        ),
        (
            "Datum;Uhrzeit;Zone;Wert\n31.01.2024;12:00;CET;1,5\n31.07.2024;12:00;CEST;1,5\n",
            "2024-01-31T11:00:00Z 2024-07-31T10:00:00Z",
        ),
        (
            "time,utc_offset,v\n2024-01-31 12:00,60,1\n2024-07-31 12:00,120,1\n",
            "2024-01-31T11:00:00Z 2024-07-31T10:00:00Z",
        ),
        (
            "time,tz_offset,v\n2024-01-31 12:00,5.5,1\n2024-07-31 12:00,-3,1\n",
            "2024-01-31T06:30:00Z 2024-07-31T15:00:00Z",
        ),
    ] {
        let (found, said) = times_of(text);
        assert_eq!(found, times, "{text}{said}");
        assert!(said.contains("is its time zone"), "{text}{said}");
        assert!(said.contains("leaves the others out"), "{text}{said}");
        assert!(!said.contains("no zone in the file"), "{text}{said}");
    }
}

#[test]
fn a_zone_that_is_unclear_is_asked_for() {
    let named = "time,timezone,v\n2024-01-31 12:00,Central Europe,1\n2024-01-31 12:01,x,1\n";
    let said = refused(named, &[]);
    for words in [
        "'timezone'",
        "'Central Europe'",
        "--tz",
        "--time-column time",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let two = "time,tz,zone,v\n2024-01-31 12:00,CET,UTC,1\n2024-01-31 12:01,CET,UTC,1\n";
    let said = refused(two, &[]);
    for words in ["'tz' and 'zone'", "--time-column time,tz"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let far = "time,v,w,location\n2024-01-31 12:00,1,2,Europe/Berlin\n2024-01-31 12:01,1,2,Europe/Berlin\n";
    let said = refused(far, &[]);
    for words in [
        "'location' may be the time zone",
        "--time-column time,location if it is",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // Zones that are no part of the time, or say nothing new.
    for text in [
        "time,zone,v\n2024-01-31 12:00,North,1\n2024-01-31 12:01,South,1\n",
        "time,tz,v\n1706702400,Europe/Berlin,1\n1706702460,Europe/Berlin,1\n",
        "time,tz,v\n2024-01-31T12:00Z,Europe/Berlin,1\n2024-01-31T12:01Z,Europe/Berlin,1\n",
    ] {
        let (times, said) = times_of(text);
        assert_eq!(times, "2024-01-31T12:00:00Z 2024-01-31T12:01:00Z", "{said}");
    }
}

#[test]
fn a_column_is_left_out_of_the_time_if_the_user_says_so() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time,tz,v\n2024-01-31 12:00,Europe/Berlin,1\n2024-01-31 12:01,Europe/Berlin,2\n",
    );
    let said = place.import(&["--time-column", "time", &file]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.err.contains("column 'tz' is not part of the time"),
        "{}",
        said.err
    );
    assert_eq!(
        place.csv("SELECT * FROM m ORDER BY 1"),
        "time,tz,v\n2024-01-31T12:00:00Z,Europe/Berlin,1.0\n\
         2024-01-31T12:01:00Z,Europe/Berlin,2.0\n"
    );
    // Rows of the same table have the same meaning.
    let said = place.import(&[&file]);
    assert!(!said.ok);
    for words in ["'tz'", "holds it as a value", "--time-column time,tz"] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
}

#[test]
fn halves_of_the_day_in_a_column_of_their_own() {
    for text in [
        "Date,Time,AM/PM,V\n1/31/2024,01:00,AM,1\n1/31/2024,01:00,PM,2\n",
        "Date,Time,,V\n1/31/2024,1:00:00,AM,1\n1/31/2024,1:00:00,PM,2\n",
        "Date,Hour,ampm,V\n1/31/2024,1,a.m.,1\n1/31/2024,1,p.m.,2\n",
    ] {
        let (times, said) = times_of(text);
        assert_eq!(times, "2024-01-31T01:00:00Z 2024-01-31T13:00:00Z", "{said}");
        assert!(said.contains("is its AM or PM"), "{said}");
    }
    // Beside hours up to 23 it says nothing new.
    let (times, _) = times_of("Date,Time,AM/PM,V\n1/31/2024,01:00,AM,1\n1/31/2024,13:00,PM,2\n");
    assert_eq!(times, "2024-01-31T01:00:00Z 2024-01-31T13:00:00Z");
    let said = refused(
        "Date,Time,AM/PM,V\n1/31/2024,01:00,early,1\n1/31/2024,02:00,late,2\n",
        &[],
    );
    assert!(
        said.contains("'AM/PM'") && said.contains("'early'"),
        "{said}"
    );
}

#[test]
fn hours_minutes_and_seconds_as_numbers() {
    for (text, times) in [
        (
            "date,hour,value\n2024-01-31,0,1\n2024-01-31,23,2\n2024-01-31,24,2\n",
            "2024-01-31T00:00:00Z 2024-01-31T23:00:00Z 2024-02-01T00:00:00Z",
        ),
        (
            "Datum;Stunde;Minute;Wert\n31.01.2024;0;30;1\n31.01.2024;1;5;2\n",
            "2024-01-31T00:30:00Z 2024-01-31T01:05:00Z",
        ),
        (
            "#YY,MM,DD,hh,mm,WSPD\n2024,01,31,12,50,3.5\n2024,2,1,3,5,4.5\n",
            "2024-01-31T12:50:00Z 2024-02-01T03:05:00Z",
        ),
        (
            "year,month,day,v\n2024,1,31,3.5\n2024,2,1,4.5\n",
            "2024-01-31T00:00:00Z 2024-02-01T00:00:00Z",
        ),
        (
            "Date;Time;Millitm;Value\n01/31/2024;12:00:00;5;1\n01/31/2024;12:00:00;623;2\n",
            "2024-01-31T12:00:00.005Z 2024-01-31T12:00:00.623Z",
        ),
        (
            "Date;Heure;v\n31/01/2024;12h00;1,5\n31/01/2024;12h10;1,6\n",
            "2024-01-31T12:00:00Z 2024-01-31T12:10:00Z",
        ),
        (
            "time,ms,v\n2024-01-31 12:00:00.5,5,1\n2024-01-31 12:00:01.5,10,2\n",
            "2024-01-31T12:00:00.500Z 2024-01-31T12:00:01.500Z",
        ),
        (
            "Date Local,Time Local,Date GMT,Time GMT,v\n2024-01-31,07:00,2024-01-31,12:00,1.5\n",
            "2024-01-31T12:00:00Z",
        ),
        (
            "local_time,utc_offset_hours,v\n2024-01-31 12:00,1,1\n2024-07-31 12:00,2,2\n",
            "2024-01-31T11:00:00Z 2024-07-31T10:00:00Z",
        ),
        (
            "Zeit;v\n31.01.2024 12:00 Uhr;1,5\n31.01.2024 12:10 Uhr;1,6\n",
            "2024-01-31T12:00:00Z 2024-01-31T12:10:00Z",
        ),
        (
            "date,hhmm,v\n2024-01-31,0005,1\n2024-01-31,1330,2\n",
            "2024-01-31T00:05:00Z 2024-01-31T13:30:00Z",
        ),
        (
            "date,hour,min,max\n2024-01-31,0,5,9\n2024-01-31,1,6,9\n",
            "2024-01-31T00:00:00Z 2024-01-31T01:00:00Z",
        ),
    ] {
        let (found, said) = times_of(text);
        assert_eq!(found, times, "{text}{said}");
    }
    for (text, words) in [
        (
            "date,h,v\n2024-01-30,5,1\n2024-01-31,6,1\n",
            "'h' may be the hour",
        ),
        (
            "Datum;Zeit;v\n31.01.2024;12.00;1,5\n31.01.2024;12.10;1,6\n",
            "'Zeit' is named like a time of day, but '12.00' cannot be read",
        ),
    ] {
        let said = refused(text, &[]);
        assert!(said.contains(words), "{text}{said}");
        assert!(said.contains("--time-column "), "{text}{said}");
    }
    let said = refused("date,hour,v\n2024-01-31,night,1\n2024-02-01,day,1\n", &[]);
    assert!(
        said.contains("'hour'") && said.contains("--time-column date"),
        "{said}"
    );
}

#[test]
fn spreadsheets_put_midnight_or_1899_into_the_other_cell() {
    for text in [
        "Datum;Uhrzeit;Wert\n31.01.2024 00:00:00;12:00:00;1,5\n31.01.2024 00:00:00;13:00:00;1\n",
        "Datum;Uhrzeit;Wert\n31.01.2024 00:00:00;30.12.1899 12:00:00;1,5\n\
         31.01.2024 00:00:00;30.12.1899 13:00:00;1\n",
    ] {
        let (times, said) = times_of(text);
        assert_eq!(times, "2024-01-31T12:00:00Z 2024-01-31T13:00:00Z", "{said}");
    }
}

#[test]
fn a_time_of_day_with_another_meaning_is_not_taken() {
    let text = "date,sunrise,sunset,energy\n2024-01-30,07:53,16:40,5\n2024-01-31,07:52,16:42,6\n";
    let said = refused(text, &[]);
    for words in ["'sunrise' or 'sunset'", "--time-column date for midnight"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let place = ImportFixture::new();
    let file = place.file("m.csv", text);
    assert!(place.import(&["--time-column", "date", &file]).ok);
    assert!(place.columns("m").contains("sunrise STRING"));
}

#[test]
fn the_columns_of_the_time_can_be_given() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "day it was,slot,place of it,v\n2024-01-31,7,Europe/Berlin,1\n2024-01-31,8,Europe/Berlin,2\n",
    );
    let said = place.import(&["--time-column", "day it was,slot,place of it", &file]);
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT * FROM m ORDER BY 1"),
        "time,v\n2024-01-31T06:00:00Z,1.0\n2024-01-31T07:00:00Z,2.0\n"
    );
    let text = "d,t,v\n31|01|2024,12h30,1\n31|01|2024,12h31,2\n";
    let file = place.file("n.csv", text);
    let format = ["--time-column", "d,t", "--time-format", "%d|%m|%Y %Hh%M"];
    let said = place.import(&[&format[..], &[&file]].concat());
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT time FROM n ORDER BY 1"),
        "time\n2024-01-31T12:30:00Z\n2024-01-31T12:31:00Z\n"
    );
    let said = refused(text, &["--time-column", "d,t,nix"]);
    assert!(said.contains("no time column 'nix'"), "{said}");
}

#[test]
fn the_name_of_the_time_counts_less_than_its_values() {
    for (text, time) in [
        (
            "Zeit;T;p\n31.01.2024 12:00;21,5;1013\n31.01.2024 12:01;21,6;1013\n",
            "Zeit",
        ),
        (
            "T,Timestamp\n21.5,2024-01-31 12:00\n21.6,2024-01-31 12:01\n",
            "Timestamp",
        ),
        (
            "T;Datum;Uhrzeit\n21,5;31.01.2024;12:00\n21,6;31.01.2024;12:01\n",
            "time",
        ),
        (
            "date,T,Tidpunkt\n2024-01-30,3,2024-01-31 12:00\n2024-01-30,4,2024-01-31 12:01\n",
            "Tidpunkt",
        ),
        ("T,v\n1706702400,1\n1706702460,2\n", "T"),
        (
            "installed,last_changed,v\n2020-01-01,2024-01-31T12:00Z,1\n2020-01-01,2024-01-31T12:01Z,1\n",
            "last_changed",
        ),
        (
            "timestamp_local,timestamp_utc,v\n2024-01-31 13:00,2024-01-31 12:00,1\n2024-01-31 13:01,2024-01-31 12:01,1\n",
            "timestamp_utc",
        ),
    ] {
        let place = ImportFixture::new();
        let file = place.file("m.csv", text);
        let said = place.import(&[&file]);
        assert!(said.ok, "{text}{}", said.err);
        assert!(
            place
                .columns("m")
                .starts_with(&format!("{time} TIMESTAMP time")),
            "{text}{}",
            said.err
        );
        let sql = format!("SELECT \"{time}\" AS t FROM m ORDER BY 1");
        let times = "t\n2024-01-31T12:00:00Z\n2024-01-31T12:01:00Z\n";
        assert_eq!(place.csv(&sql), times, "{text}");
    }
    // What is named like a time but cannot be read is not passed over.
    let text = "timestamp,installed,v\nsoon,2020-01-01,1\nlater,2020-01-01,2\n";
    let said = refused(text, &[]);
    assert!(
        said.contains("'timestamp'") && said.contains("'soon'"),
        "{said}"
    );
}
