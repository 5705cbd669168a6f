//! Reference tables as rows of `information_schema`.

use super::reference_text::{
    TableConstraint, columns_in, constraints, type_name, type_name_without_length,
};
use marigram_reference::{
    ForeignKey, ForeignKeyAction, IdentityKind, ReferenceColumn, ReferenceTable, ReferenceType,
};
use std::sync::Arc;

/// A row: texts by column.
pub(super) type InformationRow = Vec<(&'static str, String)>;

/// The reference tables of a database.
pub(super) struct DescribedDatabase<'a> {
    /// The database.
    pub database: &'a str,
    /// Its tables.
    pub tables: &'a [Arc<ReferenceTable>],
}

/// What a foreign key does.
fn rule(action: ForeignKeyAction) -> String {
    match action {
        ForeignKeyAction::Refuse => "NO ACTION",
        ForeignKeyAction::Cascade => "CASCADE",
        ForeignKeyAction::SetNull => "SET NULL",
    }
    .to_owned()
}

impl DescribedDatabase<'_> {
    /// What every row about a constraint begins with.
    fn of_constraint(&self, name: &str) -> InformationRow {
        vec![
            ("constraint_catalog", self.database.to_owned()),
            ("constraint_schema", "public".to_owned()),
            ("constraint_name", name.to_owned()),
        ]
    }

    /// What a row has about a table.
    fn of_table(&self, table: &ReferenceTable) -> InformationRow {
        vec![
            ("table_catalog", self.database.to_owned()),
            ("table_schema", "public".to_owned()),
            ("table_name", table.name.clone()),
        ]
    }

    /// Rows that `row` makes of each constraint.
    fn rows(
        &self,
        row: impl Fn(&ReferenceTable, &TableConstraint<'_>) -> Vec<InformationRow>,
    ) -> Vec<InformationRow> {
        let mut rows = Vec::new();
        for table in self.tables {
            for (_, constraint) in constraints(table, self.tables) {
                rows.extend(row(table, &constraint));
            }
        }
        rows
    }

    /// Rows of `table_constraints`.
    pub(super) fn table_constraints(&self) -> Vec<InformationRow> {
        self.rows(|table, constraint| {
            let kind = match constraint {
                TableConstraint::Key(key) if key.is_primary => "PRIMARY KEY",
                TableConstraint::Key(_) => "UNIQUE",
                TableConstraint::ForeignKey(..) => "FOREIGN KEY",
                TableConstraint::Check(_) => "CHECK",
            };
            let mut row = self.of_constraint(constraint.name());
            row.extend(self.of_table(table));
            row.extend([
                ("constraint_type", kind.to_owned()),
                ("is_deferrable", "NO".to_owned()),
                ("initially_deferred", "NO".to_owned()),
                ("enforced", "YES".to_owned()),
            ]);
            vec![row]
        })
    }

    /// Rows of `key_column_usage`: the columns of keys and foreign keys.
    pub(super) fn key_column_usage(&self) -> Vec<InformationRow> {
        self.rows(|table, constraint| {
            let (columns, foreign) = match constraint {
                TableConstraint::Key(key) => (&key.columns, None),
                TableConstraint::ForeignKey(key, parent) => (&key.columns, Some((*key, *parent))),
                TableConstraint::Check(_) => return Vec::new(),
            };
            let rows = table.names_of(columns).into_iter().enumerate();
            let rows = rows.map(|(place, name)| {
                let mut row = self.of_constraint(constraint.name());
                row.extend(self.of_table(table));
                row.push(("column_name", name.to_owned()));
                row.push(("ordinal_position", (place + 1).to_string()));
                let position = foreign.and_then(|(key, parent)| place_in_key(key, parent, place));
                row.extend(position.map(|at| ("position_in_unique_constraint", at.to_string())));
                row
            });
            rows.collect()
        })
    }

    /// Rows of `referential_constraints`: the foreign keys.
    pub(super) fn referential_constraints(&self) -> Vec<InformationRow> {
        self.rows(|_, constraint| {
            let TableConstraint::ForeignKey(key, parent) = constraint else {
                return Vec::new();
            };
            let mut row = self.of_constraint(&key.name);
            if let Some(unique) = key_of(key, parent) {
                row.extend([
                    ("unique_constraint_catalog", self.database.to_owned()),
                    ("unique_constraint_schema", "public".to_owned()),
                    ("unique_constraint_name", unique.name.clone()),
                ]);
            }
            row.extend([
                ("match_option", "NONE".to_owned()),
                ("update_rule", rule(key.on_update)),
                ("delete_rule", rule(key.on_delete)),
            ]);
            vec![row]
        })
    }

    /// Rows of `constraint_column_usage`: the columns of keys, those to which foreign keys refer, and
    /// those that checks name.
    pub(super) fn constraint_column_usage(&self) -> Vec<InformationRow> {
        self.rows(|table, constraint| {
            let (of, names) = match constraint {
                TableConstraint::Key(key) => (table, table.names_of(&key.columns)),
                TableConstraint::ForeignKey(key, parent) => {
                    (*parent, parent.names_of(&key.parent_columns))
                }
                TableConstraint::Check(check) => {
                    let columns = columns_in(table, &check.condition).into_iter();
                    let columns = columns.filter_map(|number| table.columns.get(number));
                    (table, columns.map(|column| column.name.as_str()).collect())
                }
            };
            let rows = names.into_iter().map(|name| {
                let mut row = self.of_table(of);
                row.push(("column_name", name.to_owned()));
                row.extend(self.of_constraint(constraint.name()));
                row
            });
            rows.collect()
        })
    }

    /// Rows of `check_constraints`.
    pub(super) fn check_constraints(&self) -> Vec<InformationRow> {
        self.rows(|_, constraint| {
            let TableConstraint::Check(check) = constraint else {
                return Vec::new();
            };
            let mut row = self.of_constraint(&check.name);
            row.push(("check_clause", format!("({})", check.condition)));
            vec![row]
        })
    }

    /// What DataFusion does not know of columns, by `known_table` and `known_column`.
    pub(super) fn columns(&self) -> Vec<InformationRow> {
        let of_table = |table: &Arc<ReferenceTable>| {
            let rows = table.columns.iter().map(|column| {
                let mut row = vec![("known_table", table.name.clone())];
                row.extend(of_column(column));
                row
            });
            rows.collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(of_table).collect()
    }
}

/// The key to which a foreign key refers.
fn key_of<'a>(
    key: &ForeignKey,
    parent: &'a ReferenceTable,
) -> Option<&'a marigram_reference::UniqueKey> {
    let same = |ids: &[u32]| {
        ids.len() == key.parent_columns.len()
            && ids.iter().all(|id| key.parent_columns.contains(id))
    };
    parent.keys.iter().find(|unique| same(&unique.columns))
}

