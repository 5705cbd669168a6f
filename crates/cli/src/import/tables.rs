//! The tables of an import: their columns, their creation, and the number of their rows.

use super::prepared::PreparedFile;
use crate::client::DataClient;
use crate::names::texts;
use crate::table_columns::known_table;
use anyhow::{Result, bail};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use marigram_model::always_quoted as quoted;
use marigram_model::{FieldType, TagType, WriteBatch};
use marigram_tabular::layout::ZONED;
use std::collections::BTreeMap;

/// First and last time of each table, ns.
pub(super) type TableTimeSpans = BTreeMap<String, (i64, i64)>;

/// The columns that new tables get.
pub(super) type NewTableColumns = BTreeMap<String, NewTable>;

/// The columns of a table, derived from its first rows.
#[derive(Clone, Debug, Default)]
pub(super) struct NewTable {
    time: Option<String>,
    tags: Vec<(String, TagType)>,
    fields: Vec<(String, FieldType)>,
}

impl NewTable {
    /// The columns, for people.
    pub(super) fn describe(&self) -> String {
        let tags: Vec<&str> = self.tags.iter().map(|(name, _)| name.as_str()).collect();
        let tags = if tags.is_empty() {
            "no tags".to_owned()
        } else {
            format!("tags {}", tags.join(", "))
        };
        let fields = self
            .fields
            .iter()
            .map(|(name, kind)| format!("{name} {kind}"));
        format!("{tags}; fields {}", fields.collect::<Vec<_>>().join(", "))
    }
}

/// Adds the columns of a batch to those of its table.
pub(super) fn gather(columns: &mut NewTableColumns, batch: &WriteBatch, time: Option<String>) {
    let table = columns.entry(batch.table.clone()).or_default();
    table.time = table.time.take().or(time);
    for tag in &batch.tags {
        if !table.tags.iter().any(|(name, _)| *name == tag.name) {
            table.tags.push((tag.name.clone(), tag.kind()));
        }
    }
    for field in &batch.fields {
        if !table.fields.iter().any(|(name, _)| *name == field.name) {
            table.fields.push((field.name.clone(), field.kind()));
        }
    }
}

/// Tells the files which tables exist: a TsFile has their names in lower case.
pub(super) fn know(client: &DataClient, files: &mut [PreparedFile]) {
    let Some(db) = client.local() else { return };
    let tables = db.engine().tables(client.database()).unwrap_or_default();
    for file in files {
        let named = tables
            .iter()
            .map(|table| (table.name.clone(), table.clone()));
        file.tables = named.collect();
    }
}

/// Creates the tables whose columns the files declare, and tells each file which tables exist.
pub(super) fn create(
    client: &mut DataClient,
    files: &mut [PreparedFile],
    columns: &NewTableColumns,
) -> Result<()> {
    for file in &*files {
        if let Some(layout) = file.layout() {
            let table = match (&file.reading.options.table, file.reading.table.as_str()) {
                (Some(table), _) => table,
                (None, "") => &layout.table,
                (None, table) => table,
            };
            let mut tags = layout.tag_types()?;
            let constant = file.reading.constant_tags.iter();
            tags.extend(constant.map(|(name, _)| (name.clone(), TagType::String)));
            let is_zoned = |name: &str| layout.is_zoned(name);
            let fields = layout.field_types()?;
            let roles = (layout.time.as_str(), &*tags, &*fields);
            create_one(client, table, roles, &layout.order, &is_zoned)?;
        } else if let Some(new) = columns.get(&file.reading.table)
            && let Some(time) = &new.time
            && file.reading.known.is_none()
        {
            let (table, zoned) = (&file.reading.table, file.zoned());
            let is_zoned = |name: &str| zoned.iter().any(|zoned| zoned == name);
            let roles = (time.as_str(), &*new.tags, &*new.fields);
            create_one(client, table, roles, &file.order(), &is_zoned)?;
        }
    }
    let Some(db) = client.local() else {
        return Ok(());
    };
    let tables = db.engine().tables(client.database()).unwrap_or_default();
    for file in files {
        file.reading.schema = tables
            .iter()
            .find(|t| t.name == file.reading.table)
            .cloned();
        file.tables = tables.iter().map(|t| (t.name.clone(), t.clone())).collect();
    }
    Ok(())
}

