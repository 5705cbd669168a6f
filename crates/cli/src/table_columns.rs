//! Looks up the columns of a table, in this process or on a server.

use crate::client::DataClient;
use crate::names::texts;
use anyhow::{Result, bail};
use marigram_model::ColumnId;
use marigram_model::always_quoted;
use marigram_tabular::layout::{ColumnLayout, ZONED};

/// The columns of a table; `None` if it does not exist.
pub(crate) fn known_table(client: &mut DataClient, table: &str) -> Result<Option<ColumnLayout>> {
    if let Some(db) = client.local() {
        let schema = db.engine().table(client.database(), table).ok();
        return Ok(schema.map(|schema| {
            let tags = schema.tags.iter().map(|tag| (tag.name.clone(), tag.kind));
            let fields = schema
                .fields
                .iter()
                .map(|field| (field.name.clone(), field.kind));
            let zoned = schema.options.zoned.iter().filter_map(|id| match *id {
                ColumnId::TIME => Some(schema.time_name.as_str()),
                id => Some(
                    schema
                        .fields
                        .iter()
                        .find(|field| field.id == id)?
                        .name
                        .as_str(),
                ),
            });
            let order = schema.column_names().map(ToOwned::to_owned).collect();
            ColumnLayout::new(table, &schema.time_name, tags, fields)
                .with_zones(zoned)
                .with_order(order)
        }));
    }
    let tables = match client.query("SHOW TABLES") {
        Ok(tables) => texts(&tables, &["table_name", "table", "name"]),
        Err(failure) => bail!("{failure}"),
    };
    if !tables.iter().any(|name| name == table) {
        return Ok(None);
    }
    let columns = match client.query(&format!("SHOW COLUMNS FROM {}", always_quoted(table))) {
        Ok(columns) => columns,
        Err(failure) => bail!("{failure}"),
    };
    let names = texts(&columns, &["column_name"]);
    let kinds = texts(&columns, &["data_type"]);
    let roles = texts(&columns, &["role"]);
    let mut known = ColumnLayout::new(table, "", [], []);
    let order = names.clone();
    for ((name, kind), role) in names.into_iter().zip(kinds).zip(roles) {
        match role.as_str() {
            "time" => {
                known.is_time_zoned = kind == ZONED;
                known.time = name;
            }
            "tag" => known.tags.push((name, kind)),
            _ => known.fields.push((name, kind)),
        }
    }
    Ok(Some(known.with_order(order)))
}
