//! Accessors of summaries: `average(stats_agg(v))`, and `stats_agg(v) -> average()`.
//!
//! Some accessors have the names of aggregates. Such a name means the accessor if it follows an arrow, or
//! if its argument is a call that makes a summary.

use crate::dialect::rewriting::call;
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Value, VisitorMut,
};
use marigram_functions::{ACCESSORS, SummaryPlace, accessor_function};
use std::ops::ControlFlow;

/// The aggregates that make summaries.
const SUMMARIES: [&str; 10] = [
    "stats_agg",
    "time_weight",
    "time_weight_agg",
    "counter_agg",
    "gauge_agg",
    "candlestick_agg",
    "percentile_agg",
    "uddsketch",
    "tdigest",
    "rollup",
];

/// Whether a statement, in lower case, may have an accessor.
pub(crate) fn may_have_some(folded: &str) -> bool {
    let has_summary = SUMMARIES.iter().any(|name| folded.contains(name));
    let has_call = |name: &str| {
        let mut places = folded.match_indices(name);
        places.any(|(at, _)| folded[at + name.len()..].trim_start().starts_with('('))
    };
    has_summary
        || folded.contains("->")
        || ACCESSORS
            .iter()
            .any(|(name, is_shared, _)| !is_shared && has_call(name))
}

/// See the module documentation.
pub(crate) struct SummaryAccessors;

fn name_of(function: &Function) -> Option<String> {
    let part = function.name.0.last()?.as_ident()?;
    Some(fold_case(part))
}

fn accessor(function: &Function) -> Option<&'static (&'static str, bool, SummaryPlace)> {
    let name = name_of(function)?;
    ACCESSORS.iter().find(|(known, _, _)| *known == name)
}

fn arguments(function: &Function) -> Option<Vec<Expr>> {
    let is_plain = function.over.is_none() && function.filter.is_none();
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    if !is_plain || !list.clauses.is_empty() || list.duplicate_treatment.is_some() {
        return None;
    }
    let values = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    values.collect()
}

/// Whether an expression is a call that makes a summary.
fn makes_summary(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => makes_summary(expr),
        Expr::Function(function) => {
            name_of(function).is_some_and(|name| SUMMARIES.contains(&name.as_str()))
        }
        _ => false,
    }
}

/// `time_weight('Linear', time, value)`, which makes a summary; the time weighted average has its method
/// last.
fn is_time_weight(function: &Function) -> bool {
    let Some(arguments) = arguments_of_aggregate(function) else {
        return false;
    };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(first))),
        _,
        _,
    ] = arguments
    else {
        return false;
    };
    name_of(function).as_deref() == Some("time_weight")
        && matches!(first.value, Value::SingleQuotedString(_))
}

fn arguments_of_aggregate(function: &Function) -> Option<&[FunctionArg]> {
    match &function.args {
        FunctionArguments::List(list) => Some(&list.args),
        _ => None,
    }
}

/// The call of an accessor; the summary is its first argument.
fn accessed(name: &str, summary: Expr, rest: Vec<Expr>) -> Expr {
    let mut arguments = vec![summary];
    arguments.extend(rest);
    call(&accessor_function(name), arguments)
}

fn rewritten(expr: &mut Expr) -> Result<Option<Expr>, SqlError> {
    if let Expr::BinaryOp {
        left,
        op: BinaryOperator::Arrow,
        right,
    } = expr
    {
        let Expr::Function(function) = right.as_ref() else {
            return Ok(None);
        };
        let Some(rest) = arguments(function) else {
            return Ok(None);
        };
        // The right side was visited first, and may have its new name already.
        let written = name_of(function).unwrap_or_default();
        let name = written.strip_prefix("summary_").unwrap_or(&written);
        if name == "rollup" && rest.is_empty() {
            return Ok(Some(call("rollup", vec![left.as_ref().clone()])));
        }
        let Some((name, _, _)) = ACCESSORS.iter().find(|(known, _, _)| *known == name) else {
            let message = format!("'{name}' is no accessor of a summary");
            return Err(SqlError::named("42883", name, message));
        };
        return Ok(Some(accessed(name, left.as_ref().clone(), rest)));
    }
    let Expr::Function(function) = expr else {
        return Ok(None);
    };
    if is_time_weight(function) {
        function.name = ObjectName::from(vec![Ident::new("time_weight_agg")]);
        return Ok(None);
    }
    let Some((name, is_shared, place)) = accessor(function) else {
        return Ok(None);
    };
    let Some(mut given) = arguments(function) else {
        return Ok(None);
    };
    let summary = match place {
        SummaryPlace::First if given.is_empty() => return Ok(None),
        SummaryPlace::First => given.remove(0),
        SummaryPlace::Last => match given.pop() {
            Some(summary) => summary,
            None => return Ok(None),
        },
    };
    // The percentile of values names the fraction last, and that of a summary first.
    let is_literal = |expr: &Expr| matches!(expr, Expr::Value(_));
    let is_of_summary = makes_summary(&summary)
        || *place == SummaryPlace::Last
            && given.first().is_some_and(is_literal)
            && !is_literal(&summary);
    if *is_shared && !is_of_summary {
        return Ok(None);
    }
    Ok(Some(accessed(name, summary, given)))
}

impl VisitorMut for SummaryAccessors {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match rewritten(expr) {
            Ok(Some(other)) => *expr = other,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}
