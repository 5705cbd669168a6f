//! Collects what a SELECT needs from its sources: names, functions, and the columns that they read.

use super::cursor::Symbol;
use crate::evaluate::is_math;
use crate::expression::Expression;
use crate::prepare::{PreparedSelect, extra_columns};
use crate::source::SourceColumn;
use crate::typing::type_of;
use crate::value::InfluxValueType;
use marigram_influxql::ast::VarRef;
use std::sync::Arc;

/// The columns, functions and names that a SELECT needs.
#[derive(Default)]
pub(super) struct SelectSymbols {
    /// Names outside of functions, with their symbols.
    pub(super) names: Vec<(VarRef, usize)>,
    /// Functions, with their symbols.
    pub(super) calls: Vec<(Expression, usize)>,
    pub(super) sources: SourceColumns,
    count: usize,
}

/// The columns to read, each once.
#[derive(Default)]
pub(super) struct SourceColumns {
    pub(super) columns: Vec<SourceColumn>,
}

impl SourceColumns {
    /// The index of a column, which is added if necessary.
    pub(super) fn place(&mut self, column: SourceColumn) -> usize {
        let known = self.columns.iter().position(|known| *known == column);
        known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        })
    }
}

impl SelectSymbols {
    /// The columns of an answer over symbols.
    pub(super) fn columns(&mut self, prepared: &PreparedSelect) -> Vec<Expression> {
        let mut columns = Vec::new();
        for field in &prepared.fields {
            columns.push(self.resolved(&field.expression));
            if prepared.has_target {
                continue;
            }
            for extra in extra_columns(&field.expression) {
                columns.push(self.resolved(&Expression::Name(extra.clone())));
            }
        }
        let names = self.names.iter();
        let names: Vec<SourceColumn> = names.map(|(var, _)| source_column(var)).collect();
        for name in names {
            self.sources.place(name);
        }
        columns
    }

    fn resolved(&mut self, expression: &Expression) -> Expression {
        expression.replaced(&mut |part| match part {
            Expression::Name(var) => {
                let known = self.names.iter().find(|(known, _)| known == var);
                let symbol = match known {
                    Some((_, symbol)) => *symbol,
                    None => {
                        self.names.push((var.clone(), self.count));
                        self.count += 1;
                        self.count - 1
                    }
                };
                Some(Expression::Column(
                    symbol,
                    var.cast.and_then(InfluxValueType::of_cast),
                ))
            }
            Expression::Call(name, _) if !is_math(name) => {
                let text = part.to_string();
                let known = self
                    .calls
                    .iter()
                    .find(|(known, _)| known.to_string() == text);
                let symbol = match known {
                    Some((_, symbol)) => *symbol,
                    None => {
                        self.calls.push((part.clone(), self.count));
                        self.count += 1;
                        self.count - 1
                    }
                };
                Some(Expression::Column(symbol, type_of(part).ok().flatten()))
            }
            _ => None,
        })
    }

    /// Tags that `top` and `bottom` group by.
    pub(super) fn grouped_in_calls(&self) -> Vec<Arc<str>> {
        let calls = self.calls.iter();
        let extra = calls.flat_map(|(call, _)| extra_columns(call));
        extra.map(|var| var.name.as_str().into()).collect()
    }

    /// The type of each symbol, and for names their index among the columns of the source.
    pub(super) fn symbols(&self) -> Vec<Symbol> {
        let mut symbols = vec![Symbol::default(); self.count];
        for (call, symbol) in &self.calls {
            symbols[*symbol].kind = type_of(call).ok().flatten();
        }
        for (var, symbol) in &self.names {
            symbols[*symbol].kind = var.cast.and_then(InfluxValueType::of_cast);
        }
        symbols
    }

    /// For each name, its symbol and its index in the source.
    pub(super) fn raw_places(&self) -> Vec<(usize, usize)> {
        let place = |var| {
            let column = source_column(var);
            self.sources
                .columns
                .iter()
                .position(|known| *known == column)
        };
        let names = self.names.iter();
        names
            .filter_map(|(var, symbol)| Some((*symbol, place(var)?)))
            .collect()
    }
}

fn source_column(var: &VarRef) -> SourceColumn {
    SourceColumn {
        name: var.name.clone(),
        kind: var.cast.and_then(InfluxValueType::of_cast),
        is_driver: false,
    }
}
