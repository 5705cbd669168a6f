//! Turns named arguments (`start => …`) into positional ones.
//!
//! DataFusion only accepts names if every preceding argument has a value, but callers of these
//! functions omit some. The start or end of a range becomes a struct of that name, which is the
//! type of no other argument; the names of arguments that differ in type are dropped.

use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Value,
    VisitorMut,
};
use marigram_functions::marker_functions::{BUCKET, ENDS, INTERPOLATE, LOCF};
use std::ops::ControlFlow;

/// Whether a statement may name arguments.
pub(crate) fn may_name(sql: &str) -> bool {
    sql.contains("=>") || sql.contains(":=")
}

/// The names of the arguments of `time_bucket`: the width, the time, and the others in any order.
const TIME_BUCKET: &[&str] = &["bucket_width", "ts", "time", "timezone", "origin", "offset"];

/// Rewrites a statement.
pub(crate) struct NamedArguments;

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
