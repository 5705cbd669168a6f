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

mod correlated;
mod marks;
mod single_row;
mod three_values;

use correlated::{CorrelatedJoin, is_correlated_value, value_of_correlated};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{
    Case, Exists, InSubquery, SetComparison, SetQuantifier, Sort,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;
use marigram_functions::{interrupt, max_udaf, min_udaf};
use marks::{MarkJoin, mark_of_exists};
use std::sync::Arc;
pub use three_values::compares_rows;
use three_values::{ComparedNames, as_exists, is_dependent, whole_condition};

/// The names of the joined columns.
const FOUND: &str = "found";
const ROWS: &str = "rows";
const VALUES: &str = "values";
const LEAST: &str = "least";
const GREATEST: &str = "greatest";

/// See the module documentation. The rule runs after DataFusion's type coercion.
#[derive(Debug)]
pub struct SubqueryValues;

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
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Sort(sort) if sort.expr.iter().any(|by| has_values(&by.expr)) => {
                let columns = sort.input.schema().columns();
                let mut joins = Vec::new();
                let mut order = Vec::with_capacity(sort.expr.len());
                for by in sort.expr {
                    let (more, expr) = self.taken_out(by.expr, sort.input.schema())?;
                    joins.extend(more);
                    order.push(Sort { expr, ..by });
                }
                let input = beside(Arc::unwrap_or_clone(sort.input), &mut joins)?;
                let kept = columns.into_iter().map(Expr::Column);
                let rows = LogicalPlanBuilder::from(input);
                let rows = rows.sort_with_limit(order, sort.fetch)?.project(kept)?;
                Ok(Transformed::yes(rows.build()?))
            }
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)
                if node.expressions().iter().any(has_values) =>
            {
                let names = NamePreserver::new(&node);
                let [input] = node.inputs()[..] else {
                    return plan_err!("a projection has one input");
                };
                let mut joins = Vec::new();
                let mut exprs = Vec::new();
                for expr in node.expressions() {
                    let name = names.save(&expr);
                    let (more, expr) = self.taken_out(expr, input.schema())?;
                    joins.extend(more);
                    exprs.push(name.restore(expr));
                }
                let input = beside(input.clone(), &mut joins)?;
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
        let used = conjunction(used);
        if used.is_none() && !is_changed {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let columns = filter.input.schema().columns();
        let mut rows = Arc::unwrap_or_clone(filter.input);
        let is_joined = used.is_some();
        if let Some(used) = used {
            let (mut joins, used) = self.taken_out(used, rows.schema())?;
            rows = beside(rows, &mut joins)?;
            conditions.push(used);
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
            SubqueryJoin::On(values, value.eq(found)),
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
        let with = |name: &str| {
            let other = Box::new(joined(name));
            Expr::BinaryExpr(BinaryExpr::new(Box::new(value.clone()), asked.op, other))
        };
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
pub fn always_has_a_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => always_has_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => always_has_a_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(relation) => relation.produce_one_row,
        _ => false,
    }
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
