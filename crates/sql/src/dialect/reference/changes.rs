//! What INSERT, UPDATE and DELETE may have of reference tables alone: `ON CONFLICT`, `RETURNING`, `OVERRIDING`
//! and defaults.
//!
//! DataFusion's planner refuses all of it, with words that suit tables of series. So whoever executes a
//! statement about a reference table takes it out of the syntax tree first.

use super::tokens::{HINT_PREFIX, OVERRIDING_SYSTEM, OVERRIDING_USER};
use crate::dialect::grammar::MarigramDialect;
use crate::dialect::inserted_lists::{fill_inserted, is_default};
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, AssignmentTarget, Expr, Ident, Insert, ObjectName, OnConflict,
    OnConflictAction, OnInsert, OptimizerHint, Query, SelectItem, SetExpr, Statement, Update,
    Value,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::collections::{BTreeSet, HashMap};

/// What is taken out of a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DmlExtras {
    /// `ON CONFLICT`
    pub on_conflict: Option<ConflictClause>,
    /// `RETURNING`
    pub returning: Option<Vec<SelectItem>>,
    /// `OVERRIDING … VALUE`
    pub overriding: Option<Overriding>,
}

/// Whose values identity columns get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overriding {
    /// `OVERRIDING SYSTEM VALUE`: those of the statement, also in columns that are generated always.
    System,
    /// `OVERRIDING USER VALUE`: those of the table; the statement's are left out.
    User,
}

/// `ON CONFLICT`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConflictClause {
    /// The key.
    pub target: ConflictTarget,
    /// What happens to a row that has the key of another.
    pub action: ConflictAction,
}

/// The key of an `ON CONFLICT`, as it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConflictTarget {
    /// Any key.
    Any,
    /// The key of these columns.
    Columns(Vec<String>),
    /// The key with this name.
    Constraint(String),
}

/// What happens to a row that has the key of another.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a statement has one")]
pub(crate) enum ConflictAction {
    /// It is left out.
    Nothing,
    /// The row that is there changes.
    Update {
        /// Its columns and their new values, which may name those of the other row by `excluded`, and may be
        /// the word DEFAULT.
        assignments: Vec<(String, Expr)>,
        /// Only if this is true.
        condition: Option<Expr>,
    },
}

/// Takes out of a statement what the planner refuses.
///
/// # Errors
/// 0A000 for forms of other databases, 42601 for an `ON CONFLICT` that does not say what it changes.
pub(crate) fn take_extras(statement: &mut Statement) -> SqlResult<DmlExtras> {
    let mut extras = DmlExtras::default();
    match statement {
        Statement::Insert(insert) => {
            extras.returning = insert.returning.take();
            extras.overriding = insert.optimizer_hints.iter().find_map(overriding);
            insert
                .optimizer_hints
                .retain(|hint| overriding(hint).is_none());
            extras.on_conflict = match insert.on.take() {
                None => None,
                Some(OnInsert::OnConflict(clause)) => Some(conflict_clause(clause)?),
                Some(_) => {
                    let message = "ON DUPLICATE KEY UPDATE is not supported; write ON CONFLICT (key) DO \
                                   UPDATE SET a = excluded.a";
                    return Err(SqlError::named("0A000", "DUPLICATE", message));
                }
            };
        }
        Statement::Update(update) => extras.returning = update.returning.take(),
        Statement::Delete(delete) => extras.returning = delete.returning.take(),
        _ => {}
    }
    Ok(extras)
}

/// What a hint says of `OVERRIDING`.
fn overriding(hint: &OptimizerHint) -> Option<Overriding> {
    match hint.text.as_str() {
        _ if hint.prefix != HINT_PREFIX => None,
        OVERRIDING_SYSTEM => Some(Overriding::System),
        OVERRIDING_USER => Some(Overriding::User),
        _ => None,
    }
}

