//! Numbers as times: the plan shows how it reads them, and implausible times stop the import.

use crate::ImportFixture;

/// Files with the number, and words of the message.
#[test]
fn numbers_that_may_count_from_another_day_are_asked_for() {
    let place = ImportFixture::new();
    for (numbers, words, option, time) in [
        (
            ["639028224000000000", "639028224600000000"],
            &[
                "1990-04-02",
                "2026-01-01T00:00:00Z",
                "--precision ns",
                "--time-format ticks",
            ][..],
            ["--time-format", "ticks"],
            "2026-01-01T00:00:00Z",
        ),
        (
            ["3850070400", "3850074000"],
            &["2026-01-01T00:00:00Z", "--time-format labview"],
            ["--time-format", "labview"],
            "2026-01-01T00:00:00Z",
        ),
        (
            ["134116992000000000", "134116992600000000"],
            &["2026-01-01T00:00:00Z", "--time-format filetime"],
            ["--time-format", "filetime"],
            "2026-01-01T00:00:00Z",
        ),
        (
            ["1501202600", "1501202601"],
            &[
                "2017-07-28",
                "2026-01-15T00:00:00Z",
                "--precision s",
                "--time-format '%d%m%Y%H'",
            ],
            ["--time-format", "%d%m%Y%H"],
            "2026-01-15T00:00:00Z",
        ),
        (
            ["15012026", "16012026"],
            &["2026-01-15T00:00:00Z", "--time-format '%d%m%Y'"],
            ["--time-format", "%d%m%Y"],
            "2026-01-15T00:00:00Z",
        ),
        (
            ["46023.5", "46023.75"],
            &["2026-01-01T12:00:00Z", "--time-format excel"],
            ["--time-format", "excel"],
            "2026-01-01T12:00:00Z",
        ),
        (
            ["4000000000", "4000000060"],
            &["2096-10-02", "--precision s"],
            ["--precision", "s"],
            "2096-10-02T07:06:40Z",
        ),
    ] {
        let text = format!("ts,v\n{},1\n{},2\n", numbers[0], numbers[1]);
        let file = place.file("m.csv", &text);
        let said = place.import(&[&file]);
        assert!(!said.ok, "{}: {}", numbers[0], said.err);
        for word in words {
            assert!(
                said.err.contains(word),
                "{}: {word}: {}",
                numbers[0],
                said.err
            );
        }
        let table = format!("m{}", numbers[0].replace('.', "_"));
        let said = place.import(&["--table", &table, option[0], option[1], &file]);
        assert!(said.ok, "{option:?}: {}", said.err);
        let shown = format!("({} is {time})", numbers[0]);
        assert!(said.err.contains(&shown), "{shown}: {}", said.err);
        let first = place.csv(&format!("SELECT min(ts) AS t FROM \"{table}\""));
        assert_eq!(first, format!("t\n{time}\n"), "{option:?}");
    }
}

#[test]
fn recent_numbers_are_read_and_shown() {
    let place = ImportFixture::new();
    for (name, number) in [
        ("s", "1767225600"),
        ("ms", "1767225600000"),
        ("us", "1767225600000000"),
        ("ns", "1767225600000000000"),
    ] {
        let file = place.file("m.csv", &format!("ts,v\n{number},1\nx,2\n"));
        let said = place.import(&["--table", name, &file]);
        let shown = format!("({number} is 2026-01-01T00:00:00Z)");
        assert!(said.err.contains(&shown), "{shown}: {}", said.err);
        assert!(
            said.out.contains("1 stored, 0 replaced, 1 refused"),
            "{}",
            said.out
        );
    }
}

#[test]
fn lines_in_another_unit_than_nanoseconds_stop_the_import() {
    let place = ImportFixture::new();
    for (time, option) in [
        ("1767225600", "s"),
        ("1767225600000", "ms"),
        ("1767225600000000", "us"),
    ] {
        let file = place.file(
            "m.lp",
            &format!("m,d={option} v=1\nm,d={option} v=2 {time}\n"),
        );
        let said = place.import(&[&file]);
        assert!(!said.ok, "{}", said.out);
        let option_words = format!("--precision {option}");
        for words in [
            "line 2",
            "1970-01-",
            "2026-01-01T00:00:00Z",
            &option_words,
            "--precision ns",
        ] {
            assert!(said.err.contains(words), "{words}: {}", said.err);
        }
        assert!(place.import(&["--precision", option, &file]).ok);
    }
    assert_eq!(
        place.csv("SELECT count(*) AS n FROM m WHERE time = '2026-01-01'"),
        "n\n3\n"
    );
    let file = place.file("n.lp", "n v=1 5\n");
    assert!(
        place.import(&[&file]).ok,
        "this is no recent time in any unit"
    );
}

#[test]
fn numbers_in_parquet_need_a_unit_as_well() {
    let place = ImportFixture::new();
    let first = place.file("first.csv", "time,v\n2026-01-01,1\n");
    assert!(place.import(&[&first]).ok);
    place.csv("CREATE TABLE n (time TIMESTAMP TIME, ts BIGINT, v DOUBLE)");
    place.csv("INSERT INTO n VALUES ('2026-01-01', 1767225600000, 1.5)");
    let file = place.path("n.parquet");
    place.csv(&format!("COPY (SELECT ts, v FROM n) TO '{file}'"));
    let said = place.import(&["--table", "p", "--time-column", "ts", &file]);
    assert!(
        !said.ok && said.err.contains("--precision ms"),
        "{}",
        said.err
    );
    let options = ["--table", "p", "--time-column", "ts", "--precision", "ms"];
    let said = place.import(&[&options[..], &[&file]].concat());
    assert!(said.ok, "{}", said.err);
    assert_eq!(
        place.csv("SELECT ts, v FROM p"),
        "ts,v\n2026-01-01T00:00:00Z,1.5\n"
    );
}
