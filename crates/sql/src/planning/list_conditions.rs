//! Conditions with IN, in forms that DataFusion's rules simplify correctly.
//!
//! `x IN (1, NULL)` becomes `x IN (1) OR NULL`. DataFusion joins two lists of one expression below OR, and
//! intersects them below AND. It forgets that a comparison with NULL is neither true nor false, that `x` may be
//! NULL where no value is left, and that two columns may have the same value. Such pairs are rewritten here,
//! before its rules run.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{HashSet, Result, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct ListConditions;

impl OptimizerRule for ListConditions {
    fn name(&self) -> &'static str {
        "list_conditions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let made = with_list_conditions(expr)?;
            Ok(if made.transformed {
                made.update_data(|expr| name.restore(expr))
            } else {
                made
            })
        })
    }
}

/// The expression with conditions that can be simplified.
///
/// # Errors
/// DataFusion's errors, for expressions that cannot be traversed.
pub(crate) fn with_list_conditions(expr: Expr) -> Result<Transformed<Expr>> {
    // Most statements have no list; a look costs less than a rewrite.
    if !expr.exists(|part| Ok(matches!(part, Expr::InList(_))))? {
        return Ok(Transformed::no(expr));
    }
    expr.transform_up(|part| {
        Ok(match part {
            Expr::InList(list) => without_nulls(list),
            Expr::BinaryExpr(both) => pair(both),
            other => Transformed::no(other),
        })
    })
}

fn unknown() -> Expr {
    lit(ScalarValue::Boolean(None))
}

fn is_null(item: &Expr) -> bool {
    match item {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        _ => false,
    }
}

fn without_nulls(mut list: InList) -> Transformed<Expr> {
    let count = list.list.len();
    list.list.retain(|item| !is_null(item));
    if list.list.len() == count {
        return Transformed::no(Expr::InList(list));
    }
    if list.list.is_empty() {
        return Transformed::yes(unknown());
    }
    let is_negated = list.negated;
    let rest = Expr::InList(list);
    Transformed::yes(if is_negated {
        rest.and(unknown())
    } else {
        rest.or(unknown())
    })
}

/// Two lists of one expression that are not joined or intersected correctly.
fn pair(both: BinaryExpr) -> Transformed<Expr> {
    let BinaryExpr { left, op, right } = &both;
    let (Expr::InList(first), Expr::InList(second)) = (left.as_ref(), right.as_ref()) else {
        return Transformed::no(Expr::BinaryExpr(both));
    };
    let is_literal = |item: &Expr| matches!(item, Expr::Literal(..));
    let are_literals = |list: &InList| list.list.iter().all(is_literal);
    if first.expr != second.expr || !matches!(op, Operator::And | Operator::Or) {
        return Transformed::no(Expr::BinaryExpr(both));
    }
    if !are_literals(second) {
        let apart = comparisons(second, &second.list);
        return Transformed::yes(binary(left.as_ref().clone(), *op, apart));
    }
    if !are_literals(first) {
        let apart = comparisons(first, &first.list);
        return Transformed::yes(binary(apart, *op, right.as_ref().clone()));
    }
    let items = |list: &InList| -> HashSet<ScalarValue> {
        let items = list.list.iter();
        items
            .filter_map(|item| item.as_literal().cloned())
            .collect()
    };
    let (one, other) = (items(first), items(second));
    let is_empty = match (op, first.negated, second.negated) {
        (Operator::And, false, false) | (Operator::Or, true, true) => one.is_disjoint(&other),
        (Operator::And, false, true) => one.is_subset(&other),
        (Operator::And, true, false) => other.is_subset(&one),
        _ => false,
    };
    if !is_empty {
        return Transformed::no(Expr::BinaryExpr(both));
    }
    let value = first.expr.as_ref().clone();
    Transformed::yes(match op {
        Operator::And => value.is_null().and(unknown()),
        _ => value.is_not_null().or(unknown()),
    })
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// The comparisons with the items of a list, as a balanced tree.
fn comparisons(list: &InList, items: &[Expr]) -> Expr {
    let value = || list.expr.as_ref().clone();
    match items {
        [one] if list.negated => value().not_eq(one.clone()),
        [one] => value().eq(one.clone()),
        items => {
            let (before, behind) = items.split_at(items.len() / 2);
            let (before, behind) = (comparisons(list, before), comparisons(list, behind));
            if list.negated {
                before.and(behind)
            } else {
                before.or(behind)
            }
        }
    }
}
