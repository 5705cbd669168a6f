//! Plans a change of a reference table: what the planner of DataFusion does not know is taken out of the
//! statement first, and put around its plan afterwards.

use super::change_node::{ConflictPlan, ConflictUpdate, ReferenceChangeNode};
use super::joined_change::{change_from_join, empty_query, take_join};
use super::row_expressions::{
    analyzed, assigned, conflict_schema, logical, parse_expression, table_schema,
};
use crate::dialect::column_names::name_of_item;
use crate::dialect::identifiers::target_of;
use crate::dialect::inserted_columns::name_columns;
use crate::dialect::reference::changes::{
    ConflictAction, ConflictClause, ConflictTarget, DmlExtras, Overriding, divide_assignments,
    fill_defaults, refuse_extras, take_extras,
};
use crate::dialect::reference::identities::take_identities;
use crate::dialect::statement::TableReferenceName;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue, TableReference};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    DmlStatement, Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, WriteOp, lit,
};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, FromTable, Ident, ObjectName, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableFactor, TableObject, TableWithJoins,
};
use marigram_reference::{IdentityKind, ReferenceTable};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The change of a reference table that a statement makes, without what was left in the statement.
#[derive(Debug)]
pub(crate) struct TakenChange {
    table: Arc<ReferenceTable>,
    /// The name by which the statement calls the table.
    alias: String,
    extras: DmlExtras,
    /// What happens to the rows of a join, if the statement became a query.
    joined: Option<WriteOp>,
    /// The identity columns to which an INSERT gives values, so far as it is known yet.
    given: Vec<String>,
}

/// The table that a statement changes, and the name by which the statement calls it.
pub(crate) fn changed_table(statement: &ast::Statement) -> Option<(TableReferenceName, String)> {
    let (name, alias): (&ObjectName, Option<&Ident>) = match statement {
        ast::Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => {
                let alias = insert.table_alias.as_ref();
                (name, alias.map(|alias| &alias.alias))
            }
            _ => return None,
        },
        ast::Statement::Update(update) => named(&update.table)?,
        ast::Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            named(from.first()?)?
        }
        _ => return None,
    };
    let parts: Option<Vec<String>> = name
        .0
        .iter()
        .map(|part| part.as_ident().map(fold_case))
        .collect();
    let target = target_of(&parts?)?;
    let alias = alias.map_or_else(|| target.table.clone(), fold_case);
    Some((target, alias))
}

fn named(from: &TableWithJoins) -> Option<(&ObjectName, Option<&Ident>)> {
    match &from.relation {
        TableFactor::Table { name, alias, .. } => {
            Some((name, alias.as_ref().map(|alias| &alias.name)))
        }
        _ => None,
    }
}

/// Takes out of a statement what DataFusion does not plan, if it changes a reference table. `table_of` finds
/// reference tables.
///
/// # Errors
/// If another table cannot do what the statement asks for.
pub(crate) fn take_change(
    statement: &mut Statement,
    table_of: &dyn Fn(&TableReferenceName) -> Option<Arc<ReferenceTable>>,
) -> SqlResult<Option<TakenChange>> {
    let Statement::Statement(inner) = &mut *statement else {
        return Ok(None);
    };
    let Some((target, alias)) = changed_table(inner) else {
        return Ok(None);
    };
    let Some(table) = table_of(&target) else {
        refuse_extras(inner)?;
        return Ok(None);
    };
    let extras = take_extras(inner)?;
    let (columns, defaults) = (table_columns(&table), default_expressions(&table)?);
    if let ast::Statement::Update(update) = &mut **inner {
        divide_assignments(update)?;
    }
    let mut given = Vec::new();
    if let ast::Statement::Insert(insert) = &mut **inner {
        let identities = table.columns.iter().filter(|it| it.identity.is_some());
        let identities: Vec<String> = identities.map(|it| it.name.clone()).collect();
        if !identities.is_empty() {
            given = take_identities(insert, &columns, &identities)?;
        }
    }
    fill_defaults(inner, &columns, &defaults)?;
    let joined = take_join(inner, &table, &alias)?;
    name_columns(statement, &|_| Some(columns.clone()))?;
    if let Statement::Statement(inner) = statement
        && let ast::Statement::Insert(insert) = &mut **inner
    {
        insert.table_alias = None;
        add_defaults(insert, &table, defaults)?;
    }
    Ok(Some(TakenChange {
        table,
        alias,
        extras,
        joined,
        given,
    }))
}

