//! Calls and operators of PostgreSQL that have other forms here: `mod(a, b)` is `a % b`, `ceiling`
//! is `ceil`, `FLOAT` has eight bytes, `extract(second …)` includes the fraction, and
//! `substring(text from pattern)` is the first part of a match.

use crate::dialect::postgres_forms;
use crate::dialect::rewriting::{binary, call, nested};
use crate::dialect::types::is_wide_float;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, DuplicateTreatment, ExactNumberInfo, Expr,
    FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, TypedString, UnaryOperator,
    Value, VisitorMut,
};
use std::ops::ControlFlow;

/// PostgreSQL's names of functions, and ours.
const RENAMED: &[(&str, &str)] = &[
    ("ceiling", "ceil"),
    ("every", "bool_and"),
    ("clock_timestamp", "now"),
    ("statement_timestamp", "now"),
    ("transaction_timestamp", "now"),
    ("gen_random_uuid", "uuid"),
    // These remove and replace all elements; the functions with PostgreSQL's names only the first.
    ("array_remove", "array_remove_all"),
    ("array_replace", "array_replace_all"),
];

/// The names of the arguments of `make_interval`, in order.
const MAKE_INTERVAL: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// See the module documentation.
pub(crate) struct PostgresCalls;

/// Whether a statement, in lower case, may contain such calls.
pub(crate) fn may_have_some(folded: &str) -> bool {
    const OTHERS: &[&str] = &[
        "mod",
        "div",
        "isfinite",
        "make_interval",
        "date_trunc",
        "date_part",
        "extract",
        "count",
        "float",
        "interval",
        "substring",
        "~",
        "|/",
        "@",
    ];
    OTHERS.iter().any(|word| folded.contains(word))
        || RENAMED.iter().any(|(name, _)| folded.contains(name))
        || postgres_forms::NAMES
            .iter()
            .any(|name| folded.contains(name))
}

fn number(text: &str) -> Expr {
    Expr::value(Value::Number(text.to_owned(), false))
}

fn double(expr: Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type: DataType::Double(ExactNumberInfo::None),
        array: false,
        format: None,
    }
}

/// The call that `EXTRACT` stands for. The planner's own would be DataFusion's function.
fn date_part(unit: &str, time: &Expr) -> Expr {
    let unit = Expr::value(Value::SingleQuotedString(unit.to_owned()));
    call("date_part", vec![unit, time.clone()])
}

/// A part of a time that the planner truncates or does not know; `None` for other parts.
fn part_of(unit: &str, time: &Expr) -> Option<Expr> {
    let per = |width: &str| {
        let quotient = binary(
            double(date_part("nanosecond", time)),
            BinaryOperator::Divide,
            number(width),
        );
        Some(nested(quotient))
    };
    match unit {
        "second" | "seconds" | "sec" | "secs" => per("1e9"),
        "millisecond" | "milliseconds" | "msec" | "msecs" => per("1e6"),
        "microsecond" | "microseconds" | "usec" | "usecs" => per("1e3"),
        _ => None,
    }
}

/// The unit that `EXTRACT` names.
fn unit_of(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(name) => name.value.to_lowercase(),
        other => other.to_string().to_lowercase(),
    }
}

/// The units of `date_trunc` whose names the planner does not know.
const TRUNC_UNITS: &[(&str, &str)] = &[
    ("microseconds", "microsecond"),
    ("milliseconds", "millisecond"),
    ("seconds", "second"),
    ("minutes", "minute"),
    ("hours", "hour"),
    ("days", "day"),
    ("weeks", "week"),
    ("months", "month"),
    ("years", "year"),
];

fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

impl VisitorMut for PostgresCalls {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) =
            expr
            && is_wide_float(data_type)
        {
            *data_type = DataType::DoublePrecision;
        }
        let replaced = match expr {
            Expr::Extract {
                field, expr: time, ..
            } => {
                let unit = unit_of(field);
                Some(part_of(&unit, time).unwrap_or_else(|| date_part(&unit, time)))
            }
            Expr::UnaryOp {
                op,
                expr: operand_expr,
            } => {
                // Copied where it is needed alone: each level of `- - - x` would copy those below.
                let operand = || operand_expr.as_ref().clone();
                match op {
                    UnaryOperator::PGAbs => Some(call("abs", vec![operand()])),
                    UnaryOperator::PGSquareRoot => Some(call("sqrt", vec![double(operand())])),
                    UnaryOperator::PGCubeRoot => Some(call("cbrt", vec![double(operand())])),
                    UnaryOperator::BitwiseNot => {
                        let ones = Expr::UnaryOp {
                            op: UnaryOperator::Minus,
                            expr: Box::new(number("1")),
                        };
                        Some(nested(binary(
                            operand(),
                            BinaryOperator::PGBitwiseXor,
                            ones,
                        )))
                    }
                    // DataFusion puts the sign before the text, where it is that of the first part.
                    UnaryOperator::Minus if matches!(**operand_expr, Expr::Interval(_)) => {
                        Some(Expr::UnaryOp {
                            op: UnaryOperator::Minus,
                            expr: Box::new(nested(operand())),
                        })
                    }
                    _ => None,
                }
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::PGStartsWith,
                right,
            } => Some(call(
                "starts_with",
                vec![left.as_ref().clone(), right.as_ref().clone()],
            )),
            Expr::Substring {
                expr: text,
                substring_from: Some(pattern),
                substring_for: None,
                ..
            } if text_of(pattern).is_some() => {
                let found = call(
                    "regexp_match",
                    vec![text.as_ref().clone(), pattern.as_ref().clone()],
                );
                Some(call("array_element", vec![found, number("1")]))
            }
            Expr::Function(_) => return self.function(expr),
            _ => None,
        };
        if let Some(replaced) = replaced {
            *expr = replaced;
        }
        ControlFlow::Continue(())
    }
}

