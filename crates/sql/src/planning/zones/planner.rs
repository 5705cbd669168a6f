//! Compares a date with a `timestamptz`: the date is midnight on the session's clocks.
//!
//! DataFusion would compare wall times, which gives a different result if a midnight is skipped.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use marigram_functions::zoned::zoned_type;

/// Plans such comparisons.
#[derive(Debug)]
pub(crate) struct DateComparison;

impl ExprPlanner for DateComparison {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if !matches!(expr.op, Eq | NotEq | Gt | GtEq | Lt | LtEq) {
            return Ok(PlannerResult::Original(expr));
        }
        let is_date = |side: &Expr| {
            let kind = side.get_type(schema);
            kind.is_ok_and(|kind| kind == DataType::Date32)
        };
        let is_zoned = |side: &Expr| {
            let kind = side.get_type(schema);
            kind.is_ok_and(|kind| matches!(kind, DataType::Timestamp(_, Some(_))))
        };
        let midnight = |date: Expr| Expr::Cast(Cast::new(Box::new(date), zoned_type()));
        if is_date(&expr.left) && is_zoned(&expr.right) {
            expr.left = midnight(expr.left);
        } else if is_zoned(&expr.left) && is_date(&expr.right) {
            expr.right = midnight(expr.right);
        }
        Ok(PlannerResult::Original(expr))
    }
}
