//! Collects what a SELECT needs from its sources: names, functions, and the columns that they read.

use super::cursor::Symbol;
use crate::expression::Expression;
use crate::prepare::{PreparedSelect, extra_columns};
use crate::source::SourceColumn;
use crate::typing::type_of;
use crate::value::InfluxValueType;
use marigram_influxql::ast::VarRef;
use marigram_influxql::validate::is_math;
use std::collections::HashMap;
use std::sync::Arc;

/// The columns, functions and names that a SELECT needs.
#[derive(Default)]
pub(super) struct SelectSymbols {
    /// Names outside of functions, with their symbols.
    pub(super) names: Vec<(VarRef, usize)>,
    /// Functions, with their symbols.
    pub(super) calls: Vec<(Expression, usize)>,
    pub(super) sources: SourceColumns,
    /// The symbols of names and functions by their texts.
    known: HashMap<String, usize>,
    count: usize,
}

/// The columns to read, each once.
#[derive(Default)]
pub(super) struct SourceColumns {
    pub(super) columns: Vec<SourceColumn>,
    places: HashMap<SourceColumn, usize>,
}

impl SourceColumns {
    /// The index of a column, which is added if necessary.
    pub(super) fn place(&mut self, column: SourceColumn) -> usize {
        *self.places.entry(column).or_insert_with_key(|column| {
            self.columns.push(column.clone());
            self.columns.len() - 1
        })
    }

    /// The index of a column that is read.
    fn known(&self, column: &SourceColumn) -> Option<usize> {
        self.places.get(column).copied()
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
                let (symbol, is_new) = self.symbol(part.to_string());
                if is_new {
                    self.names.push((var.clone(), symbol));
                }
                Some(Expression::Column(
                    symbol,
                    var.cast.and_then(InfluxValueType::of_cast),
                ))
            }
            Expression::Call(name, _) if !is_math(name) => {
                let (symbol, is_new) = self.symbol(part.to_string());
                if is_new {
                    self.calls.push((part.clone(), symbol));
                }
                Some(Expression::Column(symbol, type_of(part).ok().flatten()))
            }
            _ => None,
        })
    }

    /// The symbol of a name or a function, and whether it is new.
    fn symbol(&mut self, text: String) -> (usize, bool) {
        let next = self.count;
        let symbol = *self.known.entry(text).or_insert(next);
        let is_new = symbol == next;
        self.count += usize::from(is_new);
        (symbol, is_new)
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
        let place = |var| self.sources.known(&source_column(var));
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
