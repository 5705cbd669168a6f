//! [`Select`] in `InfluxQL`.

use crate::text_tags;
use marigram_lab::data::{FieldKind, Table};
use marigram_lab::question::{Aggregate, Devices, Select, Selection};

/// An end of time (2100-01-01, nanoseconds). Without an end, windows end now, and later rows are
/// missing.
const END_NS: i64 = 4_102_444_800_000_000_000;

/// Why the language cannot express `select`.
pub(super) fn cannot(table: &Table, select: &Select) -> Option<String> {
    let is_number =
        |field: usize| !matches!(table.fields[field].kind, FieldKind::Bool | FieldKind::Text);
    if let Some((field, _)) = select.above
        && !is_number(field)
    {
        return Some("InfluxQL compares numbers only by size".to_owned());
    }
    match &select.what {
        Selection::Last(_) if select.descending => {
            Some("InfluxQL orders the rows of a device, not the devices' last rows".to_owned())
        }
        Selection::Rows(_) | Selection::Last(_) => None,
        Selection::Aggregates(aggregates) => {
            let counts = |(function, field): &(Aggregate, usize)| {
                *function == Aggregate::Count || is_number(*field)
            };
            if !aggregates.iter().all(counts) {
                return Some("InfluxQL aggregates numbers only".to_owned());
            }
            let groups_in_order = select.descending && select.bucket_ns.is_some();
            (groups_in_order && !select.by.is_empty())
                .then(|| "InfluxQL orders the windows of a group, not all windows".to_owned())
        }
    }
}

/// The statement for `select` on `table`. With `nulls`, it selects all fields, so that rows appear
/// even if the requested fields are null.
///
/// Rows and last rows are grouped by the key, so that it is not sent with every row. Rows newest
/// first are not grouped, because only the rows of a group would be in order.
pub(super) fn statement(table: &Table, select: &Select, nulls: bool) -> String {
    let key = quoted(&table.tags[table.key].name);
    let from = quoted(&table.name);
    let fields = |wanted: &[usize]| {
        let further = (0..table.fields.len()).filter(|field| nulls && !wanted.contains(field));
        let all = wanted.iter().copied().chain(further);
        let all: Vec<String> = all.map(|field| quoted(&table.fields[field].name)).collect();
        all.join(", ")
    };
    match &select.what {
        Selection::Rows(wanted) => {
            let filter = conditions(table, select, false);
            let fields = fields(wanted);
            if select.descending {
                format!("SELECT {key}, {fields} FROM {from}{filter} ORDER BY time DESC")
            } else {
                format!("SELECT {fields} FROM {from}{filter} GROUP BY {key}")
            }
        }
        Selection::Last(wanted) => {
            let filter = conditions(table, select, false);
            match wanted.as_slice() {
                [field] if !nulls => {
                    let field = quoted(&table.fields[*field].name);
                    format!("SELECT last({field}) FROM {from}{filter} GROUP BY {key}")
                }
                // Not `last(a), last(b)`, which loses the time and may take the values from
                // different rows.
                _ => format!(
                    "SELECT {} FROM {from}{filter} GROUP BY {key} ORDER BY time DESC LIMIT 1",
                    fields(wanted)
                ),
            }
        }
        Selection::Aggregates(aggregates) => {
            let value = |(function, field): &(Aggregate, usize)| {
                let field = quoted(&table.fields[*field].name);
                match function {
                    Aggregate::Count => format!("count({field})"),
                    Aggregate::Sum => format!("sum({field})"),
                    Aggregate::Avg => format!("mean({field})"),
                    Aggregate::Min => format!("min({field})"),
                    Aggregate::Max => format!("max({field})"),
                    // Not `spread`, which first collects all values and takes several times as
                    // long.
                    Aggregate::Spread => format!("max({field}) - min({field})"),
                }
            };
            let values: Vec<String> = aggregates.iter().map(value).collect();
            let mut groups: Vec<String> = select
                .by
                .iter()
                .map(|tag| quoted(&table.tags[*tag].name))
                .collect();
            groups.extend(select.bucket_ns.map(|window| format!("time({window}ns)")));
            let groups = match groups.as_slice() {
                [] => String::new(),
                _ => format!(" GROUP BY {}", groups.join(", ")),
            };
            let windows = match (select.bucket_ns, select.descending) {
                (None, _) => "",
                (Some(_), false) => " fill(none)",
                (Some(_), true) => " fill(none) ORDER BY time DESC",
            };
            let filter = conditions(table, select, select.bucket_ns.is_some());
            format!(
                "SELECT {} FROM {from}{filter}{groups}{windows}",
                values.join(", ")
            )
        }
    }
}

