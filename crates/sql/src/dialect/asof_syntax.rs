//! `ASOF JOIN` in the parsed statement.

use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Select, TableFactor,
    VisitorMut,
};
use marigram_functions::marker_functions::AS_OF;
use std::ops::ControlFlow;

/// Whether a statement, in lower case, may contain such a join.
pub(crate) fn may_join(folded: &str) -> bool {
    folded.contains("asof")
}

/// Turns such joins into LEFT JOINs with a marker in their condition.
pub(crate) struct AsOfJoinMarker;

impl VisitorMut for AsOfJoinMarker {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        for table in &mut select.from {
            joins(&mut table.joins)?;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<SqlError> {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = table
        {
            joins(&mut table_with_joins.joins)?;
        }
        ControlFlow::Continue(())
    }
}

fn joins(joins: &mut [Join]) -> ControlFlow<SqlError> {
    for join in joins {
        let JoinOperator::AsOf {
            match_condition,
            constraint,
        } = &join.join_operator
        else {
            continue;
        };
        let mark = mark(match_condition.clone());
        let condition = match constraint {
            JoinConstraint::None => mark,
            JoinConstraint::On(keys) => Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(keys.clone()))),
                op: BinaryOperator::And,
                right: Box::new(mark),
            },
            JoinConstraint::Using(_) | JoinConstraint::Natural => {
                let message = "ASOF JOIN takes its keys by ON: a ASOF JOIN b MATCH_CONDITION (a.time \
                               >= b.time) ON a.dev = b.dev";
                return ControlFlow::Break(SqlError::named("0A000", "asof", message));
            }
        };
        join.join_operator = JoinOperator::LeftOuter(JoinConstraint::On(condition));
    }
    ControlFlow::Continue(())
}

fn mark(condition: Expr) -> Expr {
    let argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(condition));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(AS_OF)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![argument],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
