//! Decides what a SELECT reads of its tables: their rows, or less where that gives the same answer.

use super::{EnclosingScope, Grouping, SymbolChain};
use crate::expression::Expression;
use crate::prepare::{PreparedSelect, PreparedSource};
use crate::reducer::Aggregate;
use crate::schema::StoredMeasurement;
use crate::source::{
    ReducedCall, ReducedInput, ReducedOperand, ReducedRequest, ShownSeries, SourceColumn,
    can_reduce,
};
use crate::typing::type_of;
use crate::value::InfluxValueType;
use crate::window::Windows;
use marigram_influxql::ast::{BinaryOp, VarRef};
use marigram_influxql::validate::is_math;
use std::collections::HashSet;
use std::sync::Arc;

/// What to read of tables.
pub(super) enum TableReading {
    /// Their rows.
    Rows,
    /// The groups of functions, which the series-aware aggregate computes.
    Groups(Reduction),
    /// For `min` or `max` alone: rows with the extreme of their group.
    Extremes(Reduction),
    /// For `first` or `last` alone: the first or last row of each series with a value in a column.
    Edges {
        /// The index of the column.
        driver: usize,
        /// Whether it is the first row.
        is_first: bool,
    },
    /// Without functions: this many rows of each group, from the beginning of the answer.
    FirstRows(u64),
}

/// The functions of a SELECT, and how they group.
pub(super) struct Reduction {
    calls: Vec<ReducedCall>,
    /// The indexes of their inputs in rows.
    pub(super) places: Vec<usize>,
    range: (i64, i64),
    windows: Windows,
    order: Arc<[Arc<str>]>,
    keys: Arc<[Arc<str>]>,
}

impl Reduction {
    /// The request for the groups of a table.
    pub(super) fn request(
        &self,
        prepared: &PreparedSelect,
        measurement: &StoredMeasurement,
        series: Option<ShownSeries>,
    ) -> ReducedRequest {
        ReducedRequest {
            measurement: measurement.clone(),
            calls: self.calls.clone(),
            condition: prepared.condition.clone(),
            range: self.range,
            windows: self.windows.clone(),
            order: Arc::clone(&self.order),
            keys: Arc::clone(&self.keys),
            ascending: prepared.ascending,
            series,
        }
    }

    /// Whether the aggregate computes the groups of all tables as InfluxQL does.
    fn is_possible(&self, prepared: &PreparedSelect) -> bool {
        let mut names = HashSet::new();
        prepared.sources.iter().all(|source| match source {
            // Of two tables with one name, rows would be merged.
            PreparedSource::Measurement(measurement) => {
                names.insert(&measurement.name)
                    && can_reduce(&self.request(prepared, measurement, None))
            }
            PreparedSource::Subquery(_) => false,
        })
    }
}

/// A subquery whose rows are rows of one table, with arithmetic over its fields, so that functions over it
/// are functions over the table. The groups of time that it inherits mean nothing without functions.
fn row_by_row(prepared: &PreparedSelect) -> Option<(&PreparedSelect, &StoredMeasurement)> {
    let [PreparedSource::Subquery(inner)] = prepared.sources.as_slice() else {
        return None;
    };
    let [PreparedSource::Measurement(measurement)] = inner.sources.as_slice() else {
        return None;
    };
    let has_limits = |select: &PreparedSelect| select.series_limit != (0, 0);
    let has_functions = inner
        .fields
        .iter()
        .any(|field| is_function(&field.expression));
    let is_plain = !has_functions
        && inner.limit == (0, 0)
        && !has_limits(inner)
        && !has_limits(prepared)
        && !inner.has_target
        && prepared.condition.is_none()
        && prepared.ascending == inner.ascending;
    is_plain.then_some((inner, measurement))
}

/// Whether an expression has a function over rows.
fn is_function(expression: &Expression) -> bool {
    let mut found = false;
    let _ = expression.replaced(&mut |part| {
        found |= matches!(part, Expression::Call(name, _) if !is_math(name));
        None
    });
    found
}

