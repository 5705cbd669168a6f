//! The roles of a table's columns: which is the time, which are tags.
//!
//! They are declared when a table is created. As long as the table has no rows, statements of
//! TimescaleDB and indexes may still say which columns identify devices: the table is then declared
//! anew, with the same columns.

use crate::dialect::ddl::constraints;
use crate::dialect::statement::ColumnKind;
use crate::error::{SqlError, SqlResult};
use marigram_engine::{Engine, TableSpec};
use marigram_model::{
    ColumnCodec, ColumnId, FieldType, TableColumn, TableOptions, TableSchema, TagType,
};
use std::sync::Arc;

/// The roles that columns are to have.
#[derive(Debug, Default)]
pub(crate) struct RoleRequest<'a> {
    /// The time column; `None` for the one that the table has.
    pub time: Option<&'a str>,
    /// Columns that are to be tags, besides those that are.
    pub tags: &'a [String],
}

/// A table to create with these columns.
pub(crate) fn table_spec(
    name: &str,
    columns: &[(String, ColumnKind)],
    options: TableOptions,
) -> TableSpec {
    let mut spec = TableSpec {
        name: name.to_owned(),
        declared: columns.iter().map(|(name, _)| name.clone()).collect(),
        options,
        ..TableSpec::default()
    };
    for (name, kind) in columns {
        match kind {
            ColumnKind::Time => spec.time_name = Some(name.clone()),
            ColumnKind::ZonedTime => {
                spec.time_name = Some(name.clone());
                spec.options.zoned.push(ColumnId::TIME);
            }
            ColumnKind::Tag(kind) => spec.tags.push((name.clone(), *kind)),
            ColumnKind::Field(_, codec) | ColumnKind::ZonedField(codec) => {
                let field = match kind {
                    ColumnKind::Field(kind, _) => *kind,
                    _ => FieldType::Timestamp,
                };
                spec.fields.push((name.clone(), field));
                if matches!(kind, ColumnKind::ZonedField(_)) {
                    // Fields are numbered from 1 in order.
                    spec.options.zoned.push(ColumnId(spec.fields.len() as u32));
                }
                if *codec != ColumnCodec::default() {
                    spec.codecs.insert(name.clone(), *codec);
                }
            }
        }
    }
    spec.options.zoned.sort_unstable();
    spec
}

/// The columns of a table, and what they hold, in their order.
fn columns_of(schema: &TableSchema) -> Vec<(String, ColumnKind)> {
    let is_zoned = |id| schema.options.zoned.contains(&id);
    let column = |column| {
        let kind = match column {
            TableColumn::Time if is_zoned(ColumnId::TIME) => ColumnKind::ZonedTime,
            TableColumn::Time => ColumnKind::Time,
            TableColumn::Tag(ordinal) => {
                ColumnKind::Tag(schema.tags.get(usize::from(ordinal))?.kind)
            }
            TableColumn::Field(id) => {
                let field = schema.field_by_id(id)?;
                if is_zoned(id) {
                    ColumnKind::ZonedField(field.codec)
                } else {
                    ColumnKind::Field(field.kind, field.codec)
                }
            }
        };
        Some((schema.name_of(column)?.to_owned(), kind))
    };
    schema.columns().filter_map(column).collect()
}

/// The tag that a field may become.
fn tag_of(kind: ColumnKind) -> Option<TagType> {
    match kind {
        ColumnKind::Field(FieldType::String, _) => Some(TagType::String),
        ColumnKind::Field(FieldType::I32 | FieldType::I64, _) => Some(TagType::I64),
        ColumnKind::Field(FieldType::Bool, _) => Some(TagType::Bool),
        _ => None,
    }
}

/// Refuses what is no table of its own.
fn check_table(schema: &TableSchema) -> SqlResult<()> {
    if schema.rollup.is_none() && schema.view.is_none() {
        return Ok(());
    }
    let name = &schema.name;
    let message = format!("'{name}' is a view: its query says what its columns are");
    Err(SqlError::named("42809", name, message))
}

