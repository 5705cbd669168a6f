//! [`Select`] in SQL: one writer for all databases that speak SQL, told apart by a [`Dialect`].

use anyhow::{Context, Result, bail};
use marigram_lab::data::{Field, FieldKind, Table, TagKind};
use marigram_lab::question::{Aggregate, Ask, Devices, Question, Select, Selection};

/// What is particular to a database's SQL.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// Name of the time column.
    pub time: &'static str,
    /// A time in nanoseconds as a literal that compares with the time column.
    pub literal: fn(i64) -> String,
    /// The start of the window that the time column falls into, for windows of this many
    /// nanoseconds.
    pub bucket: fn(i64) -> String,
    /// How a query selects the newest row of each device.
    pub last: Last,
    /// Whether integer tags are columns of integers, not of text.
    pub integer_tags: bool,
    /// An aggregate over a field; [`aggregate`] for most databases.
    pub aggregate: fn(Aggregate, &Field) -> String,
}

/// How a query selects the newest row of each device.
#[derive(Clone, Copy, Debug)]
pub enum Last {
    /// `SELECT DISTINCT ON (key) … ORDER BY key, time DESC`.
    DistinctOn,
    /// `… LATEST ON time PARTITION BY key` (QuestDB).
    LatestOn,
    /// A clause, given the names of key and time, at the end of a query for all rows.
    Clause(fn(&str, &str) -> String),
}

/// Why `question` cannot be put to a database that does not speak Marigram's SQL; `None` if it can.
#[must_use]
pub fn cannot_ask(tables: &[Table], question: &Question) -> Option<String> {
    match &question.ask {
        Ask::Select(select) => cannot(&tables[select.table], select),
        Ask::Sql(_) => Some("asked in Marigram's SQL".to_owned()),
    }
}

/// The question as a [`Select`]; fails for SQL of Marigram's.
pub fn select(question: &Question) -> Result<&Select> {
    match &question.ask {
        Ask::Select(select) => Ok(select),
        Ask::Sql(_) => bail!("{}: asked in Marigram's SQL", question.name),
    }
}

/// Why no SQL expresses `select`; `None` if SQL does.
#[must_use]
pub fn cannot(table: &Table, select: &Select) -> Option<String> {
    let is_text = |index: usize| table.fields[index].kind == FieldKind::Text;
    let aggregates = match &select.what {
        Selection::Aggregates(aggregates) => aggregates.as_slice(),
        Selection::Rows(_) | Selection::Last(_) => &[],
    };
    let arithmetic = aggregates
        .iter()
        .any(|(function, index)| *function != Aggregate::Count && is_text(*index));
    let above = select.above.is_some_and(|(index, _)| is_text(index));
    (arithmetic || above).then(|| "text is no number to SQL".to_owned())
}

/// The statement for `question`; SQL stays as it is. Fails if there is no such table.
pub fn question_statement(
    dialect: &Dialect,
    tables: &[Table],
    question: &Question,
) -> Result<String> {
    match &question.ask {
        Ask::Sql(text) => Ok(text.clone()),
        Ask::Select(select) => {
            let table = tables.get(select.table).context("no such table")?;
            Ok(statement(dialect, table, select))
        }
    }
}

/// A statement for `select` on `table`.
#[must_use]
pub fn statement(dialect: &Dialect, table: &Table, select: &Select) -> String {
    match &select.what {
        Selection::Rows(fields) => {
            let order = if select.descending {
                format!(" ORDER BY {} DESC", dialect.time)
            } else {
                String::new()
            };
            rows(dialect, table, select, fields) + &order
        }
        Selection::Last(fields) => last(dialect, table, select, fields),
        Selection::Aggregates(aggregates) => aggregated(dialect, table, select, aggregates),
    }
}

/// A query for key, time and fields of all rows that meet the conditions.
fn rows(dialect: &Dialect, table: &Table, select: &Select, fields: &[usize]) -> String {
    let columns = columns(dialect, table, fields);
    let filter = conditions(dialect, table, select);
    format!("SELECT {columns} FROM {}{filter}", table.name)
}

fn last(dialect: &Dialect, table: &Table, select: &Select, fields: &[usize]) -> String {
    let (key, time) = (&table.tags[table.key].name, dialect.time);
    match dialect.last {
        Last::DistinctOn => format!(
            "SELECT DISTINCT ON ({key}) {} FROM {}{} ORDER BY {key}, {time} DESC",
            columns(dialect, table, fields),
            table.name,
            conditions(dialect, table, select)
        ),
        Last::LatestOn => {
            let rows = rows(dialect, table, select, fields);
            format!("{rows} LATEST ON {time} PARTITION BY {key}")
        }
        Last::Clause(clause) => rows(dialect, table, select, fields) + " " + &clause(key, time),
    }
}

fn aggregated(
    dialect: &Dialect,
    table: &Table,
    select: &Select,
    aggregates: &[(Aggregate, usize)],
) -> String {
    let tags = select.by.iter().map(|tag| table.tags[*tag].name.clone());
    let mut groups: Vec<String> = tags.collect();
    groups.extend(select.bucket_ns.map(dialect.bucket));
    let values = aggregates
        .iter()
        .map(|(function, index)| (dialect.aggregate)(*function, &table.fields[*index]));
    let columns: Vec<String> = groups.iter().cloned().chain(values).collect();
    let filter = conditions(dialect, table, select);
    let group_by = match groups.as_slice() {
        [] => String::new(),
        groups => format!(" GROUP BY {}", groups.join(", ")),
    };
    let order = match (select.descending, select.bucket_ns) {
        (true, Some(window)) => format!(" ORDER BY {} DESC", (dialect.bucket)(window)),
        _ => String::new(),
    };
    format!(
        "SELECT {} FROM {}{filter}{group_by}{order}",
        columns.join(", "),
        table.name
    )
}

/// Key, time and fields, as a list of columns.
fn columns(dialect: &Dialect, table: &Table, fields: &[usize]) -> String {
    let fields = fields
        .iter()
        .map(|index| table.fields[*index].name.as_str());
    let columns = [table.tags[table.key].name.as_str(), dialect.time];
    columns
        .into_iter()
        .chain(fields)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A field as a number: SQL does not calculate with booleans.
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

/// ` WHERE …`, or an empty text.
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
    let bound = |operator, ns| format!("{} {operator} {}", dialect.time, (dialect.literal)(ns));
    all.extend(select.from_ns.map(|ns| bound(">=", ns)));
    all.extend(select.to_ns.map(|ns| bound("<", ns)));
    let above =
        |(field, limit): (usize, f64)| format!("{} > {limit:?}", number(&table.fields[field]));
    all.extend(select.above.map(above));
    if all.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", all.join(" AND "))
    }
}

#[cfg(test)]
mod tests;