fn table_columns(table: &ReferenceTable) -> Vec<String> {
    table.columns.iter().map(|it| it.name.clone()).collect()
}

fn default_expressions(table: &ReferenceTable) -> SqlResult<HashMap<String, ast::Expr>> {
    let defaults = table.columns.iter().filter_map(|column| {
        let text = column.default.as_ref()?;
        Some(parse_expression(text).map(|expr| (column.name.clone(), expr)))
    });
    defaults.collect()
}

/// Gives columns that an INSERT leaves out their defaults.
fn add_defaults(
    insert: &mut ast::Insert,
    table: &ReferenceTable,
    mut defaults: HashMap<String, ast::Expr>,
) -> SqlResult<()> {
    let (false, Some(source)) = (insert.columns.is_empty(), &mut insert.source) else {
        return Ok(());
    };
    for name in &insert.columns {
        let name = name.0.last().and_then(|part| part.as_ident());
        let name = name.map(fold_case).unwrap_or_default();
        if table.column(&name).is_none() {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
            return Err(SqlError::named("42703", &name, message));
        }
        defaults.remove(&name);
    }
    // In the order of the table.
    let left = table.columns.iter();
    let left = left.filter_map(|it| Some((it.name.clone(), defaults.remove(&it.name)?)));
    let (names, values): (Vec<String>, Vec<ast::Expr>) = left.unzip();
    if names.is_empty() {
        return Ok(());
    }
    let quoted = names
        .iter()
        .map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
    insert.columns.extend(quoted);
    if let SetExpr::Values(rows) = &mut *source.body {
        for row in &mut rows.rows {
            row.content.extend(values.iter().cloned());
        }
        return Ok(());
    }
    let given = std::mem::replace(&mut **source, empty_query()?);
    let SetExpr::Select(select) = &mut *source.body else {
        return Ok(());
    };
    add_to_select(select, given, values);
    Ok(())
}

/// Makes `select` the columns of `given`, and `values` after them.
fn add_to_select(select: &mut Select, given: ast::Query, values: Vec<ast::Expr>) {
    let alias = ast::TableAlias {
        explicit: true,
        name: Ident::with_quote('"', "given rows"),
        columns: Vec::new(),
        at: None,
    };
    select.from = vec![TableWithJoins {
        relation: TableFactor::Derived {
            lateral: false,
            subquery: Box::new(given),
            alias: Some(alias),
            sample: None,
        },
        joins: Vec::new(),
    }];
    let all = SelectItem::Wildcard(ast::WildcardAdditionalOptions::default());
    let items = values.into_iter().enumerate().map(|(at, expr)| {
        let alias = Ident::with_quote('"', format!("default value {at}"));
        SelectItem::ExprWithAlias { expr, alias }
    });
    select.projection = std::iter::once(all).chain(items).collect();
}

impl TakenChange {
    /// The database of a table whose rows the statement tells of, besides changing them.
    pub(crate) fn reads_from(&self) -> Option<&str> {
        let update = self.extras.on_conflict.as_ref();
        let updates = update.is_some_and(|it| matches!(it.action, ConflictAction::Update { .. }));
        let reads = updates || self.extras.returning.is_some();
        reads.then_some(self.table.database.as_str())
    }

    /// The change for which the plan of its rows stands.
    ///
    /// # Errors
    /// If a value does not have the type of its column.
    pub(crate) fn change_of_rows(&self, plan: LogicalPlan) -> SqlResult<LogicalPlan> {
        match &self.joined {
            Some(op) => change_from_join(&plan, &self.table, op),
            None => Ok(plan),
        }
    }

