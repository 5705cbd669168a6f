//! The parts of an expression, with the number of copies that planning makes of each.
//!
//! DataFusion's rules write `a BETWEEN b AND c` as two comparisons of `a`, and a CASE of booleans as
//! a chain of AND and OR that repeats its conditions. Ours repeat the left side of `a IN (SELECT …)`.
//! Each copy is expanded again, so the number of copies grows exponentially with the nesting.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Case;
use std::ptr;

/// A CASE with fewer branches becomes a chain of AND and OR.
const FEW_BRANCHES: usize = 3;
/// The copies of the left side of a comparison with ANY or ALL of a subquery.
const COMPARED_COPIES: u64 = 3;

/// Calls `visit` with each part of an expression and its number of copies, if there are `copies` of
/// the expression. Does not descend into subqueries.
pub(super) fn for_each_part(expr: &Expr, copies: u64, visit: &mut dyn FnMut(&Expr, u64)) {
    visit(expr, copies);
    let (operand, factor) = match expr {
        Expr::Case(case) => {
            for_each_part_of_case(case, copies, visit);
            return;
        }
        Expr::Between(between) => (Some(between.expr.as_ref()), 2),
        Expr::InSubquery(asked) => (Some(asked.expr.as_ref()), 2),
        Expr::SetComparison(asked) => (Some(asked.expr.as_ref()), COMPARED_COPIES),
        _ => (None, 1),
    };
    // It never fails.
    let _ = expr.apply_children(|child| {
        let is_copied = operand.is_some_and(|operand| ptr::eq(operand, child));
        let factor = if is_copied { factor } else { 1 };
        for_each_part(child, copies.saturating_mul(factor), visit);
        Ok(TreeNodeRecursion::Continue)
    });
}

fn for_each_part_of_case(case: &Case, copies: u64, visit: &mut dyn FnMut(&Expr, u64)) {
    let branches = case.when_then_expr.len();
    let is_literal = |expr: &Expr| matches!(expr, Expr::Literal(..));
    let factor = if branches < FEW_BRANCHES {
        branches as u64 + 1
    } else if case.when_then_expr.iter().all(|(_, then)| is_literal(then)) {
        FEW_BRANCHES as u64
    } else {
        1
    };
    if let Some(operand) = &case.expr {
        for_each_part(operand, copies, visit);
    }
    for (when, then) in &case.when_then_expr {
        for_each_part(when, copies.saturating_mul(factor), visit);
        for_each_part(then, copies, visit);
    }
    if let Some(otherwise) = &case.else_expr {
        for_each_part(otherwise, copies, visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::{col, lit, when};

    fn copies_of(name: &str, expr: &Expr) -> u64 {
        let mut sum = 0;
        for_each_part(expr, 1, &mut |part, copies| {
            if part == &col(name) {
                sum += copies;
            }
        });
        sum
    }

    #[test]
    fn copied_operands_count_for_each_copy() {
        let between = col("a").between(lit(1), lit(2));
        assert_eq!(copies_of("a", &between), 2);
        let nested = between.between(lit(true), col("b"));
        assert_eq!(copies_of("a", &nested), 4);
        assert_eq!(copies_of("b", &nested), 1);
        let case = when(col("a"), col("b")).otherwise(col("c")).unwrap();
        assert_eq!(copies_of("a", &case), 2);
        assert_eq!(copies_of("b", &case), 1);
        assert_eq!(copies_of("c", &case), 1);
    }
}
