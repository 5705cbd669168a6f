//! Foreign keys with all their actions.

use crate::support::{
    batch, column, foreign, insert_ints, insert_simple, int_column, ints, parts, primary, simple,
    store, table, write,
};
use marigram_reference::ForeignKeyAction::{self, Cascade, Refuse, SetNull};
use marigram_reference::{
    NewReferenceTable, ReferenceStore, ReferenceTable, ReferenceTransaction, ReferenceType,
};
use std::sync::Arc;

fn child(on_delete: ForeignKeyAction, on_update: ForeignKeyAction) -> NewReferenceTable {
    let columns = vec![
        column("id", ReferenceType::Int8),
        column("b", ReferenceType::Int8),
    ];
    table(
        "a",
        columns,
        vec![primary(&["id"]), foreign("b", "b", on_delete, on_update)],
    )
}

type Tables = (
    ReferenceStore,
    ReferenceTransaction,
    Arc<ReferenceTable>,
    Arc<ReferenceTable>,
);

/// Parents 1, 2, 3, and children 1 → 1, 2 → 1, 3 → 2, 4 → nothing.
fn family(on_delete: ForeignKeyAction, on_update: ForeignKeyAction) -> Tables {
    let store = store();
    let transaction = write(&store);
    let parent = transaction.create_table(&simple("b")).unwrap();
    let child = transaction
        .create_table(&child(on_delete, on_update))
        .unwrap();
    insert_simple(&transaction, &parent, &[(1, ""), (2, ""), (3, "")]).unwrap();
    let ids = [Some(1), Some(2), Some(3), Some(4)];
    insert_ints(
        &transaction,
        &child,
        &[&ids, &[Some(1), Some(1), Some(2), None]],
    )
    .unwrap();
    (store, transaction, parent, child)
}

#[test]
fn a_child_needs_its_parent() {
    let (_store, transaction, _, child) = family(Refuse, Refuse);
    let error = insert_ints(&transaction, &child, &[&[Some(9)], &[Some(5)]]).unwrap_err();
    let message = "insert or update on table \"a\" violates foreign key constraint \"a_b_fkey\"";
    assert_eq!(
        parts(&error),
        (
            "23503",
            message,
            "Key (b)=(5) is not present in table \"b\"."
        )
    );
    assert_eq!(error.constraint.as_deref(), Some("a_b_fkey"));
    let error = transaction
        .update(&child, &[1], &[1], &batch(vec![ints(&[Some(6)])]))
        .unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "23503",
            message,
            "Key (b)=(6) is not present in table \"b\"."
        )
    );
    transaction
        .update(&child, &[1], &[1], &batch(vec![ints(&[Some(3)])]))
        .unwrap();
}

#[test]
fn a_parent_with_children_stays() {
    let (_store, transaction, parent, child) = family(Refuse, Refuse);
    let message = "update or delete on table \"b\" violates foreign key constraint \"a_b_fkey\" on table \"a\"";
    let detail = "Key (id)=(1) is still referenced from table \"a\".";
    let error = transaction.delete(&parent, &[3, 1]).unwrap_err();
    assert_eq!(parts(&error), ("23503", message, detail));
    assert_eq!(transaction.count(&parent).unwrap(), 3);
    let error = transaction
        .update(&parent, &[1], &[0], &batch(vec![ints(&[Some(9)])]))
        .unwrap_err();
    assert_eq!(parts(&error), ("23503", message, detail));
    transaction
        .update(&parent, &[1], &[0], &batch(vec![ints(&[Some(1)])]))
        .unwrap();
    let error = transaction.truncate(&parent, false).unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "0A000",
            "cannot truncate a table referenced in a foreign key constraint",
            "Table \"a\" references \"b\"."
        )
    );
    transaction.delete(&child, &[1, 2]).unwrap();
    transaction.delete(&parent, &[1]).unwrap();
}

