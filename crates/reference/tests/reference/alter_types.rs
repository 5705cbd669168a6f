//! `ALTER COLUMN … TYPE`.

use crate::alter::{alter, filled};
use crate::support::{all, batch, column, foreign, parts, store, table, text_column, texts, write};
use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array};
use arrow::datatypes::{Decimal128Type, Int32Type};
use marigram_reference::ForeignKeyAction::Refuse;
use marigram_reference::{
    OnConflict, ReferenceAlteration as Alteration, ReferenceError, ReferenceTable,
    ReferenceTransaction, ReferenceType,
};
use std::sync::Arc;

fn change_type(
    transaction: &ReferenceTransaction,
    column: &str,
    kind: ReferenceType,
) -> Result<Arc<ReferenceTable>, ReferenceError> {
    alter(
        transaction,
        Alteration::Type {
            column: column.into(),
            kind,
        },
    )
}

#[test]
fn types_change_where_values_convert_exactly() {
    let (store, transaction) = filled();
    let table = change_type(&transaction, "id", ReferenceType::Int4).unwrap();
    let rows = all(&transaction, &table);
    assert_eq!(rows.column(0).as_primitive::<Int32Type>().values(), &[1, 2]);
    let numeric = |precision, scale| ReferenceType::Numeric { precision, scale };
    let table = change_type(&transaction, "id", numeric(30, 2)).unwrap();
    let rows = all(&transaction, &table);
    assert_eq!(
        rows.column(0).as_primitive::<Decimal128Type>().values(),
        &[100, 200]
    );
    let more: ArrayRef = Arc::new(
        Decimal128Array::from(vec![350])
            .with_precision_and_scale(30, 2)
            .unwrap(),
    );
    let more = batch(vec![more, texts(&[None])]);
    transaction
        .insert(&table, &more, &OnConflict::Refuse)
        .unwrap();
    let error = change_type(&transaction, "id", ReferenceType::Int8).unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "22003",
            "value \"3.50\" cannot be converted to type bigint exactly",
            ""
        )
    );
    let table = change_type(&transaction, "id", numeric(5, 1)).unwrap();
    let table = {
        assert_eq!(table.columns[0].kind, numeric(5, 1));
        change_type(&transaction, "id", ReferenceType::Float8).unwrap()
    };
    let duplicate: ArrayRef = Arc::new(Float64Array::from(vec![3.5]));
    let duplicate = batch(vec![duplicate, texts(&[None])]);
    let error = transaction
        .insert(&table, &duplicate, &OnConflict::Refuse)
        .unwrap_err();
    assert_eq!(parts(&error).2, "Key (id)=(3.5) already exists.");
    let table = change_type(&transaction, "id", ReferenceType::Text).unwrap();
    let texts: Vec<_> = text_column(&transaction, &table, 0)
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(texts, ["1", "2", "3.5"]);
    let error = change_type(&transaction, "id", ReferenceType::Int8).unwrap_err();
    assert_eq!(
        parts(&error),
        (
            "42804",
            "column \"id\" cannot be cast automatically to type bigint",
            ""
        )
    );
    let error = change_type(&transaction, "id", ReferenceType::Varchar(2)).unwrap_err();
    assert_eq!(error.sqlstate, "22001");
    change_type(&transaction, "id", ReferenceType::Char(4)).unwrap();
    transaction.commit().unwrap();
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn the_two_sides_of_a_foreign_key_keep_one_type() {
    let (_store, transaction) = filled();
    let child = vec![column("t", ReferenceType::Int4)];
    transaction
        .create_table(&table("c", child, vec![foreign("t", "t", Refuse, Refuse)]))
        .unwrap();
    change_type(&transaction, "id", ReferenceType::Int2).unwrap();
    assert_eq!(
        change_type(&transaction, "id", ReferenceType::Text)
            .unwrap_err()
            .sqlstate,
        "42804"
    );
    let change = Alteration::Type {
        column: "t".into(),
        kind: ReferenceType::Float8,
    };
    assert_eq!(
        transaction
            .alter_table("d", "c", &change)
            .unwrap_err()
            .sqlstate,
        "42804"
    );
}

#[test]
fn json_and_times_change_into_their_kind() {
    let store = store();
    let transaction = write(&store);
    let columns = vec![
        column("j", ReferenceType::Json),
        column("d", ReferenceType::Date),
    ];
    let created = transaction
        .create_table(&table("t", columns, Vec::new()))
        .unwrap();
    let days: ArrayRef = Arc::new(arrow::array::Date32Array::from(vec![Some(1)]));
    let rows = batch(vec![texts(&[Some("{\"b\":1, \"a\":2}")]), days]);
    transaction
        .insert(&created, &rows, &OnConflict::Refuse)
        .unwrap();
    let table = change_type(&transaction, "j", ReferenceType::Jsonb).unwrap();
    assert_eq!(
        text_column(&transaction, &table, 0),
        [Some("{\"a\": 2, \"b\": 1}".into())]
    );
    change_type(&transaction, "d", ReferenceType::TimestampTz).unwrap();
    change_type(&transaction, "d", ReferenceType::Timestamp).unwrap();
    let table = change_type(&transaction, "d", ReferenceType::Text).unwrap();
    assert_eq!(
        text_column(&transaction, &table, 1),
        [Some("1970-01-02 00:00:00".into())]
    );
}
