//! [`Select`] in SQL: one writer for the databases that speak it, told apart by a [`Dialect`].

mod time;

pub use time::{parse_rfc3339, rfc3339};

use marigram_lab::data::{Field, FieldKind, Table, TagKind};
use marigram_lab::question::{Aggregate, Devices, Select, What};

/// Where the SQL of a database is its own.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// Name of the time column.
    pub time: &'static str,
    /// A time of so many nanoseconds as a literal that compares with the time column.
    pub literal: fn(i64) -> String,
    /// The start of the window of so many nanoseconds that the time column falls into.
    pub bucket: fn(i64) -> String,
    /// How the newest row of each device is asked for.
    pub last: Last,
    /// Whether integer tags are columns of integers, not of text.
    pub integer_tags: bool,
    /// `GROUP BY` clause of a query, given the expressions; empty where grouping is implied.
    pub group_by: fn(&[String], Option<i64>) -> String,
}

/// How the newest row of each device is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// `SELECT DISTINCT ON (key) … ORDER BY key, time DESC`.
    DistinctOn,
    /// `… LATEST ON time PARTITION BY key` (QuestDB).
    LatestOn,
    /// `argMax(field, time) … GROUP BY key` with this function, which must not pass over nulls:
    /// `arg_max_null`.
    ArgMax(&'static str),
    /// The same for a function that passes over nulls: `argMax(tuple(field), time).1`.
    ArgMaxTuple(&'static str),
}

/// `GROUP BY a, b`.
#[must_use]
pub fn group_by_expressions(expressions: &[String], _bucket_ns: Option<i64>) -> String {
    if expressions.is_empty() {
        String::new()
    } else {
        format!(" GROUP BY {}", expressions.join(", "))
    }
}

/// Why no SQL can be written for `select`; `None` when it can.
#[must_use]
pub fn cannot(table: &Table, select: &Select) -> Option<String> {
    let is_text = |index: usize| table.fields[index].kind == FieldKind::Text;
    let aggregates = match &select.what {
        What::Aggregates(aggregates) => aggregates.as_slice(),
        What::Rows(_) | What::Last(_) => &[],
    };
    let arithmetic = aggregates
        .iter()
        .any(|(function, index)| *function != Aggregate::Count && is_text(*index));
    let above = select.above.is_some_and(|(index, _)| is_text(index));
    (arithmetic || above).then(|| "text is no number to SQL".to_owned())
}

/// A statement for `select` on `table`.
#[must_use]
pub fn statement(dialect: &Dialect, table: &Table, select: &Select) -> String {
    statement_with(dialect, table, select, aggregate)
}

/// A statement for `select` on `table`, its aggregates written by `aggregate`.
#[must_use]
pub fn statement_with(
    dialect: &Dialect,
    table: &Table,
    select: &Select,
    aggregate: fn(Aggregate, &Field) -> String,
) -> String {
    let field = |index: &usize| table.fields[*index].name.clone();
    let key = &table.tags[table.key].name;
    let time = dialect.time;
    let filter = conditions(dialect, table, select);
    let descending = if select.descending { " DESC" } else { "" };
    match &select.what {
        What::Rows(fields) => {
            let columns = columns(key, time, fields.iter().map(field));
            let order = if select.descending {
                format!(" ORDER BY {time} DESC")
            } else {
                String::new()
            };
            format!("SELECT {columns} FROM {}{filter}{order}", table.name)
        }
        What::Last(fields) => match dialect.last {
            Last::DistinctOn => format!(
                "SELECT DISTINCT ON ({key}) {} FROM {}{filter} ORDER BY {key}, {time} DESC",
                columns(key, time, fields.iter().map(field)),
                table.name
            ),
            Last::LatestOn => format!(
                "SELECT {} FROM {}{filter} LATEST ON {time} PARTITION BY {key}",
                columns(key, time, fields.iter().map(field)),
                table.name
            ),
            Last::ArgMax(function) => {
                let last = |index| format!("{function}({}, {time})", field(index));
                newest(dialect, table, &filter, fields.iter().map(last))
            }
            Last::ArgMaxTuple(function) => {
                let last = |index| format!("{function}(tuple({}), {time}).1", field(index));
                newest(dialect, table, &filter, fields.iter().map(last))
            }
        },
        What::Aggregates(aggregates) => {
            let mut groups: Vec<String> = select
                .by
                .iter()
                .map(|tag| table.tags[*tag].name.clone())
                .collect();
            groups.extend(select.bucket_ns.map(dialect.bucket));
            let values = aggregates
                .iter()
                .map(|(function, index)| aggregate(*function, &table.fields[*index]));
            let columns: Vec<String> = groups.iter().cloned().chain(values).collect();
            let order = match (select.descending, select.bucket_ns) {
                (true, Some(window)) => {
                    format!(" ORDER BY {}{descending}", (dialect.bucket)(window))
                }
                _ => String::new(),
            };
            format!(
                "SELECT {} FROM {}{filter}{}{order}",
                columns.join(", "),
                table.name,
                (dialect.group_by)(&groups, select.bucket_ns)
            )
        }
    }
}

fn columns(key: &str, time: &str, fields: impl Iterator<Item = String>) -> String {
    [key.to_owned(), time.to_owned()]
        .into_iter()
        .chain(fields)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The newest rows as one group a device.
fn newest(
    dialect: &Dialect,
    table: &Table,
    filter: &str,
    fields: impl Iterator<Item = String>,
) -> String {
    let key = &table.tags[table.key].name;
    let columns = columns(key, &format!("max({})", dialect.time), fields);
    format!(
        "SELECT {columns} FROM {}{filter} GROUP BY {key}",
        table.name
    )
}

/// A field as a number: SQL does not count with truth values.
fn number(field: &Field) -> String {
    match field.kind {
        FieldKind::Bool => format!("CAST({} AS INT)", field.name),
        _ => field.name.clone(),
    }
}

/// An aggregate as most databases write it.
#[must_use]
pub fn aggregate(function: Aggregate, field: &Field) -> String {
    let value = number(field);
    match function {
        Aggregate::Count => format!("count({})", field.name),
        Aggregate::Sum => format!("sum({value})"),
        Aggregate::Avg => format!("avg({value})"),
        Aggregate::Min => format!("min({value})"),
        Aggregate::Max => format!("max({value})"),
        Aggregate::Spread => format!("max({value}) - min({value})"),
    }
}

/// ` WHERE …`, or nothing.
fn conditions(dialect: &Dialect, table: &Table, select: &Select) -> String {
    let mut all: Vec<String> = Vec::new();
    match &select.devices {
        Devices::All => {}
        Devices::In(tag, values) => {
            let tag = &table.tags[*tag];
            let quote = |value: &String| match tag.kind {
                TagKind::Integer if dialect.integer_tags => value.clone(),
                _ => format!("'{}'", value.replace('\'', "''")),
            };
            let values: Vec<String> = values.iter().map(quote).collect();
            all.push(match values.as_slice() {
                [one] => format!("{} = {one}", tag.name),
                _ => format!("{} IN ({})", tag.name, values.join(", ")),
            });
        }
        Devices::Below(tag, limit) => {
            let name = &table.tags[*tag].name;
            all.push(if dialect.integer_tags {
                format!("{name} < {limit}")
            } else {
                format!("CAST({name} AS INT) < {limit}")
            });
        }
    }
    let time = dialect.time;
    all.extend(
        select
            .from_ns
            .map(|ns| format!("{time} >= {}", (dialect.literal)(ns))),
    );
    all.extend(
        select
            .to_ns
            .map(|ns| format!("{time} < {}", (dialect.literal)(ns))),
    );
    all.extend(
        select
            .above
            .map(|(field, limit)| format!("{} > {limit:?}", number(&table.fields[field]))),
    );
    if all.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", all.join(" AND "))
    }
}

#[cfg(test)]
mod tests;
