//! The rule that finds lateral subqueries with a LIMIT, and joins them.

use super::decorrelate::{CorrelatedCondition, DecorrelatedSubquery, is_correlated};
use super::refusal::lateral_error;
use super::rows::{FIRST, columns_of};
use crate::asof::{AsOfCondition, AsOfJoin};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result, ScalarValue};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, SubqueryAlias,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The column that numbers the rows of the left side.
const NUMBER: &str = "__lateral_row";

/// See the module documentation.
#[derive(Debug)]
pub struct LateralLimitRule;

impl OptimizerRule for LateralLimitRule {
    fn name(&self) -> &'static str {
        "lateral_limits"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // Most plans have no such subquery.
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            found = matches!(node, LogicalPlan::Join(join) if limited(&join.right).is_some());
            Ok(if found {
                TreeNodeRecursion::Stop
            } else {
                TreeNodeRecursion::Continue
            })
        })?;
        if !found {
            return Ok(Transformed::no(plan));
        }
        // Bottom up, so that nested subqueries are decorrelated first.
        plan.transform_up_with_subqueries(|node| {
            let LogicalPlan::Join(join) = &node else {
                return Ok(Transformed::no(node));
            };
            let Some((subquery, name)) = limited(&join.right) else {
                return Ok(Transformed::no(node));
            };
            joined(join, subquery, name).map(Transformed::yes)
        })
    }
}

/// The subquery of a lateral join that has a LIMIT, and its name.
fn limited(right: &LogicalPlan) -> Option<(&LogicalPlan, Option<&TableReference>)> {
    let (subquery, name) = match right {
        LogicalPlan::Subquery(subquery) => (subquery, None),
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => match input.as_ref() {
            LogicalPlan::Subquery(subquery) => (subquery, Some(alias)),
            _ => return None,
        },
        _ => return None,
    };
    let Subquery { subquery, .. } = subquery;
    let mut plan = subquery.as_ref();
    loop {
        match plan {
            LogicalPlan::Limit(_) => return is_correlated(plan).then_some((subquery, name)),
            // These only rename its columns.
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => plan = plan.inputs()[0],
            _ => return None,
        }
    }
}

fn joined(
    join: &Join,
    subquery: &LogicalPlan,
    name: Option<&TableReference>,
) -> Result<LogicalPlan> {
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Err(lateral_error(
            "a LATERAL subquery must be joined by CROSS JOIN, JOIN or LEFT JOIN",
        ));
    }
    let right = DecorrelatedSubquery::new(subquery)?.under(name)?;
    let outer = subquery.all_out_ref_exprs();
    let beyond = outer.iter().find_map(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => {
            (!join.left.schema().has_column(column)).then_some(column)
        }
        _ => None,
    });
    if let Some(column) = beyond {
        let message = format!(
            "'{column}' does not belong to the left side of LATERAL, but to an enclosing query"
        );
        return Err(lateral_error(message));
    }
    let equal = join.on.iter();
    let equal = equal.map(|(left, right)| left.clone().eq(right.clone()));
    let on: Vec<Expr> = equal
        .chain(join.filter.clone())
        .filter(|condition| !is_true(condition))
        .collect();
    let plan = match right.rows {
        None => {
            let on = conditions(&right)?.into_iter().chain(on);
            LogicalPlanBuilder::from(join.left.as_ref().clone())
                .join_on(right.plan, join.join_type, on)?
                .build()?
        }
        Some(_) => {
            if join.join_type == JoinType::Left && !on.is_empty() {
                return Err(lateral_error(
                    "LEFT JOIN LATERAL requires ON true if its subquery has a LIMIT and conditions on \
                     the left side that are not equalities",
                ));
            }
            let plan = match as_of(join, &right)? {
                Some(plan) => plan,
                None => counted(join, right)?,
            };
            let plan = LogicalPlanBuilder::from(plan);
            match on.into_iter().reduce(Expr::and) {
                Some(on) => plan.filter(on)?.build()?,
                None => plan.build()?,
            }
        }
    };
    let columns = join.schema.iter();
    let columns = columns.map(|field| Expr::Column(Column::from(field)));
    LogicalPlanBuilder::from(plan)
        .project(columns.collect::<Vec<_>>())?
        .build()
}

