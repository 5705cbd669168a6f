//! The operators as functions.

use super::argument::OperatorArgument;
use super::chain::unchained;
use super::floats::compute_floats;
use super::kernel::{ArithmeticOp, KernelOperand, compute};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// An operator on two numbers of one type, or the minus sign of a whole number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedOperator {
    /// `None` means the minus sign.
    op: Option<ArithmeticOp>,
    signature: Signature,
}

fn made(op: Option<ArithmeticOp>) -> Arc<ScalarUDF> {
    let arguments = if op.is_some() { 2 } else { 1 };
    Arc::new(ScalarUDF::from(CheckedOperator {
        op,
        signature: Signature::any(arguments, Volatility::Immutable),
    }))
}

static ADD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| made(Some(ArithmeticOp::Add)));
static SUBTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| made(Some(ArithmeticOp::Subtract)));
static MULTIPLY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| made(Some(ArithmeticOp::Multiply)));
static DIVIDE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| made(Some(ArithmeticOp::Divide)));
static XOR: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| made(Some(ArithmeticOp::BitwiseXor)));
static NEGATE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| made(None));

/// `left op right`, checked.
pub(super) fn binary(op: ArithmeticOp, left: Expr, right: Expr) -> Expr {
    let function = match op {
        ArithmeticOp::Add => &ADD,
        ArithmeticOp::Subtract => &SUBTRACT,
        ArithmeticOp::Multiply => &MULTIPLY,
        ArithmeticOp::Divide => &DIVIDE,
        ArithmeticOp::BitwiseXor => &XOR,
    };
    Expr::ScalarFunction(ScalarFunction::new_udf(
        Arc::clone(function),
        vec![left, right],
    ))
}

/// `-operand`, checked.
pub(super) fn negate(operand: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&NEGATE), vec![operand]))
}

impl CheckedOperator {
    /// The operator as it was written; `None` means the minus sign.
    fn operator(&self) -> Option<Operator> {
        self.op.map(ArithmeticOp::operator)
    }

    /// The operator expression that a call replaces.
    fn written(&self, args: &[Expr]) -> Option<Expr> {
        match (self.operator(), args) {
            (None, [operand]) => Some(Expr::Negative(Box::new(operand.clone()))),
            (Some(op), [left, right]) => {
                let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
                Some(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            _ => None,
        }
    }
}

/// The type of an operand. For a call, this is the type of its last argument: asking all arguments
/// would walk a long chain of operators once for each operator in it.
pub(super) fn type_of(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    match expr {
        Expr::ScalarFunction(call)
            if call
                .func
                .inner()
                .downcast_ref::<CheckedOperator>()
                .is_some() =>
        {
            type_of(call.args.last()?, schema)
        }
        other => other.get_type(schema).ok(),
    }
}

/// Appends the name of an operand. A call in it would otherwise build the name of its own left side first,
/// and copy it: the work would grow with the square of the length of a chain.
fn push_name(expr: &Expr, name: &mut String) {
    match expr {
        // A cast has the name of its operand.
        Expr::Cast(cast) => push_name(&cast.expr, name),
        Expr::ScalarFunction(call) => {
            let checked = call.func.inner().downcast_ref::<CheckedOperator>();
            match (checked.and_then(CheckedOperator::operator), &call.args[..]) {
                (Some(op), [left, right]) => {
                    push_name(left, name);
                    push_sign(op, right, name);
                }
                _ => name.push_str(&expr.schema_name().to_string()),
            }
        }
        other => name.push_str(&other.schema_name().to_string()),
    }
}

/// Appends an operator and its right operand.
fn push_sign(op: Operator, right: &Expr, name: &mut String) {
    name.push(' ');
    name.push_str(&op.to_string());
    name.push(' ');
    push_name(right, name);
}

/// Restores the operators of an expression to the way they were written.
///
/// # Errors
/// None that can occur.
pub fn unchecked(expr: Expr) -> Result<Expr> {
    let made = expr.transform_down(|node| {
        let written = match &node {
            Expr::ScalarFunction(call) => call
                .func
                .inner()
                .downcast_ref::<CheckedOperator>()
                .and_then(|checked| checked.written(&call.args))
                .or_else(|| unchained(call)),
            _ => None,
        };
        Ok(match written {
            Some(written) => Transformed::yes(written),
            None => Transformed::no(node),
        })
    })?;
    Ok(made.data)
}

impl ScalarUDFImpl for CheckedOperator {
    fn name(&self) -> &'static str {
        match self.op {
            Some(ArithmeticOp::Add) => "checked_add",
            Some(ArithmeticOp::Subtract) => "checked_subtract",
            Some(ArithmeticOp::Multiply) => "checked_multiply",
            Some(ArithmeticOp::Divide) => "checked_divide",
            Some(ArithmeticOp::BitwiseXor) => "bitwise_xor",
            None => "checked_negate",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The name of the operator expression, made without copying a chain of operators that may be
    /// long.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match (self.operator(), args) {
            (None, [operand]) => Ok(format!("(- {})", operand.schema_name())),
            (Some(op), [left, right]) => {
                let mut name = String::new();
                push_name(left, &mut name);
                push_sign(op, right, &mut name);
                Ok(name)
            }
            _ => internal_err!("{} has {} arguments", self.name(), args.len()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let kind = args.return_field.data_type().clone();
        let all_scalar = |args: &[ColumnarValue]| {
            args.iter()
                .all(|arg| matches!(arg, ColumnarValue::Scalar(_)))
        };
        let (is_scalar, columns) = (all_scalar(&args.args), columns(args.args)?);
        let rows = if is_scalar { 1 } else { rows };
        let made = match (self.op, columns.as_slice()) {
            (Some(op), [left, right]) if kind.is_floating() => {
                compute_floats(op, left.operand(), right.operand())?
            }
            (Some(op), [left, right]) => compute(op, left.operand(), right.operand(), rows)?,
            (None, [operand]) => {
                let zero = ScalarValue::new_zero(&kind)?.to_array()?;
                let zero = KernelOperand {
                    array: &zero,
                    is_scalar: true,
                };
                compute(ArithmeticOp::Subtract, zero, operand.operand(), rows)?
            }
            _ => return internal_err!("{} has {} arguments", self.name(), columns.len()),
        };
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &made, 0,
            )?));
        }
        Ok(ColumnarValue::Array(made))
    }
}

fn columns(args: Vec<ColumnarValue>) -> Result<Vec<OperatorArgument>> {
    args.into_iter().map(OperatorArgument::new).collect()
}
