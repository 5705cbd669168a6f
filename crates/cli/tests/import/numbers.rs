//! How numbers are read: decimal marks, texts for no value, infinities; and rows that are no rows.

use crate::ImportFixture;

#[test]
fn a_mark_of_thousands_or_of_decimals_is_never_guessed() {
    let place = ImportFixture::new();
    for (cells, both) in [
        (
            ["1.234", "12.345"],
            ["1.234 with a decimal point", "1234 with a decimal comma"],
        ),
        (
            ["1,234", "12,345"],
            ["1234 with a decimal point", "1.234 with a decimal comma"],
        ),
    ] {
        let text = format!(
            "Zeit;Zähler\n13.03.2026 00:00;{}\n13.03.2026 00:15;{}\n",
            cells[0], cells[1]
        );
        let file = place.file("z.csv", &text);
        let said = place.import(&[&file]);
        assert!(!said.ok, "{}", said.out);
        for words in both
            .into_iter()
            .chain(["column 'Zähler'", "--decimal . or --decimal ,"])
        {
            assert!(said.err.contains(words), "{words}: {}", said.err);
        }
    }
    assert!(!place.exists());
    // Another column, or another row, decides, and the plan says so.
    let file = place.file(
        "z.csv",
        "Zeit;a;b\n13.03.2026 00:00;1.234;1,5\n13.03.2026 00:15;12.345;2,5\n",
    );
    let said = place.import(&[&file]);
    assert!(said.ok, "{}", said.err);
    assert!(
        said.err.contains("column 'a': '1.234' is read as 1234"),
        "{}",
        said.err
    );
    assert_eq!(
        place.csv("SELECT a, b FROM z"),
        "a,b\n1234.0,1.5\n12345.0,2.5\n"
    );
    let file = place.file(
        "y.csv",
        "Zeit;a\n13.03.2026 00:00;1.234\n13.03.2026 00:15;0.345\n",
    );
    assert!(place.import(&[&file]).ok);
    assert_eq!(place.csv("SELECT a FROM y"), "a\n1.234\n0.345\n");
    // In a file with commas between cells, a point is no mark of thousands.
    let file = place.file("x.csv", "time,a\n2026-01-01,1.234\n2026-01-02,12.345\n");
    assert!(place.import(&[&file]).ok);
    assert_eq!(place.csv("SELECT a FROM x"), "a\n1.234\n12.345\n");
}

