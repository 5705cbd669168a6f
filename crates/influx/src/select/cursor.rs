//! Joins the points of functions into one row for each series and time, and computes the columns.

use super::{Grouping, Queue, SymbolChain};
use crate::budget::Budget;
use crate::evaluate::{Division, evaluate};
use crate::expression::Expression;
use crate::point::{Point, Row};
use crate::series::{SeriesKey, same};
use crate::stage::{Chain, Limit};
use crate::value::{InfluxValueType, Value};
use marigram_influxql::ast::Fill;
use std::sync::Arc;

/// A value from which columns are computed: that of a function or of a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Symbol {
    /// Its type, if it is known.
    pub(crate) kind: Option<InfluxValueType>,
}

/// Computes the rows of an answer from rows of the sources.
pub(crate) struct Cursor {
    columns: Vec<Expression>,
    symbols: Vec<Symbol>,
    /// The symbols' values in the current row.
    values: Vec<Value>,
    functions: Vec<Function>,
    /// For each name, its symbol, and its index in rows of the source.
    names: Vec<(usize, usize)>,
    /// The replacement of a missing value; `None` for the previous value.
    default: Option<Value>,
    ascending: bool,
    series: Option<Arc<SeriesKey>>,
    limit: Limit,
    /// The same once more, for what the first one leaves.
    second_limit: Option<Limit>,
    budget: Budget,
    out: Vec<Row>,
}

struct Function {
    chain: Chain,
    symbol: usize,
    queue: Queue,
}

impl Cursor {
    pub(crate) fn new(
        columns: Vec<Expression>,
        symbols: Vec<Symbol>,
        chains: Vec<SymbolChain>,
        names: Vec<(usize, usize)>,
        grouping: &Grouping,
        (limit, is_limited_twice): ((u64, u64), bool),
    ) -> Self {
        let functions = chains.into_iter().map(|(chain, symbol)| Function {
            chain,
            symbol,
            queue: Queue::new(),
        });
        Self {
            values: vec![Value::Null; symbols.len()],
            columns,
            symbols,
            functions: functions.collect(),
            names,
            default: (grouping.fill != Fill::Previous).then(|| grouping.fill_value.clone()),
            ascending: grouping.ascending,
            series: None,
            limit: Limit::new(limit.0, limit.1),
            second_limit: is_limited_twice.then(|| Limit::new(limit.0, limit.1)),
            budget: grouping.budget.clone(),
            out: Vec::new(),
        }
    }

    /// Takes the finished rows.
    pub(crate) fn take(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.out)
    }

    /// Whether LIMIT allows no further row of the current series.
    pub(crate) const fn is_full(&self) -> bool {
        self.limit.is_reached()
    }

    /// Adds a row of the source.
    pub(crate) fn push(&mut self, row: &Row) {
        if self.functions.is_empty() {
            let second = self.second_limit.as_mut();
            if self.limit.admits(&row.series)
                && second.is_none_or(|limit| limit.admits(&row.series))
            {
                self.begin(&row.series);
                self.take_names(Some(&row.values));
                self.emit(&row.series, row.time);
            }
            return;
        }
        if !self.budget.is_fine() {
            return;
        }
        let mut given = Vec::new();
        for function in &mut self.functions {
            function.chain.push(row, &mut given);
            if !given.is_empty() {
                self.budget.take(given.len() * size_of::<Point>());
                function.queue.extend(given.drain(..));
            }
        }
        self.bring_together(false);
    }

    /// Ends the input.
    pub(crate) fn finish(&mut self) {
        let mut given = Vec::new();
        for function in &mut self.functions {
            function.chain.finish(&mut given);
            self.budget.take(given.len() * size_of::<Point>());
            function.queue.extend(given.drain(..));
        }
        self.bring_together(true);
    }

    /// Makes rows from points, as long as no earlier points can arrive.
    fn bring_together(&mut self, all: bool) {
        loop {
            let mut first: Option<&Point> = None;
            for function in &self.functions {
                let Some(point) = function.queue.front() else {
                    if all {
                        continue;
                    }
                    return;
                };
                let comes_first = first.is_none_or(|known| {
                    let order = point.series.order(&known.series);
                    let order = order.then(point.time.cmp(&known.time));
                    if self.ascending {
                        order.is_lt()
                    } else {
                        order.is_gt()
                    }
                });
                if comes_first {
                    first = Some(point);
                }
            }
            let Some((series, time)) = first.map(|point| (Arc::clone(&point.series), point.time))
            else {
                return;
            };
            self.begin(&series);
            for place in 0..self.functions.len() {
                self.scan(place, &series, time);
            }
            self.emit(&series, time);
        }
    }

    /// Begins a row; a new series discards the previous values.
    fn begin(&mut self, series: &Arc<SeriesKey>) {
        if !self
            .series
            .as_ref()
            .is_some_and(|known| same(known, series))
        {
            self.series = Some(Arc::clone(series));
            self.values.fill(Value::Null);
        }
    }

    /// Takes the value of a function at a time, if there is one.
    fn scan(&mut self, place: usize, series: &Arc<SeriesKey>, time: i64) {
        let Some(function) = self.functions.get_mut(place) else {
            return;
        };
        let symbol = function.symbol;
        let is_there = function
            .queue
            .front()
            .is_some_and(|point| point.time == time && same(&point.series, series));
        let point = if is_there {
            self.budget.give(size_of::<Point>());
            function.queue.pop_front()
        } else {
            None
        };
        let (value, row) = point.map_or((Value::Null, None), |point| (point.value, point.row));
        self.set(symbol, value);
        if !self.names.is_empty() {
            self.take_names(row.as_deref());
        }
    }

    /// Takes the values of names from a row of the source, or their replacements.
    fn take_names(&mut self, row: Option<&[Value]>) {
        for place in 0..self.names.len() {
            let (symbol, source) = self.names[place];
            let value = row.and_then(|row| row.get(source)).cloned();
            self.set(symbol, value.unwrap_or_default());
        }
    }

    fn set(&mut self, symbol: usize, value: Value) {
        let kind = self.symbols.get(symbol).and_then(|symbol| symbol.kind);
        let Some(slot) = self.values.get_mut(symbol) else {
            return;
        };
        if !value.is_null() {
            *slot = value;
        } else if let Some(default) = &self.default {
            *slot = default.cast_or_keep(kind);
        }
    }

    fn emit(&mut self, series: &Arc<SeriesKey>, time: i64) {
        let values = self.columns.iter().map(|column| {
            match evaluate(column, &self.values, Division::Float) {
                Value::Float(value) if value.is_nan() => Value::Null,
                value => value,
            }
        });
        self.out.push(Row {
            series: Arc::clone(series),
            time,
            values: values.collect(),
        });
    }
}
