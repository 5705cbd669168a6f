//! Forms of standard SQL and PostgreSQL that are written with others: `localtimestamp`,
//! `INTERVAL '1' DAY`, casts to `VARCHAR(n)`, FETCH FIRST, OVERLAPS, comparisons of rows, and `age`
//! with one argument.

use crate::dialect::rewriting::{CopiedText, binary, call, nested};
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, Expr, Fetch, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, Interval, LimitClause, Query, SelectItem, SetExpr,
    TableAlias, TableAliasColumnDef, TableFactor, TimezoneInfo, UnaryOperator, Value, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use std::mem;
use std::ops::ControlFlow;

/// The most rows of a list that a row is compared with.
const ROWS_MAX: usize = 1024;
/// The name of a subquery that a row is compared with; no user's table has it.
const COMPARED: &str = "\u{1f}rows";

/// Whether a statement, in lower case, may contain such forms.
pub fn may_have_some(folded: &str) -> bool {
    const WORDS: &[&str] = &[
        "local",
        "current_time",
        "interval",
        "char",
        "fetch",
        "overlaps",
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
pub struct StandardForms {
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
        let replaced = match expr {
            Expr::Function(function) => clock(function).or_else(|| age_of_today(function)),
            Expr::Interval(interval) => {
                with_unit_in_text(interval);
                None
            }
            Expr::Cast {
                expr, data_type, ..
            } => length_of(data_type).map(|length| {
                let text = cast(take(expr), DataType::Text);
                call("left", vec![text, number(length)])
            }),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Overlaps,
                right,
            } => match overlaps(left, right, &mut self.copied) {
                Ok(replaced) => replaced,
                Err(error) => return ControlFlow::Break(error),
            },
            Expr::BinaryOp { left, op, right } => {
                match compared_rows(left, op, right, &mut self.copied) {
                    Ok(replaced) => replaced,
                    Err(error) => return ControlFlow::Break(error),
                }
            }
            Expr::IsNull(row) => each_of_row(row, Expr::IsNull),
            Expr::IsNotNull(row) => each_of_row(row, Expr::IsNotNull),
            Expr::InList {
                expr,
                list,
                negated,
            } => match row_in_list(expr, list, *negated, &mut self.copied) {
                Ok(replaced) => replaced,
                Err(error) => return ControlFlow::Break(error),
            },
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => row_in_subquery(expr, subquery).map(|mut exists| {
                if *negated {
                    negate(&mut exists);
                }
                exists
            }),
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => negate(expr).then(|| take(expr)),
            _ => None,
        };
        if let Some(replaced) = replaced {
            *expr = replaced;
        }
        ControlFlow::Continue(())
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

/// Whether two rows of as many values are equal.
fn equal(left: &[Expr], right: &[Expr]) -> Option<Expr> {
    let pairs = left.iter().zip(right);
    let equals = pairs.map(|(left, right)| {
        binary(
            nested(left.clone()),
            BinaryOperator::Eq,
            nested(right.clone()),
        )
    });
    equals
        .reduce(|all, one| binary(all, BinaryOperator::And, one))
        .map(nested)
}

/// `(a, b) < (c, d)` and the like: the first pair that differs decides, and a NULL before it makes
/// the answer NULL.
fn compared_rows(
    left: &Expr,
    op: &BinaryOperator,
    right: &Expr,
    copied: &mut CopiedText,
) -> Result<Option<Expr>, SqlError> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right) else {
        return Ok(None);
    };
    let strict = match op {
        Eq | NotEq => None,
        Lt | LtEq => Some(Lt),
        Gt | GtEq => Some(Gt),
        _ => return Ok(None),
    };
    if left.len() != right.len() {
        return Err(SqlError::syntax("the rows have different lengths"));
    }
    for value in left.iter().chain(right) {
        copied.add(value, 2)?;
    }
    let of = |(left, right): (&Expr, &Expr), op: BinaryOperator| {
        binary(nested(left.clone()), op, nested(right.clone()))
    };
    let mut pairs = left.iter().zip(right).rev();
    let Some(last) = pairs.next() else {
        return Ok(None);
    };
    let all = pairs.fold(of(last, op.clone()), |rest, pair| match &strict {
        None if *op == Eq => binary(of(pair, Eq), And, rest),
        None => binary(of(pair, NotEq), Or, rest),
        Some(strict) => {
            let same = binary(of(pair, Eq), And, nested(rest));
            binary(of(pair, strict.clone()), Or, nested(same))
        }
    });
    Ok(Some(nested(all)))
}

