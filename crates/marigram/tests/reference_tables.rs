//! The file of the reference tables: nothing of it is lost silently, and backups have it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the test damages files of the machine"
)]

use marigram::Marigram;
use marigram_reference::{
    NewColumn, NewConstraint, NewReferenceTable, ReferenceOptions, ReferenceStore, ReferenceType,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn open(dir: &Path) -> marigram::Result<Marigram> {
    Marigram::options()
        .shards(1)
        .query_threads(1)
        .memory_limit(64 << 20)
        .open(dir)
}

fn file(dir: &Path) -> PathBuf {
    dir.join("reference/tables.db")
}

fn store(dir: &Path) -> ReferenceStore {
    ReferenceStore::open(&dir.join("reference"), ReferenceOptions::default()).unwrap()
}

/// Creates a reference table in a directory that nobody has open.
fn create(store: &ReferenceStore, name: &str) {
    let id = NewColumn {
        name: "id".to_owned(),
        kind: ReferenceType::Int8,
        is_nullable: false,
        default: None,
        identity: None,
    };
    let transaction = store.write(Duration::from_secs(5), &|| false).unwrap();
    let key = NewConstraint::Key {
        name: None,
        columns: vec!["id".to_owned()],
        is_primary: true,
    };
    let table = NewReferenceTable {
        database: "main".to_owned(),
        name: name.to_owned(),
        columns: vec![id],
        constraints: vec![key],
    };
    transaction.create_table(&table).unwrap();
    transaction.commit().unwrap();
}

/// The reference tables of a directory that nobody has open.
fn names(dir: &Path) -> Vec<String> {
    let tables = store(dir).tables("main");
    tables.iter().map(|table| table.name.clone()).collect()
}

/// A data directory with a reference table, of which the catalog knows.
fn build(dir: &Path) {
    open(dir).unwrap().close().unwrap();
    create(&store(dir), "drivers");
    open(dir).unwrap().close().unwrap();
}

fn damage(dir: &Path) -> Vec<String> {
    let mut places = Vec::new();
    marigram::verify(dir, &mut |place| places.push(place)).unwrap();
    places
}

#[test]
fn a_directory_does_not_open_without_its_reference_tables() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir);
    assert_eq!(damage(dir), [""; 0]);
    let whole = fs::read(file(dir)).unwrap();
    let mut header = whole.clone();
    header[..16].fill(0xff);
    let half = whole[..whole.len() / 2].to_vec();
    let damages: [(&str, Option<Vec<u8>>); 5] = [
        ("removed", None),
        ("empty", Some(Vec::new())),
        ("cut to a half", Some(half)),
        ("garbage", Some(vec![0xa5; 8192])),
        ("its header is overwritten", Some(header)),
    ];
    for (what, bytes) in damages {
        match bytes {
            Some(bytes) => fs::write(file(dir), bytes).unwrap(),
            None => fs::remove_file(file(dir)).unwrap(),
        }
        let told = damage(dir);
        let refused = open(dir).err().map(|error| error.to_string());
        let refused = refused.unwrap_or_else(|| panic!("{what}: the directory opens"));
        assert!(refused.contains("tables.db"), "{what}: {refused}");
        assert!(refused.contains("restore a backup"), "{what}: {refused}");
        assert!(
            told.iter().any(|place| place.contains("tables.db")),
            "{what}: verify tells {told:?}"
        );
        fs::write(file(dir), &whole).unwrap();
        open(dir).unwrap().close().unwrap();
        assert_eq!(names(dir), ["drivers"], "{what}, put back");
    }
}

/// What the last process wrote is in the log beside the file until SQLite copies it. Without the log,
/// the file is an earlier version of itself: it opens with what it has.
#[test]
fn without_the_log_beside_it_the_file_is_an_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, after) = (dir.path().join("data"), dir.path().join("after"));
    fs::create_dir(&after).unwrap();
    build(&dir);
    let open_store = store(&dir);
    create(&open_store, "trucks");
    // What a crash leaves now.
    let log = "tables.db-wal";
    for name in ["tables.db", log] {
        fs::copy(dir.join("reference").join(name), after.join(name)).unwrap();
    }
    drop(open_store);
    let crash = |names_there: &[&str]| {
        fs::remove_dir_all(dir.join("reference")).unwrap();
        fs::create_dir(dir.join("reference")).unwrap();
        for name in names_there {
            fs::copy(after.join(name), dir.join("reference").join(name)).unwrap();
        }
        open(&dir).unwrap().close().unwrap();
        names(&dir)
    };
    assert_eq!(crash(&["tables.db", log]), ["drivers", "trucks"]);
    assert_eq!(crash(&["tables.db"]), ["drivers"]);
}

#[test]
fn backups_have_the_reference_tables() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("data");
    let backups = temporary.path().join("backups");
    build(&dir);
    let take = || {
        let db = open(&dir).unwrap();
        let report = db.backup(&backups, None).unwrap();
        db.close().unwrap();
        assert_eq!(report.warnings, [""; 0]);
        report.info
    };
    let first = take();
    // The file has not changed, so nothing of it is stored again.
    let objects = || fs::read_dir(backups.join("objects")).unwrap().count();
    let digest_count = objects();
    let second = take();
    assert_eq!(second.files, first.files);
    assert!(second.bytes_new < fs::metadata(file(&dir)).unwrap().len());
    create(&store(&dir), "trucks");
    let third = take();
    assert!(third.bytes_new > 0 && objects() > digest_count);
    assert_eq!(damage(&backups), [""; 0]);
    let left = fs::read_dir(dir.join("reference")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.starts_with("backup")));
    for (number, expected) in [(1, vec!["drivers"]), (3, vec!["drivers", "trucks"])] {
        let into = temporary.path().join(format!("restored-{number}"));
        marigram::restore(&backups, Some(number), &into).unwrap();
        assert_eq!(damage(&into), [""; 0]);
        open(&into).unwrap().close().unwrap();
        assert_eq!(names(&into), expected, "backup {number}");
    }
}