    /// The statement's plan, with what was taken out of it.
    ///
    /// # Errors
    /// If RETURNING or ON CONFLICT cannot be planned.
    pub(crate) fn around(
        self,
        state: &SessionState,
        change: LogicalPlan,
    ) -> SqlResult<LogicalPlan> {
        let own = table_schema(&self.table, &self.alias)?;
        let returning = match &self.extras.returning {
            Some(items) => Some(returning(state, items, &own)?),
            None => None,
        };
        let conflict = match &self.extras.on_conflict {
            Some(clause) => Some(self.conflict(state, clause)?),
            None => None,
        };
        let change = self.numbered_anew(change)?;
        let given = self.check_identities(&change)?;
        let overrides = self.extras.overriding == Some(Overriding::System);
        let schema = returning_schema(returning.as_deref().unwrap_or_default(), &own)?;
        let node = ReferenceChangeNode {
            change,
            conflict,
            returning,
            schema,
            given,
            overrides,
        };
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        }))
    }

    /// The change without the numbers that OVERRIDING USER VALUE leaves out.
    fn numbered_anew(&self, change: LogicalPlan) -> SqlResult<LogicalPlan> {
        let LogicalPlan::Dml(dml) = &change else {
            return Ok(change);
        };
        let LogicalPlan::Projection(projection) = &*dml.input else {
            return Ok(change);
        };
        if self.extras.overriding != Some(Overriding::User) {
            return Ok(change);
        }
        let values = projection.expr.iter().zip(&self.table.columns);
        let values = values.map(|(value, column)| match column.identity {
            Some(_) => {
                let null = ScalarValue::try_new_null(&column.kind.data_type())?;
                Ok(lit(null).alias(&column.name))
            }
            None => Ok(value.clone()),
        });
        let values = values.collect::<SqlResult<Vec<_>>>()?;
        let rows = LogicalPlanBuilder::from(projection.input.as_ref().clone());
        Ok(LogicalPlan::Dml(DmlStatement::new(
            dml.table_name.clone(),
            Arc::clone(&dml.target),
            dml.op.clone(),
            Arc::new(rows.project(values)?.build()?),
        )))
    }

    /// Refuses values for columns that the table alone numbers. Returns the positions of the identity columns to
    /// which an INSERT gives values.
    fn check_identities(&self, change: &LogicalPlan) -> SqlResult<Vec<usize>> {
        let columns = self.table.columns.iter().enumerate();
        let identities = columns.filter(|(_, it)| it.identity.is_some());
        let mut all_given = Vec::new();
        let LogicalPlan::Dml(dml) = change else {
            return Ok(all_given);
        };
        let LogicalPlan::Projection(projection) = &*dml.input else {
            return Ok(all_given);
        };
        for (at, column) in identities {
            let given = projection.expr.get(at).is_some_and(|expr| {
                let expr = expr.clone().unalias();
                !matches!(&expr, Expr::Literal(value, _) if value.is_null())
                    && !matches!(&expr, Expr::Cast(cast)
                        if matches!(&*cast.expr, Expr::Literal(value, _) if value.is_null()))
                    && !matches!(&expr, Expr::Column(own) if own.name == column.name
                        && !matches!(dml.op, WriteOp::Insert(_)))
            });
            let is_insert = matches!(dml.op, WriteOp::Insert(_));
            if given && is_insert && self.given.contains(&column.name) {
                all_given.push(at);
            }
            let is_always = column.identity == Some(IdentityKind::Always);
            if given && is_always && self.extras.overriding.is_none() {
                let message = format!(
                    "cannot insert a non-DEFAULT value into column \"{}\": it is an identity column \
                     defined as GENERATED ALWAYS",
                    column.name
                );
                return Err(SqlError::named("428C9", &column.name, message));
            }
        }
        Ok(all_given)
    }

    fn conflict(&self, state: &SessionState, clause: &ConflictClause) -> SqlResult<ConflictPlan> {
        let table = &self.table;
        let key = match &clause.target {
            ConflictTarget::Any => None,
            ConflictTarget::Columns(names) => Some(self.key_of(names)?),
            ConflictTarget::Constraint(name) => {
                let key = table.keys.iter().find(|key| key.name == *name);
                let key = key.ok_or_else(|| {
                    let message = format!(
                        "constraint \"{name}\" for table \"{}\" does not exist",
                        table.name
                    );
                    SqlError::named("42704", name, message)
                })?;
                let positions = key.columns.iter().filter_map(|id| table.position(*id));
                Some(positions.collect())
            }
        };
        let update = match &clause.action {
            ConflictAction::Nothing => None,
            ConflictAction::Update { .. } if key.is_none() => {
                let message =
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                return Err(SqlError::syntax(message));
            }
            ConflictAction::Update {
                assignments,
                condition,
            } => Some(self.conflict_update(state, assignments, condition.as_ref())?),
        };
        Ok(ConflictPlan { key, update })
    }

    fn conflict_update(
        &self,
        state: &SessionState,
        assignments: &[(String, ast::Expr)],
        condition: Option<&ast::Expr>,
    ) -> SqlResult<ConflictUpdate> {
        let table = &self.table;
        let both = conflict_schema(table, &self.alias)?;
        let defaults = default_expressions(table)?;
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for (name, value) in assignments {
            let at = table.columns.iter().position(|it| it.name == *name);
            let at = at.ok_or_else(|| {
                let message = format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    table.name
                );
                SqlError::named("42703", name, message)
            })?;
            let is_default = matches!(value, ast::Expr::Identifier(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"));
            let value = if is_default {
                let null = || ast::Expr::Value(ast::Value::Null.into());
                defaults.get(name).cloned().unwrap_or_else(null)
            } else {
                self.qualified(value.clone())
            };
            columns.push(at);
            let kind = table.columns[at].kind.data_type();
            values.push(assigned(state, value, &both, &kind)?);
        }
        let condition =
            condition.map(|condition| logical(state, self.qualified(condition.clone()), &both));
        Ok(ConflictUpdate {
            columns,
            values,
            condition: condition.transpose()?,
        })
    }

    /// An expression in which bare names are those of the row that is there.
    fn qualified(&self, mut expr: ast::Expr) -> ast::Expr {
        let _ = ast::visit_expressions_mut(&mut expr, |part| {
            if let ast::Expr::Identifier(name) = part
                && self.table.column(&fold_case(name)).is_some()
            {
                let alias = Ident::with_quote('"', &self.alias);
                *part = ast::Expr::CompoundIdentifier(vec![alias, name.clone()]);
            }
            std::ops::ControlFlow::<()>::Continue(())
        });
        expr
    }

    /// The positions of the columns of a unique key.
    fn key_of(&self, names: &[String]) -> SqlResult<Vec<usize>> {
        let table = &self.table;
        let mut wanted = Vec::new();
        for name in names {
            let column = table.column(name).ok_or_else(|| {
                let message = format!("column \"{name}\" does not exist");
                SqlError::named("42703", name, message)
            })?;
            wanted.push(column.id);
        }
        let is_same = |columns: &[u32]| {
            columns.len() == wanted.len() && columns.iter().all(|id| wanted.contains(id))
        };
        let key = table.keys.iter().find(|key| is_same(&key.columns));
        let key = key.ok_or_else(|| {
            let message =
                "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            SqlError::invalid("42P10", message)
        })?;
        Ok(key
            .columns
            .iter()
            .filter_map(|id| table.position(*id))
            .collect())
    }
}

