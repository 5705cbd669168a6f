//! The rule that finds marked joins, and pushes the surrounding conditions down to their sides.

use super::asof_join_error;
use super::node::{AsOfCondition, AsOfJoin};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, JoinType, Result, ScalarValue};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use marigram_functions::marker_functions::AS_OF;
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug)]
pub struct AsOfJoinRule;

impl OptimizerRule for AsOfJoinRule {
    fn name(&self) -> &'static str {
        "asof_joining"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // Most plans have no such join.
        if !has_join(&plan)? {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Join(join) if is_marked(&join) => joined(join).map(Transformed::yes),
            LogicalPlan::Filter(filter) => handed_on(filter),
            other => Ok(Transformed::no(other)),
        })
    }
}

fn has_join(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = match node {
            LogicalPlan::Join(join) => is_marked(join),
            other => AsOfJoin::from_plan(other).is_some(),
        };
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}

fn mark(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(call) if call.name() == AS_OF => call.args.first(),
        _ => None,
    }
}

fn is_marked(join: &Join) -> bool {
    let filter = join.filter.iter().flat_map(split_conjunction);
    join.join_type == JoinType::Left && filter.into_iter().any(|expr| mark(expr).is_some())
}

/// Whether an expression only uses columns of one side.
fn is_of(expr: &Expr, side: &DFSchema) -> bool {
    let columns = expr.column_refs();
    !columns.is_empty() && columns.iter().all(|column| side.has_column(column))
}

fn joined(join: Join) -> Result<LogicalPlan> {
    let (left, right) = (join.left.schema(), join.right.schema());
    let (mut on, mut matching) = (join.on, None);
    for condition in join.filter.iter().flat_map(split_conjunction) {
        if let Some(condition) = mark(condition) {
            matching = Some(times(condition, left, right)?);
            continue;
        }
        let sides = match condition {
            Expr::BinaryExpr(BinaryExpr {
                left: one,
                op: Operator::Eq,
                right: other,
            }) => {
                if is_of(one, left) && is_of(other, right) {
                    Some((one, other))
                } else {
                    (is_of(one, right) && is_of(other, left)).then_some((other, one))
                }
            }
            _ => None,
        };
        let Some((of_left, of_right)) = sides else {
            let message = format!(
                "ON of ASOF JOIN accepts only equalities between the two sides, not {condition}; write other \
                 conditions in WHERE, or in a subquery"
            );
            return Err(asof_join_error("0A000", message));
        };
        on.push((of_left.as_ref().clone(), of_right.as_ref().clone()));
    }
    let Some((matching, times)) = matching else {
        return Err(no_match());
    };
    let left = Arc::unwrap_or_clone(join.left);
    let right = Arc::unwrap_or_clone(join.right);
    Ok(AsOfJoin::new(left, right, on, times, matching)?.into_plan())
}

fn no_match() -> DataFusionError {
    let message = "MATCH_CONDITION of ASOF JOIN compares a time of the left side with one of the right \
                   side, and may bound how far they are apart: (a.time >= b.time AND a.time - b.time <= \
                   INTERVAL '5 minutes')";
    asof_join_error("0A000", message)
}

/// Reads a match condition: a comparison, and optionally the longest time between the rows.
fn times(
    condition: &Expr,
    left: &DFSchema,
    right: &DFSchema,
) -> Result<(AsOfCondition, (Expr, Expr))> {
    let (mut order, mut bound) = (None, None);
    for part in split_conjunction(condition) {
        let Expr::BinaryExpr(BinaryExpr {
            left: one,
            op,
            right: other,
        }) = part
        else {
            return Err(no_match());
        };
        let known = if is_of(one, left) && is_of(other, right) {
            order.replace((one.as_ref(), *op, other.as_ref()))
        } else if is_of(one, right) && is_of(other, left) {
            let op = op.swap().ok_or_else(no_match)?;
            order.replace((other.as_ref(), op, one.as_ref()))
        } else {
            let (apart, most) = match (op, literal(one), literal(other)) {
                (Operator::LtEq, _, Some(most)) => (one, most),
                (Operator::Lt, _, Some(most)) => (one, most.saturating_sub(1)),
                (Operator::GtEq, Some(most), _) => (other, most),
                (Operator::Gt, Some(most), _) => (other, most.saturating_sub(1)),
                _ => return Err(no_match()),
            };
            if bound.replace((apart.as_ref(), most)).is_some() {
                return Err(no_match());
            }
            continue;
        };
        if known.is_some() {
            return Err(no_match());
        }
    }
    let (of_left, op, of_right) = order.ok_or_else(no_match)?;
    let (forward, strict) = match op {
        Operator::GtEq => (false, false),
        Operator::Gt => (false, true),
        Operator::LtEq => (true, false),
        Operator::Lt => (true, true),
        _ => return Err(no_match()),
    };
    for (expr, schema) in [(of_left, left), (of_right, right)] {
        let kind = expr.get_type(schema)?;
        let is_time = matches!(&kind, DataType::Timestamp(TimeUnit::Nanosecond, _));
        if !is_time && kind != DataType::Int64 {
            let message = format!("ASOF JOIN compares times, not {kind}");
            return Err(asof_join_error("42804", message));
        }
    }
    let most = match bound {
        None => None,
        // Subtract the smaller from the greater, so that the distance is positive.
        Some((
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Minus,
                right,
            }),
            most,
        )) => {
            let (later, earlier) = if forward {
                (of_right, of_left)
            } else {
                (of_left, of_right)
            };
            if **left != *later || **right != *earlier {
                return Err(no_match());
            }
            Some(most)
        }
        Some(_) => return Err(no_match()),
    };
    let matching = AsOfCondition {
        strict,
        forward,
        most,
    };
    Ok((matching, (of_left.clone(), of_right.clone())))
}

/// A literal bound, in the unit of times.
fn literal(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::DurationNanosecond(value) | ScalarValue::Int64(value), _) => {
            *value
        }
        _ => None,
    }
}

/// Pushes a condition down: a condition on the left side alone filters rows before the join; one on
/// the left side's keys also filters the right side.
fn handed_on(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let Some(node) = AsOfJoin::from_plan(&filter.input) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let left = node.left.schema();
    let (of_left, rest): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(filter.predicate.clone())
        .into_iter()
        .partition(|expr| is_of(expr, left) && !expr.is_volatile());
    let Some(condition) = conjunction(of_left.clone()) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let of_keys: Vec<Expr> = of_left
        .iter()
        .filter_map(|expr| by_keys(expr, &node.on))
        .collect();
    let mut node = node.clone();
    node.left = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(node.left))?);
    if let Some(condition) = conjunction(of_keys) {
        node.right = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(node.right))?);
    }
    let plan = node.into_plan();
    Ok(Transformed::yes(match conjunction(rest) {
        Some(rest) => LogicalPlan::Filter(Filter::try_new(rest, Arc::new(plan))?),
        None => plan,
    }))
}

/// Translates a condition on keys of the left side to the keys of the right side.
fn by_keys(expr: &Expr, on: &[(Expr, Expr)]) -> Option<Expr> {
    let mut all = true;
    let replaced = expr.clone().transform(|expr| {
        let Expr::Column(_) = &expr else {
            return Ok(Transformed::no(expr));
        };
        match on.iter().find(|(left, _)| *left == expr) {
            Some((_, right)) => Ok(Transformed::new(
                right.clone(),
                true,
                TreeNodeRecursion::Jump,
            )),
            None => {
                all = false;
                Ok(Transformed::no(expr))
            }
        }
    });
    replaced.ok().filter(|_| all).map(|replaced| replaced.data)
}
