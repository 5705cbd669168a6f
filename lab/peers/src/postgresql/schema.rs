//! Tables and SQL of PostgreSQL and TimescaleDB.

use marigram_lab::data::{Field, FieldKind, Table, TagKind};
use marigram_lab::question::Aggregate;
use marigram_lab_drivers::sql::{self, Dialect, Last};
use marigram_lab_drivers::time::rfc3339;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// PostgreSQL as it is.
    Plain,
    /// With the extension TimescaleDB.
    Timescale,
}

const PLAIN: Dialect = Dialect {
    time: "time",
    literal: |ns| format!("'{}Z'", rfc3339(ns, 6)),
    bucket: |ns| format!("date_bin('{}', time, {EPOCH})", interval(ns)),
    last: Last::DistinctOn,
    integer_tags: true,
    aggregate,
};

const TIMESCALE: Dialect = Dialect {
    bucket: |ns| format!("time_bucket('{}', time, {EPOCH})", interval(ns)),
    ..PLAIN
};

const EPOCH: &str = "TIMESTAMPTZ '1970-01-01T00:00:00Z'";

/// Bytes of all tables and their indexes, without the catalog's and the write-ahead log.
pub(super) const DISK_BYTES: &str = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint \
     FROM pg_class WHERE relkind = 'r' \
     AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)";

fn interval(ns: i64) -> String {
    format!("{} microseconds", ns / 1_000)
}

/// As [`sql::aggregate`], but with sums in double precision: PostgreSQL sums single precision in single
/// precision, in which a large sum is wrong.
fn aggregate(function: Aggregate, field: &Field) -> String {
    match (function, field.kind) {
        (Aggregate::Sum, FieldKind::F32) => format!("sum({}::float8)", field.name),
        _ => sql::aggregate(function, field),
    }
}

impl Flavour {
    /// The extension that it needs.
    pub(super) fn extension(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Timescale => Some("timescaledb"),
        }
    }

    /// Its SQL.
    pub(super) fn dialect(self) -> &'static Dialect {
        match self {
            Self::Plain => &PLAIN,
            Self::Timescale => &TIMESCALE,
        }
    }

    /// Statements that create `table` with its index.
    pub(super) fn create(self, table: &Table) -> String {
        let tags = table.tags.iter().map(|tag| {
            let kind = match tag.kind {
                TagKind::Integer => "bigint",
                TagKind::Text => "text",
            };
            format!("{} {kind}", tag.name)
        });
        let fields = table.fields.iter().map(|field| {
            let kind = match field.kind {
                FieldKind::Bool => "boolean",
                FieldKind::I32 => "integer",
                FieldKind::I64 => "bigint",
                FieldKind::F32 => "real",
                FieldKind::F64 => "double precision",
                FieldKind::Text => "text",
            };
            format!("{} {kind}", field.name)
        });
        let columns: Vec<String> = ["time timestamptz NOT NULL".to_owned()]
            .into_iter()
            .chain(tags)
            .chain(fields)
            .collect();
        let (name, key) = (&table.name, &table.tags[table.key].name);
        let hypertable = match self {
            Self::Plain => String::new(),
            Self::Timescale => {
                let tags: Vec<&str> = table.tags.iter().map(|tag| tag.name.as_str()).collect();
                format!(
                    "SELECT create_hypertable('{name}', 'time', \
                     chunk_time_interval => INTERVAL '1 day', create_default_indexes => false, \
                     if_not_exists => true); \
                     ALTER TABLE {name} SET (timescaledb.compress, \
                     timescaledb.compress_segmentby = '{}', \
                     timescaledb.compress_orderby = 'time DESC'); ",
                    tags.join(", ")
                )
            }
        };
        format!(
            "CREATE TABLE IF NOT EXISTS {name} ({}); {hypertable}\
             CREATE INDEX IF NOT EXISTS {name}_{key}_time ON {name} ({key}, time DESC)",
            columns.join(", ")
        )
    }

    /// Statements, to be run one by one, that bring `table` into its final form.
    pub(super) fn settle(self, table: &Table) -> Vec<String> {
        let name = &table.name;
        let vacuum = format!("VACUUM (ANALYZE) {name}");
        match self {
            Self::Plain => vec![vacuum],
            Self::Timescale => {
                let compress =
                    format!("SELECT compress_chunk(c, true) FROM show_chunks('{name}') c");
                vec![compress, vacuum]
            }
        }
    }

    /// For [`marigram_lab::target::Facts::notes`]: its tables.
    pub(super) fn notes(self) -> &'static str {
        match self {
            Self::Plain => {
                "Index on (device, time). Settling is VACUUM ANALYZE and CHECKPOINT. Bytes on disk \
                 are those of tables and indexes, without the write-ahead log."
            }
            Self::Timescale => {
                "Chunks of a day, index on (device, time). Settling compresses all chunks by \
                 series, then VACUUM ANALYZE and CHECKPOINT. Bytes on disk are those of tables and \
                 indexes, without the write-ahead log."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_lab::question::{Select, Selection};

    fn table() -> Table {
        let tags = [("id", TagKind::Integer), ("site", TagKind::Text)];
        Table::new("t", &tags, 0, &[("x", FieldKind::F32)], Vec::new())
    }

    #[test]
    fn tables_have_types_and_an_index() {
        assert_eq!(
            Flavour::Plain.create(&table()),
            "CREATE TABLE IF NOT EXISTS t (time timestamptz NOT NULL, id bigint, site text, \
             x real); CREATE INDEX IF NOT EXISTS t_id_time ON t (id, time DESC)"
        );
        let hypertable = Flavour::Timescale.create(&table());
        assert!(hypertable.contains("compress_segmentby = 'id, site'"));
    }

    #[test]
    fn windows_begin_at_multiples_and_sums_are_wide() {
        let select = Select {
            from_ns: Some(1_500_000_000),
            bucket_ns: Some(60_000_000_000),
            ..Select::all(0, Selection::Aggregates(vec![(Aggregate::Sum, 0)]))
        };
        let bucket = "date_bin('60000000 microseconds', time, TIMESTAMPTZ '1970-01-01T00:00:00Z')";
        assert_eq!(
            sql::statement(&PLAIN, &table(), &select),
            format!(
                "SELECT {bucket}, sum(x::float8) FROM t \
                 WHERE time >= '1970-01-01T00:00:01.500000Z' GROUP BY {bucket}"
            )
        );
    }
}
