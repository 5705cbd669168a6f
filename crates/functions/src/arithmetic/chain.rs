//! A chain of additions, subtractions and multiplications as one call.
//!
//! `a + b - c * …` is parsed into a tree that is as deep as it has operators, and the name of each node contains
//! the names of all below it: planning thousands of them takes minutes. A chain has the depth of one
//! call. It computes from left to right, step by step, with the loops of single operators, so that its
//! values and its errors are those of the tree.
//!
//! Invariant: the operands have the types that DataFusion's coercion gives to the sides of an operator. What
//! has another type is cast before it becomes an operand, so that no step casts.

use super::argument::OperatorArgument;
use super::floats::compute_floats;
use super::kernel::{ArithmeticOp, compute};
use arrow::array::{Datum, Scalar};
use arrow::compute::kernels::numeric::{add_wrapping, mul_wrapping, sub_wrapping};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast,
};
use std::fmt::Write;
use std::sync::Arc;

/// The most operands of one call. All of them are in memory while it computes a batch; the first operand
/// of a longer chain is a call.
const OPERANDS_MAX: usize = 128;

/// The operators of a chain.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ArithmeticChain {
    /// One less than the operands; only those of [`op_of`].
    ops: Vec<ArithmeticOp>,
    /// The type of the result.
    kind: DataType,
    signature: Signature,
}

fn op_of(op: Operator) -> Option<ArithmeticOp> {
    match op {
        Operator::Plus => Some(ArithmeticOp::Add),
        Operator::Minus => Some(ArithmeticOp::Subtract),
        Operator::Multiply => Some(ArithmeticOp::Multiply),
        _ => None,
    }
}

/// Whether a chain takes operands of this type.
pub(crate) fn takes(kind: &DataType) -> bool {
    kind.is_integer()
        || kind.is_decimal()
        || matches!(kind, DataType::Float32 | DataType::Float64 | DataType::Null)
}

/// Whether chains have this operator.
pub(crate) fn is_chained(op: Operator) -> bool {
    op_of(op).is_some()
}

/// The type of a call that is a chain.
pub(crate) fn chain_type(expr: &Expr) -> Option<&DataType> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let chain = call.func.inner().downcast_ref::<ArithmeticChain>()?;
    Some(&chain.kind)
}

/// `left op right` as a chain, for operands of which a chain [`takes`] the types. If `left` is a chain with
/// room, it gets one more operand.
///
/// # Errors
/// DataFusion's, for types that it cannot combine, and for an operator that chains do not have.
pub(crate) fn chained(
    left: Expr,
    left_type: &DataType,
    op: Operator,
    right: Expr,
    right_type: &DataType,
) -> Result<Expr> {
    let Some(step) = op_of(op) else {
        return internal_err!("{op} is not an operator of chains");
    };
    let coercer = BinaryTypeCoercer::new(left_type, &op, right_type);
    let (left_side, right_side) = coercer.get_input_types()?;
    let kind = coercer.get_result_type()?;
    let as_type = |expr: Expr, from: &DataType, to: DataType| {
        if *from == to { expr } else { cast(expr, to) }
    };
    let right = as_type(right, right_type, right_side);
    let (mut ops, mut operands) = match left {
        Expr::ScalarFunction(call) if *left_type == left_side => match opened(call) {
            Ok(parts) => parts,
            Err(call) => (Vec::new(), vec![Expr::ScalarFunction(call)]),
        },
        left => (Vec::new(), vec![as_type(left, left_type, left_side)]),
    };
    ops.push(step);
    operands.push(right);
    let chain = ArithmeticChain {
        ops,
        kind,
        signature: Signature::variadic_any(Volatility::Immutable),
    };
    let function = Arc::new(ScalarUDF::from(chain));
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(
        function, operands,
    )))
}

/// The operators and operands of a chain with room for more; otherwise the call.
fn opened(
    call: ScalarFunction,
) -> std::result::Result<(Vec<ArithmeticOp>, Vec<Expr>), ScalarFunction> {
    match call.func.inner().downcast_ref::<ArithmeticChain>() {
        Some(chain) if call.args.len() < OPERANDS_MAX => Ok((chain.ops.clone(), call.args)),
        _ => Err(call),
    }
}

/// The tree of operators that a chain replaces.
pub(super) fn unchained(call: &ScalarFunction) -> Option<Expr> {
    let chain = call.func.inner().downcast_ref::<ArithmeticChain>()?;
    let mut operands = call.args.iter().cloned();
    let mut tree = operands.next()?;
    for (op, right) in chain.ops.iter().zip(operands) {
        let (left, right) = (Box::new(tree), Box::new(right));
        tree = Expr::BinaryExpr(BinaryExpr::new(left, op.operator(), right));
    }
    Some(tree)
}

impl ScalarUDFImpl for ArithmeticChain {
    fn name(&self) -> &'static str {
        "arithmetic_chain"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The name of the tree.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let mut args = args.iter();
        let mut name = match args.next() {
            Some(first) => first.schema_name().to_string(),
            None => return internal_err!("a chain has operands"),
        };
        for (op, right) in self.ops.iter().zip(args) {
            write!(name, " {op} {}", right.schema_name())?;
        }
        Ok(name)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.kind.clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (rows, given) = (args.number_rows, args.args.len());
        if given != self.ops.len() + 1 {
            return internal_err!(
                "a chain of {} operators has {given} operands",
                self.ops.len()
            );
        }
        let mut operands = args.args.into_iter().map(OperatorArgument::new);
        let Some(first) = operands.next() else {
            return internal_err!("a chain has operands");
        };
        let mut result = first?;
        for (op, operand) in self.ops.iter().zip(operands) {
            result = step(*op, &result, &operand?, rows)?;
        }
        if result.is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &result.array,
                0,
            )?));
        }
        Ok(ColumnarValue::Array(result.array))
    }
}

/// Computes one operator.
fn step(
    op: ArithmeticOp,
    left: &OperatorArgument,
    right: &OperatorArgument,
    rows: usize,
) -> Result<OperatorArgument> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let kind = left.array.data_type();
    let array = if kind.is_floating() {
        compute_floats(op, left.operand(), right.operand())?
    } else if kind.is_integer() {
        compute(op, left.operand(), right.operand(), rows)?
    } else {
        decimals(op, left, right)?
    };
    Ok(OperatorArgument { array, is_scalar })
}

/// Decimals as DataFusion's operators compute them. Arrow checks them.
fn decimals(
    op: ArithmeticOp,
    left: &OperatorArgument,
    right: &OperatorArgument,
) -> Result<arrow::array::ArrayRef> {
    let one =
        |side: &OperatorArgument| side.is_scalar.then(|| Scalar::new(Arc::clone(&side.array)));
    let (one_left, one_right) = (one(left), one(right));
    let left: &dyn Datum = one_left.as_ref().map_or(&left.array, |one| one);
    let right: &dyn Datum = one_right.as_ref().map_or(&right.array, |one| one);
    Ok(match op {
        ArithmeticOp::Add => add_wrapping(left, right)?,
        ArithmeticOp::Subtract => sub_wrapping(left, right)?,
        ArithmeticOp::Multiply => mul_wrapping(left, right)?,
        ArithmeticOp::Divide | ArithmeticOp::BitwiseXor => {
            return internal_err!("{op} is not an operator of chains");
        }
    })
}
