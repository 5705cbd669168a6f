//! Expressions of IoTDB as expressions of DataFusion, with IoTDB's types.

mod functions;

pub(crate) use functions::scalar_names;

use crate::statement::semantic;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::Like;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit, not};
use marigram_iotdb::{
    IotDbType, TreeArithmetic, TreeComparison, TreeExpr, TreeLiteral, TreeSqlContext, day_of_text,
    parse_time,
};
use marigram_sql::SqlResult;
use regex::RegexBuilder;
use std::collections::HashMap;

/// Nanoseconds of a millisecond.
const MS_NS: i64 = 1_000_000;

/// Bytes of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// An expression and its type; `None` for null.
#[derive(Clone, Debug)]
pub(crate) struct TypedExpr {
    pub(crate) expr: Expr,
    pub(crate) kind: Option<IotDbType>,
}

/// What names stand for.
pub(crate) struct ExprScope<'a> {
    /// The time, where there is one.
    pub(crate) time: Option<Expr>,
    /// Timeseries and aggregates, by their texts.
    pub(crate) known: &'a HashMap<String, (Expr, IotDbType)>,
    /// The time and the zone of the statement.
    pub(crate) times: &'a TreeSqlContext,
}

/// Whether values of a type are numbers.
pub(crate) fn is_number(kind: IotDbType) -> bool {
    matches!(
        kind,
        IotDbType::Int32 | IotDbType::Int64 | IotDbType::Float | IotDbType::Double
    )
}

fn is_text(kind: IotDbType) -> bool {
    matches!(kind, IotDbType::Text | IotDbType::String)
}

/// A time literal, ms, as a time of a column.
pub(crate) fn time_literal(time_ms: i64) -> Expr {
    let ns = Some(time_ms.saturating_mul(MS_NS));
    Expr::Literal(ScalarValue::TimestampNanosecond(ns, None), None)
}

/// A time of a column as milliseconds.
pub(crate) fn as_ms(time: Expr) -> Expr {
    cast(time, DataType::Int64) / lit(MS_NS)
}

fn double(expr: Expr) -> Expr {
    cast(expr, DataType::Float64)
}

