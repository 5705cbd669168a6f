//! Checks functions in WHERE: only mathematical ones are allowed.

use super::functions::is_math;
use crate::ast::{Binary, BinaryOp, Expr, Literal, Walk};
use crate::select_error::{Arity, SelectError};

/// Checks a condition without times.
pub(super) fn check(condition: &Expr) -> Result<(), SelectError> {
    let mut refusal = None;
    condition.walk(|expr| {
        if refusal.is_some() {
            return Walk::Over;
        }
        match expr {
            // `a =~ /x/ * 2` can be parsed. InfluxDB fails on it differently.
            Expr::Binary(binary) if matches_no_regex(binary) => {
                refusal = Some(SelectError::InvalidCondition(expr.to_string()));
                Walk::Over
            }
            Expr::Binary(_) => Walk::Into,
            Expr::Call(call) if !is_math(&call.name) => {
                refusal = Some(SelectError::CallInCondition(call.to_string()));
                Walk::Over
            }
            Expr::Call(call) => {
                // Elsewhere, `log` has two arguments.
                let two = matches!(call.name.as_str(), "atan2" | "pow");
                let expected = Arity::Exactly(if two { 2 } else { 1 });
                if !expected.allows(call.args.len()) {
                    refusal = Some(SelectError::ArgumentCount {
                        function: call.name.clone(),
                        expected,
                        got: call.args.len(),
                    });
                    return Walk::Over;
                }
                Walk::Into
            }
            // InfluxDB does not check inside parentheses.
            _ => Walk::Over,
        }
    });
    refusal.map_or(Ok(()), Err)
}

/// Whether anything but a regular expression follows `=~` or `!~`.
fn matches_no_regex(binary: &Binary) -> bool {
    let matches = matches!(binary.op, BinaryOp::EqRegex | BinaryOp::NeqRegex);
    matches && !matches!(binary.rhs, Expr::Literal(Literal::Regex(_)))
}