/// `(a, b) IS NULL` and `(a, b) IS NOT NULL`, which hold for each value.
fn each_of_row(row: &Expr, holds: impl Fn(Box<Expr>) -> Expr) -> Option<Expr> {
    let Expr::Tuple(row) = row else { return None };
    let each = row.iter().map(|value| holds(Box::new(value.clone())));
    each.reduce(|all, one| binary(all, BinaryOperator::And, one))
        .map(nested)
}

/// `(a, b) IN ((1, 2), …)`.
fn row_in_list(
    expr: &Expr,
    list: &[Expr],
    negated: bool,
    copied: &mut CopiedText,
) -> Result<Option<Expr>, SqlError> {
    let Expr::Tuple(row) = expr else {
        return Ok(None);
    };
    if list.len() > ROWS_MAX {
        return Err(SqlError::invalid(
            "54001",
            format!("a row is compared with at most {ROWS_MAX} rows; join with VALUES instead"),
        ));
    }
    copied.add(expr, list.len())?;
    let mut level = Vec::with_capacity(list.len());
    for other in list {
        let equals = match other {
            Expr::Tuple(other) if other.len() == row.len() => equal(row, other),
            _ => None,
        };
        let Some(equals) = equals else {
            return Err(SqlError::syntax("the rows of IN have different lengths"));
        };
        level.push(equals);
    }
    // A balanced tree: recursive code walks it.
    while level.len() > 1 {
        let mut next = Vec::with_capacity(level.len().div_ceil(2));
        let mut rest = level.into_iter();
        while let Some(one) = rest.next() {
            next.push(match rest.next() {
                Some(other) => nested(binary(one, BinaryOperator::Or, other)),
                None => one,
            });
        }
        level = next;
    }
    Ok(level.pop().map(|any| {
        if negated {
            return nested(Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: Box::new(any),
            });
        }
        any
    }))
}

/// Negates the EXISTS that [`row_in_subquery`] makes: no row is equal, or may be. Returns whether
/// `expr` is one.
fn negate(expr: &mut Expr) -> bool {
    let mut inner = expr;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    let Expr::Exists { subquery, negated } = inner else {
        return false;
    };
    let SetExpr::Select(select) = subquery.body.as_mut() else {
        return false;
    };
    let is_ours = select.from.first().is_some_and(|from| {
        matches!(&from.relation, TableFactor::Derived { alias: Some(alias), .. }
            if alias.name.value == COMPARED)
    });
    if !is_ours || *negated {
        return false;
    }
    *negated = true;
    if let Some(condition) = &mut select.selection {
        *condition = Expr::IsNotFalse(Box::new(nested(take(condition))));
    }
    true
}

/// The number of columns of a query; `None` if it has a `*`, or is no SELECT.
fn columns_of(query: &Query) -> Option<usize> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let is_one = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    let all_one = select.projection.iter().all(is_one);
    all_one.then_some(select.projection.len())
}

/// `(a, b) IN (SELECT …)`, as EXISTS.
fn row_in_subquery(expr: &Expr, subquery: &mut Box<Query>) -> Option<Expr> {
    let Expr::Tuple(row) = expr else {
        return None;
    };
    // The planner refuses a query of too few columns.
    if columns_of(subquery).is_some_and(|columns| columns != row.len()) {
        return None;
    }
    let column = |at: usize| Ident::with_quote('"', format!("\u{1f}{at}"));
    let table = Ident::with_quote('"', COMPARED);
    let theirs: Vec<Expr> = (0..row.len())
        .map(|at| Expr::CompoundIdentifier(vec![table.clone(), column(at)]))
        .collect();
    let condition = equal(row, &theirs)?;
    let columns = (0..row.len()).map(|at| TableAliasColumnDef {
        name: column(at),
        data_type: None,
    });
    let alias = TableAlias {
        explicit: true,
        name: table,
        columns: columns.collect(),
        at: None,
    };
    // The parser makes a query whose parts are replaced.
    let mut parser = Parser::new(&GenericDialect {})
        .try_with_sql("SELECT 1 FROM (SELECT 1) AS x WHERE TRUE")
        .ok()?;
    let mut exists = parser.parse_query().ok()?;
    let SetExpr::Select(select) = exists.body.as_mut() else {
        return None;
    };
    select.selection = Some(condition);
    let relation = &mut select.from.first_mut()?.relation;
    let TableFactor::Derived {
        subquery: rows,
        alias: name,
        ..
    } = relation
    else {
        return None;
    };
    mem::swap(rows, subquery);
    *name = Some(alias);
    Some(Expr::Exists {
        subquery: exists,
        negated: false,
    })
}
