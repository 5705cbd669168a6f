//! `JOIN … USING (k)` and `NATURAL JOIN`: the join has one column `k`, besides `l.k` and `r.k`.
//!
//! DataFusion takes `l.k` for `k`, which is NULL for rows that only the right side has. Here, the join
//! is planned with a column of its own: `coalesce(l.k, r.k)` in a FULL JOIN, `r.k` in a RIGHT JOIN, and
//! `l.k` otherwise. As in PostgreSQL, these columns come first in `SELECT *`.
//!
//! DataFusion lets a planner take over what stands in FROM, but not a join. So [`UsingJoins`] puts
//! parentheses around such joins, which makes them a relation for [`UsingJoinPlanner`]. A name that several
//! tables have is ambiguous unless a join with USING says that they are one. Such a join marks the
//! plan until it is complete; then [`without_marks`] removes the mark.

use crate::dialect::ast_walk::walk_mut;
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{
    Column, DFSchema, JoinConstraint, JoinType, NullEquality, Result, TableReference, plan_err,
};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::utils::expand_wildcard;
use datafusion::logical_expr::{
    EmptyRelation, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, lit,
};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::ast::{
    Ident, JoinOperator, Select, TableFactor, TableWithJoins, VisitorMut,
};
use marigram_functions::interval_order::comparison;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The names of the joins' own columns begin so; no user's table has such a name.
const USING: &str = "\u{1f}using ";

/// Puts parentheses around joins with USING, so that they become relations.
pub(crate) struct UsingJoins;

