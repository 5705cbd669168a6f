//! DuckDB, as its Python package has it.

use super::python::{Backend, Embedded, Size};
use marigram_lab::data::{FieldKind, Table, TagKind};
use marigram_lab::question::{Select, What};
use marigram_lab::target::Kind;
use marigram_lab_drivers::{cells, sql};

/// DuckDB.
pub const KIND: Kind = Kind {
    name: "duckdb",
    about: "DuckDB: Arrow batches and SQL within a Python process",
    peer: true,
    make: |settings| Embedded::make(&BACKEND, settings),
};

const BACKEND: Backend = Backend {
    package: "duckdb",
    product: "DuckDB",
    path: "INSERT … SELECT of an Arrow table, a transaction a batch; SQL, answers as Arrow tables",
    durability: "fsync of its log before acknowledgement",
    notes: &[
        "A plain table in the order of arrival; it does not replace rows that are sent twice, \
            which a primary key would do at a high price. Settling is CHECKPOINT.",
    ],
    create,
    statement,
    settle: |_| vec!["CHECKPOINT".to_owned()],
    size: Size::Folder,
};

/// Its SQL; newest rows are asked for by [`statement`] itself.
const DIALECT: sql::Dialect = sql::Dialect {
    time: "ts",
    literal: |ns| format!("make_timestamp_ns({ns})"),
    bucket: |window_ns| format!("make_timestamp_ns(epoch_ns(ts) // {window_ns} * {window_ns})"),
    last: sql::Last::ArgMax("arg_max_null"),
    integer_tags: true,
    group_by: sql::group_by_expressions,
};

/// `CREATE TABLE …`: columns are the tags, the time, the fields.
fn create(table: &Table) -> String {
    let tag = |index: usize| match table.tags[index].kind {
        TagKind::Text => "VARCHAR",
        TagKind::Integer if cells::is_i32(table, index) => "INTEGER",
        TagKind::Integer => "BIGINT",
    };
    let field = |kind| match kind {
        FieldKind::Bool => "BOOLEAN",
        FieldKind::I32 => "INTEGER",
        FieldKind::I64 => "BIGINT",
        FieldKind::F32 => "FLOAT",
        FieldKind::F64 => "DOUBLE",
        FieldKind::Text => "VARCHAR",
    };
    let tags = table.tags.iter().enumerate();
    let tags = tags.map(|(index, each)| format!("{} {}", each.name, tag(index)));
    let fields = table
        .fields
        .iter()
        .map(|each| format!("{} {}", each.name, field(each.kind)));
    let columns: Vec<String> = tags
        .chain(["ts TIMESTAMP_NS".to_owned()])
        .chain(fields)
        .collect();
    format!("CREATE TABLE {} ({})", table.name, columns.join(", "))
}

/// The statement for `select`.
fn statement(table: &Table, select: &Select) -> String {
    let What::Last(fields) = &select.what else {
        return sql::statement(&DIALECT, table, select);
    };
    // The fastest of its forms, and right about nulls.
    let rows = Select {
        what: What::Rows(fields.clone()),
        descending: false,
        ..select.clone()
    };
    format!(
        "{} QUALIFY row_number() OVER (PARTITION BY {} ORDER BY ts DESC) = 1",
        sql::statement(&DIALECT, table, &rows),
        table.tags[table.key].name
    )
}