/// A query for the newest row of the first device: its answer depends on the data and is cheap.
pub(super) fn newest(table: &Table) -> String {
    let first = table
        .series
        .first()
        .and_then(|tags| tags[table.key].clone());
    let select = Select {
        devices: first.map_or(Devices::All, |name| Devices::In(table.key, vec![name])),
        ..Select::all(0, Selection::Last((0..table.fields.len()).collect()))
    };
    statement(table, &select, true)
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// ` WHERE …`, or an empty text.
fn conditions(table: &Table, select: &Select, needs_end: bool) -> String {
    let mut all: Vec<String> = Vec::new();
    if let Some((tag, values)) = text_tags::chosen(table, &select.devices) {
        let tag = quoted(&table.tags[tag].name);
        all.push(match values.as_slice() {
            [one] => format!(
                "{tag} = '{}'",
                one.replace('\\', "\\\\").replace('\'', "\\'")
            ),
            // As fast as `OR` for a few values, and several times faster for hundreds.
            _ => format!("{tag} =~ /^({})$/", text_tags::any_of(&values)),
        });
    }
    all.extend(select.from_ns.map(|ns| format!("time >= {ns}")));
    let to_ns = select.to_ns.or(needs_end.then_some(END_NS));
    all.extend(to_ns.map(|ns| format!("time < {ns}")));
    if let Some((field, limit)) = select.above {
        all.push(format!("{} > {limit}", quoted(&table.fields[field].name)));
    }
    if all.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", all.join(" AND "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn table() -> Table {
        sample::table(3)
    }

    fn text(select: Select) -> String {
        statement(&table(), &select, false)
    }

    #[test]
    fn rows_are_grouped_by_device_unless_order_is_asked_for() {
        let rows = Select::all(0, Selection::Rows(vec![0, 1]));
        assert_eq!(
            text(rows.clone()),
            r#"SELECT "celsius", "ok" FROM "t" GROUP BY "dev""#
        );
        let newest_first = Select {
            devices: Devices::In(0, vec!["it's".to_owned()]),
            from_ns: Some(5),
            to_ns: Some(9),
            above: Some((0, -1.5)),
            descending: true,
            ..rows.clone()
        };
        assert_eq!(
            text(newest_first),
            r#"SELECT "dev", "celsius", "ok" FROM "t" WHERE "dev" = 'it\'s' AND time >= 5 AND time < 9 AND "celsius" > -1.5 ORDER BY time DESC"#
        );
        let one = Select {
            what: Selection::Rows(vec![1]),
            devices: Devices::Below(1, 2),
            ..rows
        };
        assert_eq!(
            statement(&table(), &one, true),
            r#"SELECT "ok", "celsius", "note" FROM "t" WHERE "site" =~ /^(0|1)$/ GROUP BY "dev""#
        );
    }

    #[test]
    fn last_rows_keep_the_time_of_the_row() {
        assert_eq!(
            text(Select::all(0, Selection::Last(vec![0]))),
            r#"SELECT last("celsius") FROM "t" GROUP BY "dev""#
        );
        assert_eq!(
            text(Select::all(0, Selection::Last(vec![0, 1]))),
            r#"SELECT "celsius", "ok" FROM "t" GROUP BY "dev" ORDER BY time DESC LIMIT 1"#
        );
        assert_eq!(
            newest(&table()),
            r#"SELECT "celsius", "ok", "note" FROM "t" WHERE "dev" = 'a' GROUP BY "dev" ORDER BY time DESC LIMIT 1"#
        );
    }

    #[test]
    fn aggregates_group_by_tags_and_windows() {
        let aggregates = Selection::Aggregates(vec![
            (Aggregate::Count, 0),
            (Aggregate::Avg, 0),
            (Aggregate::Spread, 0),
        ]);
        let all = Select::all(0, aggregates);
        assert_eq!(
            text(all.clone()),
            r#"SELECT count("celsius"), mean("celsius"), max("celsius") - min("celsius") FROM "t""#
        );
        let windows = Select {
            what: Selection::Aggregates(vec![(Aggregate::Sum, 0)]),
            by: vec![1],
            bucket_ns: Some(60_000_000_000),
            ..all
        };
        assert_eq!(
            text(windows.clone()),
            r#"SELECT sum("celsius") FROM "t" WHERE time < 4102444800000000000 GROUP BY "site", time(60000000000ns) fill(none)"#
        );
        let newest_first = Select {
            descending: true,
            by: Vec::new(),
            to_ns: Some(7),
            ..windows
        };
        assert_eq!(
            text(newest_first),
            r#"SELECT sum("celsius") FROM "t" WHERE time < 7 GROUP BY time(60000000000ns) fill(none) ORDER BY time DESC"#
        );
    }

    #[test]
    fn what_influxql_cannot_say_is_declined() {
        let cannot = |select: Select| cannot(&table(), &select).is_some();
        let aggregates =
            |function, field| Select::all(0, Selection::Aggregates(vec![(function, field)]));
        assert!(!cannot(aggregates(Aggregate::Count, 2)));
        assert!(!cannot(aggregates(Aggregate::Max, 0)));
        assert!(cannot(aggregates(Aggregate::Max, 1)));
        assert!(cannot(aggregates(Aggregate::Max, 2)));
        assert!(cannot(Select {
            above: Some((1, 0.5)),
            ..Select::all(0, Selection::Rows(vec![0]))
        }));
        assert!(cannot(Select {
            by: vec![0],
            bucket_ns: Some(1),
            descending: true,
            ..aggregates(Aggregate::Max, 0)
        }));
    }
}
