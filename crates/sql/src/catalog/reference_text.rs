//! The constraints, indexes and types of reference tables, written as PostgreSQL writes them.
//!
//! `pg_get_constraintdef` and `pg_get_indexdef` find them by the OIDs that this module gives: each
//! follows from the numbers that the store never gives twice, so that no map of OIDs is needed.

use marigram_model::quoted;
use marigram_reference::{
    CheckConstraint, ForeignKey, ForeignKeyAction, ReferenceTable, ReferenceType, UniqueKey,
};
use std::sync::Arc;

/// The OID of the access method `btree`.
pub(super) const BTREE_OID: i32 = 403;
/// OIDs of a kind begin here; those of a table's objects of one kind follow each other.
const INDEXES_OID: i32 = 1_100_000_000;
const CONSTRAINTS_OID: i32 = 1_600_000_000;
const DEFAULTS_OID: i32 = 2_000_000_000;
/// Most objects of one kind and table that have OIDs of their own.
const OBJECTS_MAX: i32 = 1024;
/// Most tables whose objects have OIDs of their own.
const TABLES_MAX: u64 = 140_000;

/// The kinds of objects that have OIDs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    /// The indexes of keys, then the others.
    Index,
    /// Keys, foreign keys, and checks.
    Constraint,
    /// Defaults, by column.
    Default,
}

/// The OID of a table's object of a kind with a number from 0.
pub(super) fn oid(table: &ReferenceTable, kind: ObjectKind, number: usize) -> i32 {
    let first = match kind {
        ObjectKind::Index => INDEXES_OID,
        ObjectKind::Constraint => CONSTRAINTS_OID,
        ObjectKind::Default => DEFAULTS_OID,
    };
    let place = i32::try_from(table.id % TABLES_MAX).unwrap_or_default();
    let number =
        i32::try_from(number).map_or(OBJECTS_MAX - 1, |number| number.min(OBJECTS_MAX - 1));
    first + place * OBJECTS_MAX + number
}

/// A constraint of a table.
pub(super) enum TableConstraint<'a> {
    /// A primary or unique key.
    Key(&'a UniqueKey),
    /// A foreign key, and the table to which it refers.
    ForeignKey(&'a ForeignKey, &'a ReferenceTable),
    /// A condition.
    Check(&'a CheckConstraint),
}

/// The constraints of a table with their numbers: keys, foreign keys, checks. `all`: the tables of its
/// database.
pub(super) fn constraints<'a>(
    table: &'a ReferenceTable,
    all: &'a [Arc<ReferenceTable>],
) -> Vec<(usize, TableConstraint<'a>)> {
    let keys = table.keys.iter().enumerate();
    let keys = keys
        .filter(|(_, key)| key.is_constraint || key.is_primary)
        .map(|(number, key)| (number, TableConstraint::Key(key)));
    let first = table.keys.len();
    let foreign = (first..).zip(&table.foreign_keys);
    let foreign = foreign.filter_map(|(number, key)| {
        let parent = all.iter().find(|parent| parent.id == key.parent)?;
        Some((number, TableConstraint::ForeignKey(key, parent)))
    });
    let first = first + table.foreign_keys.len();
    let checks = (first..).zip(&table.checks);
    let checks = checks.map(|(number, check)| (number, TableConstraint::Check(check)));
    keys.chain(foreign).chain(checks).collect()
}

impl TableConstraint<'_> {
    /// Its name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Key(key) => &key.name,
            Self::ForeignKey(key, _) => &key.name,
            Self::Check(check) => &check.name,
        }
    }

    /// What `pg_get_constraintdef` says of it; `is_pretty`: without needless parentheses.
    pub(super) fn definition(&self, table: &ReferenceTable, is_pretty: bool) -> String {
        match self {
            Self::Key(key) => {
                let kind = if key.is_primary {
                    "PRIMARY KEY"
                } else {
                    "UNIQUE"
                };
                format!("{kind} ({})", names(table, &key.columns))
            }
            Self::ForeignKey(key, parent) => format!(
                "FOREIGN KEY ({}) REFERENCES {}({}){}{}",
                names(table, &key.columns),
                quoted(&parent.name),
                names(parent, &key.parent_columns),
                action(" ON UPDATE", key.on_update),
                action(" ON DELETE", key.on_delete),
            ),
            Self::Check(check) if is_pretty => format!("CHECK ({})", check.condition),
            Self::Check(check) => format!("CHECK (({}))", check.condition),
        }
    }
}

