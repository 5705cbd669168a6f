//! `pg_get_indexdef(oid)` becomes a query of `pg_indexes`: a function could not ask the catalog.

use crate::dialect::grammar::MarigramDialect;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// The function.
pub(crate) const NAME: &str = "pg_get_indexdef";

/// See the module documentation.
pub(crate) struct IndexDefinitions;

impl VisitorMut for IndexDefinitions {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::Function(function) = expr
            && let Some(oid) = oid_of(function)
        {
            // Names that no statement uses, because those of the statement are seen in the query.
            let sql = format!(
                "(SELECT max(__index.indexdef) FROM pg_catalog.pg_indexes AS __index \
                 JOIN pg_catalog.pg_class AS __class ON __class.relname = __index.indexname \
                 WHERE __class.relkind = 'i' AND __class.oid = {oid})"
            );
            let parsed = Parser::new(&MarigramDialect)
                .try_with_sql(&sql)
                .and_then(|mut parser| parser.parse_expr());
            match parsed {
                Ok(query) => *expr = query,
                Err(error) => return ControlFlow::Break(error.into()),
            }
        }
        ControlFlow::Continue(())
    }
}

/// The OID of the index whose whole definition a call asks for. With the number of a column, it asks for
/// that column only.
fn oid_of(function: &Function) -> Option<&Expr> {
    let name = function.name.0.last()?.as_ident()?;
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    if !name.value.eq_ignore_ascii_case(NAME) {
        return None;
    }
    let args = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    let args: Vec<&Expr> = args.collect::<Option<_>>()?;
    let is_zero = |expr: &Expr| match expr {
        Expr::Value(value) => matches!(&value.value, Value::Number(text, _) if text == "0"),
        _ => false,
    };
    match args.as_slice() {
        [oid] => Some(oid),
        [oid, column, _] if is_zero(column) => Some(oid),
        _ => None,
    }
}
