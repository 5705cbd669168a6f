//! Files whose time cannot be found or read: the message names the column that comes nearest, and why.

use crate::{refused_file, times_of};

#[test]
fn the_nearest_column_is_named_with_the_reason() {
    for (text, words) in [
        (
            "date,v\n25/04/2026 10:00,1\n06/25/2026 10:00,2\n",
            [
                "'25/04/2026 10:00', which is day, month and year, and '06/25/2026 10:00'",
                "--date-order dmy or mdy",
            ],
        ),
        (
            "Data;v\n3 stycznia 2026 10:00;1\n4 stycznia 2026 10:00;2\n",
            [
                "column 'Data' comes nearest, but '3 stycznia 2026 10:00'",
                "names in English",
            ],
        ),
        (
            "year,doy,hhmm,v\n2026,13,30,1.5\n2026,13,100,2.5\n",
            ["'year' ('2026'), 'doy' ('13'), 'hhmm' ('30')", "2026-031"],
        ),
        (
            "x,v\n1768300000,1.5\n1768300060,2.5\n",
            [
                "column 'x' has numbers such as 1768300000",
                "--time-column x",
            ],
        ),
        (
            "a,b\n1,2\n",
            ["which column is the time?", "the file has: a, b"],
        ),
    ] {
        let said = refused_file("m.csv", text, &[]);
        for words in words {
            assert!(said.contains(words), "{words}: {text}{said}");
        }
    }
    let said = refused_file(
        "m.json",
        "{\n  \"time\": \"2026-01-01\",\n  \"v\": 1\n}\n",
        &[],
    );
    assert!(said.contains("spread over several lines"), "{said}");
}

#[test]
fn a_wrong_format_of_times_is_an_error_at_once() {
    let text = "time,v\n2026-01-13 10:00,1\n";
    for (format, words) in [
        ("%J", "--time-format '%J': %J is not known"),
        ("%Q", "--time-format '%Q': it tells no whole date"),
        ("%Y-%m-%d %q", "%q is not known"),
        ("YYYY-MM-DD", "no directive"),
        ("%Y-%m-%d %I:%M", "%I with %p"),
    ] {
        let said = refused_file("m.csv", text, &["--time-format", format]);
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn columns_of_loggers_are_read_together() {
    let times = "2026-01-13T10:30:00Z 2026-01-13T11:30:00Z";
    for text in [
        "YYYY,MM,DD,HH,MN,temp\n2026,1,13,10,30,1.5\n2026,1,13,11,30,2.5\n",
        "year,month,day,hour,minute,second,temp\n2026,1,13,10,30,0,1.5\n2026,1,13,11,30,0,2.5\n",
        "Year,Mon,Day,Hr,Min,Sec,temp\n2026,1,13,10,30,0,1.5\n2026,1,13,11,30,0,2.5\n",
        "YYYY,MM,DD,HH,MI,SS,temp\n2026,01,13,10,30,00,1.5\n2026,01,13,11,30,00,2.5\n",
        "Year,Month,Day,Hr,Mn,Sec,v\n2026,1,13,10,30,0,1\n2026,1,13,11,30,0,2\n",
        "date,hours,mins,temp\n2026-01-13,10,30,1.5\n2026-01-13,11,30,2.5\n",
        "year,month,day,hhmm,temp\n2026,1,13,1030,1.5\n2026,1,13,1130,2.5\n",
    ] {
        let (found, said) = times_of(text);
        assert_eq!(found, times, "{text}{said}");
    }
    for (text, words) in [
        (
            "YYYY,MM,DD,HH,M,temp\n2026,1,13,10,30,1.5\n2026,1,13,11,30,2.5\n",
            [
                "column 'M' may be the minute of the time",
                "--time-column YYYY,MM,DD,HH to store",
            ],
        ),
        (
            "date,hour,minute,v\n2026-01-13,10,half,1.5\n2026-01-13,11,half,2.5\n",
            [
                "column 'minute' is named like the minute of the time",
                "--time-column date,hour,",
            ],
        ),
        (
            "date,hour,xy,sec,v\n2026-01-13,10,30,0,1.5\n2026-01-13,11,30,0,2.5\n",
            [
                "no column is known as the minute",
                "--time-column date,hour,MINUTE,sec",
            ],
        ),
        (
            "date,hhmm,v\n2026-01-13,30,1.5\n2026-01-13,130,2.5\n",
            [
                "column 'hhmm' is named like a time of day, but '30'",
                "--time-column date",
            ],
        ),
    ] {
        let said = refused_file("m.csv", text, &[]);
        for words in words {
            assert!(said.contains(words), "{words}: {text}{said}");
        }
    }
}

#[test]
fn times_of_spanish_and_french_spreadsheets() {
    let text = "Timestamp,kW\n25/1/2026 9:00:00 a.\u{a0}m.,1\n25/1/2026 1:05:09 p. m.,3\n";
    let (times, said) = times_of(text);
    assert_eq!(times, "2026-01-25T09:00:00Z 2026-01-25T13:05:09Z", "{said}");
    let (times, said) = times_of("date;v\n1er janvier 2026 10:00;1\n2 janvier 2026 10:00;2\n");
    assert_eq!(times, "2026-01-01T10:00:00Z 2026-01-02T10:00:00Z", "{said}");
}
