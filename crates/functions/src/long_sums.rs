//! Sums and products of many operands. Each step of planning asks for the type of each of
//! their prefixes, and a question for a type looks at all operands: the work would grow with the square of
//! their number, or faster. So every so often, a prefix gets a cast to the type that it has, whose
//! type is known at once. The optimizer removes such casts.
//!
//! Chains of AND and OR are balanced before they are planned; sums cannot be, because the order of additions
//! changes the result.

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{BinaryExpr, Cast};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};

/// The number of operands after which a prefix gets a cast.
const OPERANDS_MAX: usize = 32;

/// See the module documentation. It comes before the planners that ask for types.
#[derive(Debug)]
pub struct LongSums;

impl ExprPlanner for LongSums {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if is_long(&expr.left)
            && let Ok(kind) = expr.left.get_type(schema)
            && kind.is_numeric()
        {
            let prefix = std::mem::take(&mut expr.left);
            expr.left = Expr::Cast(Cast::new(Box::new(prefix), kind));
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// Whether an expression is a chain of as many operators, whose type is known. That of a parameter may
/// still change.
fn is_long(mut expr: &Expr) -> bool {
    for _ in 0..OPERANDS_MAX {
        let operand;
        (expr, operand) = match expr {
            Expr::BinaryExpr(BinaryExpr { left, right, .. }) => (&**left, &**right),
            // An operator of ours.
            Expr::ScalarFunction(call) => match call.args.as_slice() {
                [left, right] => (left, right),
                _ => return false,
            },
            _ => return false,
        };
        if has_parameter(operand) {
            return false;
        }
    }
    // A cast has its type, whatever is in it.
    matches!(expr, Expr::Cast(_)) || !has_parameter(expr)
}

fn has_parameter(expr: &Expr) -> bool {
    let is_parameter = |part: &Expr| Ok(matches!(part, Expr::Placeholder(_)));
    expr.exists(is_parameter).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::{Operator, binary_expr, col, placeholder};
    use datafusion::sql::sqlparser::ast::BinaryOperator;

    #[test]
    fn a_prefix_has_a_known_type() {
        let schema = Schema::new(vec![Field::new("v", DataType::Float64, true)]);
        let schema = DFSchema::try_from(schema).unwrap();
        let casts_in = |mut sum: Expr| {
            let mut casts = 0;
            for _ in 0..200 {
                let raw = RawBinaryExpr {
                    op: BinaryOperator::Plus,
                    left: sum,
                    right: col("v"),
                };
                let Ok(PlannerResult::Original(raw)) = LongSums.plan_binary_op(raw, &schema) else {
                    panic!("it stays a sum")
                };
                casts += usize::from(matches!(raw.left, Expr::Cast(_)));
                sum = binary_expr(raw.left, Operator::Plus, raw.right);
            }
            assert_eq!(sum.get_type(&schema).unwrap(), DataType::Float64);
            casts
        };
        assert_eq!(casts_in(col("v")), 6);
        // The type of a parameter is not known yet.
        assert_eq!(casts_in(placeholder("$1")), 0);
    }
}
