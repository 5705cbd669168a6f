//! What stays after a crash, what is refused, and copies.

use crate::support::{insert_simple, int_column, simple, text_column, write};
use marigram_reference::{ReferenceOptions, ReferenceStore};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Names the folder in which the child process works.
const CHILD: &str = "MARIGRAM_REFERENCE_CHILD";

fn open(dir: &Path) -> ReferenceStore {
    ReferenceStore::open(dir, ReferenceOptions::default()).unwrap()
}

/// A store with a table `t` and many rows.
fn filled(dir: &Path) -> ReferenceStore {
    let store = open(dir);
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    let rows: Vec<_> = (0..2000)
        .map(|id| (id, "some text to fill pages"))
        .collect();
    insert_simple(&transaction, &table, &rows).unwrap();
    transaction.commit().unwrap();
    store
}

#[test]
fn committed_rows_are_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let version = filled(folder.path()).version();
    let store = open(folder.path());
    assert_eq!(store.version(), version);
    let table = store.table("d", "t").unwrap();
    let read = store.read().unwrap();
    assert_eq!(read.count(&table).unwrap(), 2000);
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    let transaction = write(&store);
    let table = transaction.table("d", "t").unwrap();
    insert_simple(&transaction, &table, &[(5000, "x")]).unwrap();
    transaction.create_table(&simple("u")).unwrap();
    drop(transaction);
    assert!(store.table("d", "u").is_none());
    let transaction = write(&store);
    assert_eq!(transaction.count(&table).unwrap(), 2000);
    transaction.create_table(&simple("u")).unwrap();
    transaction.commit().unwrap();
}

/// Not a test of its own: the process that [`a_killed_process_leaves_what_it_committed`] starts.
#[test]
fn child_process_that_dies() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let store = filled(Path::new(&dir));
    let transaction = write(&store);
    let table = transaction.table("d", "t").unwrap();
    transaction.delete(&table, &[1, 2, 3]).unwrap();
    transaction.create_table(&simple("u")).unwrap();
    std::process::abort();
}

#[test]
fn a_killed_process_leaves_what_it_committed() {
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::child_process_that_dies"])
        .env(CHILD, folder.path())
        .status()
        .unwrap();
    assert!(!status.success());
    let store = open(folder.path());
    assert_eq!(store.tables("d").len(), 1);
    let table = store.table("d", "t").unwrap();
    let transaction = write(&store);
    assert_eq!(transaction.count(&table).unwrap(), 2000);
    drop(transaction);
    assert!(store.verify().unwrap().is_empty());
}

fn refusal(dir: &Path) -> &'static str {
    ReferenceStore::open(dir, ReferenceOptions::default())
        .unwrap_err()
        .sqlstate
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(folder.path()));
    let file = folder.path().join("tables.db");
    let sound = fs::read(&file).unwrap();
    fs::write(
        &file,
        "this is no database, but it is long enough to be one",
    )
    .unwrap();
    assert_eq!(refusal(folder.path()), "XX001");
    let mut damaged = sound.clone();
    for byte in &mut damaged[9 * 4096..11 * 4096] {
        *byte ^= 0x5a;
    }
    fs::write(&file, &damaged).unwrap();
    assert_eq!(refusal(folder.path()), "XX001");
    fs::write(&file, &sound[..sound.len() - 3 * 4096]).unwrap();
    assert_eq!(refusal(folder.path()), "XX001");
    fs::write(&file, &sound).unwrap();
    assert_eq!(open(folder.path()).tables("d").len(), 1);
}

fn sqlite(dir: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(dir.join("tables.db")).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[test]
fn files_of_others_and_of_newer_formats_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(folder.path()));
    sqlite(folder.path(), "PRAGMA user_version = 2");
    assert_eq!(refusal(folder.path()), "0A000");
    sqlite(
        folder.path(),
        "PRAGMA user_version = 1; PRAGMA application_id = 7",
    );
    assert_eq!(refusal(folder.path()), "XX001");
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("tables.db"), "").unwrap();
    drop(filled(empty.path()));
}

#[test]
fn what_contradicts_its_definition_is_found() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(folder.path()));
    sqlite(folder.path(), "UPDATE t1 SET c2 = 7 WHERE r = 5");
    let store = open(folder.path());
    assert_eq!(
        store.verify().unwrap(),
        ["table \"t\" has 1 wrong values in \"name\""]
    );
    let read = store.read().unwrap();
    let table = read.table("d", "t").unwrap();
    assert_eq!(read.fetch(&table, &[5]).unwrap_err().sqlstate, "XX001");
    drop((read, store));
    sqlite(folder.path(), "DROP INDEX k1_1; CREATE TABLE t7 (r)");
    let error = ReferenceStore::open(folder.path(), ReferenceOptions::default()).unwrap_err();
    assert_eq!(error.sqlstate, "XX001");
    assert!(error.message.contains("tables.db: ") && error.message.ends_with("k1_1 is missing"));
    sqlite(
        folder.path(),
        "DROP TABLE t7; CREATE UNIQUE INDEX k1_1 ON t1 (c1)",
    );
    assert_eq!(open(folder.path()).verify().unwrap().len(), 1);
    sqlite(folder.path(), "UPDATE definitions SET json = '{'");
    assert_eq!(refusal(folder.path()), "XX001");
}

#[test]
fn a_copy_is_what_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder.path().join("a"));
    let table = store.table("d", "t").unwrap();
    let transaction = write(&store);
    insert_simple(&transaction, &table, &[(9999, "uncommitted")]).unwrap();
    let copy = folder.path().join("b");
    fs::create_dir(&copy).unwrap();
    store.backup_to(&copy.join("tables.db")).unwrap();
    assert!(
        store.backup_to(&copy.join("tables.db")).is_err(),
        "a copy is never overwritten"
    );
    drop(transaction);
    let copied = open(&copy);
    assert_eq!(copied.tables("d"), store.tables("d"));
    assert_eq!(copied.version(), store.version());
    let (read, original) = (copied.read().unwrap(), store.read().unwrap());
    assert_eq!(
        int_column(&read, &table, 0),
        int_column(&original, &table, 0)
    );
    assert_eq!(
        text_column(&read, &table, 1),
        text_column(&original, &table, 1)
    );
    assert!(copied.verify().unwrap().is_empty());
    let transaction = write(&copied);
    insert_simple(&transaction, &table, &[(9999, "x")]).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_store_that_was_never_written_to_has_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("reference");
    let store = open(&dir);
    assert!(store.verify().unwrap().is_empty());
    store.backup_to(&folder.path().join("copy.db")).unwrap();
    store.drop_database("d").unwrap();
    assert!(!dir.exists() && !folder.path().join("copy.db").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_of_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let store = open(&file.join("reference"));
    fs::write(&file, "").unwrap();
    let error = store
        .write(std::time::Duration::ZERO, &|| false)
        .unwrap_err();
    assert_eq!(error.sqlstate, "58030");
    assert!(store.read().is_ok());
}
