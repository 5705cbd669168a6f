//! Reference tables as rows of PostgreSQL's catalog.
//!
//! Tables have their OIDs from the library's `pg_class`, which alone knows them: the rows here name
//! their table, and the one to which a foreign key refers, and are joined with `pg_class`. OIDs of
//! indexes, constraints and defaults are in the rows.

use super::reference_text::{
    BTREE_OID, ObjectKind, TableConstraint, columns_in, constraints, indexes, oid, type_length,
    type_oid,
};
use datafusion::arrow::array::{
    ArrayRef, ListArray, RecordBatch, RecordBatchOptions, StringArray, new_empty_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Int16Type, Int32Type, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::{Result, ScalarValue};
use marigram_reference::{ForeignKeyAction, IdentityKind, ReferenceTable};
use std::collections::HashMap;
use std::sync::Arc;

/// A row about a table. Columns that it does not name have no value.
pub(super) struct DescribedRow {
    /// Name of the table.
    pub table: String,
    /// Name of the table to which a foreign key refers.
    pub parent: Option<String>,
    /// Values by column.
    pub values: Vec<(&'static str, ScalarValue)>,
}

/// The column of a row's table.
pub(super) const TABLE: &str = "described_table";
/// The column of the table to which a row's foreign key refers.
pub(super) const PARENT: &str = "described_parent";

/// The metadata by which the protocol of PostgreSQL sends a column of `pg_index` as an `int2vector` or an
/// `oidvector`: these look like `1 2`, and are arrays otherwise. Empty for other columns.
pub(super) fn vector_mark(column: &str) -> HashMap<String, String> {
    let kind = match column {
        "indkey" | "indoption" => "int2vector",
        "indclass" | "indcollation" => "oidvector",
        _ => return HashMap::new(),
    };
    HashMap::from([("pg.vector".to_owned(), kind.to_owned())])
}

impl DescribedRow {
    fn new(table: &ReferenceTable, values: Vec<(&'static str, ScalarValue)>) -> Self {
        Self {
            table: table.name.clone(),
            parent: None,
            values,
        }
    }
}

fn text(text: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(text.to_owned()))
}

fn flag(flag: bool) -> ScalarValue {
    ScalarValue::Boolean(Some(flag))
}

fn int(number: i32) -> ScalarValue {
    ScalarValue::Int32(Some(number))
}

fn small(number: usize) -> ScalarValue {
    ScalarValue::Int16(i16::try_from(number).ok())
}

/// A list of numbers of columns.
fn smalls(numbers: impl IntoIterator<Item = i16>) -> ScalarValue {
    let numbers = numbers.into_iter().map(Some).collect::<Vec<_>>();
    let list = ListArray::from_iter_primitive::<Int16Type, _, _>([Some(numbers)]);
    ScalarValue::List(Arc::new(list))
}

/// As many zeros as there are columns.
fn zeros(columns: &[u32], is_small: bool) -> ScalarValue {
    if is_small {
        return smalls(columns.iter().map(|_| 0));
    }
    let zeros = columns.iter().map(|_| Some(0)).collect::<Vec<_>>();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(zeros)]);
    ScalarValue::List(Arc::new(list))
}

/// The numbers of columns in `pg_attribute`, from 1.
fn numbers(table: &ReferenceTable, ids: &[u32]) -> ScalarValue {
    let positions = ids.iter().filter_map(|id| table.position(*id));
    smalls(positions.filter_map(|position| i16::try_from(position + 1).ok()))
}

/// Rows of `pg_class`: the indexes.
pub(super) fn classes(all: &[Arc<ReferenceTable>]) -> Vec<DescribedRow> {
    let of_table = |table: &Arc<ReferenceTable>| {
        let rows = indexes(table)
            .into_iter()
            .enumerate()
            .map(|(number, index)| {
                let values = vec![
                    ("oid", int(oid(table, ObjectKind::Index, number))),
                    ("relname", text(index.name)),
                    ("relkind", text("i")),
                    ("relam", int(BTREE_OID)),
                    ("relnatts", small(index.columns.len())),
                    ("relpersistence", text("p")),
                    ("relreplident", text("n")),
                    ("relispopulated", flag(true)),
                ];
                DescribedRow::new(table, values)
            });
        rows.collect::<Vec<_>>()
    };
    all.iter().flat_map(of_table).collect()
}

/// Rows of `pg_index`.
pub(super) fn index_rows(all: &[Arc<ReferenceTable>]) -> Vec<DescribedRow> {
    let of_table = |table: &Arc<ReferenceTable>| {
        let rows = indexes(table)
            .into_iter()
            .enumerate()
            .map(|(number, index)| {
                let mut values = vec![
                    ("indexrelid", int(oid(table, ObjectKind::Index, number))),
                    ("indnatts", small(index.columns.len())),
                    ("indnkeyatts", small(index.columns.len())),
                    ("indisunique", flag(index.key.is_some())),
                    (
                        "indisprimary",
                        flag(index.key.is_some_and(|key| key.is_primary)),
                    ),
                    ("indkey", numbers(table, index.columns)),
                    ("indcollation", zeros(index.columns, false)),
                    ("indclass", zeros(index.columns, false)),
                    ("indoption", zeros(index.columns, true)),
                ];
                let always = ["indimmediate", "indisvalid", "indisready", "indislive"];
                values.extend(always.map(|name| (name, flag(true))));
                DescribedRow::new(table, values)
            });
        rows.collect::<Vec<_>>()
    };
    all.iter().flat_map(of_table).collect()
}

