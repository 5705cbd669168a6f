//! `x IN (SELECT …)`, `x > ANY (SELECT …)` and `EXISTS (SELECT …)` whose value is used: selected, counted,
//! sorted by, or part of a condition.
//!
//! DataFusion plans them only in WHERE, and within OR and NOT without three-valued logic:
//! `x IN (…)` is NULL if x is NULL, or if it is not among values that include a NULL. Here each
//! subquery is joined to the rows. For one that does not depend on the row, an outer join with the
//! distinct values adds the matching value, and the numbers of values and NULLs. One that depends on
//! the row becomes two EXISTS ([`three_values`]), each of which is a mark ([`marks`]). A condition of
//! WHERE that consists of the subquery alone becomes a semi or anti join of DataFusion's, which is
//! faster. Scalar subqueries that depend on the row, and are not aggregates, are joined to the rows
//! as well ([`correlated`]).

mod compared_values;
mod correlated;
mod join_conditions;
mod marks;
mod single_row;
mod sort_values;
mod three_values;

use correlated::{CorrelatedJoin, is_correlated_value, value_of_correlated};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;
use marigram_functions::interval_order::comparison;
use marigram_functions::{interrupt, max_udaf, min_udaf};
use marks::{MarkJoin, mark_of_exists};
use std::sync::Arc;
pub(crate) use three_values::compares_rows;
use three_values::{
    ComparedNames, as_exists, is_dependent, is_row_comparison, value_type, whole_condition,
};

/// The names of the joined columns.
const FOUND: &str = "found";
const ROWS: &str = "rows";
const VALUES: &str = "values";
const LEAST: &str = "least";
const GREATEST: &str = "greatest";

/// See the module documentation. The rule runs after DataFusion's type coercion.
#[derive(Debug)]
pub(crate) struct SubqueryValues;

impl AnalyzerRule for SubqueryValues {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut made = BesideColumns::default();
        let done = plan.transform_up_with_subqueries(|node| made.node(node))?;
        Ok(done.data)
    }

    fn name(&self) -> &'static str {
        "subquery_values"
    }
}

/// Numbers the joined columns.
#[derive(Default)]
struct BesideColumns {
    numbers: usize,
    names: ComparedNames,
}

