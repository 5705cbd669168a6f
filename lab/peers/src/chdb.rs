//! ClickHouse as a library, as the Python package `chdb` provides it, with the SQL of
//! [`crate::clickhouse`].

use crate::clickhouse::{DIALECT, TABLES, create, optimize};
use crate::install::{Peer, python_package};
use crate::python::{PythonPackage, PythonTarget, Size};
use marigram_lab::target::Kind;

/// chdb in the list of peers.
pub const PEER: Peer = Peer {
    name: "chdb",
    about: "ClickHouse as a library, from PyPI, runs in its client's process",
    install: |home| python_package(home, "chdb", &["chdb"]),
    server: None,
};

/// The driver, for the command line.
pub const KIND: Kind = Kind {
    name: "chdb",
    about: "ClickHouse as a library: Arrow batches and SQL within a Python process",
    peer: true,
    make: |settings| PythonTarget::make(&PACKAGE, settings),
};

const NOTES: &str = "Batches go in one at a time: the package mixes up those of threads that insert \
                     at once.";

const PACKAGE: PythonPackage = PythonPackage {
    package: "chdb",
    product: "chdb (ClickHouse)",
    path: "INSERT … SELECT of an Arrow table; SQL, answers as Arrow tables",
    durability: "written, not synced (default)",
    notes: &[TABLES, NOTES],
    create,
    dialect: DIALECT,
    settle: |tables| tables.iter().map(optimize).collect(),
    // Parts that were merged away stay on the disk for minutes.
    size: Size::Sql(
        "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'lab'",
    ),
};
