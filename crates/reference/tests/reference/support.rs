//! Short ways to tables, rows and errors.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use marigram_reference::{
    ForeignKeyAction, NewColumn, NewConstraint, NewReferenceTable, OnConflict, ReferenceError,
    ReferenceScanRequest, ReferenceStore, ReferenceTable, ReferenceTransaction, ReferenceType,
};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const DATABASE: &str = "d";

pub(crate) fn store() -> ReferenceStore {
    ReferenceStore::in_memory().unwrap()
}

pub(crate) fn write(store: &ReferenceStore) -> ReferenceTransaction {
    store.write(Duration::from_secs(20), &|| false).unwrap()
}

pub(crate) fn column(name: &str, kind: ReferenceType) -> NewColumn {
    NewColumn {
        name: name.into(),
        kind,
        is_nullable: true,
        default: None,
        identity: None,
    }
}

pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) fn primary(columns: &[&str]) -> NewConstraint {
    NewConstraint::Key {
        name: None,
        columns: names(columns),
        is_primary: true,
    }
}

pub(crate) fn unique(columns: &[&str]) -> NewConstraint {
    NewConstraint::Key {
        name: None,
        columns: names(columns),
        is_primary: false,
    }
}

pub(crate) fn foreign(
    column: &str,
    parent: &str,
    on_delete: ForeignKeyAction,
    on_update: ForeignKeyAction,
) -> NewConstraint {
    NewConstraint::ForeignKey {
        name: None,
        columns: names(&[column]),
        parent: parent.into(),
        parent_columns: Vec::new(),
        on_delete,
        on_update,
    }
}

pub(crate) fn table(
    name: &str,
    columns: Vec<NewColumn>,
    constraints: Vec<NewConstraint>,
) -> NewReferenceTable {
    NewReferenceTable {
        database: DATABASE.into(),
        name: name.into(),
        columns,
        constraints,
    }
}

/// A table `t (id bigint primary key, name text)`.
pub(crate) fn simple(name: &str) -> NewReferenceTable {
    let columns = vec![
        column("id", ReferenceType::Int8),
        column("name", ReferenceType::Text),
    ];
    table(name, columns, vec![primary(&["id"])])
}

pub(crate) fn ints(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

pub(crate) fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// A batch of unnamed columns.
pub(crate) fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let columns = columns.into_iter().enumerate();
    let columns = columns.map(|(number, array)| (format!("{number}"), array, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Inserts rows of `t (id, name)`.
pub(crate) fn insert_simple(
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
    rows: &[(i64, &str)],
) -> Result<Vec<i64>, ReferenceError> {
    let id: Vec<_> = rows.iter().map(|row| Some(row.0)).collect();
    let name: Vec<_> = rows.iter().map(|row| Some(row.1)).collect();
    let rows = batch(vec![ints(&id), texts(&name)]);
    Ok(transaction
        .insert(table, &rows, &OnConflict::Refuse)?
        .row_ids)
}

/// Inserts rows of bigints.
pub(crate) fn insert_ints(
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
    columns: &[&[Option<i64>]],
) -> Result<Vec<i64>, ReferenceError> {
    let rows = batch(columns.iter().map(|column| ints(column)).collect());
    Ok(transaction
        .insert(table, &rows, &OnConflict::Refuse)?
        .row_ids)
}

/// All rows.
pub(crate) fn all(transaction: &ReferenceTransaction, table: &ReferenceTable) -> RecordBatch {
    let request = ReferenceScanRequest {
        columns: (0..table.columns.len()).collect(),
        with_row_id: false,
        filters: Vec::new(),
        after: 0,
        rows_max: usize::MAX,
    };
    let page = transaction.scan(table, &request).unwrap();
    assert_eq!(page.last, None);
    page.rows
}

/// The values of a column of bigints.
pub(crate) fn int_column(
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
    column: usize,
) -> Vec<Option<i64>> {
    let rows = all(transaction, table);
    let values = rows.column(column).as_primitive::<Int64Type>();
    values.iter().collect()
}

/// The values of a column of texts.
pub(crate) fn text_column(
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
    column: usize,
) -> Vec<Option<String>> {
    let rows = all(transaction, table);
    let values = rows.column(column).as_string::<i32>();
    (0..values.len())
        .map(|row| (!values.is_null(row)).then(|| values.value(row).to_owned()))
        .collect()
}

/// An error's state, message and detail.
pub(crate) fn parts(error: &ReferenceError) -> (&str, &str, &str) {
    (
        error.sqlstate,
        &error.message,
        error.detail.as_deref().unwrap_or_default(),
    )
}
