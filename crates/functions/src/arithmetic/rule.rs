//! The analyzer rule that replaces operators with checked functions.

use super::functions::{binary, negate, type_of};
use super::kernel::ArithmeticOp;
use crate::plan_expressions::replace_in_expressions;
use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

/// See the module documentation. The rule runs after DataFusion's type coercion, when both sides of
/// an operator have the same type.
#[derive(Debug)]
pub struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        replace_in_expressions(plan, is_arithmetic, checked)
    }

    fn name(&self) -> &'static str {
        "checked_arithmetic"
    }
}

fn is_arithmetic(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => op_of(binary.op).is_some(),
        Expr::Negative(_) => true,
        _ => false,
    }
}

fn op_of(op: Operator) -> Option<ArithmeticOp> {
    match op {
        Operator::Plus => Some(ArithmeticOp::Add),
        Operator::Minus => Some(ArithmeticOp::Subtract),
        Operator::Multiply => Some(ArithmeticOp::Multiply),
        Operator::Divide => Some(ArithmeticOp::Divide),
        // DataFusion folds `a # a` to 0, and `a # b # b` to `a`, although NULL should come out.
        Operator::BitwiseXor => Some(ArithmeticOp::BitwiseXor),
        _ => None,
    }
}

/// Whether an operator on this type may have results that do not fit. Divisions of whole numbers
/// are checked by Arrow.
fn is_checked(op: ArithmeticOp, kind: &DataType) -> bool {
    match kind {
        DataType::Float32 | DataType::Float64 => op != ArithmeticOp::BitwiseXor,
        kind => kind.is_integer() && op != ArithmeticOp::Divide,
    }
}

/// Replaces an operator on whole numbers or floats with its function. Expressions that have no type yet, such
/// as parameters, stay unchanged.
fn checked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let checked = op_of(op).filter(|op| {
                let kind = type_of(&left, schema);
                kind.as_ref().is_some_and(|kind| is_checked(*op, kind))
                    && kind == type_of(&right, schema)
            });
            match checked {
                Some(op) => Transformed::yes(binary(op, *left, *right)),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::Negative(operand)
            if type_of(&operand, schema).is_some_and(|kind| kind.is_signed_integer()) =>
        {
            Transformed::yes(negate(*operand))
        }
        other => Transformed::no(other),
    }
}