fn unknown_column(schema: &TableSchema, name: &str) -> SqlError {
    SqlError::unknown("42703", "column", name, schema.column_names())
}

/// The column that is to be the time, as it is then.
fn time_kind(schema: &TableSchema, name: &str, kind: ColumnKind) -> SqlResult<ColumnKind> {
    match kind {
        ColumnKind::Time | ColumnKind::ZonedTime => Ok(kind),
        ColumnKind::ZonedField(_) => Ok(ColumnKind::ZonedTime),
        ColumnKind::Field(FieldType::Timestamp, _) => Ok(ColumnKind::Time),
        _ => {
            let message = format!(
                "'{name}' cannot be the time of '{}': a table is divided by a TIMESTAMP or \
                 TIMESTAMPTZ; convert other columns with to_timestamp when you write rows",
                schema.name
            );
            Err(SqlError::named("0A000", name, message))
        }
    }
}

/// Gives columns of a table their roles. Blocks.
///
/// # Errors
/// If a column does not exist, or its type does not suit the role, or the table has rows.
pub(crate) fn assign(
    engine: &Engine,
    schema: &Arc<TableSchema>,
    request: &RoleRequest<'_>,
) -> SqlResult<Arc<TableSchema>> {
    check_table(schema)?;
    let mut columns = columns_of(schema);
    let before = columns.clone();
    if let Some(time) = request.time {
        let Some(place) = columns.iter().position(|(name, _)| name == time) else {
            return Err(unknown_column(schema, time));
        };
        let kind = time_kind(schema, time, columns[place].1)?;
        for (_, kind) in &mut columns {
            match kind {
                ColumnKind::Time => {
                    *kind = ColumnKind::Field(FieldType::Timestamp, ColumnCodec::default());
                }
                ColumnKind::ZonedTime => *kind = ColumnKind::ZonedField(ColumnCodec::default()),
                _ => {}
            }
        }
        columns[place].1 = kind;
    }
    for tag in request.tags {
        let Some((_, kind)) = columns.iter_mut().find(|(name, _)| name == tag) else {
            return Err(unknown_column(schema, tag));
        };
        if matches!(
            kind,
            ColumnKind::Tag(_) | ColumnKind::Time | ColumnKind::ZonedTime
        ) {
            continue;
        }
        let Some(tag_type) = tag_of(*kind) else {
            let message = format!(
                "column '{tag}' of '{}' cannot identify devices: a tag is STRING, BIGINT or BOOLEAN",
                schema.name
            );
            return Err(SqlError::named("42804", tag, message));
        };
        *kind = ColumnKind::Tag(tag_type);
    }
    if columns == before {
        return Ok(Arc::clone(schema));
    }
    let options = TableOptions {
        zoned: Vec::new(),
        ..schema.options.clone()
    };
    let spec = table_spec(&schema.name, &columns, options);
    match engine.redeclare_table(&schema.database, &spec)? {
        Some(table) => Ok(table),
        None => Err(has_rows(schema, &columns)),
    }
}

/// The error for a table whose columns keep their roles because it has rows.
fn has_rows(schema: &TableSchema, columns: &[(String, ColumnKind)]) -> SqlError {
    let tags = columns
        .iter()
        .filter(|(_, kind)| matches!(kind, ColumnKind::Tag(_)));
    let tags: Vec<&str> = tags.map(|(name, _)| name.as_str()).collect();
    let is_time = |kind: &ColumnKind| matches!(kind, ColumnKind::Time | ColumnKind::ZonedTime);
    let time = columns.iter().find(|(_, kind)| is_time(kind));
    let time = time.map(|(name, _)| name.as_str()).unwrap_or_default();
    let name = &schema.name;
    let message = format!(
        "table '{name}' has rows, so its columns keep their roles, here the time {time} and the tags \
         {tags}; send this before the first row, or CREATE TABLE other WITH (time = '{time}', tags = \
         '{list}') AS SELECT * FROM {name}",
        tags = if tags.is_empty() {
            "(none)".to_owned()
        } else {
            tags.join(", ")
        },
        list = tags.join(",")
    );
    SqlError::named("55000", name, message)
}