/// What a foreign key does, if it is not what happens anyway.
fn action(event: &str, action: ForeignKeyAction) -> String {
    match action {
        ForeignKeyAction::Refuse => String::new(),
        ForeignKeyAction::Cascade => format!("{event} CASCADE"),
        ForeignKeyAction::SetNull => format!("{event} SET NULL"),
    }
}

/// Columns, quoted where they must be.
pub(super) fn names(table: &ReferenceTable, ids: &[u32]) -> String {
    let names = table.names_of(ids).into_iter().map(quoted);
    names.collect::<Vec<_>>().join(", ")
}

/// An index of a table.
pub(super) struct TableIndex<'a> {
    /// Its name.
    pub name: &'a str,
    /// Ids of its columns.
    pub columns: &'a [u32],
    /// The key whose index it is; `None` for one whose columns may repeat.
    pub key: Option<&'a UniqueKey>,
}

/// The indexes of a table by number: those of its keys, then the others.
pub(super) fn indexes(table: &ReferenceTable) -> Vec<TableIndex<'_>> {
    let keys = table.keys.iter().map(|key| TableIndex {
        name: &key.name,
        columns: &key.columns,
        key: Some(key),
    });
    let others = table.indexes.iter().map(|index| TableIndex {
        name: &index.name,
        columns: &index.columns,
        key: None,
    });
    keys.chain(others).collect()
}

impl TableIndex<'_> {
    /// The statement that would create it, as `pg_get_indexdef` gives it.
    pub(super) fn definition(&self, table: &ReferenceTable) -> String {
        format!(
            "CREATE {}INDEX {} ON public.{} USING btree ({})",
            if self.key.is_some() { "UNIQUE " } else { "" },
            quoted(self.name),
            quoted(&table.name),
            names(table, self.columns)
        )
    }
}

/// The OID of a type in `pg_type`, and what a column says about its length (`atttypmod`).
pub(super) fn type_oid(kind: ReferenceType) -> (i32, i32) {
    /// Bytes of the header that PostgreSQL counts with lengths.
    const HEADER: i32 = 4;
    let length =
        |length: u32| i32::try_from(length).map_or(-1, |length| length.saturating_add(HEADER));
    match kind {
        ReferenceType::Bool => (16, -1),
        ReferenceType::Int2 => (21, -1),
        ReferenceType::Int4 => (23, -1),
        ReferenceType::Int8 => (20, -1),
        ReferenceType::Float4 => (700, -1),
        ReferenceType::Float8 => (701, -1),
        ReferenceType::Numeric { precision, scale } => {
            // A scale has eleven bits; negative ones are complements.
            let scale = i32::from(scale) & 0x7ff;
            (1700, ((i32::from(precision) << 16) | scale) + HEADER)
        }
        ReferenceType::Text => (25, -1),
        ReferenceType::Varchar(most) => (1043, length(most)),
        ReferenceType::Char(exact) => (1042, length(exact)),
        ReferenceType::Bytea => (17, -1),
        ReferenceType::Date => (1082, -1),
        ReferenceType::Time => (1083, -1),
        ReferenceType::Timestamp => (1114, -1),
        ReferenceType::TimestampTz => (1184, -1),
        ReferenceType::Interval => (1186, -1),
        ReferenceType::Uuid => (2950, -1),
        ReferenceType::Json => (114, -1),
        ReferenceType::Jsonb => (3802, -1),
    }
}

