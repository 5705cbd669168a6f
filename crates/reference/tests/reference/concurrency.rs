//! Transactions beside each other, and savepoints within one.

use crate::support::{batch, column, insert_simple, int_column, ints, simple, store, write};
use marigram_reference::{ReferenceAlteration, ReferenceOptions, ReferenceStore, ReferenceType};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(30);

/// A store with a table `t` and the row (1, a).
fn filled() -> ReferenceStore {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    insert_simple(&transaction, &table, &[(1, "a")]).unwrap();
    transaction.commit().unwrap();
    store
}

#[test]
fn one_transaction_writes_and_others_wait() {
    let store = filled();
    let first = write(&store);
    assert_eq!(store.write(SHORT, &|| false).unwrap_err().sqlstate, "55P03");
    let is_stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            store.write(Duration::from_mins(1), &|| {
                is_stopped.load(Ordering::Relaxed)
            })
        });
        thread::sleep(SHORT);
        is_stopped.store(true, Ordering::Relaxed);
        assert_eq!(waiting.join().unwrap().unwrap_err().sqlstate, "57014");
        let waiting = scope.spawn(|| {
            let transaction = write(&store);
            let table = transaction.table("d", "t").unwrap();
            int_column(&transaction, &table, 0)
        });
        thread::sleep(SHORT);
        let table = first.table("d", "t").unwrap();
        insert_simple(&first, &table, &[(2, "b")]).unwrap();
        first.commit().unwrap();
        assert_eq!(waiting.join().unwrap(), [Some(1), Some(2)]);
    });
}

#[test]
fn a_snapshot_stays_what_it_was() {
    let store = filled();
    let snapshot = store.read().unwrap();
    let table = snapshot.table("d", "t").unwrap();
    let writer = write(&store);
    insert_simple(&writer, &table, &[(2, "b")]).unwrap();
    let uncommitted = store.read().unwrap();
    let change = ReferenceAlteration::AddColumn {
        column: column("c", ReferenceType::Int8),
        if_not_exists: false,
    };
    let altered = writer.alter_table("d", "t", &change).unwrap();
    writer.commit().unwrap();
    for old in [&snapshot, &uncommitted] {
        assert_eq!(int_column(old, &table, 0), [Some(1)]);
        assert_eq!(old.table("d", "t").unwrap(), table);
        assert_eq!(
            old.scan(&altered, &first_row()).unwrap_err().sqlstate,
            "40001"
        );
    }
    let new = store.read().unwrap();
    assert_eq!(int_column(&new, &altered, 0), [Some(1), Some(2)]);
    assert_eq!(
        snapshot.upgrade(SHORT, &|| false).unwrap_err().sqlstate,
        "40001"
    );
    assert!(!snapshot.is_write());
}

fn first_row() -> marigram_reference::ReferenceScanRequest {
    marigram_reference::ReferenceScanRequest {
        columns: vec![0],
        with_row_id: false,
        filters: Vec::new(),
        after: 0,
        rows_max: 1,
    }
}

#[test]
fn a_snapshot_becomes_a_writer_unless_another_committed() {
    let store = filled();
    let transaction = store.read().unwrap();
    let table = transaction.table("d", "t").unwrap();
    assert_eq!(
        insert_simple(&transaction, &table, &[(2, "b")])
            .unwrap_err()
            .sqlstate,
        "25006"
    );
    transaction.set_savepoint("s").unwrap();
    transaction.upgrade(SHORT, &|| false).unwrap();
    transaction.upgrade(SHORT, &|| false).unwrap();
    assert!(transaction.is_write());
    insert_simple(&transaction, &table, &[(2, "b")]).unwrap();
    let reader = store.read().unwrap();
    assert_eq!(
        reader.upgrade(SHORT, &|| false).unwrap_err().sqlstate,
        "55P03"
    );
    transaction.roll_back_to("s").unwrap();
    assert_eq!(transaction.count(&table).unwrap(), 1);
    insert_simple(&transaction, &table, &[(3, "c")]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(
        reader.upgrade(SHORT, &|| false).unwrap_err().sqlstate,
        "40001"
    );
    drop(reader);
    let reader = store.read().unwrap();
    write(&store).roll_back();
    reader.upgrade(SHORT, &|| false).unwrap();
    assert_eq!(int_column(&reader, &table, 0), [Some(1), Some(3)]);
}

#[test]
fn a_snapshot_of_nothing_can_become_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a").join("b");
    let store = ReferenceStore::open(&dir, ReferenceOptions::default()).unwrap();
    let (first, second) = (store.read().unwrap(), store.read().unwrap());
    assert!(!store.exists() && !dir.exists());
    assert!(first.tables("d").is_empty());
    first.set_savepoint("s").unwrap();
    first.upgrade(SHORT, &|| false).unwrap();
    assert!(store.exists() && dir.join("tables.db").is_file());
    first.create_table(&simple("t")).unwrap();
    first.roll_back_to("s").unwrap();
    first.create_table(&simple("u")).unwrap();
    first.commit().unwrap();
    for state in [
        first.upgrade(SHORT, &|| false).unwrap_err().sqlstate,
        first.create_table(&simple("v")).unwrap_err().sqlstate,
        first.drop_table("d", "u", false).unwrap_err().sqlstate,
    ] {
        assert!(matches!(state, "25000" | "25006"), "it has ended: {state}");
    }
    assert_eq!(store.tables("d").len(), 1);
    assert_eq!(
        second.upgrade(SHORT, &|| false).unwrap_err().sqlstate,
        "40001"
    );
}