/// What `pg_constraint` has for what a foreign key does.
fn action(action: ForeignKeyAction) -> ScalarValue {
    text(match action {
        ForeignKeyAction::Refuse => "a",
        ForeignKeyAction::Cascade => "c",
        ForeignKeyAction::SetNull => "n",
    })
}

/// Rows of `pg_constraint`.
pub(super) fn constraint_rows(all: &[Arc<ReferenceTable>]) -> Vec<DescribedRow> {
    let index_of = |table: &ReferenceTable, columns: &[u32]| {
        let found = table.keys.iter().position(|key| key.columns == columns);
        found.map_or(0, |number| oid(table, ObjectKind::Index, number))
    };
    let of_table = |table: &Arc<ReferenceTable>| {
        let rows = constraints(table, all)
            .into_iter()
            .map(|(number, constraint)| {
                let mut values = vec![
                    ("oid", int(oid(table, ObjectKind::Constraint, number))),
                    ("conname", text(constraint.name())),
                    ("convalidated", flag(true)),
                    ("conenforced", flag(true)),
                    ("conislocal", flag(true)),
                ];
                let mut parent = None;
                match constraint {
                    TableConstraint::Key(key) => values.extend([
                        ("contype", text(if key.is_primary { "p" } else { "u" })),
                        ("conkey", numbers(table, &key.columns)),
                        ("conindid", int(oid(table, ObjectKind::Index, number))),
                        ("connoinherit", flag(true)),
                    ]),
                    TableConstraint::ForeignKey(key, of) => {
                        parent = Some(of.name.clone());
                        values.extend([
                            ("contype", text("f")),
                            ("conkey", numbers(table, &key.columns)),
                            ("confkey", numbers(of, &key.parent_columns)),
                            ("conindid", int(index_of(of, &key.parent_columns))),
                            ("confupdtype", action(key.on_update)),
                            ("confdeltype", action(key.on_delete)),
                            ("confmatchtype", text("s")),
                            ("connoinherit", flag(true)),
                        ]);
                    }
                    TableConstraint::Check(check) => {
                        let named = columns_in(table, &check.condition).into_iter();
                        let named = named.filter_map(|column| i16::try_from(column + 1).ok());
                        values.extend([("contype", text("c")), ("conkey", smalls(named))]);
                    }
                }
                let row = DescribedRow::new(table, values);
                DescribedRow { parent, ..row }
            });
        rows.collect::<Vec<_>>()
    };
    all.iter().flat_map(of_table).collect()
}

/// Rows of `pg_attrdef`.
pub(super) fn default_rows(all: &[Arc<ReferenceTable>]) -> Vec<DescribedRow> {
    let of_table = |table: &Arc<ReferenceTable>| {
        let columns = table.columns.iter().enumerate();
        let rows = columns.filter_map(|(number, column)| {
            let values = vec![
                ("oid", int(oid(table, ObjectKind::Default, number))),
                ("adnum", small(number + 1)),
                ("adbin", text(column.default.as_ref()?)),
            ];
            Some(DescribedRow::new(table, values))
        });
        rows.collect::<Vec<_>>()
    };
    all.iter().flat_map(of_table).collect()
}

/// The columns of `pg_attribute` in which the library knows too little of reference tables.
pub(super) const ATTRIBUTES: [&str; 5] = [
    "atttypid",
    "attlen",
    "atttypmod",
    "atthasdef",
    "attidentity",
];

/// What these columns have, by `attname`.
pub(super) fn attribute_rows(all: &[Arc<ReferenceTable>]) -> Vec<DescribedRow> {
    let of_table = |table: &Arc<ReferenceTable>| {
        let rows = table.columns.iter().map(|column| {
            let (type_oid, modifier) = type_oid(column.kind);
            let identity = match column.identity {
                Some(IdentityKind::Always) => "a",
                Some(IdentityKind::ByDefault) => "d",
                None => "",
            };
            let values = vec![
                ("attname", text(&column.name)),
                ("atttypid", int(type_oid)),
                ("attlen", ScalarValue::Int16(Some(type_length(column.kind)))),
                ("atttypmod", int(modifier)),
                ("atthasdef", flag(column.default.is_some())),
                ("attidentity", text(identity)),
            ];
            DescribedRow::new(table, values)
        });
        rows.collect::<Vec<_>>()
    };
    all.iter().flat_map(of_table).collect()
}

/// Rows as a table: [`TABLE`], [`PARENT`], and `columns`, in which what a row does not name is
/// `absent`.
///
/// # Errors
/// If a value does not fit its column.
pub(super) fn table_of(
    columns: &[(String, DataType)],
    rows: &[DescribedRow],
    absent: impl Fn(&DataType) -> Result<ScalarValue>,
) -> Result<Arc<dyn TableProvider>> {
    let mut fields = vec![
        Field::new(TABLE, DataType::Utf8, false),
        Field::new(PARENT, DataType::Utf8, true),
    ];
    let names = rows.iter().map(|row| Some(row.table.as_str()));
    let parents = rows.iter().map(|row| row.parent.as_deref());
    let strings = |texts: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
    let mut arrays = vec![strings(names.collect()), strings(parents.collect())];
    for (name, kind) in columns {
        let values = rows.iter().map(|row| {
            let found = row.values.iter().find(|(column, _)| column == name);
            match found {
                Some((_, value)) => value.cast_to(kind),
                None => absent(kind),
            }
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        arrays.push(if values.is_empty() {
            new_empty_array(kind)
        } else {
            ScalarValue::iter_to_array(values)?
        });
        fields.push(Field::new(name, kind.clone(), true).with_metadata(vector_mark(name)));
    }
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}
