//! ClickHouse as a library, as the Python package `chdb` has it: the same SQL as [`super::clickhouse`].

use super::clickhouse::{TABLES, create, optimize, statement};
use super::python::{Backend, Embedded, Size};
use marigram_lab::target::Kind;

/// chdb.
pub const KIND: Kind = Kind {
    name: "chdb",
    about: "ClickHouse as a library: Arrow batches and SQL within a Python process",
    peer: true,
    make: |settings| Embedded::make(&BACKEND, settings),
};

/// For [`Backend::notes`], behind those on the tables.
const NOTES: &str = "Batches go in one at a time: the package mixes up those of threads that insert \
                     at once.";

const BACKEND: Backend = Backend {
    package: "chdb",
    product: "chdb (ClickHouse)",
    path: "INSERT … SELECT of an Arrow table; SQL, answers as Arrow tables",
    durability: "written, not synced (default)",
    notes: &[TABLES, NOTES],
    create,
    statement,
    settle: |tables| tables.iter().map(optimize).collect(),
    // Parts that were merged away stay on the disk for minutes.
    size: Size::Sql(
        "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'lab'",
    ),
};
