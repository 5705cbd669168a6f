//! Turns named arguments (`start => …`) into positional ones, and the range of `time_bucket_gapfill`.
//!
//! DataFusion only accepts names if every preceding argument has a value, but callers of these
//! functions omit some. The start or end of a range becomes a struct of that name, which is the
//! type of no other argument; the names of arguments that differ in type are dropped.

use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments,
    Ident, ObjectName, TypedString, Value, VisitorMut,
};
use marigram_functions::marker_functions::{BUCKET, ENDS, INTERPOLATE, LOCF};
use std::ops::ControlFlow;

/// Whether a statement may name arguments.
pub(crate) fn may_name(sql: &str) -> bool {
    sql.contains("=>") || sql.contains(":=") || sql.contains(BUCKET)
}

/// The names of the arguments of `time_bucket`: the width, the time, and the others in any order.
const TIME_BUCKET: &[&str] = &["bucket_width", "ts", "time", "timezone", "origin", "offset"];

/// Rewrites a statement.
pub(crate) struct NamedArguments;

/// Whether an expression is plainly a time.
fn is_time(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => is_time(expr),
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Timestamp(..) | DataType::Date)
        }
        Expr::BinaryOp { left, .. } => is_time(left),
        Expr::Function(call) => {
            let name = call.name.to_string().to_lowercase();
            ["now", "current_timestamp", "current_date", "date_trunc"].contains(&name.as_str())
        }
        Expr::Value(value) => match &value.value {
            // Offsets are texts, too: `1 day`.
            Value::SingleQuotedString(text) => {
                text.len() > 4
                    && text.bytes().take(4).all(|byte| byte.is_ascii_digit())
                    && text.as_bytes()[4] == b'-'
            }
            _ => false,
        },
        _ => false,
    }
}

/// Names the last two arguments of a call of `time_bucket_gapfill` if both are times: TimescaleDB has the ends of
/// the range there. There is one origin at most.
fn name_ends(arguments: &mut [FunctionArg]) {
    let [_, _, .., start, finish] = arguments else {
        return;
    };
    let times = [&*start, &*finish].map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => is_time(expr),
        _ => false,
    });
    if times != [true, true] {
        return;
    }
    for (argument, name) in [start, finish].into_iter().zip(ENDS) {
        if let FunctionArg::Unnamed(value) = argument {
            *argument = FunctionArg::Named {
                name: Ident::new(name),
                arg: value.clone(),
                operator: FunctionArgOperator::RightArrow,
            };
        }
    }
}

impl VisitorMut for NamedArguments {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(call) = expr else {
            return ControlFlow::Continue(());
        };
        let name = call.name.to_string().to_lowercase();
        let known: &[&str] = match name.as_str() {
            BUCKET => &["start", "finish", "origin", "offset", "timezone"],
            LOCF | INTERPOLATE => &["treat_null_as_missing"],
            "time_bucket" => TIME_BUCKET,
            _ => return ControlFlow::Continue(()),
        };
        let like = call.clone();
        let FunctionArguments::List(list) = &mut call.args else {
            return ControlFlow::Continue(());
        };
        if name == BUCKET {
            name_ends(&mut list.args);
        }
        if name == "time_bucket" {
            // The width and the time come first; the types of the others tell what they are.
            list.args.sort_by_key(|argument| match argument {
                FunctionArg::Named { name, .. } => {
                    let name = name.value.to_lowercase();
                    let place = TIME_BUCKET.iter().position(|known| *known == name);
                    place.unwrap_or(TIME_BUCKET.len())
                }
                _ => 0,
            });
        }
        for argument in &mut list.args {
            let (given, value) = match argument {
                FunctionArg::Named { name, arg, .. }
                | FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg,
                    ..
                } => (name.value.to_lowercase(), arg),
                _ => continue,
            };
            if !known.contains(&given.as_str()) {
                let message = format!(
                    "{name} has no argument '{given}'; its named arguments are {}",
                    known.join(", ")
                );
                return ControlFlow::Break(SqlError::named("42883", &given, message));
            }
            let value = value.clone();
            *argument = FunctionArg::Unnamed(if ENDS.contains(&given.as_str()) {
                FunctionArgExpr::Expr(structure(&like, &given, value))
            } else {
                value
            });
        }
        ControlFlow::Continue(())
    }
}

/// `named_struct('name', value)`, modeled on an existing call.
fn structure(like: &Function, name: &str, value: FunctionArgExpr) -> Expr {
    let mut call = like.clone();
    call.name = ObjectName::from(vec![Ident::new("named_struct")]);
    if let FunctionArguments::List(list) = &mut call.args {
        let text = Expr::Value(Value::SingleQuotedString(name.to_owned()).into());
        list.args = vec![
            FunctionArg::Unnamed(FunctionArgExpr::Expr(text)),
            FunctionArg::Unnamed(value),
        ];
        list.clauses.clear();
    }
    Expr::Function(call)
}
