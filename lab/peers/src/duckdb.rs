//! DuckDB, as its Python package provides it.

use crate::install::{Peer, python_package};
use crate::python::{PythonPackage, PythonTarget, Size};
use marigram_lab::data::{FieldKind, Table};
use marigram_lab::target::Kind;
use marigram_lab_drivers::{cells, sql};

/// DuckDB in the list of peers.
pub const PEER: Peer = Peer {
    name: "duckdb",
    about: "DuckDB, from PyPI, runs in its client's process",
    install: |home| python_package(home, "duckdb", &["duckdb", "pyarrow"]),
    server: None,
};

/// The driver, for the command line.
pub const KIND: Kind = Kind {
    name: "duckdb",
    about: "DuckDB: Arrow batches and SQL within a Python process",
    peer: true,
    make: |settings| PythonTarget::make(&PACKAGE, settings),
};

const PACKAGE: PythonPackage = PythonPackage {
    package: "duckdb",
    product: "DuckDB",
    path: "INSERT … SELECT of an Arrow table, a transaction a batch; SQL, answers as Arrow tables",
    durability: "fsync of its log before acknowledgement",
    notes: &[
        "A plain table in the order of arrival; it does not replace rows that are sent twice, \
            which a primary key would do at a high price. Settling is CHECKPOINT.",
    ],
    create,
    dialect: DIALECT,
    settle: |_| vec!["CHECKPOINT".to_owned()],
    size: Size::Folder,
};

const DIALECT: sql::Dialect = sql::Dialect {
    time: "ts",
    literal: |ns| format!("make_timestamp_ns({ns})"),
    bucket: |window_ns| format!("make_timestamp_ns(epoch_ns(ts) // {window_ns} * {window_ns})"),
    // The fastest of its forms, and correct for nulls.
    last: sql::Last::Clause(|key, time| {
        format!("QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {time} DESC) = 1")
    }),
    integer_tags: true,
    aggregate: sql::aggregate,
};

/// `CREATE TABLE …`: columns are the tags, the time, the fields.
fn create(table: &Table) -> String {
    let column = |name: &str, kind| {
        let kind = match kind {
            FieldKind::Bool => "BOOLEAN",
            FieldKind::I32 => "INTEGER",
            FieldKind::I64 => "BIGINT",
            FieldKind::F32 => "FLOAT",
            FieldKind::F64 => "DOUBLE",
            FieldKind::Text => "VARCHAR",
        };
        format!("{name} {kind}")
    };
    let tags = table.tags.iter().enumerate();
    let tags = tags.map(|(index, tag)| column(&tag.name, cells::tag_type(table, index)));
    let fields = table.fields.iter();
    let fields = fields.map(|field| column(&field.name, field.kind));
    let columns: Vec<String> = tags
        .chain(["ts TIMESTAMP_NS".to_owned()])
        .chain(fields)
        .collect();
    format!("CREATE TABLE {} ({})", table.name, columns.join(", "))
}
