//! Inserts: keys, missing values, identity columns, conflicts.

use crate::support::{
    batch, column, insert_ints, insert_simple, int_column, ints, names, parts, primary, simple,
    store, table, text_column, texts, unique, write,
};
use marigram_reference::{
    IdentityKind, NewColumn, NewReferenceTable, OnConflict, ReferenceTransaction, ReferenceType,
};

fn numbered(kind: IdentityKind) -> NewReferenceTable {
    let id = NewColumn {
        identity: Some(kind),
        ..column("id", ReferenceType::Int8)
    };
    table(
        "n",
        vec![id, column("v", ReferenceType::Int8)],
        vec![primary(&["id"])],
    )
}

#[test]
fn a_repeated_key_is_refused_as_postgresql_does() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    insert_simple(&transaction, &table, &[(1, "a"), (2, "b")]).unwrap();
    let error = insert_simple(&transaction, &table, &[(3, "c"), (1, "d")]).unwrap_err();
    let message = "duplicate key value violates unique constraint \"t_pkey\"";
    assert_eq!(
        parts(&error),
        ("23505", message, "Key (id)=(1) already exists.")
    );
    assert_eq!(error.constraint.as_deref(), Some("t_pkey"));
    assert_eq!(
        int_column(&transaction, &table, 0),
        [Some(1), Some(2)],
        "all rows or none"
    );
    let error = transaction
        .update(&table, &[2], &[0], &batch(vec![ints(&[Some(1)])]))
        .unwrap_err();
    assert_eq!(
        parts(&error),
        ("23505", message, "Key (id)=(1) already exists.")
    );
}

#[test]
fn nulls_in_unique_keys_are_distinct() {
    let store = store();
    let transaction = write(&store);
    let columns = vec![
        column("a", ReferenceType::Int8),
        column("b", ReferenceType::Int8),
    ];
    let table = transaction
        .create_table(&table("t", columns, vec![unique(&["a", "b"])]))
        .unwrap();
    insert_ints(
        &transaction,
        &table,
        &[&[Some(1), Some(1), None], &[None, None, None]],
    )
    .unwrap();
    insert_ints(&transaction, &table, &[&[Some(1)], &[Some(2)]]).unwrap();
    let error = insert_ints(&transaction, &table, &[&[Some(1)], &[Some(2)]]).unwrap_err();
    assert_eq!(error.constraint.as_deref(), Some("t_a_b_key"));
    assert_eq!(parts(&error).2, "Key (a, b)=(1, 2) already exists.");
}

#[test]
fn a_missing_value_is_refused() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    let rows = batch(vec![ints(&[None]), texts(&[Some("x")])]);
    let error = transaction
        .insert(&table, &rows, &OnConflict::Refuse)
        .unwrap_err();
    let message = "null value in column \"id\" of relation \"t\" violates not-null constraint";
    assert_eq!(
        parts(&error),
        ("23502", message, "Failing row contains (null, x).")
    );
    let ids = insert_simple(&transaction, &table, &[(1, "a")]).unwrap();
    let error = transaction
        .update(&table, &ids, &[0], &batch(vec![ints(&[None])]))
        .unwrap_err();
    assert_eq!(parts(&error).1, message);
}

fn number(transaction: &ReferenceTransaction, id: Option<i64>) -> Result<Option<i64>, String> {
    let table = transaction.table("d", "n").unwrap();
    insert_ints(transaction, &table, &[&[id], &[Some(0)]])
        .map(|_| int_column(transaction, &table, 0).last().copied().flatten())
        .map_err(|error| error.sqlstate.to_owned())
}

#[test]
fn identity_columns_are_numbered_as_by_a_sequence() {
    let store = store();
    let transaction = write(&store);
    let table = transaction
        .create_table(&numbered(IdentityKind::ByDefault))
        .unwrap();
    assert!(!table.columns[0].is_nullable);
    insert_ints(&transaction, &table, &[&[None, None], &[Some(7), Some(8)]]).unwrap();
    assert_eq!(int_column(&transaction, &table, 0), [Some(1), Some(2)]);
    // A number given by hand does not move the sequence; the conflict uses its number up.
    assert_eq!(number(&transaction, Some(3)), Ok(Some(3)));
    assert_eq!(number(&transaction, None), Err("23505".into()));
    assert_eq!(number(&transaction, None), Ok(Some(4)));
    assert_eq!(transaction.identity(&table, "id").unwrap(), 5);
    assert_eq!(transaction.next_identity(&table, "id").unwrap(), 5);
    transaction.restart_identity(&table, "id", 100).unwrap();
    assert_eq!(number(&transaction, None), Ok(Some(100)));
    transaction.commit().unwrap();
    let transaction = write(&store);
    assert_eq!(number(&transaction, None), Ok(Some(101)));
    transaction.roll_back();
    let transaction = write(&store);
    assert_eq!(
        number(&transaction, None),
        Ok(Some(102)),
        "numbers do not come back"
    );
    transaction.restart_identity(&table, "id", 1000).unwrap();
    transaction.roll_back();
    let transaction = write(&store);
    assert_eq!(
        number(&transaction, None),
        Ok(Some(101)),
        "but a restart does"
    );
    assert_eq!(transaction.truncate(&table, true).unwrap(), 6);
    assert_eq!(number(&transaction, None), Ok(Some(1)));
}

