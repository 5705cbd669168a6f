//! Constraints of a definition: names, checks of what they refer to, and how they are added.
//!
//! Functions here change definitions alone; what they mean for rows follows in [`crate::alter`].

use crate::catalog::{ReferenceCatalog, has_index};
use crate::definition::{
    CheckConstraint, ForeignKey, NewConstraint, ReferenceColumn, ReferenceTable, ReferenceType,
    UniqueKey,
};
use crate::error::{ReferenceError, Result};
use crate::schema::columns_of;

/// Adds a constraint to a definition; returns its name.
pub(crate) fn add(
    catalog: &ReferenceCatalog,
    table: &mut ReferenceTable,
    constraint: &NewConstraint,
) -> Result<String> {
    match constraint {
        NewConstraint::Key {
            name,
            columns,
            is_primary,
        } => add_key(catalog, table, name.as_deref(), columns, *is_primary),
        NewConstraint::Check {
            name,
            condition,
            column,
        } => {
            let parts: Vec<_> = column.iter().map(String::as_str).collect();
            let name = name_constraint(table, name.as_deref(), &parts, "check")?;
            let condition = condition.clone();
            table.checks.push(CheckConstraint {
                name: name.clone(),
                condition,
            });
            Ok(name)
        }
        NewConstraint::ForeignKey { .. } => add_foreign_key(catalog, table, constraint),
    }
}

fn add_key(
    catalog: &ReferenceCatalog,
    table: &mut ReferenceTable,
    name: Option<&str>,
    columns: &[String],
    is_primary: bool,
) -> Result<String> {
    if is_primary && table.primary_key().is_some() {
        let message = format!(
            "multiple primary keys for table \"{}\" are not allowed",
            table.name
        );
        return Err(ReferenceError::new("42P16", message));
    }
    let ids = key_columns(table, columns)?;
    let parts: Vec<_> = if is_primary {
        Vec::new()
    } else {
        columns.iter().map(String::as_str).collect()
    };
    let kind = if is_primary { "pkey" } else { "key" };
    let name = match name {
        Some(name) => {
            check_constraint_name(table, name)?;
            check_relation_name(catalog, table, name)?;
            name.to_owned()
        }
        None => free_name(&table.name, &parts, kind, |name| {
            has_constraint(table, name) || is_relation(catalog, table, name)
        }),
    };
    if is_primary {
        for column in table
            .columns
            .iter_mut()
            .filter(|column| ids.contains(&column.id))
        {
            column.is_nullable = false;
        }
    }
    let key = UniqueKey {
        name: name.clone(),
        columns: ids,
        is_primary,
        is_constraint: true,
    };
    table.keys.push(key);
    Ok(name)
}

fn add_foreign_key(
    catalog: &ReferenceCatalog,
    table: &mut ReferenceTable,
    constraint: &NewConstraint,
) -> Result<String> {
    let NewConstraint::ForeignKey {
        name,
        columns,
        parent,
        parent_columns,
        on_delete,
        on_update,
    } = constraint
    else {
        return Err(ReferenceError::new("XX000", "not a foreign key"));
    };
    let ids = key_columns(table, columns)?;
    let parts: Vec<_> = columns.iter().map(String::as_str).collect();
    let name = name_constraint(table, name.as_deref(), &parts, "fkey")?;
    let parent = if *parent == table.name {
        &*table
    } else {
        catalog.existing(&table.database, parent)?.as_ref()
    };
    let parent_ids = if parent_columns.is_empty() {
        let message = format!(
            "there is no primary key for referenced table \"{}\"",
            parent.name
        );
        let key = parent
            .primary_key()
            .ok_or_else(|| ReferenceError::new("42704", message))?;
        key.columns.clone()
    } else {
        key_columns(parent, parent_columns)?
    };
    if ids.len() != parent_ids.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(ReferenceError::new("42830", message));
    }
    if !parent
        .keys
        .iter()
        .any(|key| is_same_set(&key.columns, &parent_ids))
    {
        let message = format!(
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            parent.name
        );
        return Err(ReferenceError::new("42830", message));
    }
    let key = ForeignKey {
        name: name.clone(),
        columns: ids,
        parent: parent.id,
        parent_columns: parent_ids,
        on_delete: *on_delete,
        on_update: *on_update,
    };
    check_types(table, parent, &key)?;
    table.foreign_keys.push(key);
    Ok(name)
}

/// Checks that the columns of a foreign key are stored as those of its parent.
pub(crate) fn check_types(
    table: &ReferenceTable,
    parent: &ReferenceTable,
    key: &ForeignKey,
) -> Result<()> {
    let columns = columns_of(table, &key.columns)?;
    let parents = columns_of(parent, &key.parent_columns)?;
    for (column, other) in columns.iter().zip(parents) {
        if are_comparable(column.kind, other.kind) {
            continue;
        }
        let message = format!(
            "foreign key constraint \"{}\" cannot be implemented",
            key.name
        );
        let detail = format!(
            "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
            column.name, other.name, column.kind, other.kind
        );
        return Err(ReferenceError::new("42804", message).with_detail(detail));
    }
    Ok(())
}

