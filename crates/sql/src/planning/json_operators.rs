//! The operators of JSON, `->`, `->>`, `#>`, `#>>`, `@>`, `<@`, `?`, `?|`, `?&`, `||`, `-` and `#-`, which become
//! functions.

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use marigram_functions::{json_edit, json_operation};
use marigram_service::PG_TYPE_KEY;

/// Plans such operators. JSON is a text; only `jsonb` that bears its mark has `||` and `-`, which texts and
/// numbers have as well.
#[derive(Debug)]
pub(crate) struct JsonOperators;

impl ExprPlanner for JsonOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let (function, is_swapped) = match expr.op {
            BinaryOperator::Arrow => (json_operation("->"), false),
            BinaryOperator::LongArrow => (json_operation("->>"), false),
            BinaryOperator::HashArrow => (json_operation("#>"), false),
            BinaryOperator::HashLongArrow => (json_operation("#>>"), false),
            BinaryOperator::AtArrow => (json_operation("@>"), false),
            BinaryOperator::ArrowAt => (json_operation("@>"), true),
            BinaryOperator::Question => (json_edit("?"), false),
            BinaryOperator::QuestionPipe => (json_edit("?|"), false),
            BinaryOperator::QuestionAnd => (json_edit("?&"), false),
            BinaryOperator::HashMinus => (json_edit("#-"), false),
            BinaryOperator::Minus if is_jsonb(&expr.left, schema) => (json_edit("-"), false),
            BinaryOperator::StringConcat if are_jsonb(&expr.left, &expr.right, schema) => {
                (json_edit("||"), false)
            }
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let json = if is_swapped { &expr.right } else { &expr.left };
        let kind = json.get_type(schema);
        let is_text = kind.is_ok_and(|kind| kind.is_string());
        let Some(function) = function.filter(|_| is_text) else {
            return Ok(PlannerResult::Original(expr));
        };
        let arguments = if is_swapped {
            vec![expr.right, expr.left]
        } else {
            vec![expr.left, expr.right]
        };
        Ok(PlannerResult::Planned(function.call(arguments)))
    }
}

/// Whether an expression is known to be `jsonb`.
fn is_jsonb(expr: &Expr, schema: &DFSchema) -> bool {
    let field = expr.to_field(schema);
    field.is_ok_and(|(_, field)| {
        field
            .metadata()
            .get(PG_TYPE_KEY)
            .is_some_and(|own| own == "jsonb")
    })
}

/// Whether one of them is `jsonb`, and the other one is, too, or is a literal or parameter whose type is open.
fn are_jsonb(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    let sides = [is_jsonb(left, schema), is_jsonb(right, schema)];
    let is_open = |expr: &Expr| matches!(expr, Expr::Literal(..) | Expr::Placeholder(_));
    match sides {
        [true, true] => true,
        [true, false] => is_open(right),
        [false, true] => is_open(left),
        [false, false] => false,
    }
}