/// Refuses what only reference tables have, in a statement about another table.
///
/// # Errors
/// 0A000
pub(crate) fn refuse_extras(statement: &Statement) -> SqlResult<()> {
    let (verb, clause) = match statement {
        Statement::Insert(insert) if insert.on.is_some() => ("INSERT", "ON CONFLICT"),
        Statement::Insert(insert) if insert.returning.is_some() => ("INSERT", "RETURNING"),
        Statement::Insert(insert) if insert.optimizer_hints.iter().any(is_overriding) => {
            ("INSERT", "OVERRIDING")
        }
        Statement::Update(update) if update.returning.is_some() => ("UPDATE", "RETURNING"),
        Statement::Delete(delete) if delete.returning.is_some() => ("DELETE", "RETURNING"),
        _ => return Ok(()),
    };
    let instead = if verb == "INSERT" {
        "a row of the same tags and time replaces the other"
    } else {
        "SELECT the rows first"
    };
    let message = format!("{verb} … {clause} is not supported; {instead}");
    Err(SqlError::unsupported(message))
}

fn is_overriding(hint: &OptimizerHint) -> bool {
    overriding(hint).is_some()
}

fn conflict_clause(written: OnConflict) -> SqlResult<ConflictClause> {
    let target = match written.conflict_target {
        None => ConflictTarget::Any,
        Some(ast::ConflictTarget::Columns(columns)) => {
            ConflictTarget::Columns(columns.iter().map(fold_case).collect())
        }
        Some(ast::ConflictTarget::OnConstraint(name)) => {
            ConflictTarget::Constraint(last_name(&name)?)
        }
    };
    let action = match written.action {
        OnConflictAction::DoNothing => ConflictAction::Nothing,
        OnConflictAction::DoUpdate(_) if target == ConflictTarget::Any => {
            return Err(SqlError::syntax(
                "ON CONFLICT DO UPDATE needs a key: ON CONFLICT (column, …), or ON CONFLICT ON CONSTRAINT name",
            ));
        }
        OnConflictAction::DoUpdate(update) => ConflictAction::Update {
            assignments: assignments(update.assignments)?,
            condition: update.selection,
        },
    };
    Ok(ConflictClause { target, action })
}

/// Columns and their new values. `(a, b) = (1, 2)` stands for two.
fn assignments(written: Vec<Assignment>) -> SqlResult<Vec<(String, Expr)>> {
    let mut assigned = Vec::with_capacity(written.len());
    for Assignment { target, value } in written {
        match target {
            AssignmentTarget::ColumnName(name) => assigned.push((last_name(&name)?, value)),
            AssignmentTarget::Tuple(names) => {
                let values = match value {
                    Expr::Tuple(values) if values.len() == names.len() => values,
                    Expr::Nested(value) if names.len() == 1 => vec![*value],
                    _ => {
                        return Err(SqlError::unsupported(
                            "SET (a, b) takes as many values in parentheses; for others, write SET a = …, b = …",
                        ));
                    }
                };
                for (name, value) in names.iter().zip(values) {
                    assigned.push((last_name(name)?, value));
                }
            }
        }
    }
    let mut seen = BTreeSet::new();
    if let Some((name, _)) = assigned
        .iter()
        .find(|(name, _)| !seen.insert(name.as_str()))
    {
        let message = format!("column '{name}' is assigned twice");
        return Err(SqlError::named("42601", name, message));
    }
    Ok(assigned)
}

/// Makes each assignment of an UPDATE one of a single column: `(a, b) = (1, 2)` and
/// `(a, b) = (SELECT c, d …)` stand for two.
///
/// # Errors
/// 42601 if there are more or fewer values than columns, or a column is assigned twice.
pub(crate) fn divide_assignments(update: &mut Update) -> SqlResult<()> {
    let mut divided = Vec::with_capacity(update.assignments.len());
    for Assignment { target, value } in std::mem::take(&mut update.assignments) {
        match (target, value) {
            (AssignmentTarget::Tuple(names), Expr::Subquery(query)) => {
                let values = columns_of(&query, names.len())?;
                for (name, value) in names.into_iter().zip(values) {
                    let target = AssignmentTarget::ColumnName(name);
                    divided.push(Assignment { target, value });
                }
            }
            (target, value) => divided.push(Assignment { target, value }),
        }
    }
    let assignments = assignments(divided)?.into_iter();
    let assignments = assignments.map(|(name, value)| Assignment {
        target: AssignmentTarget::ColumnName(quoted(&name)),
        value,
    });
    update.assignments = assignments.collect();
    Ok(())
}