/// Whether equal values of two types are stored equally.
fn are_comparable(a: ReferenceType, b: ReferenceType) -> bool {
    use ReferenceType as T;
    a == b
        || matches!(
            (a, b),
            (T::Int2 | T::Int4 | T::Int8, T::Int2 | T::Int4 | T::Int8)
        )
        || matches!((a, b), (T::Float4 | T::Float8, T::Float4 | T::Float8))
        || matches!((a, b), (T::Text | T::Varchar(_), T::Text | T::Varchar(_)))
}

/// The ids of columns that can be in a key.
pub(crate) fn key_columns(table: &ReferenceTable, names: &[String]) -> Result<Vec<u32>> {
    /// As in PostgreSQL.
    const COLUMNS_MAX: usize = 32;
    if names.len() > COLUMNS_MAX {
        let message = format!("cannot use more than {COLUMNS_MAX} columns in an index");
        return Err(ReferenceError::new("54011", message));
    }
    if names.is_empty() {
        return Err(ReferenceError::new("42601", "a key needs a column"));
    }
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let message = format!("column \"{name}\" named in key does not exist");
        let column = table
            .column(name)
            .ok_or_else(|| ReferenceError::new("42703", message))?;
        if column.kind == ReferenceType::Json {
            let message =
                "data type json has no default operator class for access method \"btree\"";
            return Err(ReferenceError::new("42704", message));
        }
        if ids.contains(&column.id) {
            let message = format!("column \"{name}\" appears twice in a key");
            return Err(ReferenceError::new("42701", message));
        }
        ids.push(column.id);
    }
    Ok(ids)
}

/// Whether two lists have the same members.
pub(crate) fn is_same_set(a: &[u32], b: &[u32]) -> bool {
    a.iter().all(|id| b.contains(id)) && b.iter().all(|id| a.contains(id))
}

/// Whether a table has a constraint with a name.
pub(crate) fn has_constraint(table: &ReferenceTable, name: &str) -> bool {
    table
        .keys
        .iter()
        .any(|key| key.name == name && key.is_constraint)
        || table.foreign_keys.iter().any(|key| key.name == name)
        || table.checks.iter().any(|check| check.name == name)
}

fn is_relation(catalog: &ReferenceCatalog, table: &ReferenceTable, name: &str) -> bool {
    name == table.name || has_index(table, name) || catalog.has_relation(&table.database, name)
}

/// Checks that no constraint of a table has a name.
pub(crate) fn check_constraint_name(table: &ReferenceTable, name: &str) -> Result<()> {
    if !has_constraint(table, name) {
        return Ok(());
    }
    let message = format!(
        "constraint \"{name}\" for relation \"{}\" already exists",
        table.name
    );
    Err(ReferenceError::new("42710", message))
}

/// Checks that no table or index has a name.
pub(crate) fn check_relation_name(
    catalog: &ReferenceCatalog,
    table: &ReferenceTable,
    name: &str,
) -> Result<()> {
    if is_relation(catalog, table, name) {
        return Err(relation_exists(name));
    }
    Ok(())
}

/// A table or index that exists already.
pub(crate) fn relation_exists(name: &str) -> ReferenceError {
    ReferenceError::new("42P07", format!("relation \"{name}\" already exists"))
}

fn name_constraint(
    table: &ReferenceTable,
    name: Option<&str>,
    columns: &[&str],
    kind: &str,
) -> Result<String> {
    if let Some(name) = name {
        check_constraint_name(table, name)?;
        return Ok(name.to_owned());
    }
    Ok(free_name(&table.name, columns, kind, |name| {
        has_constraint(table, name)
    }))
}

/// The name of a new index.
pub(crate) fn name_index(
    catalog: &ReferenceCatalog,
    table: &ReferenceTable,
    columns: &[String],
) -> String {
    let columns: Vec<_> = columns.iter().map(String::as_str).collect();
    free_name(&table.name, &columns, "idx", |name| {
        is_relation(catalog, table, name)
    })
}

/// `table_columns_kind`, with a number if that is taken.
fn free_name(table: &str, columns: &[&str], kind: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = table.to_owned();
    for part in columns {
        name.push('_');
        name.push_str(part);
    }
    name.push('_');
    name.push_str(kind);
    let numbered = (1..).map(|number: u32| format!("{name}{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// Checks that an identity column holds integers.
pub(crate) fn check_identity(column: &ReferenceColumn) -> Result<()> {
    let is_integer = matches!(
        column.kind,
        ReferenceType::Int2 | ReferenceType::Int4 | ReferenceType::Int8
    );
    if column.identity.is_none() || is_integer {
        return Ok(());
    }
    let message = "identity column type must be smallint, integer, or bigint";
    Err(ReferenceError::new("22023", message))
}

/// The foreign keys of tables, those of `table` left out, that need a unique key of `table` with these columns.
pub(crate) fn dependents<'a>(
    catalog: &'a ReferenceCatalog,
    table: &'a ReferenceTable,
    columns: &'a [u32],
) -> impl Iterator<Item = (&'a ReferenceTable, &'a ForeignKey)> {
    let others = table
        .keys
        .iter()
        .filter(|key| is_same_set(&key.columns, columns))
        .count();
    let is_needed = others <= 1;
    catalog
        .referring_keys(table.id)
        .filter(move |(_, key)| is_needed && is_same_set(&key.parent_columns, columns))
        .map(|(child, key)| (child.as_ref(), key))
}