/// The place, from 1, in the parent's key of the column to which a foreign key's column refers.
fn place_in_key(key: &ForeignKey, parent: &ReferenceTable, place: usize) -> Option<usize> {
    let column = key.parent_columns.get(place)?;
    let unique = key_of(key, parent)?;
    Some(1 + unique.columns.iter().position(|id| id == column)?)
}

/// The columns of [`DescribedDatabase::columns`], with the signs of their types.
pub(super) const COLUMNS: &str = "known_table known_column known_data_type known_udt_name known_is_nullable \
     known_column_default known_is_identity known_identity_generation \
     known_character_maximum_length# known_numeric_precision# known_numeric_precision_radix# \
     known_numeric_scale#";

fn of_column(column: &ReferenceColumn) -> InformationRow {
    let mut row = vec![
        ("known_column", column.name.clone()),
        ("known_data_type", type_name_without_length(column.kind)),
        ("known_udt_name", type_name(column.kind).to_owned()),
        (
            "known_is_nullable",
            if column.is_nullable { "YES" } else { "NO" }.to_owned(),
        ),
    ];
    let default = column.default.clone();
    row.extend(default.map(|text| ("known_column_default", text)));
    if let Some(identity) = column.identity {
        let generation = match identity {
            IdentityKind::Always => "ALWAYS",
            IdentityKind::ByDefault => "BY DEFAULT",
        };
        row.push(("known_is_identity", "YES".to_owned()));
        row.push(("known_identity_generation", generation.to_owned()));
    }
    match column.kind {
        ReferenceType::Varchar(length) | ReferenceType::Char(length) => {
            row.push(("known_character_maximum_length", length.to_string()));
        }
        ReferenceType::Numeric { precision, scale } => row.extend([
            ("known_numeric_precision", precision.to_string()),
            ("known_numeric_precision_radix", "10".to_owned()),
            ("known_numeric_scale", scale.to_string()),
        ]),
        _ => {}
    }
    row
}