impl BesideColumns {
    fn node(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        interrupt::check()?;
        match node {
            // The comparison of a row with its rows: the query around it takes it apart.
            LogicalPlan::Filter(filter) if is_row_comparison(&filter) => {
                Ok(Transformed::no(LogicalPlan::Filter(filter)))
            }
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Join(join) if join.filter.as_ref().is_some_and(has_values) => {
                Ok(Transformed::yes(self.join(join)?))
            }
            LogicalPlan::Sort(sort) if sort.expr.iter().any(|by| depends_on_row(&by.expr)) => {
                Ok(Transformed::yes(self.sort(sort)?))
            }
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)
                if node.expressions().iter().any(has_values) =>
            {
                let names = NamePreserver::new(&node);
                let [input] = node.inputs()[..] else {
                    return plan_err!("a projection has one input");
                };
                let exprs = node.expressions();
                let saved: Vec<_> = exprs.iter().map(|expr| names.save(expr)).collect();
                let (input, exprs) = self.beside_values(input.clone(), exprs)?;
                let exprs = saved.into_iter().zip(exprs);
                let exprs = exprs.map(|(name, expr)| name.restore(expr)).collect();
                let node = node.with_new_exprs(exprs, vec![input])?;
                Ok(Transformed::yes(node))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    /// The conditions that consist of a subquery alone become semi and anti joins; the subqueries of
    /// others are joined to the rows.
    fn filter(&mut self, filter: Filter) -> Result<Transformed<LogicalPlan>> {
        let (mut conditions, mut used) = (Vec::new(), Vec::new());
        let mut is_changed = false;
        for part in split_conjunction_owned(filter.predicate.clone()) {
            if !has_values(&part) {
                conditions.push(part);
            } else if let Some(whole) =
                whole_condition(&part, filter.input.schema(), &mut self.names)?
            {
                is_changed |= whole != part;
                conditions.push(whole);
            } else {
                used.push(part);
            }
        }
        if used.is_empty() && !is_changed {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let columns = filter.input.schema().columns();
        let mut rows = Arc::unwrap_or_clone(filter.input);
        let is_joined = !used.is_empty();
        if is_joined {
            let (input, used) = self.beside_values(rows, used)?;
            rows = input;
            conditions.extend(used);
        }
        let rows = LogicalPlanBuilder::from(rows);
        let mut rows = match conjunction(conditions) {
            Some(predicate) => rows.filter(predicate)?,
            None => rows,
        };
        if is_joined {
            rows = rows.project(columns.into_iter().map(Expr::Column))?;
        }
        Ok(Transformed::yes(rows.build()?))
    }

    /// Replaces subqueries in expressions over the rows of a plan with columns that are joined to them.
    fn beside_values(
        &mut self,
        rows: LogicalPlan,
        exprs: Vec<Expr>,
    ) -> Result<(LogicalPlan, Vec<Expr>)> {
        let (rows, exprs) = self.with_compared_values(rows, exprs)?;
        let (mut joins, mut taken) = (Vec::new(), Vec::with_capacity(exprs.len()));
        for expr in exprs {
            let (more, expr) = self.taken_out(expr, rows.schema())?;
            joins.extend(more);
            taken.push(expr);
        }
        Ok((beside(rows, &mut joins)?, taken))
    }

    /// Replaces subqueries in an expression with columns that are joined to the rows, whose own
    /// columns are `outer`.
    fn taken_out(&mut self, expr: Expr, outer: &DFSchema) -> Result<(Vec<SubqueryJoin>, Expr)> {
        let mut joins = Vec::new();
        let expr = as_exists(expr, outer, &mut self.names)?.data;
        let expr = expr.transform_up(|part| match part {
            Expr::InSubquery(asked) if !is_dependent(&asked.subquery) => {
                let (join, value) = self.value_of_in(asked)?;
                joins.extend(join);
                Ok(Transformed::yes(value))
            }
            Expr::SetComparison(asked) if !is_dependent(&asked.subquery) => {
                let (join, value) = self.value_of_comparison(asked)?;
                joins.push(join);
                Ok(Transformed::yes(value))
            }
            Expr::Exists(asked) if !is_dependent(&asked.subquery) => {
                let (join, value) = self.value_of_exists(&asked)?;
                joins.push(join);
                Ok(Transformed::yes(value))
            }
            Expr::Exists(asked) => {
                let marked = mark_of_exists(&self.name(), &asked, outer)?;
                let Some((join, value)) = marked else {
                    return Ok(Transformed::no(Expr::Exists(asked)));
                };
                joins.push(SubqueryJoin::Mark(join));
                Ok(Transformed::yes(value))
            }
            Expr::ScalarSubquery(asked) if is_correlated_value(&asked) => {
                let taken = value_of_correlated(self.name(), &asked, outer)?;
                let Some((join, value)) = taken else {
                    return Ok(Transformed::no(Expr::ScalarSubquery(asked)));
                };
                joins.extend(join.map(SubqueryJoin::Correlated));
                Ok(Transformed::yes(value))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok((joins, expr.data))
    }

    fn name(&mut self) -> String {
        self.numbers += 1;
        format!("__subquery_{}", self.numbers)
    }

    fn value_of_in(&mut self, asked: InSubquery) -> Result<([SubqueryJoin; 2], Expr)> {
        let (value, subquery) = (*asked.expr, asked.subquery.subquery);
        let Some(column) = subquery.schema().columns().into_iter().next() else {
            return plan_err!("a subquery of IN has one column");
        };
        let kind = value_type(&subquery);
        let column = Expr::Column(column);
        let (found, counts) = (self.name(), self.name());
        let values = LogicalPlanBuilder::from(Arc::clone(&subquery))
            .filter(column.clone().is_not_null())?
            .project([column.clone().alias(FOUND)])?
            .distinct()?
            .alias(found.as_str())?
            .build()?;
        let counted = LogicalPlanBuilder::from(subquery)
            .aggregate(
                Vec::<Expr>::new(),
                [count(lit(1_i64)).alias(ROWS), count(column).alias(VALUES)],
            )?
            .alias(counts.as_str())?
            .build()?;
        let found = qualified_column(&found, FOUND);
        let (rows, values_found) = (
            qualified_column(&counts, ROWS),
            qualified_column(&counts, VALUES),
        );
        let unknown = value
            .clone()
            .is_null()
            .or(rows.clone().not_eq(values_found));
        let known = |value: bool| Box::new(lit(value != asked.negated));
        let branches = vec![
            (Box::new(found.clone().is_not_null()), known(true)),
            (Box::new(rows.eq(lit(0_i64))), known(false)),
            (Box::new(unknown), Box::new(lit(ScalarValue::Boolean(None)))),
        ];
        let joins = [
            SubqueryJoin::On(values, comparison(value, Operator::Eq, found, &kind)),
            SubqueryJoin::Row(counted),
        ];
        let value = Expr::Case(Case::new(None, branches, Some(known(false))));
        Ok((joins, value))
    }

    /// `x > ANY (…)` compares with the least or the greatest of the values.
    fn value_of_comparison(&mut self, asked: SetComparison) -> Result<(SubqueryJoin, Expr)> {
        let (value, subquery) = (*asked.expr, asked.subquery.subquery);
        let Some(column) = subquery.schema().columns().into_iter().next() else {
            return plan_err!("a subquery of ANY and ALL has one column");
        };
        let kind = value_type(&subquery);
        let column = Expr::Column(column);
        let counts = self.name();
        let aggregates = [
            count(lit(1_i64)).alias(ROWS),
            count(column.clone()).alias(VALUES),
            min_udaf().call(vec![column.clone()]).alias(LEAST),
            max_udaf().call(vec![column]).alias(GREATEST),
        ];
        let counted = LogicalPlanBuilder::from(subquery)
            .aggregate(Vec::<Expr>::new(), aggregates)?
            .alias(counts.as_str())?
            .build()?;
        let joined = |name: &str| qualified_column(&counts, name);
        let with = |name: &str| comparison(value.clone(), asked.op, joined(name), &kind);
        let is_any = asked.quantifier == SetQuantifier::Any;
        let one = match asked.op {
            Operator::Lt | Operator::LtEq if is_any => with(GREATEST),
            Operator::Lt | Operator::LtEq => with(LEAST),
            Operator::Gt | Operator::GtEq if is_any => with(LEAST),
            Operator::Gt | Operator::GtEq => with(GREATEST),
            _ if is_any => with(LEAST).or(with(GREATEST)),
            _ => with(LEAST).and(with(GREATEST)),
        };
        let unknown = joined(ROWS).not_eq(joined(VALUES)).or(value.is_null());
        let decided = if is_any {
            one
        } else {
            Expr::Not(Box::new(one))
        };
        let branches = vec![
            (
                Box::new(joined(ROWS).eq(lit(0_i64))),
                Box::new(lit(!is_any)),
            ),
            (Box::new(decided), Box::new(lit(is_any))),
            (Box::new(unknown), Box::new(lit(ScalarValue::Boolean(None)))),
        ];
        let value = Expr::Case(Case::new(None, branches, Some(Box::new(lit(!is_any)))));
        Ok((SubqueryJoin::Row(counted), value))
    }

    fn value_of_exists(&mut self, asked: &Exists) -> Result<(SubqueryJoin, Expr)> {
        let counts = self.name();
        let counted = LogicalPlanBuilder::from(Arc::clone(&asked.subquery.subquery))
            .limit(0, Some(1))?
            .aggregate(Vec::<Expr>::new(), [count(lit(1_i64)).alias(ROWS)])?
            .alias(counts.as_str())?
            .build()?;
        let rows = qualified_column(&counts, ROWS);
        let zero = lit(0_i64);
        let value = if asked.negated {
            rows.eq(zero)
        } else {
            rows.gt(zero)
        };
        Ok((SubqueryJoin::Row(counted), value))
    }
}

fn qualified_column(relation: &str, name: &str) -> Expr {
    Expr::Column(Column::new(Some(relation), name))
}

/// A plan to join to the rows.
enum SubqueryJoin {
    /// One row for all rows.
    Row(LogicalPlan),
    /// The row for which a condition holds.
    On(LogicalPlan, Expr),
    /// The value of a correlated subquery for each row.
    Correlated(CorrelatedJoin),
    /// Whether a correlated subquery has a row.
    Mark(MarkJoin),
}

/// Joins columns to the rows of a plan, below the nodes that sort and limit them; the number of
/// rows does not change.
fn beside(input: LogicalPlan, joins: &mut Vec<SubqueryJoin>) -> Result<LogicalPlan> {
    if let LogicalPlan::Sort(_) | LogicalPlan::Limit(_) = &input {
        let [inner] = input.inputs()[..] else {
            return plan_err!("what sorts rows has one input");
        };
        let inner = beside(inner.clone(), joins)?;
        return input.with_new_exprs(input.expressions(), vec![inner]);
    }
    let mut rows = LogicalPlanBuilder::from(input);
    for join in joins.drain(..) {
        rows = match join {
            SubqueryJoin::On(right, on) => rows.join_on(right, JoinType::Left, [on])?,
            SubqueryJoin::Row(right) => rows.cross_join(right)?,
            SubqueryJoin::Correlated(join) => join.beside(rows)?,
            SubqueryJoin::Mark(join) => join.beside(rows)?,
        };
    }
    rows.build()
}

/// Whether a plan has a row whatever the tables hold: an aggregate without groups.
pub(crate) fn always_has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => always_has_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => always_has_a_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(relation) => relation.produce_one_row,
        _ => false,
    }
}

/// The columns of the row outside that the subqueries of an expression name.
fn outer_columns(expr: &Expr) -> Vec<Column> {
    let mut columns = Vec::new();
    // It never fails.
    let _ = expr.apply(|part| {
        let asked = match part {
            Expr::InSubquery(asked) => &asked.subquery,
            Expr::Exists(asked) => &asked.subquery,
            Expr::SetComparison(asked) => &asked.subquery,
            Expr::ScalarSubquery(asked) => asked,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        columns.extend(
            asked
                .outer_ref_columns
                .iter()
                .filter_map(|outer| match outer {
                    Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
                    _ => None,
                }),
        );
        Ok(TreeNodeRecursion::Continue)
    });
    columns
}

/// Whether an expression has a subquery that depends on the row, or whose value is joined to it.
fn depends_on_row(expr: &Expr) -> bool {
    has_values(expr) || !outer_columns(expr).is_empty()
}

fn has_values(expr: &Expr) -> bool {
    let mut found = false;
    // It never fails.
    let _ = expr.apply(|part| {
        found |= match part {
            Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => true,
            Expr::ScalarSubquery(asked) => is_correlated_value(asked),
            _ => false,
        };
        Ok(TreeNodeRecursion::Continue)
    });
    found
}
