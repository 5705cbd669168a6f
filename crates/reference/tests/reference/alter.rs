//! `ALTER TABLE`.

use crate::support::{
    all, batch, column, foreign, insert_ints, insert_simple, int_column, ints, names, parts,
    simple, store, table, texts, unique, write,
};
use marigram_reference::ForeignKeyAction::Refuse;
use marigram_reference::{
    IdentityKind, NewColumn, NewConstraint, OnConflict, ReferenceAlteration as Alteration,
    ReferenceError, ReferenceStore, ReferenceTable, ReferenceTransaction, ReferenceType,
};
use std::sync::Arc;

pub(crate) fn alter(
    transaction: &ReferenceTransaction,
    change: Alteration,
) -> Result<Arc<ReferenceTable>, ReferenceError> {
    transaction.alter_table("d", "t", &change)
}

/// `t` with the rows (1, a) and (2, b).
pub(crate) fn filled() -> (ReferenceStore, ReferenceTransaction) {
    let store = store();
    let transaction = write(&store);
    let table = transaction.create_table(&simple("t")).unwrap();
    insert_simple(&transaction, &table, &[(1, "a"), (2, "b")]).unwrap();
    (store, transaction)
}

#[test]
fn a_new_column_is_empty_until_it_is_filled() {
    let (store, transaction) = filled();
    let new = NewColumn {
        is_nullable: false,
        ..column("c", ReferenceType::Int8)
    };
    let add = |if_not_exists| Alteration::AddColumn {
        column: new.clone(),
        if_not_exists,
    };
    let table = alter(&transaction, add(false)).unwrap();
    assert_eq!(int_column(&transaction, &table, 2), [None, None]);
    let error = transaction.check_not_null(&table, "c").unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "23502",
            "column \"c\" of relation \"t\" contains null values",
            ""
        )
    );
    transaction
        .update(
            &table,
            &[1, 2],
            &[2],
            &batch(vec![ints(&[Some(5), Some(5)])]),
        )
        .unwrap();
    transaction.check_not_null(&table, "c").unwrap();
    assert!(!all(&transaction, &table).schema().field(2).is_nullable());
    assert_eq!(
        alter(&transaction, add(false)).unwrap_err().sqlstate,
        "42701"
    );
    assert_eq!(alter(&transaction, add(true)).unwrap(), table);
    let identity = Some(IdentityKind::Always);
    let column = NewColumn {
        identity,
        ..column("n", ReferenceType::Int8)
    };
    let table = alter(
        &transaction,
        Alteration::AddColumn {
            column,
            if_not_exists: false,
        },
    )
    .unwrap();
    assert_eq!(int_column(&transaction, &table, 3), [Some(1), Some(2)]);
    assert_eq!(transaction.identity(&table, "n").unwrap(), 3);
    transaction.commit().unwrap();
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn a_dropped_column_takes_its_constraints_along() {
    let store = store();
    let transaction = write(&store);
    let columns = vec![
        column("a", ReferenceType::Int8),
        column("b", ReferenceType::Int8),
        column("c", ReferenceType::Int8),
    ];
    let check = |condition: &str| NewConstraint::Check {
        name: None,
        condition: condition.into(),
        column: None,
    };
    let constraints = vec![
        unique(&["a", "b"]),
        unique(&["c"]),
        check("a > b"),
        check("c > 0"),
        NewConstraint::ForeignKey {
            name: None,
            columns: names(&["b"]),
            parent: "t".into(),
            parent_columns: names(&["c"]),
            on_delete: Refuse,
            on_update: Refuse,
        },
    ];
    let created = transaction
        .create_table(&table("t", columns, constraints))
        .unwrap();
    transaction
        .create_index("d", "t", None, &names(&["b"]), false, false)
        .unwrap();
    insert_ints(
        &transaction,
        &created,
        &[&[Some(1)], &[Some(3)], &[Some(3)]],
    )
    .unwrap();
    let drop = |name: &str, if_exists, cascades| {
        alter(
            &transaction,
            Alteration::DropColumn {
                name: name.into(),
                if_exists,
                cascades,
            },
        )
    };
    let altered = drop("b", false, false).unwrap();
    assert_eq!(altered.keys.len(), 1);
    assert_eq!(altered.checks.len(), 1);
    assert!(altered.foreign_keys.is_empty() && altered.indexes.is_empty());
    assert_eq!(int_column(&transaction, &altered, 1), [Some(3)]);
    assert_eq!(drop("b", false, false).unwrap_err().sqlstate, "42703");
    drop("b", true, false).unwrap();
    let child = vec![column("t", ReferenceType::Int8)];
    let key = NewConstraint::ForeignKey {
        name: None,
        columns: names(&["t"]),
        parent: "t".into(),
        parent_columns: names(&["c"]),
        on_delete: Refuse,
        on_update: Refuse,
    };
    transaction
        .create_table(&table("child", child, vec![key]))
        .unwrap();
    assert_eq!(drop("c", false, false).unwrap_err().sqlstate, "2BP01");
    drop("c", false, true).unwrap();
    assert!(
        transaction
            .table("d", "child")
            .unwrap()
            .foreign_keys
            .is_empty()
    );
    // The column's id is not used again.
    let add = Alteration::AddColumn {
        column: column("c", ReferenceType::Int8),
        if_not_exists: false,
    };
    assert_eq!(alter(&transaction, add).unwrap().columns[1].id, 4);
    transaction.commit().unwrap();
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn names_change_and_rows_stay() {
    let (store, transaction) = filled();
    let check = NewConstraint::Check {
        name: None,
        condition: "id > 0".into(),
        column: Some("id".into()),
    };
    alter(&transaction, Alteration::AddConstraint(check)).unwrap();
    let rename = |from: &str, to: &str| Alteration::RenameColumn(from.into(), to.into());
    assert_eq!(
        alter(&transaction, rename("id", "name"))
            .unwrap_err()
            .sqlstate,
        "42701"
    );
    assert_eq!(
        alter(&transaction, rename("x", "y")).unwrap_err().sqlstate,
        "42703"
    );
    let altered = alter(&transaction, rename("id", "number")).unwrap();
    assert_eq!(altered.checks[0].condition, "\"number\" > 0");
    let rename = |from: &str, to: &str| Alteration::RenameConstraint(from.into(), to.into());
    assert_eq!(
        alter(&transaction, rename("x", "y")).unwrap_err().sqlstate,
        "42704"
    );
    assert_eq!(
        alter(&transaction, rename("t_pkey", "t"))
            .unwrap_err()
            .sqlstate,
        "42P07"
    );
    alter(&transaction, rename("t_pkey", "key")).unwrap();
    alter(&transaction, rename("t_id_check", "check")).unwrap();
    alter(&transaction, Alteration::Rename("u".into())).unwrap();
    assert!(transaction.table("d", "t").is_none());
    let table = transaction.table("d", "u").unwrap();
    let error = insert_simple(&transaction, &table, &[(1, "")]).unwrap_err();
    assert_eq!(
        parts(&error).1,
        "duplicate key value violates unique constraint \"key\""
    );
    assert_eq!(parts(&error).2, "Key (number)=(1) already exists.");
    transaction.commit().unwrap();
    assert!(store.table("d", "u").is_some() && store.table("d", "t").is_none());
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn constraints_are_checked_against_the_rows_there_are() {
    let (store, transaction) = filled();
    let add = |constraint| alter(&transaction, Alteration::AddConstraint(constraint));
    let table = transaction.table("d", "t").unwrap();
    insert_simple(&transaction, &table, &[(3, "b")]).unwrap();
    let error = add(unique(&["name"])).unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "23505",
            "could not create unique index \"t_name_key\"",
            "Key (name)=(b) is duplicated."
        )
    );
    let parent = transaction.create_table(&simple("b")).unwrap();
    insert_simple(&transaction, &parent, &[(1, ""), (2, "")]).unwrap();
    let error = add(foreign("id", "b", Refuse, Refuse)).unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "23503",
            "insert or update on table \"t\" violates foreign key constraint \"t_id_fkey\"",
            "Key (id)=(3) is not present in table \"b\"."
        )
    );
    insert_simple(&transaction, &parent, &[(3, "")]).unwrap();
    add(foreign("id", "b", Refuse, Refuse)).unwrap();
    let drop = |table: &str, name: &str, if_exists| {
        let change = Alteration::DropConstraint {
            name: name.into(),
            if_exists,
            cascades: false,
        };
        transaction.alter_table("d", table, &change)
    };
    let error = drop("b", "b_pkey", false).unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "2BP01",
            "cannot drop constraint b_pkey on table b because other objects depend on it",
            "constraint t_id_fkey on table t depends on index b_pkey"
        )
    );
    drop("t", "t_id_fkey", false).unwrap();
    drop("b", "b_pkey", false).unwrap();
    assert_eq!(drop("b", "b_pkey", false).unwrap_err().sqlstate, "42704");
    drop("b", "b_pkey", true).unwrap();
    transaction.commit().unwrap();
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn not_null_and_defaults_change() {
    let (_store, transaction) = filled();
    let nullable = |column: &str, is_nullable| Alteration::Nullable {
        column: column.into(),
        is_nullable,
    };
    let error = alter(&transaction, nullable("id", true)).unwrap_err();
    assert_eq!(
        parts(&error),
        ("42P16", "column \"id\" is in a primary key", "")
    );
    let table = alter(&transaction, nullable("name", false)).unwrap();
    assert!(!table.columns[1].is_nullable);
    let table = alter(&transaction, nullable("name", true)).unwrap();
    let rows = batch(vec![ints(&[Some(3)]), texts(&[None])]);
    transaction
        .insert(&table, &rows, &OnConflict::Refuse)
        .unwrap();
    assert_eq!(
        alter(&transaction, nullable("name", false))
            .unwrap_err()
            .sqlstate,
        "23502"
    );
    let default = Some("'x'".to_owned());
    let change = Alteration::Default {
        column: "name".into(),
        default: default.clone(),
    };
    assert_eq!(
        alter(&transaction, change).unwrap().columns[1].default,
        default
    );
}