#[test]
fn savepoints_nest_and_take_tables_along() {
    let store = filled();
    let transaction = write(&store);
    let table = transaction.table("d", "t").unwrap();
    transaction.set_savepoint("a").unwrap();
    insert_simple(&transaction, &table, &[(2, "b")]).unwrap();
    transaction.set_savepoint("b").unwrap();
    transaction.create_table(&simple("u")).unwrap();
    transaction.drop_table("d", "t", false).unwrap();
    transaction.set_savepoint("a").unwrap();
    let other = transaction.create_table(&simple("v")).unwrap();
    insert_simple(&transaction, &other, &[(1, "x")]).unwrap();
    transaction.roll_back_to("a").unwrap();
    assert!(transaction.table("d", "v").is_none());
    assert_eq!(transaction.count(&other).unwrap_err().sqlstate, "42P01");
    transaction.release("a").unwrap();
    assert!(transaction.table("d", "u").is_some());
    transaction.roll_back_to("b").unwrap();
    assert!(transaction.table("d", "u").is_none());
    assert_eq!(int_column(&transaction, &table, 0), [Some(1), Some(2)]);
    transaction.roll_back_to("a").unwrap();
    transaction.roll_back_to("a").unwrap();
    assert_eq!(int_column(&transaction, &table, 0), [Some(1)]);
    assert_eq!(transaction.release("b").unwrap_err().sqlstate, "3B001");
    assert_eq!(transaction.roll_back_to("b").unwrap_err().sqlstate, "3B001");
    transaction.release("a").unwrap();
    assert_eq!(transaction.release("a").unwrap_err().sqlstate, "3B001");
    transaction.commit().unwrap();
    assert_eq!(store.version(), 1, "the tables are as they were");
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn readers_beyond_the_most_wait_for_one_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let options = ReferenceOptions {
        readers_max: 1,
        ..ReferenceOptions::default()
    };
    let store = ReferenceStore::open(folder.path(), options).unwrap();
    let transaction = write(&store);
    transaction.create_table(&simple("t")).unwrap();
    transaction.commit().unwrap();
    let first = store.read().unwrap();
    // The writer waits for no reader.
    write(&store).commit().unwrap();
    let has_second = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _second = store.read().unwrap();
            has_second.store(true, Ordering::Relaxed);
        });
        thread::sleep(SHORT);
        assert!(!has_second.load(Ordering::Relaxed));
        drop(first);
    });
    assert!(has_second.load(Ordering::Relaxed));
}

#[test]
fn many_threads_count_without_losing_one() {
    let store = filled();
    let table = store.table("d", "t").unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let transaction = write(&store);
                    let value = int_column(&transaction, &table, 0)[0].unwrap();
                    let next = batch(vec![ints(&[Some(value + 1)])]);
                    transaction.update(&table, &[1], &[0], &next).unwrap();
                    transaction.commit().unwrap();
                    let read = store.read().unwrap();
                    assert!(int_column(&read, &table, 0)[0].unwrap() > value);
                }
            });
        }
    });
    let read = store.read().unwrap();
    assert_eq!(int_column(&read, &table, 0), [Some(101)]);
}