#[test]
fn not_a_number_is_no_value_and_infinity_no_number() {
    let place = ImportFixture::new();
    let file = place.file(
        "n.csv",
        "time,v,w\n2026-01-01,NAN,nan\n2026-01-02,2,NaN\n2026-01-03,1e999,1\n2026-01-04,-,2\n2026-01-05,-inf,3\n",
    );
    let said = place.import(&[&file]);
    assert!(!said.ok, "rows are refused");
    for words in [
        "column 'v': 'NAN' (1), '-' (1) are no value",
        "line 4: column 'v': '1e999' is infinite; --null 1e999",
        "line 6: column 'v': '-inf' is infinite",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(
        said.out
            .contains("5 rows read, 2 stored, 0 replaced, 2 refused, 1 without a value"),
        "{}",
        said.out
    );
    assert_eq!(
        place.csv("SELECT avg(v) AS v, avg(w) AS w FROM n"),
        "v,w\n2.0,2.0\n"
    );
    assert!(
        place.columns("n").contains("w DOUBLE field"),
        "{}",
        place.columns("n")
    );
}

#[test]
fn exported_not_a_number_and_infinities_come_back() {
    let place = ImportFixture::new();
    let first = place.file("first.csv", "time,v\n2026-01-01,1\n");
    assert!(place.import(&[&first]).ok);
    place.csv("CREATE TABLE e (time TIMESTAMP TIME, d DOUBLE, f REAL)");
    place.csv("INSERT INTO e VALUES ('2026-01-01', 'NaN', 'NaN'), ('2026-01-02', 'Infinity', '-Infinity')");
    let before = place.csv("SELECT * FROM e ORDER BY time");
    for ending in ["csv", "lp", "parquet"] {
        let file = place.path(&format!("e.{ending}"));
        let said = crate::marigram(&["export", "--data", place.data(), "--table", "e", &file]);
        assert!(said.ok, "{}", said.err);
        let other = ImportFixture::new();
        let said = other.import(&[&file]);
        assert!(said.ok, "{ending}: {}", said.err);
        assert_eq!(
            other.csv("SELECT * FROM e ORDER BY time"),
            before,
            "{ending}"
        );
    }
}

#[test]
fn totals_at_the_end_are_no_rows() {
    let place = ImportFixture::new();
    let rows =
        "Datum;Zeit;Wert\n15.01.2026;00:00;1,0\n15.01.2026;00:15;2,0\n16.01.2026;00:15;4,5\n";
    for (table, end) in [
        ("a", "Summe;;7,5\n"),
        ("b", ";Mittelwert:;2,5\n;Max;4,5\n"),
        ("c", "\u{1a}"),
    ] {
        let file = place.file("m.csv", &format!("{rows}{end}"));
        let said = place.import(&["--table", table, &file]);
        assert!(said.ok, "{end}: {}", said.err);
        let noted = end.len() < 2 || said.err.contains("line 5 has '");
        assert!(noted, "{}", said.err);
        assert!(said.out.contains("3 rows read, 3 stored"), "{}", said.out);
        assert_eq!(
            place.csv(&format!("SELECT sum(\"Wert\") AS s FROM {table}")),
            "s\n7.5\n"
        );
    }
    for (table, text) in [
        (
            "it",
            "Data,Ora,Temp\n15/01/2026,00.00.00,\"1,5\"\n15/01/2026,00.15.00,\"2,5\"\nTotale,,\"4,0\"\n",
        ),
        (
            "ru",
            "Дата;Время;T1\n15.01.2026;00:00;1,5\n15.01.2026;00:15;2,5\nИтого;;4,0\n",
        ),
    ] {
        let file = place.file("m.csv", text);
        let said = place.import(&["--table", table, &file]);
        assert!(
            said.ok && said.out.contains("2 rows read, 2 stored"),
            "{}{}",
            said.out,
            said.err
        );
        let times = place.csv(&format!("SELECT max(time) AS t FROM {table}"));
        assert_eq!(times, "t\n2026-01-15T00:15:00Z\n");
    }
    // Without a word that says so, the row is refused and named.
    let file = place.file("m.csv", &format!("{rows};;7,5\n"));
    let said = place.import(&["--table", "d", &file]);
    assert!(
        !said.ok && said.err.contains("line 5: it has no time"),
        "{}",
        said.err
    );
    assert!(
        said.out.contains("3 stored, 0 replaced, 1 refused"),
        "{}",
        said.out
    );
    // A row whose time is a plain number is a row, whatever its texts are.
    let text = "Year,Month,Day,sensor,v\n2026,1,1,Total,1\n2026,1,2,Total,2\n";
    let file = place.file("y.csv", text);
    let said = place.import(&[&file]);
    assert!(
        said.ok && said.out.contains("2 stored"),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn units_may_be_single_letters() {
    let place = ImportFixture::new();
    let file = place.file(
        "m.csv",
        "time;Betrieb\n;h\n2026-01-01 00:00;5\n2026-01-01 00:01;6\n",
    );
    let said = place.import(&[&file]);
    assert!(
        said.ok && said.out.contains("2 rows read, 2 stored"),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn numbers_of_devices_are_proposed_as_tags() {
    let place = ImportFixture::new();
    let text = "time,Kanal,temp\n2026-01-01 00:00,1,20.5\n2026-01-01 00:00,2,21.5\n";
    let file = place.file("k.csv", text);
    let said = place.import(&[&file]);
    assert!(!said.ok);
    assert!(
        said.err
            .contains("column Kanal tells them apart: --tags Kanal"),
        "{}",
        said.err
    );
    assert!(place.import(&["--tags", "Kanal", &file]).ok);
}

#[test]
fn names_that_come_twice_are_told() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,Temp,Temp\n2026-01-01 00:00,1,2\n");
    let said = place.import(&[&file]);
    assert!(
        said.ok && said.err.contains("'Temp' is 'Temp_2'"),
        "{}",
        said.err
    );
    let said = place.import(&["--table", "n", "--tag", "a=1", "--tag", "a=2", &file]);
    assert!(
        !said.ok && said.err.contains("'a' is given twice"),
        "{}",
        said.err
    );
    let said = place.import(&["--table", "n", "--tag", "Temp=1", &file]);
    assert!(
        !said.ok && said.err.contains("has a column 'Temp' itself"),
        "{}",
        said.err
    );
    let file = place.file("m.xlsx", "PK");
    let said = place.import(&[&file]);
    assert!(!said.ok && said.err.contains("CSV"), "{}", said.err);
}