/// The time, tags and fields of a table.
type ColumnRoles<'a> = (&'a str, &'a [(String, TagType)], &'a [(String, FieldType)]);

fn create_one(
    client: &mut DataClient,
    table: &str,
    (time, tags, fields): ColumnRoles<'_>,
    order: &[String],
    is_zoned: &dyn Fn(&str) -> bool,
) -> Result<()> {
    // An earlier file of the same import may have made it.
    if matches!(known_table(client, table), Ok(Some(_))) {
        return Ok(());
    }
    let kind = |name: &str, kind: FieldType| {
        if is_zoned(name) {
            ZONED.to_owned()
        } else {
            kind.to_string()
        }
    };
    let mut columns = vec![(time, kind(time, FieldType::Timestamp))];
    let tags = tags.iter();
    columns.extend(tags.map(|(name, kind)| (name.as_str(), format!("{kind} TAG"))));
    let fields = fields.iter();
    columns.extend(fields.map(|(name, stored)| {
        let kind = kind(name, *stored);
        (name.as_str(), format!("{kind} FIELD"))
    }));
    columns[0].1.push_str(" TIME");
    // Columns that the order does not name, such as constant tags, come last.
    let place = |name: &str| order.iter().position(|known| known == name);
    columns.sort_by_key(|(name, _)| place(name).unwrap_or(order.len()));
    let columns = columns
        .iter()
        .map(|(name, kind)| format!("{} {kind}", quoted(name)));
    let columns: Vec<String> = columns.collect();
    // Only an administrator may create databases: whoever may write in one need not be.
    if !is_there(client)? {
        let database = quoted(client.database());
        execute(client, &format!("CREATE DATABASE IF NOT EXISTS {database}"))?;
    }
    let columns = columns.join(", ");
    execute(
        client,
        &format!("CREATE TABLE IF NOT EXISTS {} ({columns})", quoted(table)),
    )
}

/// Whether the database of a client exists and may be seen.
fn is_there(client: &mut DataClient) -> Result<bool> {
    let batches = match client.query("SHOW DATABASES") {
        Ok(batches) => batches,
        Err(failure) => bail!("{failure}"),
    };
    Ok(texts(&batches, &[])
        .iter()
        .any(|name| name == client.database()))
}

fn execute(client: &mut DataClient, sql: &str) -> Result<()> {
    match client.execute(sql) {
        Ok(_) => Ok(()),
        Err(failure) => bail!("{failure}"),
    }
}

/// Rows of the tables within the imported times.
pub(super) fn count(client: &mut DataClient, spans: &TableTimeSpans) -> u64 {
    let mut rows = 0;
    for (table, (first, last)) in spans {
        // A table that does not exist yet has no rows.
        let Ok(Some(known)) = known_table(client, table) else {
            continue;
        };
        let literal = |ns: i64| jiff::Timestamp::from_nanosecond(i128::from(ns));
        let (Ok(first), Ok(last)) = (literal(*first), literal(*last)) else {
            continue;
        };
        let (table, time) = (quoted(table), quoted(&known.time));
        let sql = format!(
            "SELECT count(*) AS n FROM {table} WHERE {time} >= '{first}' AND {time} <= '{last}'"
        );
        let counted = client.query(&sql).unwrap_or_default();
        for batch in &counted {
            let numbers = batch.column(0).as_primitive_opt::<Int64Type>();
            let counts = numbers
                .into_iter()
                .flat_map(|numbers| numbers.values().iter());
            rows += counts
                .map(|count| u64::try_from(*count).unwrap_or(0))
                .sum::<u64>();
        }
    }
    rows
}
