//! Plans long chains of `+`, `-` and `*`, and of `||`, as one call.
//!
//! A chain is parsed into a tree as deep as it has operators. Each step of planning asks for the types and
//! names of its nodes, and each node's name contains those below it: the work grows with the square of the
//! length, or faster. Chains of AND and OR are balanced before they are planned; sums cannot be, because the
//! order of additions changes the result. A call with many operands has the depth of one, and
//! computes from left to right ([`crate::arithmetic`], [`crate::BoundFunctions`]).
//!
//! An operand whose type is not known yet (a parameter), or is neither a number nor a text, leaves the
//! tree as it is, and so do other operators. Every so often, a tree of numbers gets a cast to the type that it
//! has, so that its type is known at once; the optimizer removes such casts. Where types are unknown, that
//! is impossible, and chains are refused beyond `TREE_MAX`.
//!
//! Planning an expression cannot be stopped from outside, so each operator also [checks](interrupt::check)
//! whether its statement was cancelled.

use crate::arithmetic::chain::{chain_type, chained, is_chained, takes};
use crate::bounded::concatenation::Concatenation;
use crate::interrupt;
use crate::refusal::refused;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, ScalarUDF, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::{Arc, LazyLock};

/// With this many operators, a tree becomes a call.
const OPERATORS_MIN: usize = 64;
/// The number of operators, not all of them those of chains, after which a tree of numbers gets a cast.
const CAST_EVERY: usize = 32;
/// The most operators of a tree with operands of unknown types.
const TREE_MAX: usize = 512;

static TEXT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Concatenation::new())));

/// See the module documentation. It comes before the planners that ask for types.
#[derive(Debug)]
pub struct OperatorChains;

impl ExprPlanner for OperatorChains {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        interrupt::check()?;
        let op = match expr.op {
            // Their chains are balanced.
            BinaryOperator::And | BinaryOperator::Or => return Ok(PlannerResult::Original(expr)),
            BinaryOperator::Plus => Some(Operator::Plus),
            BinaryOperator::Minus => Some(Operator::Minus),
            BinaryOperator::Multiply => Some(Operator::Multiply),
            BinaryOperator::StringConcat => Some(Operator::StringConcat),
            _ => None,
        };
        let longer = match op {
            Some(Operator::StringConcat) => longer_text(expr, schema),
            Some(op) => longer_arithmetic(expr, op, schema)?,
            None => PlannerResult::Original(expr),
        };
        match longer {
            PlannerResult::Original(mut expr) => {
                check_length(&expr.left)?;
                expr.left = with_known_type(expr.left, schema);
                Ok(PlannerResult::Original(expr))
            }
            planned @ PlannerResult::Planned(_) => Ok(planned),
        }
    }
}

/// Adds an operand to a chain of numbers, or makes one of a long tree.
fn longer_arithmetic(
    mut expr: RawBinaryExpr,
    op: Operator,
    schema: &DFSchema,
) -> Result<PlannerResult<RawBinaryExpr>> {
    let (left, kind) = match chain_type(&expr.left).cloned() {
        Some(kind) => (expr.left, kind),
        None => {
            let Some(kinds) = kinds_of_long_tree(&expr.left, is_chained, schema) else {
                return Ok(PlannerResult::Original(expr));
            };
            if !kinds.iter().all(takes) {
                return Ok(PlannerResult::Original(expr));
            }
            let chain = arithmetic_chain(expr.left, kinds)?;
            match chain_type(&chain).cloned() {
                Some(kind) => (chain, kind),
                None => {
                    expr.left = chain;
                    return Ok(PlannerResult::Original(expr));
                }
            }
        }
    };
    // A text literal takes its type from the other side.
    let right = match expr.right {
        text @ Expr::Literal(ScalarValue::Utf8(Some(_)), _) => cast(text, kind.clone()),
        right => right,
    };
    match type_of(&right, schema).filter(takes) {
        Some(right_type) => Ok(PlannerResult::Planned(chained(
            left,
            &kind,
            op,
            right,
            &right_type,
        )?)),
        None => Ok(PlannerResult::Original(RawBinaryExpr {
            op: expr.op,
            left,
            right,
        })),
    }
}

/// A tree as a chain; `kinds` are the types of its operands.
fn arithmetic_chain(tree: Expr, kinds: Vec<DataType>) -> Result<Expr> {
    let (first, steps) = peeled(tree, is_chained);
    let mut kinds = kinds.into_iter();
    let mut kind = kinds.next().unwrap_or(DataType::Null);
    let mut chain = first;
    for ((op, right), right_type) in steps.into_iter().zip(kinds) {
        chain = chained(chain, &kind, op, right, &right_type)?;
        if let Some(longer) = chain_type(&chain) {
            kind = longer.clone();
        }
    }
    Ok(chain)
}

/// Adds an operand to a chain of texts, or makes one of a long tree.
fn longer_text(expr: RawBinaryExpr, schema: &DFSchema) -> PlannerResult<RawBinaryExpr> {
    let Some(right_type) = type_of(&expr.right, schema).filter(becomes_text) else {
        return PlannerResult::Original(expr);
    };
    let mut operands = match expr.left {
        Expr::ScalarFunction(call) if is_text_chain(&call) => call.args,
        left => {
            let is_concatenation = |op| op == Operator::StringConcat;
            let kinds = kinds_of_long_tree(&left, is_concatenation, schema);
            // A single operator refuses two numbers, and so does a chain that begins with them.
            let are_texts = |kinds: &Vec<DataType>| {
                kinds.iter().all(becomes_text) && kinds.iter().take(2).any(is_text)
            };
            let Some(kinds) = kinds.filter(are_texts) else {
                return PlannerResult::Original(RawBinaryExpr { left, ..expr });
            };
            let (first, steps) = peeled(left, is_concatenation);
            let operands = std::iter::once(first).chain(steps.into_iter().map(|step| step.1));
            let operands = operands.zip(kinds);
            operands.map(|(text, kind)| as_text(text, &kind)).collect()
        }
    };
    operands.push(as_text(expr.right, &right_type));
    let call = ScalarFunction::new_udf(Arc::clone(&TEXT), operands);
    PlannerResult::Planned(Expr::ScalarFunction(call))
}

