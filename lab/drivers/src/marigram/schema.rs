//! Marigram's SQL: its tables, and its dialect of questions.

use crate::sql::{self, Dialect, Last};
use crate::time::rfc3339;
use marigram_lab::data::{FieldKind, SECOND_NS, Table, TagKind};
use marigram_lab::question::{Ask, Question};
use marigram_lab::target::Options;

/// Marigram with integer tags as integers.
pub const DIALECT: Dialect = Dialect {
    time: "time",
    literal: |ns| format!("'{}Z'", rfc3339(ns, 9)),
    bucket,
    last: Last::DistinctOn,
    integer_tags: true,
    aggregate: sql::aggregate,
};

/// Marigram as line protocol writes it: every tag is text.
pub const TEXT_TAG_DIALECT: Dialect = Dialect {
    integer_tags: false,
    ..DIALECT
};

fn bucket(ns: i64) -> String {
    let width = if ns % SECOND_NS == 0 {
        format!("INTERVAL '{} seconds'", ns / SECOND_NS)
    } else {
        format!("INTERVAL '{ns} nanoseconds'")
    };
    // By default, buckets count from a Monday of 2000; buckets that divide a day are then the same.
    if (86_400 * SECOND_NS) % ns == 0 {
        format!("time_bucket({width}, time)")
    } else {
        format!("time_bucket({width}, time, TIMESTAMP '1970-01-01')")
    }
}

/// Why Marigram cannot answer `question`; `None` if it can.
pub fn cannot(tables: &[Table], question: &Question) -> Option<String> {
    match &question.ask {
        Ask::Sql(_) => None,
        Ask::Select(select) => sql::cannot(tables.get(select.table)?, select),
    }
}

/// `CREATE TABLE` for `table` with these settings. Integer tags are text unless `integer_tags`.
pub fn create(table: &Table, integer_tags: bool, options: &Options) -> String {
    let tags = table.tags.iter().map(|tag| {
        let kind = match tag.kind {
            TagKind::Integer if integer_tags => "BIGINT",
            _ => "STRING",
        };
        format!("{} {kind} TAG", tag.name)
    });
    let fields = table.fields.iter().map(|field| {
        let kind = match field.kind {
            FieldKind::Bool => "BOOLEAN",
            FieldKind::I32 => "INT",
            FieldKind::I64 => "BIGINT",
            FieldKind::F32 => "FLOAT",
            FieldKind::F64 => "DOUBLE",
            FieldKind::Text => "STRING",
        };
        format!("{} {kind} FIELD", field.name)
    });
    let columns: Vec<String> = ["time TIMESTAMP".to_owned()]
        .into_iter()
        .chain(tags)
        .chain(fields)
        .collect();
    let set = options.iter().map(|(name, value)| {
        let value = value.replace('\'', "''");
        format!("{name} = '{value}'")
    });
    let set: Vec<String> = set.collect();
    let with = match set.as_slice() {
        [] => String::new(),
        set => format!(" WITH ({})", set.join(", ")),
    };
    let (name, columns) = (&table.name, columns.join(", "));
    format!("CREATE TABLE IF NOT EXISTS {name} ({columns}){with}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_divide_a_day_need_no_origin() {
        assert_eq!(
            bucket(60 * SECOND_NS),
            "time_bucket(INTERVAL '60 seconds', time)"
        );
        assert_eq!(
            bucket(7_500_000_000),
            "time_bucket(INTERVAL '7500000000 nanoseconds', time)"
        );
        assert_eq!(
            bucket(7 * 86_400 * SECOND_NS),
            "time_bucket(INTERVAL '604800 seconds', time, TIMESTAMP '1970-01-01')"
        );
    }

    #[test]
    fn integer_tags_are_text_for_line_protocol() {
        let id = ("id", TagKind::Integer);
        let table = Table::new("t", &[id], 0, &[("x", FieldKind::F32)], Vec::new());
        let start = "CREATE TABLE IF NOT EXISTS t (time TIMESTAMP, id";
        let end = "TAG, x FLOAT FIELD)";
        let none = Options::new();
        assert_eq!(create(&table, true, &none), format!("{start} BIGINT {end}"));
        assert_eq!(
            create(&table, false, &none),
            format!("{start} STRING {end}")
        );
        let set = [("page_size", "64KiB"), ("encoding", "it's")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let with = "WITH (encoding = 'it''s', page_size = '64KiB')";
        let created = create(&table, true, &set.into_iter().collect());
        assert_eq!(created, format!("{start} BIGINT {end} {with}"));
    }
}