impl PostgresCalls {
    #[expect(clippy::unused_self, reason = "part of the visit")]
    fn function(&self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let [name] = function.name.0.as_slice() else {
            return ControlFlow::Continue(());
        };
        let Some(name) = name.as_ident().map(|name| name.value.to_lowercase()) else {
            return ControlFlow::Continue(());
        };
        if let Some((_, ours)) = RENAMED.iter().find(|(theirs, _)| *theirs == name) {
            function.name = ObjectName::from(vec![Ident::new(*ours)]);
            return ControlFlow::Continue(());
        }
        if postgres_forms::NAMES.contains(&name.as_str()) {
            match postgres_forms::expanded(&name, function) {
                Ok(Some(replaced)) => *expr = replaced,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            }
            return ControlFlow::Continue(());
        }
        let FunctionArguments::List(list) = &mut function.args else {
            return ControlFlow::Continue(());
        };
        if name == "make_interval" {
            return in_order(&mut list.args);
        }
        if name == "count"
            && list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
            && matches!(
                list.args.as_slice(),
                [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]
            )
        {
            return ControlFlow::Break(SqlError::syntax(
                "count(DISTINCT *) is not supported; name the columns to compare, or count the rows \
                 of SELECT DISTINCT",
            ));
        }
        let plain = match name.as_str() {
            "mod" | "div" | "isfinite" | "date_part" => plain_arguments(&list.args),
            _ => None,
        };
        let replaced = match (name.as_str(), plain.as_deref()) {
            ("mod", Some([left, right])) => Some(nested(binary(
                nested(left.clone()),
                BinaryOperator::Modulo,
                nested(right.clone()),
            ))),
            ("div", Some([left, right])) => {
                let quotient = binary(
                    nested(left.clone()),
                    BinaryOperator::Divide,
                    nested(right.clone()),
                );
                Some(call("trunc", vec![quotient]))
            }
            ("isfinite", Some([time])) => Some(nested(binary(
                time.clone(),
                BinaryOperator::Eq,
                time.clone(),
            ))),
            ("date_part", Some([unit, time])) => {
                text_of(unit).and_then(|unit| part_of(&unit.to_lowercase(), time))
            }
            _ => None,
        };
        if let Some(replaced) = replaced {
            *expr = replaced;
            return ControlFlow::Continue(());
        }
        if name == "date_trunc"
            && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(unit))) = list.args.first_mut()
            && let Some(text) = text_of(unit).map(str::to_lowercase)
            && let Some((_, ours)) = TRUNC_UNITS.iter().find(|(theirs, _)| *theirs == text)
        {
            *unit = Expr::value(Value::SingleQuotedString((*ours).to_owned()));
        }
        ControlFlow::Continue(())
    }
}

/// Copies of a call's arguments; `None` where one has a name or is `*`.
fn plain_arguments(args: &[FunctionArg]) -> Option<Vec<Expr>> {
    args.iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        })
        .collect()
}

/// The arguments of `make_interval` by position.
fn in_order(args: &mut Vec<FunctionArg>) -> ControlFlow<SqlError> {
    let mut given: Vec<Option<Expr>> = vec![None; MAKE_INTERVAL.len()];
    for (at, argument) in args.iter().enumerate() {
        let (place, value) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (at, value),
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(value),
                ..
            } => {
                let wanted = name.value.to_lowercase();
                match MAKE_INTERVAL.iter().position(|known| *known == wanted) {
                    Some(place) => (place, value),
                    None => {
                        let all = MAKE_INTERVAL.join(", ");
                        let message =
                            format!("make_interval has no argument '{wanted}'; it has {all}");
                        return ControlFlow::Break(SqlError::named("42883", &wanted, message));
                    }
                }
            }
            _ => return ControlFlow::Continue(()),
        };
        match given.get_mut(place) {
            Some(free @ None) => *free = Some(value.clone()),
            _ => return ControlFlow::Continue(()),
        }
    }
    let ordered = given.into_iter().map(|value| {
        let value = value.unwrap_or_else(|| number("0"));
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
    });
    *args = ordered.collect();
    ControlFlow::Continue(())
}
