//! A table to create, changes of a table, and what they make of its schema. All of it is pure.

use crate::error::{EngineError, Result};
use marigram_model::{
    ColumnCodec, FieldColumn, FieldType, Rollup, SchemaError, TableColumn, TableId, TableOptions,
    TableSchema, TagColumn, TagType, View, nearest,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A table to create.
#[derive(Clone, Debug, Default)]
pub struct TableSpec {
    /// Name.
    pub name: String,
    /// Name of the time column; `time` by default.
    pub time_name: Option<String>,
    /// Tags in the order of their ordinals.
    pub tags: Vec<(String, TagType)>,
    /// Fields.
    pub fields: Vec<(String, FieldType)>,
    /// All columns by name in the order in which they are declared; empty for time, tags, fields.
    pub declared: Vec<String>,
    /// How the values of fields are stored, by field name; chosen by content for the others.
    pub codecs: BTreeMap<String, ColumnCodec>,
    /// Settings.
    pub options: TableOptions,
    /// Its source, if it is a rollup.
    pub rollup: Option<Rollup>,
    /// Its query, if it is a view.
    pub view: Option<View>,
}

/// A change of a table.
#[derive(Clone, Debug)]
pub enum TableChange {
    /// Adds a tag, after all other columns. It is null in existing series.
    AddTag(String, TagType),
    /// Adds a field. Existing rows have no value for it.
    AddField(String, FieldType),
    /// Sets the codec of a field. Existing pages keep theirs until they are compacted.
    SetCodec(String, ColumnCodec),
    /// Replaces the settings, from the next flush on. Rows in segments keep their partitions, and
    /// keep their pages until they are compacted. The identity of series stays the same.
    SetOptions(TableOptions),
    /// Sets how often a rollup is refreshed, and how far it stays behind; both in ns.
    SetRefresh(i64, i64),
    /// Renames the table. The rows stay in place: they refer to their table by number.
    Rename(String),
    /// Renames a column, from the first name to the second.
    RenameColumn(String, String),
    /// Drops a field. Its values are no longer read, and the next compaction removes them.
    DropField(String),
    /// Replaces the query of a view.
    SetView(View),
}

/// Columns that were missing for a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaGrowth {
    /// Tags.
    pub tags: Vec<(String, TagType)>,
    /// Fields.
    pub fields: Vec<(String, FieldType)>,
}

impl TableSpec {
    /// The schema of the new table, with number `id`.
    pub(super) fn schema(&self, database: &str, id: TableId) -> Result<TableSchema> {
        let mut schema = TableSchema {
            time_name: self.time_name.clone().unwrap_or_else(|| "time".to_owned()),
            options: self.options.clone(),
            rollup: self.rollup.clone().map(Arc::new),
            view: self.view.clone().map(Arc::new),
            ..blank(database, &self.name, id)
        };
        for (name, kind) in &self.tags {
            push_tag(&mut schema, name, *kind);
        }
        for (name, kind) in &self.fields {
            push_field(&mut schema, name, *kind);
        }
        for (name, codec) in &self.codecs {
            field_mut(&mut schema, name)?.codec = *codec;
        }
        schema.declared = declared(&schema, &self.declared)?;
        Ok(schema)
    }
}

/// A table without columns, as a starting point for growth.
pub(crate) fn blank(database: &str, name: &str, id: TableId) -> TableSchema {
    TableSchema {
        id,
        database: database.to_owned(),
        name: name.to_owned(),
        time_name: "time".to_owned(),
        tags: Vec::new(),
        fields: Vec::new(),
        options: TableOptions::default(),
        rollup: None,
        view: None,
        dropped_max: 0,
        declared: Vec::new(),
    }
}

/// Sets other settings of a table.
///
/// # Errors
/// If they would change the identity of its series.
pub(super) fn set_options(schema: &mut TableSchema, options: &TableOptions) -> Result<()> {
    if options.identity != schema.options.identity {
        return Err(EngineError::Invalid(format!(
            "table '{}': series_identity is fixed when a table is created",
            schema.name
        )));
    }
    schema.options = options.clone();
    Ok(())
}

