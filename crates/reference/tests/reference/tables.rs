//! Tables come and go: names, refusals, dependents.

use crate::support::{
    column, foreign, insert_simple, int_column, names, parts, primary, simple, store, table,
    unique, write,
};
use marigram_reference::ForeignKeyAction::Refuse;
use marigram_reference::{NewConstraint, ReferenceType};

#[test]
fn a_committed_table_is_known_without_a_transaction() {
    let store = store();
    assert_eq!(store.version(), 0);
    let transaction = write(&store);
    let created = transaction.create_table(&simple("t")).unwrap();
    assert!(store.table("d", "t").is_none());
    transaction.commit().unwrap();
    assert_eq!(store.table("d", "t").unwrap(), created);
    assert_eq!(store.version(), 1);
    assert!(store.table("other", "t").is_none());
    let transaction = write(&store);
    insert_simple(&transaction, &created, &[(1, "a")]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(store.version(), 1, "rows do not change tables");
    let transaction = write(&store);
    assert!(transaction.drop_table("d", "t", false).unwrap());
    assert!(!transaction.drop_table("d", "t", false).unwrap());
    transaction.commit().unwrap();
    assert!(store.tables("d").is_empty());
    assert_eq!(store.version(), 2);
}

#[test]
fn names_are_unique_and_chosen_as_postgresql_does() {
    let store = store();
    let transaction = write(&store);
    let columns = || {
        vec![
            column("a", ReferenceType::Int8),
            column("b", ReferenceType::Int8),
        ]
    };
    let check = |column: Option<&str>| NewConstraint::Check {
        name: None,
        condition: "a > 0".into(),
        column: column.map(Into::into),
    };
    let constraints = vec![
        unique(&["a", "b"]),
        unique(&["b", "a"]),
        unique(&["a", "b"]),
        primary(&["a"]),
        check(Some("a")),
        check(Some("a")),
        check(None),
        foreign("b", "t", Refuse, Refuse),
    ];
    let created = transaction
        .create_table(&table("t", columns(), constraints))
        .unwrap();
    let keys: Vec<_> = created.keys.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(keys, ["t_a_b_key", "t_b_a_key", "t_a_b_key1", "t_pkey"]);
    let checks: Vec<_> = created
        .checks
        .iter()
        .map(|check| check.name.as_str())
        .collect();
    assert_eq!(checks, ["t_a_check", "t_a_check1", "t_check"]);
    assert_eq!(created.foreign_keys[0].name, "t_b_fkey");
    for name in ["t", "t_pkey"] {
        let error = transaction.create_table(&simple(name)).unwrap_err();
        assert_eq!(parts(&error).0, "42P07");
        assert_eq!(error.message, format!("relation \"{name}\" already exists"));
    }
    let index = |name: Option<&str>, if_not_exists| {
        let name = name.map(Into::into);
        transaction.create_index("d", "t", name, &names(&["a", "b"]), false, if_not_exists)
    };
    assert_eq!(index(None, false).unwrap(), "t_a_b_idx");
    assert_eq!(index(None, false).unwrap(), "t_a_b_idx1");
    assert_eq!(index(Some("t_a_b_idx"), true).unwrap(), "t_a_b_idx");
    assert_eq!(
        index(Some("t_a_b_idx"), false).unwrap_err().sqlstate,
        "42P07"
    );
    transaction.commit().unwrap();
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn definitions_that_make_no_sense_are_refused() {
    let store = store();
    let transaction = write(&store);
    let refused = |columns: Vec<_>, constraints| {
        transaction
            .create_table(&table("t", columns, constraints))
            .unwrap_err()
            .sqlstate
    };
    let a = || column("a", ReferenceType::Int8);
    assert_eq!(refused(vec![a(), a()], Vec::new()), "42701");
    assert_eq!(refused(vec![a()], vec![primary(&["b"])]), "42703");
    assert_eq!(
        refused(vec![a()], vec![primary(&["a"]), primary(&["a"])]),
        "42P16"
    );
    assert_eq!(refused(vec![a()], vec![primary(&["a", "a"])]), "42701");
    assert_eq!(
        refused(vec![column("a", ReferenceType::Json)], vec![unique(&["a"])]),
        "42704"
    );
    let mut numbered = column("a", ReferenceType::Text);
    numbered.identity = Some(marigram_reference::IdentityKind::Always);
    assert_eq!(refused(vec![numbered], Vec::new()), "22023");
    assert_eq!(
        refused(
            (0..1601)
                .map(|n| column(&format!("c{n}"), ReferenceType::Int8))
                .collect(),
            Vec::new()
        ),
        "54011"
    );
    assert!(transaction.tables("d").is_empty());
    assert_eq!(
        transaction
            .create_index("d", "t", None, &names(&["a"]), true, false)
            .unwrap_err()
            .sqlstate,
        "42P01"
    );
}

#[test]
fn a_table_with_many_columns_works() {
    let store = store();
    let transaction = write(&store);
    let columns = (0..1600)
        .map(|n| column(&format!("c{n}"), ReferenceType::Int8))
        .collect();
    let table = transaction
        .create_table(&table("t", columns, Vec::new()))
        .unwrap();
    let row = vec![crate::support::ints(&[Some(7)]); 1600];
    let rows = crate::support::batch(row);
    transaction
        .insert(&table, &rows, &marigram_reference::OnConflict::Refuse)
        .unwrap();
    assert_eq!(int_column(&transaction, &table, 1599), [Some(7)]);
}

#[test]
fn a_table_that_others_refer_to_is_dropped_with_their_keys() {
    let store = store();
    let transaction = write(&store);
    transaction.create_table(&simple("b")).unwrap();
    let columns = vec![column("b", ReferenceType::Int8)];
    let child = table("a", columns, vec![foreign("b", "b", Refuse, Refuse)]);
    transaction.create_table(&child).unwrap();
    let error = transaction.drop_table("d", "b", false).unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "2BP01",
            "cannot drop table b because other objects depend on it",
            "constraint a_b_fkey on table a depends on table b"
        )
    );
    assert!(transaction.drop_table("d", "b", true).unwrap());
    assert!(transaction.table("d", "a").unwrap().foreign_keys.is_empty());
    transaction.commit().unwrap();
    assert!(store.verify().unwrap().is_empty());
    store.drop_database("d").unwrap();
    assert!(store.tables("d").is_empty());
    store.drop_database("d").unwrap();
}
