//! Forms of standard SQL and PostgreSQL that are written with others: `localtimestamp`,
//! `INTERVAL '1' DAY`, casts to `VARCHAR(n)`, FETCH FIRST, OVERLAPS, comparisons of rows, and `age`
//! with one argument.

use crate::dialect::rewriting::{CopiedText, binary, call, nested};
use crate::dialect::rows::{
    between_either_way, compared_rows, distinct_rows, each_of_row, row_in_list, row_in_subquery,
};
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, Expr, Fetch, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Interval, LimitClause, Query, TimezoneInfo, Value,
    VisitorMut,
};
use std::mem;
use std::ops::ControlFlow;

/// Whether a statement, in lower case, may contain such forms.
pub(crate) fn may_have_some(folded: &str) -> bool {
    const WORDS: &[&str] = &[
        "local",
        "current_time",
        "interval",
        "char",
        "fetch",
        "overlaps",
        "symmetric",
        "age(",
        "age (",
        ") in",
        ")in",
        ")\nin",
        ") not",
        ")\nnot",
    ];
    WORDS.iter().any(|word| folded.contains(word)) || may_compare_rows(folded)
}

/// Whether a comparison, or IS, follows a parenthesis.
fn may_compare_rows(folded: &str) -> bool {
    folded.split(')').skip(1).any(|rest| {
        let rest = rest.trim_start();
        rest.starts_with(['=', '<', '>', '!']) || rest.starts_with("is")
    })
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct StandardForms {
    copied: CopiedText,
}

impl VisitorMut for StandardForms {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        match query.fetch.take() {
            Some(fetch) => limit_by_fetch(query, fetch),
            None => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match self.replacement(expr) {
            Ok(Some(replaced)) => *expr = replaced,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl StandardForms {
    fn replacement(&mut self, expr: &mut Expr) -> Result<Option<Expr>, SqlError> {
        Ok(match expr {
            Expr::Function(function) => clock(function).or_else(|| age_of_today(function)),
            Expr::Interval(interval) => {
                with_unit_in_text(interval);
                None
            }
            Expr::Cast {
                expr, data_type, ..
            } => length_of(data_type).map(|length| {
                let text = cast(take(expr), DataType::Text);
                let text = call("left", vec![text, number(length)]);
                match data_type {
                    // Blanks at the end do not matter.
                    DataType::Char(_) | DataType::Character(_) => {
                        let blank = Value::SingleQuotedString(" ".to_owned());
                        call("rtrim", vec![text, Expr::value(blank)])
                    }
                    _ => text,
                }
            }),
            Expr::Between { .. } => between_either_way(expr, &mut self.copied)?,
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Overlaps,
                right,
            } => overlaps(left, right, &mut self.copied)?,
            Expr::BinaryOp { left, op, right } => compared_rows(left, op, right, &mut self.copied)?,
            Expr::IsDistinctFrom(left, right) => distinct_rows(left, right, true)?,
            Expr::IsNotDistinctFrom(left, right) => distinct_rows(left, right, false)?,
            Expr::IsNull(row) => each_of_row(row, Expr::IsNull),
            Expr::IsNotNull(row) => each_of_row(row, Expr::IsNotNull),
            Expr::InList {
                expr,
                list,
                negated,
            } => row_in_list(expr, list, *negated, &mut self.copied)?,
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => row_in_subquery(expr, subquery, *negated),
            Expr::AnyOp {
                left,
                compare_op: BinaryOperator::Eq,
                right,
                ..
            } => match right.as_mut() {
                Expr::Subquery(subquery) => row_in_subquery(left, subquery, false),
                _ => None,
            },
            Expr::AllOp {
                left,
                compare_op: BinaryOperator::NotEq,
                right,
            } => match right.as_mut() {
                Expr::Subquery(subquery) => row_in_subquery(left, subquery, true),
                _ => None,
            },
            _ => None,
        })
    }
}

fn take(expr: &mut Expr) -> Expr {
    mem::replace(expr, Expr::Value(Value::Null.into()))
}

fn number(value: u64) -> Expr {
    Expr::value(Value::Number(value.to_string(), false))
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// `FETCH FIRST n ROWS ONLY`, as LIMIT.
fn limit_by_fetch(query: &mut Query, fetch: Fetch) -> ControlFlow<SqlError> {
    if fetch.with_ties || fetch.percent {
        return ControlFlow::Break(SqlError::unsupported(
            "FETCH FIRST takes a number of rows and ONLY; WITH TIES and PERCENT are not supported",
        ));
    }
    let count = fetch.quantity.unwrap_or_else(|| number(1));
    match &mut query.limit_clause {
        None => {
            query.limit_clause = Some(LimitClause::LimitOffset {
                limit: Some(count),
                offset: None,
                limit_by: Vec::new(),
            });
        }
        Some(LimitClause::LimitOffset {
            limit: limit @ None,
            ..
        }) => *limit = Some(count),
        Some(_) => {
            return ControlFlow::Break(SqlError::syntax(
                "LIMIT and FETCH FIRST exclude each other",
            ));
        }
    }
    ControlFlow::Continue(())
}

/// `localtimestamp`, `localtime` and `current_time`: the clocks of the session.
fn clock(function: &Function) -> Option<Expr> {
    if !matches!(function.args, FunctionArguments::None) {
        return None;
    }
    let name = function.name.to_string().to_ascii_lowercase();
    let local = || {
        let now = call("now", Vec::new());
        cast(now, DataType::Timestamp(None, TimezoneInfo::None))
    };
    match name.as_str() {
        "localtimestamp" => Some(local()),
        "localtime" | "current_time" => {
            Some(cast(local(), DataType::Time(None, TimezoneInfo::None)))
        }
        _ => None,
    }
}

/// `age(time)`: since the midnight of today.
fn age_of_today(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(time))] = list.args.as_slice() else {
        return None;
    };
    if !function.name.to_string().eq_ignore_ascii_case("age") {
        return None;
    }
    let today = call("current_date", Vec::new());
    let midnight = cast(today, DataType::Timestamp(None, TimezoneInfo::None));
    Some(call("age", vec![midnight, time.clone()]))
}

/// `INTERVAL '5' MINUTE`: the unit moves into the text.
fn with_unit_in_text(interval: &mut Interval) {
    let Expr::Value(value) = interval.value.as_mut() else {
        return;
    };
    let (Value::SingleQuotedString(text), None, Some(unit)) = (
        &mut value.value,
        &interval.last_field,
        &interval.leading_field,
    ) else {
        return;
    };
    // Texts with a unit or a clock of their own stay as they are.
    if text.trim().parse::<f64>().is_ok_and(f64::is_finite) {
        *text = format!("{} {}", text.trim(), unit.to_string().to_lowercase());
        interval.leading_field = None;
        interval.leading_precision = None;
        interval.fractional_seconds_precision = None;
    }
}

/// The number of characters to which a cast cuts its text.
fn length_of(data_type: &DataType) -> Option<u64> {
    let (length, default) = match data_type {
        DataType::Varchar(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length)
        | DataType::Nvarchar(length) => (length, None),
        DataType::Char(length) | DataType::Character(length) => (length, Some(1)),
        _ => return None,
    };
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        Some(CharacterLength::Max) => None,
        None => default,
    }
}

fn pair(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match expr {
        Expr::Tuple(parts) => match parts.as_slice() {
            [first, second] => Some((first, second)),
            _ => None,
        },
        _ => None,
    }
}

/// `(from, to) OVERLAPS (from, to)`; the second may be the length of the time.
fn overlaps(left: &Expr, right: &Expr, copied: &mut CopiedText) -> Result<Option<Expr>, SqlError> {
    let (Some(left), Some(right)) = (pair(left), pair(right)) else {
        return Ok(None);
    };
    copied.add(left.0, 1)?;
    copied.add(right.0, 1)?;
    let ends = |(from, to): (&Expr, &Expr)| {
        let is_length = match to {
            Expr::Interval(_) => true,
            Expr::Cast { data_type, .. } => matches!(data_type, DataType::Interval { .. }),
            _ => false,
        };
        let to = if is_length {
            nested(binary(from.clone(), BinaryOperator::Plus, to.clone()))
        } else {
            to.clone()
        };
        [from.clone(), to]
    };
    let ends = [ends(left), ends(right)].concat();
    Ok(Some(call("overlaps", ends)))
}