fn is_true(condition: &Expr) -> bool {
    matches!(
        condition,
        Expr::Literal(ScalarValue::Boolean(Some(true)), _)
    )
}

/// Replaces outer references in a condition with the left side's own columns.
fn on_left_side(condition: Expr) -> Result<Expr> {
    let replaced = condition.transform(|expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            expr => Transformed::no(expr),
        })
    })?;
    Ok(replaced.data)
}

fn conditions(right: &DecorrelatedSubquery) -> Result<Vec<Expr>> {
    right.conditions.iter().cloned().map(on_left_side).collect()
}

/// Finds the row of the right side that is next in time by an `ASOF JOIN`; `None` if the subquery
/// asks for anything else.
fn as_of(join: &Join, right: &DecorrelatedSubquery) -> Result<Option<LogicalPlan>> {
    let ([order], Some(FIRST)) = (right.order.as_slice(), right.rows) else {
        return Ok(None);
    };
    let (mut on, mut times) = (Vec::new(), None);
    for condition in &right.conditions {
        let CorrelatedCondition::Compared(outer, op, inner) =
            CorrelatedCondition::classify(condition)
        else {
            return Ok(None);
        };
        let (outer, inner) = (on_left_side(*outer)?, *inner);
        let (forward, strict) = match op {
            Operator::Eq => {
                on.push((outer, inner));
                continue;
            }
            Operator::GtEq => (false, false),
            Operator::Gt => (false, true),
            Operator::LtEq => (true, false),
            Operator::Lt => (true, true),
            _ => return Ok(None),
        };
        let matching = AsOfCondition {
            strict,
            forward,
            most: None,
        };
        if times.replace((outer, inner, matching)).is_some() {
            return Ok(None);
        }
    }
    let Some((outer, inner, matching)) = times else {
        return Ok(None);
    };
    let is_time = |expr: &Expr, plan: &LogicalPlan| {
        let kind = expr.get_type(plan.schema())?;
        let is_time = matches!(kind, DataType::Timestamp(TimeUnit::Nanosecond, _));
        Result::<bool>::Ok(is_time)
    };
    if order.expr != inner
        || order.asc != matching.forward
        || !is_time(&outer, &join.left)?
        || !is_time(&inner, &right.plan)?
    {
        return Ok(None);
    }
    let left = join.left.as_ref().clone();
    let found = inner.clone().is_not_null();
    let plan = AsOfJoin::new(left, right.plan.clone(), on, (outer, inner), matching)?.into_plan();
    if join.join_type == JoinType::Left {
        return Ok(Some(plan));
    }
    let plan = LogicalPlanBuilder::from(plan).filter(found)?.build()?;
    Ok(Some(plan))
}

/// Numbers the rows of the left side, joins them, and takes the first rows of each number.
fn counted(join: &Join, right: DecorrelatedSubquery) -> Result<LogicalPlan> {
    let conditions = conditions(&right)?;
    let rows = right.rows.unwrap_or(FIRST);
    if join.join_type == JoinType::Left && (rows.skip > 0 || rows.fetch == Some(0)) {
        return Err(lateral_error(
            "LEFT JOIN LATERAL cannot have OFFSET or LIMIT 0 if its subquery has conditions on the \
             left side that are not equalities",
        ));
    }
    let mut left = columns_of(&join.left);
    let number = row_number();
    left.push(
        Expr::Column(Column::new_unqualified(number.schema_name().to_string())).alias(NUMBER),
    );
    let plan = LogicalPlanBuilder::from(join.left.as_ref().clone())
        .window(vec![number])?
        .project(left)?
        .join_on(right.plan, join.join_type, conditions)?
        .build()?;
    let number = Expr::Column(Column::new_unqualified(NUMBER));
    rows.of_each(plan, vec![number], right.order)
}