/// The expressions of RETURNING.
fn returning(state: &SessionState, items: &[SelectItem], own: &DFSchema) -> SqlResult<Vec<Expr>> {
    let mut exprs = Vec::new();
    for item in items {
        match item {
            SelectItem::Wildcard(_)
            | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _) => {
                exprs.extend(own.columns().into_iter().map(Expr::Column));
            }
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                let name = name_of_item(item).unwrap_or_default();
                exprs.push(logical(state, expr.clone(), own)?.alias(name));
            }
            other => {
                let message = format!("RETURNING {other} is not supported");
                return Err(SqlError::unsupported(message));
            }
        }
    }
    // Parameters without a type may make it fail; it runs again with values.
    let Ok(values) = analyzed(state, &exprs, own) else {
        return Ok(exprs);
    };
    let pairs = exprs.into_iter().zip(values);
    let exprs = pairs.map(|(written, value)| match written {
        Expr::Alias(alias) => value.alias(alias.name),
        column => column,
    });
    Ok(exprs.collect())
}

/// The columns of RETURNING.
fn returning_schema(exprs: &[Expr], own: &DFSchema) -> SqlResult<DFSchemaRef> {
    let mut fields: Vec<(Option<TableReference>, FieldRef)> = Vec::new();
    for expr in exprs {
        let (_, field) = expr.to_field(own)?;
        fields.push((None, field));
    }
    let mut names = HashSet::new();
    if !fields
        .iter()
        .all(|(_, field)| names.insert(field.name().clone()))
    {
        // Columns may have the same name, but not the same qualifier.
        for (at, (qualifier, _)) in fields.iter_mut().enumerate() {
            *qualifier = Some(TableReference::bare(format!("returned {at}")));
        }
    }
    let schema = DFSchema::new_with_metadata(fields, HashMap::new())?;
    Ok(Arc::new(schema))
}

/// Whether a change answers with rows.
pub(crate) fn answers_rows(plan: &LogicalPlan) -> bool {
    change_of(plan).is_some_and(|change| change.returning.is_some())
}

/// The node of a change in a statement's plan.
pub(crate) fn change_of(plan: &LogicalPlan) -> Option<&ReferenceChangeNode> {
    let LogicalPlan::Extension(extension) = plan else {
        return None;
    };
    extension
        .node
        .as_any()
        .downcast_ref::<ReferenceChangeNode>()
}
