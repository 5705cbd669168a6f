//! Constant folding: computes constants in expressions before a statement runs: `now() - 1h`,
//! `2 * 3`, `abs(-1)`.
//!
//! The arithmetic is InfluxDB's: the quotient of whole numbers is a float, x/0 is 0, integers wrap,
//! and a text that looks like a time is one where a time is expected. Expressions that cannot be
//! computed stay unchanged.

mod literals;
mod math;

use crate::ast::{BinaryOp, Call, Expr, Literal, TimeValue};
use crate::zone::Zone;
use literals::fold_literals;

pub(crate) use literals::to_time;

/// What may be computed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Folding<'a> {
    /// The value of `now()` in nanoseconds since the epoch, if it has one.
    pub(crate) now_ns: Option<i64>,
    /// Whether functions such as `abs` are computed.
    pub(crate) math: bool,
    /// The zone of times without one; UTC if there is none.
    pub(crate) zone: Option<Zone<'a>>,
}

/// The expression with its constants computed, without enclosing parentheses.
pub(crate) fn fold(expr: &Expr, folding: Folding<'_>) -> Expr {
    match fold_inner(expr, folding) {
        Expr::Paren(inner) => *inner,
        other => other,
    }
}

/// The expression with its constants computed.
pub(crate) fn fold_inner(expr: &Expr, folding: Folding<'_>) -> Expr {
    match expr {
        Expr::Binary(binary) => {
            let (first, links) = binary.chain(|_| true);
            let mut lhs = fold_inner(first, folding);
            for (op, rhs) in links {
                lhs = join(lhs, op, fold_inner(rhs, folding), folding);
            }
            lhs
        }
        Expr::Call(call) => fold_call(call, folding),
        Expr::Paren(inner) => in_parentheses(fold_inner(inner, folding)),
        other => other.clone(),
    }
}

/// Adds parentheses to expressions that need them: operators.
pub(crate) fn in_parentheses(inner: Expr) -> Expr {
    match inner {
        Expr::Binary(_) => Expr::Paren(Box::new(inner)),
        other => other,
    }
}

/// `lhs op rhs` of folded operands, folded.
pub(crate) fn join(lhs: Expr, op: BinaryOp, rhs: Expr, folding: Folding<'_>) -> Expr {
    let is = |expr: &Expr, value| matches!(expr, Expr::Literal(Literal::Boolean(b)) if *b == value);
    // The value that alone decides AND or OR, whatever the other side is.
    let deciding = match op {
        BinaryOp::And => Some(false),
        BinaryOp::Or => Some(true),
        _ => None,
    };
    if let Some(deciding) = deciding {
        if is(&lhs, deciding) || is(&rhs, deciding) {
            return Literal::Boolean(deciding).into();
        } else if is(&lhs, !deciding) {
            return rhs;
        } else if is(&rhs, !deciding) {
            return lhs;
        }
    }
    let folded = match (&lhs, &rhs) {
        (Expr::Literal(Literal::Nil), _) => {
            let compares = matches!(op, BinaryOp::Eq | BinaryOp::Neq);
            compares.then_some(Literal::Boolean(false))
        }
        (Expr::Literal(lhs), Expr::Literal(rhs)) => fold_literals(op, lhs, rhs, folding.zone),
        _ => None,
    };
    folded.map_or_else(|| Expr::binary(lhs, op, rhs), Expr::Literal)
}

fn fold_call(call: &Call, folding: Folding<'_>) -> Expr {
    let args: Vec<Expr> = call
        .args
        .iter()
        .map(|arg| fold_inner(arg, folding))
        .collect();
    let literals: Option<Vec<&Literal>> = args.iter().map(Expr::as_literal).collect();
    let value = literals.and_then(|literals| match (folding.now_ns, literals.as_slice()) {
        (Some(now_ns), []) if call.name == "now" => Some(Literal::Time(TimeValue {
            unix_ns: now_ns.into(),
            offset_seconds: 0,
        })),
        (_, literals) if folding.math => math::call(&call.name, literals),
        _ => None,
    });
    value.map_or_else(
        || {
            let name = call.name.clone();
            Expr::Call(Call { name, args })
        },
        Expr::Literal,
    )
}

#[cfg(test)]
mod tests;
