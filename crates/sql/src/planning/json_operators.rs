//! The operators of JSON, `->`, `->>`, `#>`, `#>>`, `@>` and `<@`, which become functions.

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::ExprSchemable;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use marigram_functions::json_operation;

/// Plans such operators. JSON is a text.
#[derive(Debug)]
pub(crate) struct JsonOperators;

impl ExprPlanner for JsonOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let (sign, is_swapped) = match expr.op {
            BinaryOperator::Arrow => ("->", false),
            BinaryOperator::LongArrow => ("->>", false),
            BinaryOperator::HashArrow => ("#>", false),
            BinaryOperator::HashLongArrow => ("#>>", false),
            BinaryOperator::AtArrow => ("@>", false),
            BinaryOperator::ArrowAt => ("@>", true),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let json = if is_swapped { &expr.right } else { &expr.left };
        let kind = json.get_type(schema);
        let is_text = kind.is_ok_and(|kind| kind.is_string());
        let Some(operation) = json_operation(sign).filter(|_| is_text) else {
            return Ok(PlannerResult::Original(expr));
        };
        let arguments = if is_swapped {
            vec![expr.right, expr.left]
        } else {
            vec![expr.left, expr.right]
        };
        Ok(PlannerResult::Planned(operation.call(arguments)))
    }
}
