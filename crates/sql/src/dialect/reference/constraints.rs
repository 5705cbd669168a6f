//! The constraints of reference tables: keys, foreign keys and checks.

use super::conditions::condition;
use crate::dialect::identifiers::target_of;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ConstraintCharacteristics, ConstraintReferenceMatchKind, Expr,
    ForeignKeyConstraint, Ident, IndexColumn, NullsDistinctOption, ReferentialAction,
    TableConstraint,
};
use marigram_reference::{ForeignKeyAction, NewConstraint};

/// A constraint that stands on its own in `CREATE TABLE`, or after `ADD`.
///
/// # Errors
/// 0A000 for what reference tables do not check.
pub(super) fn table_constraint(
    constraint: &TableConstraint,
    database: Option<&String>,
) -> SqlResult<NewConstraint> {
    match constraint {
        TableConstraint::PrimaryKey(key) => {
            check_enforced(key.characteristics.as_ref())?;
            Ok(NewConstraint::Key {
                name: key.name.as_ref().map(fold_case),
                columns: key_columns(&key.columns)?,
                is_primary: true,
            })
        }
        TableConstraint::Unique(key) => {
            check_enforced(key.characteristics.as_ref())?;
            if key.nulls_distinct == NullsDistinctOption::NotDistinct {
                return Err(nulls_are_distinct());
            }
            Ok(NewConstraint::Key {
                name: key.name.as_ref().map(fold_case),
                columns: key_columns(&key.columns)?,
                is_primary: false,
            })
        }
        TableConstraint::ForeignKey(key) => {
            let columns = key.columns.iter().map(fold_case).collect();
            foreign_key(key.name.as_ref(), columns, key, database)
        }
        TableConstraint::Check(check) => check_constraint(check.name.as_ref(), check),
        TableConstraint::PrimaryKeyUsingIndex(_) | TableConstraint::UniqueUsingIndex(_) => {
            Err(SqlError::unsupported(
                "a key from an index is not supported; name its columns, as in ADD UNIQUE (a, b)",
            ))
        }
        TableConstraint::Index(_) | TableConstraint::FulltextOrSpatial(_) => Err(
            SqlError::unsupported("a table declares no index; CREATE INDEX ON t (a, b) makes one"),
        ),
    }
}

/// A foreign key of these columns.
///
/// # Errors
/// 0A000 for what reference tables do not do, and for tables of other databases.
pub(super) fn foreign_key(
    name: Option<&Ident>,
    columns: Vec<String>,
    key: &ForeignKeyConstraint,
    database: Option<&String>,
) -> SqlResult<NewConstraint> {
    check_enforced(key.characteristics.as_ref())?;
    let is_simple = match key.match_kind {
        None | Some(ConstraintReferenceMatchKind::Simple) => true,
        // With one column, there is no difference.
        Some(ConstraintReferenceMatchKind::Full) => columns.len() == 1,
        Some(ConstraintReferenceMatchKind::Partial) => false,
    };
    if !is_simple {
        return Err(SqlError::named(
            "0A000",
            "MATCH",
            "only MATCH SIMPLE is supported: a row with a NULL in its foreign key refers to none",
        ));
    }
    let parts = key.foreign_table.0.iter();
    let parts: Option<Vec<String>> = parts.map(|part| part.as_ident().map(fold_case)).collect();
    let Some(parent) = parts.and_then(|parts| target_of(&parts)) else {
        let message = format!("'{}' is not the name of a table", key.foreign_table);
        return Err(SqlError::syntax(message));
    };
    if parent.database.is_some() && parent.database.as_ref() != database {
        let message = format!(
            "a foreign key refers to a table of its own database: write REFERENCES {}",
            parent.table
        );
        return Err(SqlError::named("0A000", &parent.table, message));
    }
    Ok(NewConstraint::ForeignKey {
        name: name.map(fold_case),
        columns,
        parent: parent.table,
        parent_columns: key.referred_columns.iter().map(fold_case).collect(),
        on_delete: action(key.on_delete)?,
        on_update: action(key.on_update)?,
    })
}

/// A check.
///
/// # Errors
/// 0A000 if it has a subquery, or is not to be enforced.
pub(super) fn check_constraint(
    name: Option<&Ident>,
    check: &CheckConstraint,
) -> SqlResult<NewConstraint> {
    if check.enforced == Some(false) {
        return Err(not_enforced());
    }
    let condition = condition(&check.expr)?;
    let mut columns = condition.columns.into_iter();
    let column = columns.next().filter(|_| columns.next().is_none());
    Ok(NewConstraint::Check {
        name: name.map(fold_case),
        condition: condition.text,
        column,
    })
}

/// Refuses a constraint that is not to be enforced. When one is checked does not matter: at once.
///
/// # Errors
/// 0A000
pub(super) fn check_enforced(how: Option<&ConstraintCharacteristics>) -> SqlResult<()> {
    match how.and_then(|how| how.enforced) {
        Some(false) => Err(not_enforced()),
        _ => Ok(()),
    }
}

fn not_enforced() -> SqlError {
    SqlError::named(
        "0A000",
        "ENFORCED",
        "constraints are always enforced; leave the constraint out",
    )
}

/// The error for keys in which a NULL equals a NULL.
pub(super) fn nulls_are_distinct() -> SqlError {
    SqlError::named(
        "0A000",
        "NULLS",
        "UNIQUE … NULLS NOT DISTINCT is not supported: declare the columns NOT NULL",
    )
}

fn action(written: Option<ReferentialAction>) -> SqlResult<ForeignKeyAction> {
    match written {
        None | Some(ReferentialAction::NoAction | ReferentialAction::Restrict) => {
            Ok(ForeignKeyAction::Refuse)
        }
        Some(ReferentialAction::Cascade) => Ok(ForeignKeyAction::Cascade),
        Some(ReferentialAction::SetNull) => Ok(ForeignKeyAction::SetNull),
        Some(ReferentialAction::SetDefault) => Err(SqlError::unsupported(
            "SET DEFAULT is not supported in a foreign key; there are NO ACTION, RESTRICT, CASCADE and SET \
             NULL",
        )),
    }
}

/// The columns of a key.
fn key_columns(written: &[IndexColumn]) -> SqlResult<Vec<String>> {
    let names = written.iter().map(|column| match &column.column.expr {
        Expr::Identifier(name) => Ok(fold_case(name)),
        other => Err(SqlError::syntax(format!(
            "a key consists of columns, and '{other}' is an expression"
        ))),
    });
    names.collect()
}
