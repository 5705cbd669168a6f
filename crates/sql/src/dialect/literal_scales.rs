//! `scale`, `min_scale` and `trim_scale` of literals. PostgreSQL takes `8.4100` for an exact number with four
//! decimal places, and the planner for a float.

use crate::dialect::exact_numbers::{exact_literal, literal_places, written_number};
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, VisitorMut,
};
use marigram_functions::TRIM_SCALE;
use std::ops::ControlFlow;

/// Whether a statement, in lower case, may contain such calls.
pub(crate) fn may_have_some(folded: &str) -> bool {
    folded.contains("scale")
}

/// See the module documentation.
pub(crate) struct LiteralScales;

impl VisitorMut for LiteralScales {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        with_exact_scale(expr);
        ControlFlow::Continue(())
    }
}

/// Gives the literal argument of such a call its exact type. The call of `trim_scale` becomes its answer.
fn with_exact_scale(expr: &mut Expr) {
    let Expr::Function(function) = expr else {
        return;
    };
    let [name] = function.name.0.as_slice() else {
        return;
    };
    let Some(name) = name.as_ident().map(fold_case) else {
        return;
    };
    if ![TRIM_SCALE, "scale", "min_scale"].contains(&name.as_str()) {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(number))] = list.args.as_mut_slice() else {
        return;
    };
    if let Some(exact) = written_number(number).and_then(|text| exact_literal(&text)) {
        *number = exact;
    }
    if name == TRIM_SCALE
        && let Some(text) = literal_places(number)
    {
        let trimmed = match text.split_once('.') {
            Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
            None => &text,
        };
        if let Some(exact) = exact_literal(trimmed) {
            *expr = exact;
        }
    }
}