impl VisitorMut for UsingJoins {
    type Break = SqlError;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        let keys = select.from.iter().flat_map(keys_with_tables).collect();
        select.from.iter_mut().for_each(parenthesize);
        if let Some(condition) = &mut select.selection {
            // It never breaks.
            let _ = walk_mut(condition, &mut KeyQualifier { keys, queries: 0 });
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = factor
        {
            parenthesize(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

/// The keys of the joins of a FROM, with the tables of the joins' own columns.
fn keys_with_tables(tables: &TableWithJoins) -> Vec<(String, Ident)> {
    let mut keys = match &tables.relation {
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => keys_with_tables(table_with_joins),
        _ => Vec::new(),
    };
    for join in tables.joins.iter().filter(|join| is_planned_here(join)) {
        if let (Some((_, Some(names))), Some(table)) =
            (kind_and_keys(&join.join_operator), name_of(&join.relation))
        {
            let table = Ident::with_quote('"', format!("{USING}{table}"));
            let names = names.iter().filter_map(|name| name.0.first()?.as_ident());
            keys.extend(names.map(|name| (fold_case(name), table.clone())));
        }
    }
    keys
}

/// The name by which a statement knows a relation; of several, the first.
fn name_of(relation: &TableFactor) -> Option<String> {
    let (name, alias) = match relation {
        TableFactor::Table { name, alias, .. } => (Some(name), alias),
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => return name_of(&table_with_joins.relation),
        TableFactor::Derived { alias, .. } | TableFactor::NestedJoin { alias, .. } => (None, alias),
        _ => return None,
    };
    if let Some(alias) = alias {
        return Some(fold_case(&alias.name));
    }
    name?.0.last()?.as_ident().map(fold_case)
}

/// Names the table of a key in WHERE, where DataFusion finds the key ambiguous. Within subqueries, the
/// name may be that of another column.
struct KeyQualifier {
    keys: Vec<(String, Ident)>,
    queries: usize,
}

impl VisitorMut for KeyQualifier {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<SqlError> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<SqlError> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<SqlError> {
        let ast::Expr::Identifier(name) = expr else {
            return ControlFlow::Continue(());
        };
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        // The own column of a later join replaces that of an earlier one.
        let folded = fold_case(name);
        let mut keys = self.keys.iter().rev();
        if let Some((_, table)) = keys.find(|(key, _)| *key == folded) {
            *expr = ast::Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
        }
        ControlFlow::Continue(())
    }
}

fn parenthesize(tables: &mut TableWithJoins) {
    if !tables.joins.iter().any(is_planned_here) {
        return;
    }
    let joins = mem::take(&mut tables.joins);
    // Whether the relation is a series of joins that this function has begun.
    let mut is_begun = false;
    for join in joins {
        if !is_planned_here(&join) {
            tables.joins.push(join);
            is_begun = false;
            continue;
        }
        if is_begun
            && let TableFactor::NestedJoin {
                table_with_joins, ..
            } = &mut tables.relation
        {
            table_with_joins.joins.push(join);
            continue;
        }
        let left = if tables.joins.is_empty() {
            relation_of(tables)
        } else {
            let joined = TableWithJoins {
                joins: mem::take(&mut tables.joins),
                relation: relation_of(tables),
            };
            nested(joined)
        };
        tables.relation = nested(TableWithJoins {
            relation: left,
            joins: vec![join],
        });
        is_begun = true;
    }
}

/// Takes the relation; the caller replaces it.
fn relation_of(tables: &mut TableWithJoins) -> TableFactor {
    let nothing = TableFactor::Table {
        name: ast::ObjectName(Vec::new()),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    mem::replace(&mut tables.relation, nothing)
}

fn nested(tables: TableWithJoins) -> TableFactor {
    TableFactor::NestedJoin {
        table_with_joins: Box::new(tables),
        alias: None,
    }
}

/// The keys of a join: `None` for those that both sides have.
type Keys<'a> = Option<&'a [ast::ObjectName]>;

fn kind_and_keys(operator: &JoinOperator) -> Option<(JoinType, Keys<'_>)> {
    let (kind, constraint) = match operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (JoinType::Inner, constraint)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (JoinType::Left, constraint)
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (JoinType::Right, constraint)
        }
        JoinOperator::FullOuter(constraint) => (JoinType::Full, constraint),
        _ => return None,
    };
    match constraint {
        ast::JoinConstraint::Using(names) => Some((kind, Some(names.as_slice()))),
        ast::JoinConstraint::Natural => Some((kind, None)),
        _ => None,
    }
}

fn is_planned_here(join: &ast::Join) -> bool {
    let is_lateral = match &join.relation {
        TableFactor::Derived { lateral, .. } | TableFactor::Function { lateral, .. } => *lateral,
        TableFactor::UNNEST { .. } => true,
        _ => false,
    };
    !is_lateral && kind_and_keys(&join.join_operator).is_some()
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct UsingJoinPlanner;

impl RelationPlanner for UsingJoinPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::NestedJoin {
            table_with_joins: tables,
            alias,
        } = relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if tables.joins.is_empty() || !tables.joins.iter().all(is_planned_here) {
            return Ok(RelationPlanning::Original(Box::new(
                TableFactor::NestedJoin {
                    table_with_joins: tables,
                    alias,
                },
            )));
        }
        let mut plan = context.plan(tables.relation)?;
        for join in tables.joins {
            let Some((kind, keys)) = kind_and_keys(&join.join_operator) else {
                return plan_err!("a join with USING has keys");
            };
            let right = context.plan(join.relation.clone())?;
            let keys = match keys {
                Some(names) => names
                    .iter()
                    .map(|name| key_name(name, context))
                    .collect::<Result<_>>()?,
                None => common_names(&plan, &right)?,
            };
            plan = joined(plan, right, kind, &keys)?;
        }
        if alias.is_some() {
            // The alias hides the names of the tables.
            let columns = expand_wildcard(plan.schema(), &plan, None)?;
            plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
        }
        let planned = PlannedRelation::new(plan, alias);
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

fn key_name(name: &ast::ObjectName, context: &dyn RelationPlannerContext) -> Result<String> {
    match name.0.as_slice() {
        [part] => match part.as_ident() {
            Some(name) => Ok(context.normalize_ident(name.clone())),
            None => plan_err!("USING takes names of columns, not '{name}'"),
        },
        _ => plan_err!("USING takes names of columns, not '{name}'"),
    }
}

/// The names that both sides of a NATURAL JOIN have, in the order of the left side.
fn common_names(left: &LogicalPlan, right: &LogicalPlan) -> Result<Vec<String>> {
    let names = |plan: &LogicalPlan| -> Result<Vec<String>> {
        let columns = expand_wildcard(plan.schema(), plan, None)?.into_iter();
        let names = columns.filter_map(|column| match column {
            Expr::Column(column) => Some(column.name),
            _ => None,
        });
        Ok(names.collect())
    };
    let theirs = names(right)?;
    let mut common = names(left)?;
    common.retain(|name| theirs.contains(name));
    Ok(common)
}

/// The column of one side that a key names.
fn key_of(plan: &LogicalPlan, name: &str) -> Result<Expr> {
    let column = Column::new_unqualified(name);
    let using = plan.using_columns()?;
    let schema = plan.schema().as_ref();
    let column = column.normalize_with_schemas_and_ambiguity_check(&[&[schema]], &using)?;
    Ok(Expr::Column(column))
}

fn joined(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinType,
    keys: &[String],
) -> Result<LogicalPlan> {
    let mut on = Vec::with_capacity(keys.len());
    let mut columns = Vec::new();
    let mine = own_table(&right, &left);
    for key in keys {
        let (of_left, of_right) = (key_of(&left, key)?, key_of(&right, key)?);
        let data_type = of_left.get_type(left.schema())?;
        let equal = comparison(of_left.clone(), Operator::Eq, of_right.clone(), &data_type);
        on.push(equal);
        let value = match kind {
            JoinType::Full => coalesce(vec![of_left, of_right]),
            JoinType::Right => of_right,
            _ => of_left,
        };
        columns.push(value.alias_qualified(Some(mine.clone()), key.as_str()));
    }
    // Nobody can name the own columns of an earlier join.
    let is_named = |column: &Column| {
        let table = column.relation.as_ref().map(TableReference::table);
        !table.is_some_and(|table| table.starts_with(USING)) || !keys.contains(&column.name)
    };
    let sides = left.schema().columns().into_iter();
    let sides = sides.chain(right.schema().columns()).filter(is_named);
    columns.extend(sides.map(Expr::Column));
    if on.is_empty() {
        on.push(lit(true));
    }
    let plan = LogicalPlanBuilder::from(left)
        .join_on(right, kind, on)?
        .project(columns)?
        .build()?;
    Ok(marked(plan, &mine, keys))
}

/// A name for the table of the join's own columns: no other join has a right side of this name.
fn own_table(right: &LogicalPlan, left: &LogicalPlan) -> TableReference {
    let mut sides = right.schema().iter().chain(left.schema().iter());
    let side = sides.find_map(|(table, _)| table.map(TableReference::table));
    TableReference::bare(format!("{USING}{}", side.unwrap_or_default()))
}

/// Says that all columns of a key's name are one, of which the first is meant.
fn marked(plan: LogicalPlan, mine: &TableReference, keys: &[String]) -> LogicalPlan {
    let schema = Arc::clone(plan.schema());
    let own = |name: &str| Expr::Column(Column::new(Some(mine.clone()), name));
    let others = schema.columns().into_iter();
    let others = others.filter(|column| column.relation.as_ref() != Some(mine));
    let on: Vec<(Expr, Expr)> = others
        .filter(|column| keys.contains(&column.name))
        .map(|column| (own(&column.name), Expr::Column(column)))
        .collect();
    if on.is_empty() {
        return plan;
    }
    LogicalPlan::Join(Join {
        left: Arc::new(plan),
        right: Arc::new(LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: false,
            schema: Arc::new(DFSchema::empty()),
        })),
        on,
        filter: None,
        join_type: JoinType::LeftSemi,
        join_constraint: JoinConstraint::Using,
        schema,
        null_equality: NullEquality::NullEqualsNothing,
        null_aware: false,
    })
}

/// A complete plan without the marks of [`UsingJoinPlanner`].
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn without_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_down_with_subqueries(|mut node| {
        let mut is_marked = false;
        while let LogicalPlan::Join(join) = &node
            && is_mark(join)
        {
            node = join.left.as_ref().clone();
            is_marked = true;
        }
        Ok(Transformed::new_transformed(node, is_marked))
    })?;
    Ok(done.data)
}

fn is_mark(join: &Join) -> bool {
    let is_own = |expr: &Expr| match expr {
        Expr::Column(Column {
            relation: Some(table),
            ..
        }) => table.table().starts_with(USING),
        _ => false,
    };
    matches!(*join.right, LogicalPlan::EmptyRelation(_))
        && join.join_constraint == JoinConstraint::Using
        && join.on.first().is_some_and(|(mine, _)| is_own(mine))
}