/// The input of a function as an expression over the rows of a subquery's table.
fn input_through(inner: &PreparedSelect, asked: &SourceColumn) -> Option<ReducedInput> {
    let mut fields = inner.fields.iter();
    let field = fields.find(|field| field.name == asked.name)?;
    let kind = type_of(&field.expression).ok()?;
    if asked.kind.is_some() && asked.kind != kind {
        return None;
    }
    let mut expression = &field.expression;
    while let Expression::Paren(inside) = expression {
        expression = inside;
    }
    match expression {
        Expression::Name(var) => Some(ReducedInput::Column(column_of(var))),
        Expression::Chain(left, links) => {
            let [(op, right)] = links.as_slice() else {
                return None;
            };
            let computes = match op {
                BinaryOp::Div => true,
                // Of integers these are integers.
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                    kind == Some(InfluxValueType::Float)
                }
                _ => false,
            };
            let (left, right) = (operand(left)?, operand(right)?);
            computes.then_some(ReducedInput::Arithmetic(left, *op, right))
        }
        _ => None,
    }
}

fn column_of(var: &VarRef) -> SourceColumn {
    SourceColumn {
        name: var.name.clone(),
        kind: var.cast.and_then(InfluxValueType::of_cast),
        is_driver: false,
    }
}

fn operand(expression: &Expression) -> Option<ReducedOperand> {
    match expression {
        Expression::Name(var) => Some(ReducedOperand::Column(column_of(var))),
        Expression::Value(value) => value.as_f64().map(ReducedOperand::Constant),
        _ => None,
    }
}

/// What a SELECT with functions reads.
pub(super) fn reading_of_functions(
    prepared: &PreparedSelect,
    (chains, columns): (&[SymbolChain], &[SourceColumn]),
    grouping: &Grouping,
    (is_selector, keeps_rows): (bool, bool),
) -> TableReading {
    let through = row_by_row(prepared);
    if through.is_none() && prepared.sources.iter().any(PreparedSource::is_subquery) {
        return TableReading::Rows;
    }
    let Some((first, _)) = chains.first() else {
        return TableReading::Rows;
    };
    let range = (first.start_ns, first.end_ns);
    let shows_row = is_selector && !grouping.windows.is_grouped();
    if shows_row && through.is_some() {
        return TableReading::Rows;
    }
    if let (true, Some(Aggregate::First | Aggregate::Last)) = (shows_row, &first.reduces) {
        return TableReading::Edges {
            driver: first.driver,
            is_first: first.reduces == Some(Aggregate::First),
        };
    }
    let (mut calls, mut places) = (Vec::new(), Vec::new());
    for (chain, _) in chains {
        let (Some(aggregate), Some(column)) = (&chain.reduces, columns.get(chain.driver)) else {
            return TableReading::Rows;
        };
        let input = match through {
            Some((inner, _)) => input_through(inner, column),
            None => Some(ReducedInput::Column(column.clone())),
        };
        let (Some(input), true) = (input, (chain.start_ns, chain.end_ns) == range) else {
            return TableReading::Rows;
        };
        places.push(chain.driver);
        calls.push(ReducedCall {
            aggregate: aggregate.clone(),
            input,
        });
    }
    let reduction = Reduction {
        calls,
        places,
        range: match through {
            Some((inner, _)) => (range.0.max(inner.min_ns), range.1.min(inner.max_ns)),
            None => range,
        },
        windows: grouping.windows.clone(),
        order: Arc::clone(&grouping.order),
        keys: Arc::clone(&grouping.keys),
    };
    let is_possible = match through {
        Some((inner, measurement)) => can_reduce(&reduction.request(inner, measurement, None)),
        None => reduction.is_possible(prepared),
    };
    match &first.reduces {
        _ if !is_possible => TableReading::Rows,
        Some(Aggregate::Min | Aggregate::Max) if shows_row => TableReading::Extremes(reduction),
        _ if shows_row || keeps_rows => TableReading::Rows,
        _ => TableReading::Groups(reduction),
    }
}

/// What a SELECT without functions reads.
pub(super) fn reading_of_rows(
    prepared: &PreparedSelect,
    scope: &EnclosingScope,
    series_rows: Option<(u64, u64)>,
) -> TableReading {
    let (limit, offset) = prepared.limit;
    let rows_max = match series_rows {
        Some((limit, offset)) => limit.saturating_add(offset).saturating_add(1),
        None if limit > 0 && scope.keys == scope.order => limit.saturating_add(offset),
        None => return TableReading::Rows,
    };
    TableReading::FirstRows(rows_max)
}
