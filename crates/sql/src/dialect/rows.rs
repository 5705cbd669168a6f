//! Comparisons of rows, `(a, b) < (c, d)`, `(a, b) IN (…)` and `(a, b) IS NULL`, which become
//! comparisons of their values.

use crate::dialect::rewriting::{CopiedText, binary, nested};
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, UnaryOperator,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use std::borrow::Cow;
use std::mem;

/// The most rows of a list that a row is compared with.
const ROWS_MAX: usize = 1024;
/// The name of a subquery that a row is compared with; no user's table has it.
pub(crate) const COMPARED_ROWS: &str = "\u{1f}rows";

/// The values of `(a, b)` or `ROW(a, b)`.
fn row_of(expr: &Expr) -> Option<Cow<'_, [Expr]>> {
    match expr {
        Expr::Tuple(values) => Some(Cow::Borrowed(values)),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else {
                return None;
            };
            let values = list.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            });
            values.collect::<Option<Vec<_>>>().map(Cow::Owned)
        }
        _ => None,
    }
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
pub(crate) fn compared_rows(
    left: &Expr,
    op: &BinaryOperator,
    right: &Expr,
    copied: &mut CopiedText,
) -> Result<Option<Expr>, SqlError> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let (Some(left), Some(right)) = (row_of(left), row_of(right)) else {
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
    for value in left.iter().chain(right.iter()) {
        copied.add(value, 2)?;
    }
    let of = |(left, right): (&Expr, &Expr), op: BinaryOperator| {
        binary(nested(left.clone()), op, nested(right.clone()))
    };
    let mut pairs = left.iter().zip(right.iter()).rev();
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

/// `(a, b) IS [NOT] DISTINCT FROM (c, d)`: whether any pair is distinct, or none.
pub(crate) fn distinct_rows(
    left: &Expr,
    right: &Expr,
    is_distinct: bool,
) -> Result<Option<Expr>, SqlError> {
    let (Some(left), Some(right)) = (row_of(left), row_of(right)) else {
        return Ok(None);
    };
    if left.len() != right.len() {
        return Err(SqlError::syntax("the rows have different lengths"));
    }
    let pairs = left.iter().zip(right.iter()).map(|(left, right)| {
        let sides = [left, right].map(|side| Box::new(nested(side.clone())));
        let [left, right] = sides;
        nested(if is_distinct {
            Expr::IsDistinctFrom(left, right)
        } else {
            Expr::IsNotDistinctFrom(left, right)
        })
    });
    let op = if is_distinct {
        BinaryOperator::Or
    } else {
        BinaryOperator::And
    };
    Ok(pairs
        .reduce(|all, one| binary(all, op.clone(), one))
        .map(nested))
}

/// Whether an expression is an `IS [NOT] DISTINCT FROM` without parentheses.
pub(crate) fn is_distinct_chain(expr: &Expr) -> bool {
    matches!(expr, Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..))
}

/// The name in place of the upper bound of `BETWEEN SYMMETRIC`; its bounds are the lower one.
const SYMMETRIC: &str = "\u{1f}symmetric";

/// Marks a BETWEEN as `BETWEEN SYMMETRIC`, for [`between_either_way`].
pub(crate) fn symmetric_bounds(between: Expr) -> Expr {
    match between {
        Expr::Between {
            expr,
            negated,
            low,
            high,
        } => Expr::Between {
            expr,
            negated,
            low: Box::new(Expr::Tuple(vec![*low, *high])),
            high: Box::new(Expr::Identifier(Ident::with_quote('"', SYMMETRIC))),
        },
        other => other,
    }
}

/// `x BETWEEN SYMMETRIC a AND b`: between a and b, or between b and a.
pub(crate) fn between_either_way(
    between: &Expr,
    copied: &mut CopiedText,
) -> Result<Option<Expr>, SqlError> {
    let Expr::Between {
        expr,
        negated,
        low,
        high,
    } = between
    else {
        return Ok(None);
    };
    let (Expr::Tuple(bounds), Expr::Identifier(name)) = (low.as_ref(), high.as_ref()) else {
        return Ok(None);
    };
    let [low, high] = bounds.as_slice() else {
        return Ok(None);
    };
    if name.value != SYMMETRIC {
        return Ok(None);
    }
    copied.add(between, 1)?;
    let within = |low: &Expr, high: &Expr| {
        nested(Expr::Between {
            expr: expr.clone(),
            negated: false,
            low: Box::new(low.clone()),
            high: Box::new(high.clone()),
        })
    };
    let either = nested(binary(
        within(low, high),
        BinaryOperator::Or,
        within(high, low),
    ));
    Ok(Some(if *negated {
        nested(Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(either),
        })
    } else {
        either
    }))
}

/// `(a, b) IS NULL` and `(a, b) IS NOT NULL`, which hold for each value.
pub(crate) fn each_of_row(row: &Expr, holds: impl Fn(Box<Expr>) -> Expr) -> Option<Expr> {
    let row = row_of(row)?;
    let each = row.iter().map(|value| holds(Box::new(value.clone())));
    each.reduce(|all, one| binary(all, BinaryOperator::And, one))
        .map(nested)
}

/// `(a, b) IN ((1, 2), …)`.
pub(crate) fn row_in_list(
    expr: &Expr,
    list: &[Expr],
    negated: bool,
    copied: &mut CopiedText,
) -> Result<Option<Expr>, SqlError> {
    let Some(row) = row_of(expr) else {
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
        let equals = row_of(other)
            .filter(|other| other.len() == row.len())
            .and_then(|other| equal(&row, &other));
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
///
/// The planner reads the condition of this EXISTS, so that the answer is NULL where a row may be equal
/// (see `planning::subqueries`).
pub(crate) fn row_in_subquery(
    expr: &Expr,
    subquery: &mut Box<Query>,
    negated: bool,
) -> Option<Expr> {
    let row = row_of(expr)?;
    // The planner refuses a query of too few columns.
    if columns_of(subquery).is_some_and(|columns| columns != row.len()) {
        return None;
    }
    let column = |at: usize| Ident::with_quote('"', format!("\u{1f}{at}"));
    let table = Ident::with_quote('"', COMPARED_ROWS);
    let theirs: Vec<Expr> = (0..row.len())
        .map(|at| Expr::CompoundIdentifier(vec![table.clone(), column(at)]))
        .collect();
    let condition = equal(&row, &theirs)?;
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
        negated,
    })
}