#[test]
fn children_follow_their_parent() {
    let (store, transaction, parent, child) = family(Cascade, Cascade);
    transaction
        .update(&parent, &[1], &[0], &batch(vec![ints(&[Some(9)])]))
        .unwrap();
    assert_eq!(
        int_column(&transaction, &child, 1),
        [Some(9), Some(9), Some(2), None]
    );
    transaction.delete(&parent, &[1]).unwrap();
    assert_eq!(int_column(&transaction, &child, 0), [Some(3), Some(4)]);
    transaction.commit().unwrap();
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn keys_that_move_one_into_the_place_of_another_take_their_own_children() {
    let (_store, transaction, parent, child) = family(Cascade, Cascade);
    let keys = batch(vec![ints(&[Some(4), Some(3), Some(2)])]);
    transaction
        .update(&parent, &[3, 2, 1], &[0], &keys)
        .unwrap();
    assert_eq!(
        int_column(&transaction, &child, 1),
        [Some(2), Some(2), Some(3), None]
    );
}

#[test]
fn children_lose_their_parent() {
    let (_store, transaction, parent, child) = family(SetNull, SetNull);
    transaction
        .update(&parent, &[2], &[0], &batch(vec![ints(&[Some(9)])]))
        .unwrap();
    assert_eq!(
        int_column(&transaction, &child, 1),
        [Some(1), Some(1), None, None]
    );
    transaction.delete(&parent, &[1]).unwrap();
    assert_eq!(int_column(&transaction, &child, 1), [None; 4]);
}

#[test]
fn a_child_that_needs_a_parent_cannot_lose_it() {
    let store = store();
    let transaction = write(&store);
    let parent = transaction.create_table(&simple("b")).unwrap();
    let mut new = child(SetNull, Refuse);
    new.columns[1].is_nullable = false;
    let child = transaction.create_table(&new).unwrap();
    insert_simple(&transaction, &parent, &[(1, "")]).unwrap();
    insert_ints(&transaction, &child, &[&[Some(1)], &[Some(1)]]).unwrap();
    assert_eq!(
        transaction.delete(&parent, &[1]).unwrap_err().sqlstate,
        "23502"
    );
    assert_eq!(transaction.count(&parent).unwrap(), 1);
}

/// A table of nodes, each below another.
fn tree(transaction: &ReferenceTransaction, on_delete: ForeignKeyAction) -> Arc<ReferenceTable> {
    let columns = vec![
        column("id", ReferenceType::Int8),
        column("above", ReferenceType::Int8),
    ];
    let keys = vec![
        foreign("above", "tree", on_delete, Refuse),
        primary(&["id"]),
    ];
    transaction
        .create_table(&table("tree", columns, keys))
        .unwrap()
}

#[test]
fn rows_of_one_statement_may_refer_to_each_other() {
    let store = store();
    let transaction = write(&store);
    let tree = tree(&transaction, Refuse);
    insert_ints(
        &transaction,
        &tree,
        &[&[Some(1), Some(2), Some(3)], &[Some(2), None, Some(3)]],
    )
    .unwrap();
    assert_eq!(
        transaction.delete(&tree, &[2]).unwrap_err().sqlstate,
        "23503"
    );
    assert_eq!(transaction.delete(&tree, &[2, 1, 3]).unwrap(), 3);
}

#[test]
fn a_deep_tree_is_deleted_without_recursion() {
    let store = store();
    let transaction = write(&store);
    let tree = tree(&transaction, Cascade);
    let ids: Vec<_> = (1..=5000).map(Some).collect();
    let above: Vec<_> = (0..5000).map(|id| (id > 0).then_some(id)).collect();
    insert_ints(&transaction, &tree, &[&ids, &above]).unwrap();
    assert_eq!(transaction.delete(&tree, &[1]).unwrap(), 1);
    assert_eq!(transaction.count(&tree).unwrap(), 0);
}

#[test]
fn keys_of_several_columns_refer_in_any_order() {
    let store = store();
    let transaction = write(&store);
    let pair = |a, b| {
        vec![
            column(a, ReferenceType::Int8),
            column(b, ReferenceType::Int8),
        ]
    };
    transaction
        .create_table(&table("p", pair("x", "y"), vec![primary(&["x", "y"])]))
        .unwrap();
    let parent = transaction.table("d", "p").unwrap();
    let key = marigram_reference::NewConstraint::ForeignKey {
        name: None,
        columns: crate::support::names(&["b", "a"]),
        parent: "p".into(),
        parent_columns: crate::support::names(&["y", "x"]),
        on_delete: Cascade,
        on_update: Cascade,
    };
    let child = transaction
        .create_table(&table("c", pair("a", "b"), vec![key]))
        .unwrap();
    insert_ints(&transaction, &parent, &[&[Some(1)], &[Some(2)]]).unwrap();
    insert_ints(
        &transaction,
        &child,
        &[&[Some(1), Some(7)], &[Some(2), None]],
    )
    .unwrap();
    let error = insert_ints(&transaction, &child, &[&[Some(2)], &[Some(1)]]).unwrap_err();
    assert_eq!(
        parts(&error).2,
        "Key (b, a)=(1, 2) is not present in table \"p\"."
    );
    assert_eq!(error.constraint.as_deref(), Some("c_b_a_fkey"));
    transaction
        .update(&parent, &[1], &[1], &batch(vec![ints(&[Some(9)])]))
        .unwrap();
    assert_eq!(int_column(&transaction, &child, 1), [Some(9), None]);
    transaction.delete(&parent, &[1]).unwrap();
    assert_eq!(int_column(&transaction, &child, 0), [Some(7)]);
}

#[test]
fn foreign_keys_are_checked_when_they_are_declared() {
    let store = store();
    let transaction = write(&store);
    let create = |new: NewReferenceTable| transaction.create_table(&new).unwrap_err();
    assert_eq!(create(child(Refuse, Refuse)).sqlstate, "42P01");
    let bare = table("b", vec![column("id", ReferenceType::Int8)], Vec::new());
    transaction.create_table(&bare).unwrap();
    let error = create(child(Refuse, Refuse));
    assert_eq!(
        (error.sqlstate, error.message.as_str()),
        (
            "42704",
            "there is no primary key for referenced table \"b\""
        )
    );
    let mut named = child(Refuse, Refuse);
    if let Some(marigram_reference::NewConstraint::ForeignKey { parent_columns, .. }) =
        named.constraints.get_mut(1)
    {
        *parent_columns = crate::support::names(&["id"]);
    }
    let error = create(named);
    assert_eq!(
        (error.sqlstate, error.message.as_str()),
        (
            "42830",
            "there is no unique constraint matching given keys for referenced table \"b\""
        )
    );
    transaction.create_table(&simple("c")).unwrap();
    let columns = vec![column("c", ReferenceType::Text)];
    let error = create(table("e", columns, vec![foreign("c", "c", Refuse, Refuse)]));
    assert_eq!(
        parts(&error),
        (
            "42804",
            "foreign key constraint \"e_c_fkey\" cannot be implemented",
            "Key columns \"c\" and \"id\" are of incompatible types: text and bigint."
        )
    );
    assert_eq!(transaction.tables("d").len(), 2, "what failed is not there");
}