impl ExprScope<'_> {
    /// The expression, which must be a condition.
    ///
    /// # Errors
    /// If it is none, or its parts do not fit.
    pub(crate) fn condition(&self, expr: &TreeExpr) -> SqlResult<Expr> {
        let compiled = self.compile(expr)?;
        match compiled.kind {
            Some(IotDbType::Boolean) => Ok(compiled.expr),
            None => Ok(Expr::Literal(ScalarValue::Boolean(None), None)),
            Some(kind) => Err(semantic(format!(
                "The output type of the expression in WHERE clause should be BOOLEAN, actual data type: \
                 {kind}."
            ))),
        }
    }

    /// The expression.
    ///
    /// # Errors
    /// If its parts do not fit.
    pub(crate) fn compile(&self, expr: &TreeExpr) -> SqlResult<TypedExpr> {
        let typed = |expr: Expr, kind: IotDbType| TypedExpr {
            expr,
            kind: Some(kind),
        };
        Ok(match expr {
            TreeExpr::Time => match &self.time {
                Some(time) => typed(time.clone(), IotDbType::Timestamp),
                None => return Err(semantic("there is no time here")),
            },
            TreeExpr::Path(path) => match self.known.get(&path.to_string()) {
                Some((expr, kind)) => typed(expr.clone(), *kind),
                None => return Err(semantic(format!("timeseries {path} is not known here"))),
            },
            TreeExpr::Literal(value) => literal(value),
            TreeExpr::Negate(inner) => {
                let inner = self.number(inner, expr)?;
                typed(-inner, IotDbType::Double)
            }
            TreeExpr::Arithmetic(a, operator, b) => {
                let (a, b) = (self.number(a, expr)?, self.number(b, expr)?);
                let computed = match operator {
                    TreeArithmetic::Plus => a + b,
                    TreeArithmetic::Minus => a - b,
                    TreeArithmetic::Times => a * b,
                    TreeArithmetic::Divide => a / b,
                    TreeArithmetic::Modulo => a % b,
                };
                typed(computed, IotDbType::Double)
            }
            TreeExpr::And(all) => typed(self.joined(all, Expr::and)?, IotDbType::Boolean),
            TreeExpr::Or(all) => typed(self.joined(all, Expr::or)?, IotDbType::Boolean),
            TreeExpr::Not(inner) => typed(not(self.condition(inner)?), IotDbType::Boolean),
            TreeExpr::Compare(a, comparison, b) => {
                let (a, b) = (self.compile(a)?, self.compile(b)?);
                let (a, b) = self.comparable(a, b, expr)?;
                typed(compared(a, *comparison, b), IotDbType::Boolean)
            }
            TreeExpr::Between(inner, low, high) => {
                let inner = self.compile(inner)?;
                let (a, low) = self.comparable(inner.clone(), self.compile(low)?, expr)?;
                let (b, high) = self.comparable(inner, self.compile(high)?, expr)?;
                typed(a.gt_eq(low).and(b.lt_eq(high)), IotDbType::Boolean)
            }
            TreeExpr::In(inner, values) => {
                let inner = self.compile(inner)?;
                let mut any: Option<Expr> = None;
                for value in values {
                    let (a, b) = self.comparable(inner.clone(), literal(value), expr)?;
                    let is_equal = a.eq(b);
                    any = Some(match any {
                        Some(any) => any.or(is_equal),
                        None => is_equal,
                    });
                }
                typed(any.unwrap_or_else(|| lit(false)), IotDbType::Boolean)
            }
            TreeExpr::IsNull(inner) => {
                let inner = self.compile(inner)?;
                typed(inner.expr.is_null(), IotDbType::Boolean)
            }
            TreeExpr::Like(inner, pattern) => {
                let text = Box::new(self.text(inner, expr)?);
                let pattern = Box::new(lit(pattern.as_str()));
                let like = Like::new(false, text, pattern, None, false);
                typed(Expr::Like(like), IotDbType::Boolean)
            }
            TreeExpr::Regexp(inner, pattern) => {
                let regex = RegexBuilder::new(pattern)
                    .size_limit(REGEX_BYTES_MAX)
                    .build();
                if let Err(error) = regex {
                    return Err(semantic(format!("Illegal regex pattern: {error}")));
                }
                let text = self.text(inner, expr)?;
                let pattern = lit(pattern.as_str());
                typed(
                    binary_expr(text, Operator::RegexMatch, pattern),
                    IotDbType::Boolean,
                )
            }
            TreeExpr::Call(call) => match self.known.get(&call.to_string()) {
                Some((expr, kind)) => typed(expr.clone(), *kind),
                None => self.call(call, expr)?,
            },
        })
    }

    fn joined(&self, all: &[TreeExpr], join: fn(Expr, Expr) -> Expr) -> SqlResult<Expr> {
        let mut parts = Vec::with_capacity(all.len());
        for one in all {
            parts.push(self.condition(one)?);
        }
        Ok(balanced(parts, join).unwrap_or_else(|| lit(true)))
    }

    /// An operand that is a number, as a double.
    fn number(&self, operand: &TreeExpr, of: &TreeExpr) -> SqlResult<Expr> {
        let compiled = self.compile(operand)?;
        match compiled.kind {
            None => Ok(double(compiled.expr)),
            Some(kind) if is_number(kind) => Ok(double(compiled.expr)),
            Some(IotDbType::Timestamp) => Ok(double(as_ms(compiled.expr))),
            Some(kind) => Err(semantic(format!(
                "Invalid input expression data type. expression: {of}, actual data type: {kind}, expected \
                 data type(s): [INT32, INT64, FLOAT, DOUBLE]."
            ))),
        }
    }

    fn text(&self, operand: &TreeExpr, of: &TreeExpr) -> SqlResult<Expr> {
        let compiled = self.compile(operand)?;
        match compiled.kind {
            None => Ok(cast(compiled.expr, DataType::Utf8)),
            Some(kind) if is_text(kind) => Ok(compiled.expr),
            Some(kind) => Err(semantic(format!(
                "Invalid input expression data type. expression: {of}, actual data type: {kind}, expected \
                 data type(s): [TEXT, STRING]."
            ))),
        }
    }

    /// Two operands in types that can be compared.
    fn comparable(&self, a: TypedExpr, b: TypedExpr, of: &TreeExpr) -> SqlResult<(Expr, Expr)> {
        let (Some(left), Some(right)) = (a.kind, b.kind) else {
            let null = Expr::Literal(ScalarValue::Boolean(None), None);
            return Ok((null.clone(), null));
        };
        if is_number(left) && is_number(right) {
            return Ok(numbers((a.expr, left), (b.expr, right)));
        }
        if (is_text(left) && is_text(right)) || (left == right && left != IotDbType::Timestamp) {
            return Ok((a.expr, b.expr));
        }
        if left == IotDbType::Timestamp && right == IotDbType::Timestamp {
            return Ok((a.expr, b.expr));
        }
        if let Some(value) = self.literal_as(&b.expr, left) {
            return Ok((a.expr, value));
        }
        if let Some(value) = self.literal_as(&a.expr, right) {
            return Ok((value, b.expr));
        }
        let ms = |side: Expr, kind| match kind {
            IotDbType::Timestamp => Some((as_ms(side), IotDbType::Int64)),
            kind if is_number(kind) => Some((side, kind)),
            _ => None,
        };
        if let (Some(a), Some(b)) = (ms(a.expr, left), ms(b.expr, right)) {
            return Ok(numbers(a, b));
        }
        Err(semantic(format!(
            "Invalid input expression data type. expression: {of}, the data types {left} and {right} \
             cannot be compared."
        )))
    }

    /// A literal as a value of another type.
    fn literal_as(&self, value: &Expr, kind: IotDbType) -> Option<Expr> {
        let Expr::Literal(value, _) = value else {
            return None;
        };
        match (kind, value) {
            (IotDbType::Timestamp, ScalarValue::Int64(Some(ms))) => Some(time_literal(*ms)),
            (IotDbType::Timestamp, ScalarValue::Utf8(Some(text))) => {
                Some(time_literal(parse_time(text, self.times)?))
            }
            (IotDbType::Date, ScalarValue::Int64(Some(day))) => {
                Some(lit(i32::try_from(*day).ok()?))
            }
            (IotDbType::Date, ScalarValue::Utf8(Some(text))) => Some(lit(day_of_text(text)?)),
            (IotDbType::Blob, ScalarValue::Utf8(Some(text))) => Some(Expr::Literal(
                ScalarValue::Binary(Some(text.clone().into_bytes())),
                None,
            )),
            _ => None,
        }
    }
}