/// The columns of a subquery, each as a subquery of its own.
fn columns_of(query: &Query, count: usize) -> SqlResult<Vec<Expr>> {
    let width = match &*query.body {
        SetExpr::Select(select) => select.projection.len(),
        _ => 0,
    };
    if width != count {
        let message = "number of columns does not match number of values";
        return Err(SqlError::syntax(message));
    }
    let columns = (0..count).map(|at| {
        let mut own = query.clone();
        if let SetExpr::Select(select) = &mut *own.body {
            select.projection = vec![select.projection.swap_remove(at)];
        }
        Expr::Subquery(Box::new(own))
    });
    Ok(columns.collect())
}

/// The column of an assignment that is [divided](divide_assignments).
///
/// # Errors
/// If it has another form.
pub(crate) fn assigned_column(assignment: &Assignment) -> SqlResult<String> {
    match &assignment.target {
        AssignmentTarget::ColumnName(name) => last_name(name),
        AssignmentTarget::Tuple(_) => Err(SqlError::syntax("an assignment names one column")),
    }
}

pub(super) fn last_name(name: &ObjectName) -> SqlResult<String> {
    let ident = name.0.last().and_then(|part| part.as_ident());
    ident
        .map(fold_case)
        .ok_or_else(|| SqlError::syntax(format!("'{name}' is not a name")))
}

/// Replaces the word DEFAULT in the rows of an INSERT and in the assignments of an UPDATE, and `DEFAULT VALUES`
/// by a row: by the default of each column, or NULL where there is none and where the table numbers its rows.
/// `columns` are those of the table, in their order.
///
/// # Errors
/// If the statement names what cannot be a column.
pub(crate) fn fill_defaults(
    statement: &mut Statement,
    columns: &[String],
    defaults: &HashMap<String, Expr>,
) -> SqlResult<()> {
    match statement {
        Statement::Insert(insert) => fill_rows(insert, columns, defaults),
        Statement::Update(update) => fill_assignments(update, defaults),
        _ => Ok(()),
    }
}

fn fill_rows(
    insert: &mut Insert,
    columns: &[String],
    defaults: &HashMap<String, Expr>,
) -> SqlResult<()> {
    if insert.source.is_none() && insert.assignments.is_empty() {
        insert.columns = columns.iter().map(|name| quoted(name)).collect();
        let values = columns.iter().map(|name| default_of(name, defaults));
        insert.source = Some(Box::new(row(values.collect())?));
        return Ok(());
    }
    let named: Vec<String> = if insert.columns.is_empty() {
        columns.to_vec()
    } else {
        let names = insert.columns.iter().map(last_name);
        names.collect::<SqlResult<_>>()?
    };
    fill_inserted(insert, &mut |at| match named.get(at) {
        Some(name) => default_of(name, defaults),
        None => Expr::value(Value::Null),
    });
    Ok(())
}

fn fill_assignments(update: &mut Update, defaults: &HashMap<String, Expr>) -> SqlResult<()> {
    for Assignment { target, value } in &mut update.assignments {
        match (target, value) {
            (AssignmentTarget::ColumnName(name), value) if is_default(value) => {
                *value = default_of(&last_name(name)?, defaults);
            }
            (AssignmentTarget::Tuple(names), Expr::Tuple(values)) => {
                for (name, value) in names.iter().zip(values) {
                    if is_default(value) {
                        *value = default_of(&last_name(name)?, defaults);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn default_of(column: &str, defaults: &HashMap<String, Expr>) -> Expr {
    let default = defaults.get(column).cloned();
    default.unwrap_or_else(|| Expr::value(Value::Null))
}

pub(super) fn quoted(name: &str) -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('"', name)])
}

/// `VALUES (…)` with one row.
fn row(values: Vec<Expr>) -> SqlResult<Query> {
    let mut query = Parser::new(&MarigramDialect)
        .try_with_sql("VALUES (NULL)")?
        .parse_query()?;
    if let SetExpr::Values(list) = &mut *query.body
        && let Some(first) = list.rows.first_mut()
    {
        first.content = values;
    }
    Ok(*query)
}

#[cfg(test)]
mod tests;
