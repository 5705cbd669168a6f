//! Tables and dialect of ClickHouse's SQL.

use super::row_binary::optional_tags;
use marigram_lab::data::{FieldKind, SECOND_NS, Table, TagKind};
use marigram_lab_drivers::sql;

/// ClickHouse's SQL.
pub const DIALECT: sql::Dialect = sql::Dialect {
    time: "ts",
    literal: |ns| format!("fromUnixTimestamp64Nano({ns}, 'UTC')"),
    bucket: |window_ns| {
        let (count, unit) = match window_ns {
            ns if ns % SECOND_NS == 0 => (ns / SECOND_NS, "SECOND"),
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "MILLISECOND"),
            ns => (ns, "NANOSECOND"),
        };
        format!("toStartOfInterval(ts, INTERVAL {count} {unit})")
    },
    // Several times as fast as argMax over tuples, which nulls would make necessary.
    last: sql::Last::Clause(|key, time| {
        format!("ORDER BY {key} DESC, {time} DESC LIMIT 1 BY {key}")
    }),
    integer_tags: true,
    aggregate: sql::aggregate,
};

/// `CREATE TABLE …`: columns are the tags, the time, the fields.
#[must_use]
pub fn create(table: &Table) -> String {
    let mut columns = Vec::new();
    for (tag, is_optional) in table.tags.iter().zip(optional_tags(table)) {
        let nullable = |kind: &str| {
            if is_optional {
                format!("Nullable({kind})")
            } else {
                kind.to_owned()
            }
        };
        columns.push(match tag.kind {
            TagKind::Text => {
                format!(
                    "{} LowCardinality({}) CODEC(ZSTD(1))",
                    tag.name,
                    nullable("String")
                )
            }
            TagKind::Integer => format!("{} {} CODEC(T64, ZSTD(1))", tag.name, nullable("Int64")),
        });
    }
    columns.push("ts DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1))".to_owned());
    for field in &table.fields {
        let (kind, codec) = match field.kind {
            FieldKind::Bool => ("Bool", "ZSTD(1)"),
            FieldKind::I32 => ("Int32", "T64, ZSTD(1)"),
            FieldKind::I64 => ("Int64", "T64, ZSTD(1)"),
            FieldKind::F32 => ("Float32", "ZSTD(1)"),
            FieldKind::F64 => ("Float64", "ZSTD(1)"),
            FieldKind::Text => ("String", "ZSTD(1)"),
        };
        columns.push(format!("{} Nullable({kind}) CODEC({codec})", field.name));
    }
    format!(
        "CREATE TABLE {} ({}) ENGINE = ReplacingMergeTree ORDER BY ({}, ts)",
        table.name,
        columns.join(", "),
        table.tags[table.key].name
    )
}

/// The statement that merges all parts of `table`.
#[must_use]
pub fn optimize(table: &Table) -> String {
    format!("OPTIMIZE TABLE {} FINAL", table.name)
}

/// A query for the bytes of all tables of `database`.
pub(super) fn bytes(database: &str) -> String {
    format!("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '{database}'")
}