fn is_text_chain(call: &ScalarFunction) -> bool {
    call.func.inner().downcast_ref::<Concatenation>().is_some()
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_text(value),
        other => *other == DataType::Utf8,
    }
}

/// Whether `||` with a text makes a text of a value of this type.
fn becomes_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => **value == DataType::Utf8,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::LargeUtf8
        | DataType::Utf8View => false,
        other => !other.is_nested(),
    }
}

fn as_text(expr: Expr, kind: &DataType) -> Expr {
    if *kind == DataType::Utf8 {
        expr
    } else {
        cast(expr, DataType::Utf8)
    }
}

/// The types of the operands of a tree with [`OPERATORS_MIN`] operators in a row, in order. `None` if it
/// has another number of them, or if a type is not known. (A longer tree was looked at when it had as many.)
fn kinds_of_long_tree(
    tree: &Expr,
    is_chained: impl Fn(Operator) -> bool,
    schema: &DFSchema,
) -> Option<Vec<DataType>> {
    let (mut operands, mut rest) = (Vec::new(), tree);
    while let Expr::BinaryExpr(BinaryExpr { left, op, right }) = rest
        && is_chained(*op)
    {
        operands.push(&**right);
        if operands.len() > OPERATORS_MIN {
            return None;
        }
        rest = left;
    }
    if operands.len() < OPERATORS_MIN {
        return None;
    }
    operands.push(rest);
    let operands = operands.into_iter().rev();
    operands.map(|operand| type_of(operand, schema)).collect()
}

/// The first operand of a tree, and its operators with their right operands.
fn peeled(mut tree: Expr, is_chained: impl Fn(Operator) -> bool) -> (Expr, Vec<(Operator, Expr)>) {
    let mut steps = Vec::new();
    loop {
        match tree {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_chained(op) => {
                steps.push((op, *right));
                tree = *left;
            }
            first => {
                steps.reverse();
                return (first, steps);
            }
        }
    }
}

/// The type of an operand, if it is final. That of a parameter may still change.
fn type_of(operand: &Expr, schema: &DFSchema) -> Option<DataType> {
    if let Some(kind) = chain_type(operand) {
        return Some(kind.clone());
    }
    is_final(operand)
        .then(|| operand.get_type(schema).ok())
        .flatten()
}

/// Whether the type of an operand does not depend on parameters. A cast has its type, whatever is in it.
fn is_final(operand: &Expr) -> bool {
    matches!(operand, Expr::Cast(_) | Expr::TryCast(_)) || !has_parameter(operand)
}

fn has_parameter(expr: &Expr) -> bool {
    let is_parameter = |part: &Expr| Ok(matches!(part, Expr::Placeholder(_)));
    expr.exists(is_parameter).unwrap_or(true)
}

/// The sides of an operator, also of one that a planner made a function; `None` for other expressions and
/// for AND and OR.
fn sides(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            op: Operator::And | Operator::Or,
            ..
        }) => None,
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => Some((left, right)),
        Expr::ScalarFunction(call) => match call.args.as_slice() {
            [left, right] => Some((left, right)),
            _ => None,
        },
        _ => None,
    }
}

/// Casts a long tree of numbers to its own type.
fn with_known_type(tree: Expr, schema: &DFSchema) -> Expr {
    if !is_long(&tree) {
        return tree;
    }
    match tree.get_type(schema) {
        Ok(kind) if kind.is_numeric() => cast(tree, kind),
        _ => tree,
    }
}

/// Whether a tree has so many operators that it needs a cast, and the types of its operands are known. Operators
/// of chains may still become one call until there are [`OPERATORS_MIN`].
fn is_long(tree: &Expr) -> bool {
    let (mut rest, mut operators, mut has_others) = (tree, 0, false);
    while let Some((left, _)) = sides(rest) {
        operators += 1;
        has_others |= !matches!(rest, Expr::BinaryExpr(it) if is_chained(it.op));
        if operators == OPERATORS_MIN || (has_others && operators >= CAST_EVERY) {
            return has_known_operands(tree, operators);
        }
        rest = left;
    }
    false
}

/// Whether no operand of the last operators of a tree has a type that a parameter decides.
fn has_known_operands(tree: &Expr, operators: usize) -> bool {
    let mut rest = tree;
    for _ in 0..operators {
        let Some((left, right)) = sides(rest) else {
            break;
        };
        if !is_final(right) {
            return false;
        }
        rest = left;
    }
    // Below, there may be a long tree: it has no parameters, or had a cast by now.
    is_final(rest)
}

/// Refuses an operator after too many that stayed a tree with operands of unknown types.
fn check_length(tree: &Expr) -> Result<()> {
    let mut rest = tree;
    for _ in 0..TREE_MAX {
        match sides(rest) {
            Some((left, _)) => rest = left,
            None => return Ok(()),
        }
    }
    if has_known_operands(tree, TREE_MAX) {
        return Ok(());
    }
    Err(refused(
        "54001",
        format!(
            "the statement has more than {TREE_MAX} operators in a row with parameters of unknown types; \
             split it, or give the parameters a type ($1::BIGINT)"
        ),
    ))
}

#[cfg(test)]
mod tests;
