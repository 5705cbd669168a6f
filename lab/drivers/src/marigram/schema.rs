//! Marigram's SQL: its tables, and its dialect of the questions.

use crate::sql::{Dialect, Last, group_by_expressions, rfc3339};
use marigram_lab::data::{FieldKind, SECOND_NS, Table, TagKind};
use marigram_lab::target::Options;

/// Marigram with integer tags that are integers.
pub const DIALECT: Dialect = Dialect {
    time: "time",
    literal: |ns| format!("'{}Z'", rfc3339(ns, 9)),
    bucket,
    last: Last::DistinctOn,
    integer_tags: true,
    group_by: group_by_expressions,
};

/// Marigram as line protocol fills it: every tag is text.
pub const DIALECT_OF_TEXT_TAGS: Dialect = Dialect {
    integer_tags: false,
    ..DIALECT
};

fn bucket(ns: i64) -> String {
    let width = if ns % SECOND_NS == 0 {
        format!("INTERVAL '{} seconds'", ns / SECOND_NS)
    } else {
        format!("INTERVAL '{ns} nanoseconds'")
    };
    // Buckets are counted from a Monday of 2000 unless told otherwise; the same where they divide
    // a day.
    if (86_400 * SECOND_NS) % ns == 0 {
        format!("time_bucket({width}, time)")
    } else {
        format!("time_bucket({width}, time, TIMESTAMP '1970-01-01')")
    }
}

/// `CREATE TABLE` for `table` with these settings; integer tags are text unless `integer_tags`.
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
    use marigram_lab::data::{Field, Tag};
    use std::sync::Arc;

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
        let table = Table {
            name: "t".to_owned(),
            tags: vec![Tag {
                name: "id".to_owned(),
                kind: TagKind::Integer,
            }],
            key: 0,
            fields: vec![Field {
                name: "x".to_owned(),
                kind: FieldKind::F32,
            }],
            series: Arc::new(Vec::new()),
        };
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
