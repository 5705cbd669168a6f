//! A mistyped path never becomes a database.

use crate::{ImportFixture, marigram};

#[test]
fn sql_and_export_never_make_a_database() {
    let place = ImportFixture::new();
    for arguments in [
        vec!["sql", "--data", place.data(), "-c", "SHOW TABLES"],
        vec![
            "export",
            "--data",
            place.data(),
            "--table",
            "t",
            "--format",
            "csv",
            "-",
        ],
    ] {
        let said = marigram(&arguments);
        assert!(
            !said.ok && said.err.contains("there is no directory"),
            "{}",
            said.err
        );
        assert!(!place.exists());
        std::fs::create_dir(place.data()).unwrap();
        let said = marigram(&arguments);
        assert!(
            !said.ok && said.err.contains("no database in"),
            "{}",
            said.err
        );
        assert_eq!(std::fs::read_dir(place.data()).unwrap().count(), 0);
        std::fs::remove_dir(place.data()).unwrap();
    }
}

#[test]
fn import_makes_one_only_where_there_is_nothing_and_says_so() {
    let place = ImportFixture::new();
    let file = place.file("m.csv", "time,v\n2026-01-01,1\n");
    std::fs::create_dir(place.data()).unwrap();
    std::fs::write(format!("{}/thesis.txt", place.data()), "x").unwrap();
    let said = place.import(&[&file]);
    assert!(!said.ok && said.err.contains("thesis.txt"), "{}", said.err);
    assert_eq!(std::fs::read_dir(place.data()).unwrap().count(), 1);
    let served = marigram(&["serve", "--data", place.data(), "--http", "127.0.0.1:0"]);
    assert!(
        !served.ok && served.err.contains("thesis.txt"),
        "{}",
        served.err
    );
    std::fs::remove_file(format!("{}/thesis.txt", place.data())).unwrap();
    let said = place.import(&[&file]);
    assert!(
        said.ok && said.err.contains("creating a new database"),
        "{}",
        said.err
    );
}