/// The bytes of a type's values (`attlen`); -1 where they differ.
pub(super) fn type_length(kind: ReferenceType) -> i16 {
    match kind {
        ReferenceType::Bool => 1,
        ReferenceType::Int2 => 2,
        ReferenceType::Int4 | ReferenceType::Float4 | ReferenceType::Date => 4,
        ReferenceType::Int8
        | ReferenceType::Float8
        | ReferenceType::Time
        | ReferenceType::Timestamp
        | ReferenceType::TimestampTz => 8,
        ReferenceType::Interval | ReferenceType::Uuid => 16,
        _ => -1,
    }
}

/// The name of a type in `pg_type`.
pub(super) fn type_name(kind: ReferenceType) -> &'static str {
    match kind {
        ReferenceType::Bool => "bool",
        ReferenceType::Int2 => "int2",
        ReferenceType::Int4 => "int4",
        ReferenceType::Int8 => "int8",
        ReferenceType::Float4 => "float4",
        ReferenceType::Float8 => "float8",
        ReferenceType::Numeric { .. } => "numeric",
        ReferenceType::Text => "text",
        ReferenceType::Varchar(_) => "varchar",
        ReferenceType::Char(_) => "bpchar",
        ReferenceType::Bytea => "bytea",
        ReferenceType::Date => "date",
        ReferenceType::Time => "time",
        ReferenceType::Timestamp => "timestamp",
        ReferenceType::TimestampTz => "timestamptz",
        ReferenceType::Interval => "interval",
        ReferenceType::Uuid => "uuid",
        ReferenceType::Json => "json",
        ReferenceType::Jsonb => "jsonb",
    }
}

/// The type's name in `information_schema`, which has no lengths.
pub(super) fn type_name_without_length(kind: ReferenceType) -> String {
    match kind {
        ReferenceType::Numeric { .. } => "numeric".to_owned(),
        ReferenceType::Varchar(_) => "character varying".to_owned(),
        ReferenceType::Char(_) => "character".to_owned(),
        other => other.to_string(),
    }
}

/// The columns that a condition names, by their numbers from 0.
pub(super) fn columns_in(table: &ReferenceTable, condition: &str) -> Vec<usize> {
    let is_inside = |sign: char| sign.is_alphanumeric() || sign == '_';
    let words: Vec<String> = condition
        .split(|sign| !is_inside(sign))
        .map(str::to_lowercase)
        .collect();
    let is_named = |name: &str| {
        let is_word = name.chars().all(is_inside);
        if is_word {
            words.contains(&name.to_lowercase())
        } else {
            condition.contains(&quoted(name))
        }
    };
    let columns = table.columns.iter().enumerate();
    let named = columns.filter(|(_, column)| is_named(&column.name));
    named.map(|(number, _)| number).collect()
}

/// The statement that would create a table. `all`: the tables of its database.
pub(crate) fn create_table(table: &ReferenceTable, all: &[Arc<ReferenceTable>]) -> String {
    let columns = table.columns.iter().map(|column| {
        let identity = column.identity.map(|identity| match identity {
            marigram_reference::IdentityKind::Always => " GENERATED ALWAYS AS IDENTITY",
            marigram_reference::IdentityKind::ByDefault => " GENERATED BY DEFAULT AS IDENTITY",
        });
        let default = column.default.as_ref();
        format!(
            "  {} {}{}{}{}",
            quoted(&column.name),
            column.kind.to_string().to_uppercase(),
            identity.unwrap_or_default(),
            default
                .map(|text| format!(" DEFAULT {text}"))
                .unwrap_or_default(),
            if column.is_nullable { "" } else { " NOT NULL" }
        )
    });
    let constraints = constraints(table, all).into_iter().map(|(_, constraint)| {
        format!(
            "  CONSTRAINT {} {}",
            quoted(constraint.name()),
            constraint.definition(table, true)
        )
    });
    let lines: Vec<String> = columns.chain(constraints).collect();
    let mut text = format!(
        "CREATE TABLE {} (\n{}\n)",
        quoted(&table.name),
        lines.join(",\n")
    );
    for index in indexes(table) {
        if index
            .key
            .is_none_or(|key| !key.is_constraint && !key.is_primary)
        {
            text.push_str(";\n");
            text.push_str(&index.definition(table).replace(" ON public.", " ON "));
        }
    }
    text
}

#[cfg(test)]
mod tests;
