//! `generate_series(start, stop, step)` in FROM. DataFusion's table function takes only literals, in
//! ISO 8601: those of times are written so. Where an argument is anything else, the rows are the
//! elements of the array that the function of this name returns.

use crate::dialect::grammar::MarigramDialect;
use crate::dialect::rewriting::call;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, Ident, Interval, SelectItem, SetExpr,
    Statement, TableAlias, TableFactor, TimezoneInfo, UnaryOperator, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use marigram_functions::parse_postgres_interval;
use marigram_pgtext::{ReferenceClock, TimeText, ZoneClock, session_zone};
use std::ops::ControlFlow;

/// The function.
const SERIES: &str = "generate_series";

/// Whether a statement, in lower case, may contain it.
pub(crate) fn may_have_some(folded: &str) -> bool {
    folded.contains(SERIES)
}

/// See the module documentation.
pub(crate) struct SeriesInFrom;

impl VisitorMut for SeriesInFrom {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        let TableFactor::Table {
            name,
            alias,
            args: Some(arguments),
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        if !name.to_string().eq_ignore_ascii_case(SERIES) {
            return ControlFlow::Continue(());
        }
        let mut values = Vec::with_capacity(arguments.args.len());
        for argument in &arguments.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument else {
                return ControlFlow::Continue(());
            };
            values.push(value.clone());
        }
        if values.iter().all(is_number) {
            return ControlFlow::Continue(());
        }
        if let Some(literals) = times(&values) {
            let literals = literals.into_iter();
            let literals = literals.map(|value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value)));
            arguments.args = literals.collect();
            return ControlFlow::Continue(());
        }
        if let Some(elements) = elements(values, alias.take()) {
            *factor = elements;
        }
        ControlFlow::Continue(())
    }
}

/// Whether an argument is a whole number that is written in the statement.
pub(crate) fn is_number(value: &Expr) -> bool {
    match value {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.bytes().all(|digit| digit.is_ascii_digit()),
            other => matches!(other, Value::Null),
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_number(expr),
        _ => false,
    }
}

/// Whether the arguments of a series are literals, so that its rows stream.
pub(crate) fn is_literal_series(values: &[Expr]) -> bool {
    // The scalar function has the better words for a step of zero.
    let is_zero = |step: &Expr| step.to_string() == "0";
    let has_step = !values.get(2).is_some_and(is_zero);
    has_step && values.iter().all(is_number) || times(values).is_some()
}

/// A literal text, and the type to which it is cast.
fn literal(value: &Expr) -> Option<(&str, Option<&DataType>)> {
    let (value, kind) = match value {
        Expr::Cast {
            expr, data_type, ..
        } => match expr.as_ref() {
            Expr::Value(value) => (&value.value, Some(data_type)),
            _ => return None,
        },
        Expr::TypedString(typed) => (&typed.value.value, Some(&typed.data_type)),
        Expr::Value(value) => (&value.value, None),
        _ => return None,
    };
    match value {
        Value::SingleQuotedString(text) => Some((text, kind)),
        _ => None,
    }
}

/// The arguments of a series of times without a zone, if all are literals.
fn times(values: &[Expr]) -> Option<[Expr; 3]> {
    let [start, stop, step] = values else {
        return None;
    };
    let is_time = |kind: &DataType| {
        matches!(
            kind,
            DataType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
        )
    };
    let kinds = [literal(start)?.1, literal(stop)?.1];
    let all_times = kinds.iter().flatten().all(|kind| is_time(kind));
    if !all_times || kinds.iter().all(Option::is_none) {
        return None;
    }
    let step = match step {
        Expr::Interval(_) => step.clone(),
        _ => {
            let (text, kind) = literal(step)?;
            let is_interval = kind.is_none_or(|kind| matches!(kind, DataType::Interval { .. }));
            parse_postgres_interval(text).filter(|_| is_interval)?;
            let text = Value::SingleQuotedString(text.to_owned());
            Expr::Interval(Interval {
                value: Box::new(Expr::value(text)),
                leading_field: None,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: None,
            })
        }
    };
    Some([
        iso_time(literal(start)?.0)?,
        iso_time(literal(stop)?.0)?,
        step,
    ])
}

/// A time as DataFusion reads it.
fn iso_time(text: &str) -> Option<Expr> {
    let zone = session_zone("UTC").ok()?.1;
    let clock = ReferenceClock {
        now: None,
        zone: zone.clone(),
    };
    let ns = TimeText::parse(text, &clock).ok()?.utc_ns(&clock).ok()?;
    let text = ZoneClock::new(zone).text(ns)?;
    let text = text.strip_suffix("+00").unwrap_or(&text).to_owned();
    Some(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
        data_type: DataType::Timestamp(None, TimezoneInfo::None),
        array: false,
        format: None,
    })
}

/// `(SELECT unnest(generate_series(…)) AS generate_series) AS alias`
fn elements(values: Vec<Expr>, alias: Option<TableAlias>) -> Option<TableFactor> {
    let mut template = Parser::parse_sql(&MarigramDialect, "SELECT 1").ok()?;
    let Some(Statement::Query(mut query)) = template.pop() else {
        return None;
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    let column = match &alias {
        Some(alias) if alias.columns.is_empty() => alias.name.clone(),
        _ => Ident::new(SERIES),
    };
    select.projection = vec![SelectItem::ExprWithAlias {
        expr: call("unnest", vec![call(SERIES, values)]),
        alias: column,
    }];
    let alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::new(SERIES),
        columns: Vec::new(),
        at: None,
    });
    Some(TableFactor::Derived {
        lateral: false,
        subquery: query,
        alias: Some(alias),
        sample: None,
    })
}
