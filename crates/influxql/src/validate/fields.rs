//! Checks the columns of a SELECT: what each may contain, and which may be combined.

use super::functions::{self, FunctionArgument};
use super::state::{ColumnState, IntervalUse};
use super::{FunctionUse, folded, is_plain_time};
use crate::ast::{Call, Expr, Fill, Literal, Select};
use crate::select_error::SelectError;

type Checked = Result<(), SelectError>;

/// Checks each column, then all of them together.
pub(super) fn check(
    select: &Select,
    interval: IntervalUse,
    fill: Fill,
) -> Result<ColumnState, SelectError> {
    let mut state = ColumnState {
        functions: FunctionUse {
            calls: 0,
            only_selectors: true,
            has_distinct: false,
            has_bare_columns: false,
            top_bottom: None,
        },
        extra_intervals: 0,
        count: 0,
        interval,
        limit: select.limit,
        has_target: select.target.is_some(),
        wildcard_allowed: true,
    };
    for field in &select.fields {
        if is_plain_time(&field.expr) {
            continue;
        }
        state.count += 1;
        state.wildcard_allowed = true;
        check_expr(&mut state, &folded(field))?;
    }
    check_together(&state, fill)?;
    Ok(state)
}

fn check_expr(state: &mut ColumnState, expr: &Expr) -> Checked {
    match expr {
        Expr::Wildcard(_) if !state.wildcard_allowed => Err(SelectError::WildcardInExpression),
        Expr::Literal(Literal::Regex(_)) if !state.wildcard_allowed => {
            Err(SelectError::RegexInExpression)
        }
        Expr::VarRef(_) | Expr::Wildcard(_) | Expr::Literal(Literal::Regex(_)) => {
            state.functions.has_bare_columns = true;
            Ok(())
        }
        Expr::Literal(_) => Err(SelectError::ConstantField),
        Expr::Call(call) => check_call(state, call),
        Expr::Distinct(_) => {
            state.functions.calls += 1;
            note_distinct(state, false);
            Ok(())
        }
        Expr::Paren(inner) => check_expr(state, inner),
        Expr::Binary(binary) => {
            state.wildcard_allowed = false;
            let (first, links) = binary.chain(|_| true);
            // InfluxDB detects a pair of constants before it checks either. Only the first two
            // operands of a chain can be one.
            let is_literal = |expr: &Expr| expr.as_literal().is_some();
            if is_literal(first) && is_literal(links[0].1) {
                return Err(SelectError::TwoLiterals);
            }
            let operands = std::iter::once(first).chain(links.iter().map(|(_, rhs)| *rhs));
            for operand in operands.filter(|operand| !is_literal(operand)) {
                check_expr(state, operand)?;
            }
            Ok(())
        }
    }
}

fn check_call(state: &mut ColumnState, call: &Call) -> Checked {
    match functions::check(state, call)? {
        FunctionArgument::Operands(args) => {
            let mut operands = args.iter().filter(|arg| arg.as_literal().is_none());
            operands.try_for_each(|arg| check_expr(state, arg))
        }
        FunctionArgument::Field(arg) => check_field_argument(state, &call.name, arg),
        FunctionArgument::Transformed(arg) => check_transformed(state, &call.name, arg),
        FunctionArgument::Nested(inner) => check_nested(state, inner),
        FunctionArgument::Call(inner) => check_call(state, inner),
        FunctionArgument::Distinct { args, nested } => check_distinct(state, args, nested),
        FunctionArgument::DistinctName => {
            note_distinct(state, true);
            Ok(())
        }
        FunctionArgument::Nothing => Ok(()),
    }
}

/// Checks a call in a function that accepts `distinct` as an aggregate.
fn check_nested(state: &mut ColumnState, call: &Call) -> Checked {
    if call.name == "distinct" {
        return check_distinct(state, &call.args, true);
    }
    check_call(state, call)
}

/// Checks the argument of an aggregate: a field, or a wildcard for several.
fn check_field_argument(state: &mut ColumnState, function: &str, arg: &Expr) -> Checked {
    let name = || function.to_owned();
    match arg {
        Expr::VarRef(_) => return Ok(()),
        Expr::Wildcard(_) if !state.wildcard_allowed => {
            return Err(SelectError::WildcardArgument(name()));
        }
        Expr::Literal(Literal::Regex(_)) if !state.wildcard_allowed => {
            return Err(SelectError::RegexArgument(name()));
        }
        Expr::Wildcard(_) | Expr::Literal(Literal::Regex(_)) => {}
        _ => return Err(SelectError::ExpectedField(name())),
    }
    state.functions.only_selectors = false;
    Ok(())
}

/// Checks the argument of a transformation: an aggregate if there are groups of time, otherwise a
/// field.
fn check_transformed(state: &mut ColumnState, function: &str, arg: &Expr) -> Checked {
    match arg {
        Expr::Call(_) if !state.has_interval() => {
            Err(SelectError::NeedsInterval(function.to_owned()))
        }
        Expr::Call(call) => check_nested(state, call),
        _ if state.interval == IntervalUse::Own => {
            Err(SelectError::NeedsAggregate(function.to_owned()))
        }
        other => check_field_argument(state, function, other),
    }
}

fn check_distinct(state: &mut ColumnState, args: &[Expr], nested: bool) -> Checked {
    let refuse = |text: &str| Err(SelectError::Argument(text.to_owned()));
    match args {
        [] => return refuse("distinct function requires at least one argument"),
        [Expr::VarRef(_)] => {}
        [_] => return Err(SelectError::ExpectedField("distinct".to_owned())),
        _ => return refuse("distinct function can only have one argument"),
    }
    note_distinct(state, nested);
    Ok(())
}

fn note_distinct(state: &mut ColumnState, nested: bool) {
    state.functions.has_distinct |= !nested;
    state.functions.only_selectors = false;
}

/// Checks whether the columns may be combined.
fn check_together(state: &ColumnState, fill: Fill) -> Checked {
    let FunctionUse {
        calls,
        only_selectors,
        has_distinct,
        has_bare_columns,
        top_bottom,
    } = &state.functions;
    if state.count == 0 {
        return Err(SelectError::NoFields);
    }
    if let Some(name) = top_bottom
        && *calls > 1
    {
        return Err(SelectError::SelectorCombined(name.clone()));
    }
    if *calls == 0 {
        match fill {
            Fill::None => return Err(SelectError::FillNeedsFunction("none")),
            Fill::Linear => return Err(SelectError::FillNeedsFunction("linear")),
            _ => {}
        }
        if state.interval == IntervalUse::Own {
            return Err(SelectError::GroupByNeedsAggregate);
        }
    }
    if *has_distinct && (*calls != 1 || *has_bare_columns) {
        return Err(SelectError::DistinctCombined);
    }
    if *has_bare_columns && !only_selectors {
        return Err(SelectError::MixedAggregates);
    }
    if *has_bare_columns && *calls > 1 {
        return Err(SelectError::MixedSelectors);
    }
    Ok(())
}