/// Sets how often a rollup is refreshed and how far it stays behind.
///
/// # Errors
/// If the table is no rollup.
pub(super) fn set_refresh(schema: &mut TableSchema, refresh_ns: i64, lag_ns: i64) -> Result<()> {
    let Some(rollup) = &schema.rollup else {
        return Err(EngineError::Invalid(format!(
            "table '{}' is not a materialized view",
            schema.name
        )));
    };
    schema.rollup = Some(Arc::new(Rollup {
        refresh_ns,
        lag_ns,
        ..Rollup::clone(rollup)
    }));
    Ok(())
}

/// Replaces the query of a view.
///
/// # Errors
/// If the table is no view.
pub(super) fn set_view(schema: &mut TableSchema, view: &View) -> Result<()> {
    if schema.view.is_none() {
        let message = format!("'{}' is not a view", schema.name);
        return Err(EngineError::Invalid(message));
    }
    schema.view = Some(Arc::new(view.clone()));
    Ok(())
}

/// Removes a field.
///
/// # Errors
/// If there is none of this name.
pub(super) fn drop_field(schema: &mut TableSchema, name: &str) -> Result<()> {
    let id = field_mut(schema, name)?.id;
    schema.fields.retain(|field| field.id != id);
    schema
        .declared
        .retain(|column| *column != TableColumn::Field(id));
    schema.dropped_max = schema.dropped_max.max(id.0);
    Ok(())
}

/// Renames a column.
///
/// # Errors
/// If there is no column `from`, or there is a column `to`.
pub(super) fn rename_column(schema: &mut TableSchema, from: &str, to: &str) -> Result<()> {
    if schema.has_column(to) {
        return Err(EngineError::AlreadyExists {
            kind: "column",
            name: to.to_owned(),
        });
    }
    let tags = schema.tags.iter_mut().map(|tag| &mut tag.name);
    let fields = schema.fields.iter_mut().map(|field| &mut field.name);
    let mut names = std::iter::once(&mut schema.time_name)
        .chain(tags)
        .chain(fields);
    match names.find(|name| *name == from) {
        Some(name) => {
            to.clone_into(name);
            Ok(())
        }
        None => Err(EngineError::NotFound {
            kind: "column",
            name: from.to_owned(),
            nearest: nearest(from, schema.column_names()),
        }),
    }
}

/// The columns of these names, which are all that a table has.
fn declared(schema: &TableSchema, names: &[String]) -> Result<Vec<TableColumn>> {
    let named: HashMap<&str, TableColumn> = schema
        .columns_by_role()
        .filter_map(|column| Some((schema.name_of(column)?, column)))
        .collect();
    let column = |name: &String| {
        let found = named.get(name.as_str()).copied();
        found.ok_or_else(|| {
            let table = schema.name.clone();
            SchemaError::BadOrder { table }.into()
        })
    };
    names.iter().map(column).collect()
}

/// Adds a tag, after all other columns.
pub(super) fn push_tag(schema: &mut TableSchema, name: &str, kind: TagType) {
    if !schema.declared.is_empty()
        && let Ok(ordinal) = u16::try_from(schema.tags.len())
    {
        schema.declared.push(TableColumn::Tag(ordinal));
    }
    schema.tags.push(TagColumn {
        name: name.to_owned(),
        kind,
    });
}

/// Adds a field, after all other columns.
pub(super) fn push_field(schema: &mut TableSchema, name: &str, kind: FieldType) {
    let id = schema.next_column();
    if !schema.declared.is_empty() {
        schema.declared.push(TableColumn::Field(id));
    }
    schema.fields.push(FieldColumn {
        id,
        name: name.to_owned(),
        kind,
        codec: ColumnCodec::default(),
    });
}

/// The field of this name.
///
/// # Errors
/// If there is none.
pub(super) fn field_mut<'a>(
    schema: &'a mut TableSchema,
    name: &str,
) -> Result<&'a mut FieldColumn> {
    let Some(at) = schema.fields.iter().position(|field| field.name == name) else {
        return Err(EngineError::NotFound {
            kind: "field",
            name: name.to_owned(),
            nearest: nearest(name, schema.fields.iter().map(|field| field.name.as_str())),
        });
    };
    Ok(&mut schema.fields[at])
}
