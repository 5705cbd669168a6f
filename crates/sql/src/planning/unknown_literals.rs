//! Operators with a text literal, whose type PostgreSQL takes from the other side: `1 + '2'` adds
//! numbers; and `||` of a text and another value, which becomes a text.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans such operators.
#[derive(Debug)]
pub(crate) struct UnknownLiterals;

impl ExprPlanner for UnknownLiterals {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus, StringConcat};
        let as_type = |side: Expr, kind: DataType| Expr::Cast(Cast::new(Box::new(side), kind));
        match expr.op {
            Plus | Minus | Multiply | Divide | Modulo => {
                let number = |side: &Expr| side.get_type(schema).ok().filter(DataType::is_numeric);
                if is_unknown(&expr.right)
                    && let Some(kind) = number(&expr.left)
                {
                    expr.right = as_type(expr.right, kind);
                } else if is_unknown(&expr.left)
                    && let Some(kind) = number(&expr.right)
                {
                    expr.left = as_type(expr.left, kind);
                }
            }
            StringConcat => {
                let kinds = (expr.left.get_type(schema), expr.right.get_type(schema));
                let (Ok(left), Ok(right)) = kinds else {
                    return Ok(PlannerResult::Original(expr));
                };
                if is_text(&left) && is_plain(&right) {
                    expr.right = as_type(expr.right, DataType::Utf8);
                } else if is_plain(&left) && is_text(&right) {
                    expr.left = as_type(expr.left, DataType::Utf8);
                }
            }
            _ => {}
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// Whether an expression is a text literal without a type.
fn is_unknown(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => value.is_string(),
        other => other.is_string(),
    }
}

/// Whether a value that is no text becomes one in `||`.
fn is_plain(kind: &DataType) -> bool {
    let is_bytes = matches!(
        kind,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    );
    !is_text(kind) && !kind.is_nested() && !kind.is_null() && !is_bytes
}