#[test]
fn an_identity_that_is_always_generated_takes_no_values() {
    let store = store();
    let transaction = write(&store);
    let table = transaction
        .create_table(&numbered(IdentityKind::Always))
        .unwrap();
    assert_eq!(number(&transaction, None), Ok(Some(1)));
    let error = insert_ints(&transaction, &table, &[&[Some(5)], &[None]]).unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "428C9",
            "cannot insert a non-DEFAULT value into column \"id\"",
            "Column \"id\" is an identity column defined as GENERATED ALWAYS."
        )
    );
    let error = transaction
        .update(&table, &[1], &[0], &batch(vec![ints(&[Some(9)])]))
        .unwrap_err();
    assert_eq!(error.sqlstate, "428C9");
}

#[test]
fn an_identity_ends_with_its_type() {
    let store = store();
    let transaction = write(&store);
    let id = NewColumn {
        identity: Some(IdentityKind::ByDefault),
        ..column("id", ReferenceType::Int2)
    };
    let table = transaction
        .create_table(&table("s", vec![id], Vec::new()))
        .unwrap();
    transaction.restart_identity(&table, "id", 32_767).unwrap();
    let rows = batch(vec![std::sync::Arc::new(arrow::array::Int16Array::from(
        vec![None],
    ))]);
    transaction
        .insert(&table, &rows, &OnConflict::Refuse)
        .unwrap();
    let error = transaction
        .insert(&table, &rows, &OnConflict::Refuse)
        .unwrap_err();
    assert_eq!(
        (error.sqlstate, error.message.as_str()),
        (
            "2200H",
            "nextval: reached maximum value of sequence \"s_id_seq\" (32767)"
        )
    );
}

#[test]
fn conflicts_are_skipped_and_reported() {
    let store = store();
    let transaction = write(&store);
    let columns = vec![
        column("a", ReferenceType::Int8),
        column("b", ReferenceType::Int8),
    ];
    let keys = vec![primary(&["a"]), unique(&["b"])];
    let table = transaction
        .create_table(&table("t", columns, keys))
        .unwrap();
    insert_ints(&transaction, &table, &[&[Some(1)], &[Some(10)]]).unwrap();
    let rows = batch(vec![
        ints(&[Some(2), Some(1), Some(3), Some(2)]),
        ints(&[Some(20), Some(11), Some(10), Some(21)]),
    ]);
    let inserted = transaction
        .insert(&table, &rows, &OnConflict::Skip(None))
        .unwrap();
    assert_eq!(inserted.row_ids, [2]);
    assert_eq!(inserted.indices, [0]);
    assert_eq!(inserted.conflicts, [(1, 1), (2, 1), (3, 2)]);
    let on_a = OnConflict::Skip(Some(vec![0]));
    let error = transaction.insert(&table, &rows, &on_a).unwrap_err();
    assert_eq!(error.constraint.as_deref(), Some("t_b_key"));
    let none = OnConflict::Skip(Some(vec![0, 1]));
    assert_eq!(
        transaction
            .insert(&table, &rows, &none)
            .unwrap_err()
            .sqlstate,
        "42P10"
    );
    let next = batch(vec![ints(&[Some(4)]), ints(&[Some(40)])]);
    assert_eq!(
        transaction.insert(&table, &next, &on_a).unwrap().row_ids,
        [3]
    );
}

#[test]
fn row_ids_are_never_used_again() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    let ids = insert_simple(&transaction, &table, &[(1, "a"), (2, "b")]).unwrap();
    assert_eq!(transaction.delete(&table, &ids).unwrap(), 2);
    assert_eq!(
        insert_simple(&transaction, &table, &[(3, "c")]).unwrap(),
        [3]
    );
    assert_eq!(transaction.delete(&table, &[1, 3]).unwrap(), 1);
    assert_eq!(transaction.count(&table).unwrap(), 0);
}

#[test]
fn a_unique_index_is_a_key_and_is_named() {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    insert_simple(&transaction, &table, &[(1, "a"), (2, "a")]).unwrap();
    let error = transaction
        .create_index("d", "t", None, &names(&["name"]), true, false)
        .unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "23505",
            "could not create unique index \"t_name_idx\"",
            "Key (name)=(a) is duplicated."
        )
    );
    let update = batch(vec![texts(&[Some("b")])]);
    assert_eq!(
        transaction
            .update(
                &table,
                &[2, 9],
                &[1],
                &batch(vec![texts(&[Some("b"), None])])
            )
            .unwrap(),
        1
    );
    assert_eq!(transaction.update(&table, &[2], &[1], &update).unwrap(), 1);
    let name = transaction
        .create_index("d", "t", None, &names(&["name"]), true, false)
        .unwrap();
    assert_eq!(name, "t_name_idx");
    let table = transaction.table("d", "t").unwrap();
    let error = insert_simple(&transaction, &table, &[(3, "b")]).unwrap_err();
    assert_eq!(error.constraint.as_deref(), Some("t_name_idx"));
    assert_eq!(
        text_column(&transaction, &table, 1),
        [Some("a".into()), Some("b".into())]
    );
    assert!(transaction.drop_index("d", "t_name_idx").unwrap());
    assert!(!transaction.drop_index("d", "t_name_idx").unwrap());
    assert_eq!(
        transaction.drop_index("d", "t_pkey").unwrap_err().sqlstate,
        "2BP01"
    );
}