fn literal(value: &TreeLiteral) -> TypedExpr {
    let (expr, kind) = match value {
        TreeLiteral::Null => (Expr::Literal(ScalarValue::Float64(None), None), None),
        TreeLiteral::Boolean(value) => (lit(*value), Some(IotDbType::Boolean)),
        TreeLiteral::Integer(value) | TreeLiteral::Time(value) => {
            (lit(*value), Some(IotDbType::Int64))
        }
        TreeLiteral::Float(value) => (lit(*value), Some(IotDbType::Double)),
        TreeLiteral::Text(text) => (lit(text.as_str()), Some(IotDbType::Text)),
        TreeLiteral::Bytes(bytes) => (
            Expr::Literal(ScalarValue::Binary(Some(bytes.clone())), None),
            Some(IotDbType::Blob),
        ),
    };
    TypedExpr { expr, kind }
}

/// Two numbers in one type: that of the column where a literal fits into it, so that storage can look at
/// the statistics of its pages.
fn numbers(a: (Expr, IotDbType), b: (Expr, IotDbType)) -> (Expr, Expr) {
    if a.1 == b.1 {
        return (a.0, b.0);
    }
    let fitted = |value: &Expr, kind: IotDbType| match (value, kind) {
        (Expr::Literal(ScalarValue::Int64(Some(value)), _), IotDbType::Int32) => {
            Some(lit(i32::try_from(*value).ok()?))
        }
        (Expr::Literal(ScalarValue::Int64(Some(value)), _), IotDbType::Double) => {
            Some(lit(*value as f64))
        }
        _ => None,
    };
    if let Some(value) = fitted(&b.0, a.1) {
        return (a.0, value);
    }
    if let Some(value) = fitted(&a.0, b.1) {
        return (value, b.0);
    }
    let is_whole = |kind| matches!(kind, IotDbType::Int32 | IotDbType::Int64);
    if is_whole(a.1) && is_whole(b.1) {
        return (cast(a.0, DataType::Int64), cast(b.0, DataType::Int64));
    }
    (double(a.0), double(b.0))
}

fn compared(a: Expr, comparison: TreeComparison, b: Expr) -> Expr {
    match comparison {
        TreeComparison::Equal => a.eq(b),
        TreeComparison::NotEqual => a.not_eq(b),
        TreeComparison::Less => a.lt(b),
        TreeComparison::LessOrEqual => a.lt_eq(b),
        TreeComparison::Greater => a.gt(b),
        TreeComparison::GreaterOrEqual => a.gt_eq(b),
    }
}

/// Expressions that an operator joins, in a balanced tree: planning recurses into it.
pub(crate) fn balanced(mut parts: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    if parts.len() < 2 {
        return parts.pop();
    }
    let right = parts.split_off(parts.len() / 2);
    Some(join(balanced(parts, join)?, balanced(right, join)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_iotdb::{TreeStatement, parse_statement};

    fn condition(text: &str) -> TreeExpr {
        let text = format!("select s from root.a where {text}");
        match parse_statement(&text, &TreeSqlContext::for_utc(0)) {
            Ok(TreeStatement::Select(query)) => query.condition.expect("a condition"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn operands_must_fit() {
        let known = HashMap::from([
            ("s".to_owned(), (lit(1), IotDbType::Int32)),
            ("b".to_owned(), (lit(true), IotDbType::Boolean)),
        ]);
        let times = TreeSqlContext::for_utc(0);
        let scope = ExprScope {
            time: None,
            known: &known,
            times: &times,
        };
        let is_fine = |text: &str| scope.condition(&condition(text)).is_ok();
        assert!(is_fine("s > 1.5 and b and sin(s) < 2 and s in (1, 2)"));
        for text in [
            "s",
            "b > 1",
            "s > 'x'",
            "sin(b) > 1",
            "s like 'x'",
            "nothing(s) > 1",
        ] {
            assert!(!is_fine(text), "{text}");
        }
    }
}