/// Makes the columns of a key tags if it names the time, all tags, and other columns besides. Blocks.
///
/// # Errors
/// If a column does not exist, or the key is not that of the table, or the table has rows.
pub(crate) fn key(
    engine: &Engine,
    schema: &Arc<TableSchema>,
    kind: &str,
    columns: &[String],
) -> SqlResult<Arc<TableSchema>> {
    check_table(schema)?;
    if let Some(missing) = columns.iter().find(|name| !schema.has_column(name)) {
        return Err(unknown_column(schema, missing));
    }
    let covers = schema.tags.iter().all(|tag| columns.contains(&tag.name));
    let mut table = Arc::clone(schema);
    if covers && columns.contains(&schema.time_name) {
        let request = RoleRequest {
            time: None,
            tags: columns,
        };
        table = assign(engine, schema, &request)?;
    }
    let tags = table.tags.iter().map(|tag| tag.name.as_str());
    let identity: Vec<&str> = tags.chain([table.time_name.as_str()]).collect();
    constraints::check(kind, columns, &identity)?;
    Ok(table)
}

/// `CREATE INDEX`: rows are always found by their times and tags, so an index has nothing to do. One
/// of the time and other columns says that these identify devices; they become tags while the table
/// has no rows. Returns what the client is told. Blocks.
///
/// # Errors
/// If a column does not exist, or a unique index is not the tags and the time, or rows with the same
/// time have replaced each other because the table has no tags.
pub(crate) fn index(
    engine: &Engine,
    schema: &Arc<TableSchema>,
    columns: &[String],
    is_unique: bool,
) -> SqlResult<Vec<String>> {
    let mut table = Arc::clone(schema);
    if is_unique {
        table = key(engine, schema, "a unique index", columns)?;
    } else {
        check_table(schema)?;
        if let Some(missing) = columns.iter().find(|name| !schema.has_column(name)) {
            return Err(unknown_column(schema, missing));
        }
        if names_devices(schema, columns)
            && (schema.tags.is_empty() || !engine.has_rows(&schema.database, &schema.name)?)
        {
            let request = RoleRequest {
                time: None,
                tags: columns,
            };
            table = assign(engine, schema, &request)?;
        }
    }
    Ok(index_notices(schema, &table, columns))
}

/// Whether an index is one of the time and of fields that may identify devices.
fn names_devices(schema: &TableSchema, columns: &[String]) -> bool {
    let all = columns_of(schema);
    let kinds = || {
        let named = all.iter().filter(|(name, _)| columns.contains(name));
        named.map(|(_, kind)| *kind)
    };
    let is_field = |kind| matches!(kind, ColumnKind::Field(..) | ColumnKind::ZonedField(_));
    columns.contains(&schema.time_name)
        && kinds().any(is_field)
        && kinds().all(|kind| !is_field(kind) || tag_of(kind).is_some())
}

/// What a client is told of an index.
fn index_notices(before: &TableSchema, table: &TableSchema, columns: &[String]) -> Vec<String> {
    let fields = || columns.iter().filter(|name| before.field(name).is_some());
    let listed = |names: Vec<&String>| {
        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        names.join(", ")
    };
    let (fields, tags): (Vec<&String>, Vec<&String>) =
        fields().partition(|name| table.field(name).is_some());
    let mut notices = Vec::new();
    if !tags.is_empty() {
        notices.push(format!(
            "the index names columns that identify devices, which became tags of '{}': {}",
            table.name,
            listed(tags)
        ));
    }
    notices.push(if fields.is_empty() {
        "tags and times are always indexed; there was nothing to create".to_owned()
    } else {
        format!(
            "no index is needed and none was created: rows are found by their tags and times, and \
             statistics of pages leave out what cannot match; fields are {}",
            listed(fields)
        )
    });
    notices
}
