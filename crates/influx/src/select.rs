//! A prepared SELECT as rows: functions over its sources, brought together by series and time.

mod cursor;
mod functions;

use crate::budget::Budget;
use crate::expression::Expression;
use crate::listing::series_keys;
use crate::point::{Point, Row};
use crate::prepare::{Prepared, PreparedSource, extra_columns};
use crate::schema::StoredMeasurement;
use crate::series::{SeriesKey, sorted_keys};
use crate::source::{
    Concatenated, MeasurementRequest, MeasurementRows, Merged, Nothing, RowOrder, RowSource,
    SourceColumn, SubqueryRows,
};
use crate::stage::Chain;
use crate::typing::type_of;
use crate::value::{Value, ValueType};
use crate::window::Windows;
use cursor::{Cursor, Symbol};
use datafusion::execution::session_state::SessionState;
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_engine::Engine;
use marigram_influxql::ast::Fill;
use marigram_sql::SqlResult;
use std::collections::HashSet;
use std::sync::Arc;

/// What SELECTs run with.
#[derive(Clone)]
pub struct Running {
    /// The engine.
    pub engine: Engine,
    /// DataFusion's state for the statement.
    pub state: Arc<SessionState>,
    /// The statement's memory.
    pub budget: Budget,
}

/// What a SELECT takes over from the one around it.
#[derive(Clone)]
pub(crate) struct Around {
    /// The tags that the outermost SELECT groups by: what rows are ordered by.
    order: Arc<[Arc<str>]>,
    /// The tags that are needed outside.
    keys: Arc<[Arc<str>]>,
    series_limit: (u64, u64),
    range: (i64, i64),
}

/// How the functions of one SELECT group.
#[derive(Clone)]
pub(crate) struct Grouping {
    pub(crate) windows: Windows,
    pub(crate) order: Arc<[Arc<str>]>,
    pub(crate) keys: Arc<[Arc<str>]>,
    pub(crate) ascending: bool,
    pub(crate) fill: Fill,
    pub(crate) fill_value: Value,
    pub(crate) budget: Budget,
    pub(crate) has_target: bool,
}

/// The rows of a SELECT.
///
/// # Errors
/// What InfluxDB refuses of its functions and types.
pub fn rows(prepared: &Prepared, running: &Running) -> SqlResult<Box<dyn RowSource>> {
    prepared.check_types()?;
    build(prepared, running, None)
}

fn build(
    prepared: &Prepared,
    running: &Running,
    around: Option<&Around>,
) -> SqlResult<Box<dyn RowSource>> {
    let own = sorted_keys(prepared.dimensions.iter().cloned());
    let (order, keys, series_limit, range) = match around {
        None => {
            let range = (prepared.min_ns, prepared.max_ns);
            (Arc::clone(&own), own, prepared.series_limit, range)
        }
        Some(around) => {
            let all = own.iter().chain(around.keys.iter());
            let keys = sorted_keys(all.map(ToString::to_string));
            let limit = (
                prepared.series_limit.0 + around.series_limit.0,
                prepared.series_limit.1 + around.series_limit.1,
            );
            let range = (
                prepared.min_ns.max(around.range.0),
                prepared.max_ns.min(around.range.1),
            );
            (Arc::clone(&around.order), keys, limit, range)
        }
    };
    let grouping = Grouping {
        windows: Windows {
            every_ns: prepared.interval.map_or(0, |interval| interval.every_ns),
            offset_ns: prepared.interval.map_or(0, |interval| interval.offset_ns),
            start_ns: range.0,
            end_ns: range.1,
            zone: prepared.zone.clone(),
        },
        order: Arc::clone(&order),
        keys: Arc::clone(&keys),
        ascending: prepared.ascending,
        fill: prepared.fill,
        fill_value: match prepared.fill {
            Fill::Integer(value) => Value::Integer(value),
            Fill::Float(value) => Value::Float(value),
            _ => Value::Null,
        },
        budget: running.budget.clone(),
        has_target: prepared.has_target,
    };
    let mut wanted = Wanted::default();
    let columns = wanted.columns(prepared);
    let mut source_keys = keys.to_vec();
    source_keys.extend(wanted.grouped_in_calls(prepared));
    let source_keys = sorted_keys(source_keys.iter().map(ToString::to_string));
    let mut chains = Vec::new();
    let is_selector = wanted.calls.len() == 1
        && wanted
            .calls
            .first()
            .is_some_and(|(call, _)| functions::is_selector(call));
    let keeps_rows = !wanted.names.is_empty();
    for (call, symbol) in &wanted.calls {
        if type_of(call)?.is_none() {
            continue;
        }
        let driver = functions::driver(call);
        let has_driver = driver.is_some_and(|var| {
            let sources = prepared.sources.iter();
            sources.filter_map(|source| source.type_of(&var.name)).next().is_some()
        });
        let mut place = |column: SourceColumn| wanted.sources.place(column);
        let context = functions::FunctionContext {
            grouping: &grouping,
            is_selector,
            keeps_rows,
            has_driver,
        };
        let mut chain = functions::chain(call, &context, &mut place)?;
        if prepared.limit != (0, 0) {
            let (limit, offset) = prepared.limit;
            chain.stages.push(Box::new(crate::stage::Limit::new(limit, offset)));
        }
        chains.push((chain, *symbol));
    }
    let is_raw = wanted.calls.is_empty();
    let nothing_known = if is_raw {
        wanted.names.iter().all(|(var, _)| var.cast.is_none())
    } else {
        chains.is_empty()
    };
    if nothing_known {
        return Ok(Box::new(Nothing));
    }
    let read_range = chains.iter().fold(range, |range, (chain, _)| {
        (range.0.min(chain.start_ns), range.1.max(chain.end_ns))
    });
    let inner = Around {
        order,
        keys: Arc::clone(&source_keys),
        series_limit,
        range: read_range,
    };
    let fetch = (is_raw && keys.is_empty() && prepared.limit.0 > 0)
        .then(|| usize::try_from(prepared.limit.0 + prepared.limit.1).ok())
        .flatten();
    let request = SourceRequest {
        columns: &wanted.sources.columns,
        inner: &inner,
        is_raw,
        fetch,
    };
    let source = sources(prepared, running, &request)?;
    let symbols = wanted.symbols();
    let cursor = Cursor::new(
        columns,
        symbols,
        chains,
        wanted.raw_places(),
        &grouping,
        prepared.limit,
    );
    Ok(Box::new(SelectRows {
        source,
        cursor,
        budget: running.budget.clone(),
        stops_early: is_raw && keys.is_empty() && prepared.sources.len() == 1,
        ended: false,
    }))
}

/// The columns, functions and names that a SELECT needs.
#[derive(Default)]
struct Wanted {
    /// Names outside of functions, with their symbols.
    names: Vec<(marigram_influxql::ast::VarRef, usize)>,
    /// Functions, with their symbols.
    calls: Vec<(Expression, usize)>,
    sources: SourceColumns,
    count: usize,
}

#[derive(Default)]
struct SourceColumns {
    columns: Vec<SourceColumn>,
}

impl SourceColumns {
    fn place(&mut self, column: SourceColumn) -> usize {
        let known = self.columns.iter().position(|known| *known == column);
        known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        })
    }
}

impl Wanted {
    /// The columns of an answer over symbols.
    fn columns(&mut self, prepared: &Prepared) -> Vec<Expression> {
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
                Some(Expression::Column(symbol, var.cast.and_then(ValueType::of_cast)))
            }
            Expression::Call(name, _) if !crate::evaluate::is_math(name) => {
                let text = part.to_string();
                let known = self.calls.iter().find(|(known, _)| known.to_string() == text);
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
    fn grouped_in_calls(&self, prepared: &Prepared) -> Vec<Arc<str>> {
        let _ = prepared;
        let calls = self.calls.iter();
        let extra = calls.flat_map(|(call, _)| extra_columns(call));
        extra.map(|var| var.name.as_str().into()).collect()
    }

    /// The type of each symbol, and for names their place among the columns of the source.
    fn symbols(&self) -> Vec<Symbol> {
        let mut symbols = vec![Symbol::default(); self.count];
        for (call, symbol) in &self.calls {
            symbols[*symbol].kind = type_of(call).ok().flatten();
        }
        for (var, symbol) in &self.names {
            symbols[*symbol].kind = var.cast.and_then(ValueType::of_cast);
        }
        symbols
    }

    /// Of each name its symbol and its place in the source.
    fn raw_places(&self) -> Vec<(usize, usize)> {
        let place = |var| {
            let column = source_column(var);
            self.sources.columns.iter().position(|known| *known == column)
        };
        let names = self.names.iter();
        names
            .filter_map(|(var, symbol)| Some((*symbol, place(var)?)))
            .collect()
    }
}

fn source_column(var: &marigram_influxql::ast::VarRef) -> SourceColumn {
    SourceColumn {
        name: var.name.clone(),
        kind: var.cast.and_then(ValueType::of_cast),
        is_driver: false,
    }
}

/// What a SELECT asks of its sources.
struct SourceRequest<'a> {
    columns: &'a [SourceColumn],
    inner: &'a Around,
    is_raw: bool,
    fetch: Option<usize>,
}

/// The sources of a SELECT as one.
fn sources(
    prepared: &Prepared,
    running: &Running,
    request: &SourceRequest<'_>,
) -> SqlResult<Box<dyn RowSource>> {
    let order = RowOrder {
        keys: Arc::clone(&request.inner.order),
        ascending: prepared.ascending,
    };
    let mut tables: Vec<(Arc<str>, Box<dyn RowSource>)> = Vec::new();
    let mut others: Vec<Box<dyn RowSource>> = Vec::new();
    for source in &prepared.sources {
        match source {
            PreparedSource::Measurement(measurement) => {
                let rows = table_rows(prepared, running, request, measurement)?;
                tables.push((Arc::clone(&measurement.name), Box::new(rows)));
            }
            PreparedSource::Subquery(inner) => {
                let rows = build(inner, running, Some(request.inner))?;
                others.push(Box::new(SubqueryRows::new(
                    inner,
                    rows,
                    request.columns,
                    prepared.condition.as_ref(),
                    Arc::clone(&request.inner.keys),
                )));
            }
        }
    }
    if !others.is_empty() {
        others.extend(tables.into_iter().map(|(_, rows)| rows));
        return Ok(match others.len() {
            1 => others.remove(0),
            _ => Box::new(Merged::new(order, others)),
        });
    }
    // Measurements come one after the other, so that only one is read at a time.
    tables.sort_by(|(a, _), (b, _)| a.cmp(b));
    if !prepared.ascending {
        tables.reverse();
    }
    let mut groups: Vec<(Arc<str>, Vec<Box<dyn RowSource>>)> = Vec::new();
    for (name, rows) in tables {
        match groups.last_mut() {
            Some((known, group)) if *known == name => group.push(rows),
            _ => groups.push((name, vec![rows])),
        }
    }
    let one = |(_, mut group): (_, Vec<Box<dyn RowSource>>)| match group.len() {
        1 => group.remove(0),
        _ => Box::new(Merged::new(order.clone(), group)),
    };
    let mut all: Vec<Box<dyn RowSource>> = groups.into_iter().map(one).collect();
    Ok(match all.len() {
        0 => Box::new(Nothing),
        1 => all.remove(0),
        _ => Box::new(Concatenated::new(all)),
    })
}

fn table_rows(
    prepared: &Prepared,
    running: &Running,
    request: &SourceRequest<'_>,
    measurement: &StoredMeasurement,
) -> SqlResult<MeasurementRows> {
    let inner = request.inner;
    let series = match inner.series_limit {
        (0, 0) => None,
        limits => Some(limited_series(prepared, running, measurement, inner, limits)?),
    };
    let alone = prepared.sources.len() == 1 && series.is_none();
    Ok(MeasurementRows::new(
        Arc::clone(&running.state),
        MeasurementRequest {
            measurement: measurement.clone(),
            columns: request.columns.to_vec(),
            condition: prepared.condition.clone(),
            range: inner.range,
            order: Arc::clone(&inner.order),
            keys: Arc::clone(&inner.keys),
            ascending: prepared.ascending,
            series,
            fetch: request.fetch.filter(|_| alone),
            needs_field: request.is_raw || request.columns.len() == 1,
        },
    ))
}

/// The series that SLIMIT and SOFFSET leave, counted from the smallest.
fn limited_series(
    prepared: &Prepared,
    running: &Running,
    measurement: &StoredMeasurement,
    inner: &Around,
    (limit, offset): (u64, u64),
) -> SqlResult<HashSet<SeriesKey>> {
    let keys = series_keys(
        &running.engine,
        measurement,
        &inner.keys,
        prepared.condition.as_ref(),
    )?;
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let limit = match limit {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    Ok(keys.into_iter().skip(offset).take(limit).collect())
}

/// The rows of a SELECT, made as they are asked for.
struct SelectRows {
    source: Box<dyn RowSource>,
    cursor: Cursor,
    budget: Budget,
    stops_early: bool,
    ended: bool,
}

impl RowSource for SelectRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            loop {
                self.budget.check()?;
                let rows = self.cursor.take();
                if !rows.is_empty() {
                    return Ok(Some(rows));
                }
                if self.ended {
                    return Ok(None);
                }
                let enough = self.stops_early && self.cursor.is_full();
                match self.source.next().await? {
                    Some(rows) if !enough => rows.iter().for_each(|row| self.cursor.push(row)),
                    _ => {
                        self.ended = true;
                        self.cursor.finish();
                    }
                }
            }
        }
        .boxed()
    }
}

/// A function's chain and the symbol that it gives.
pub(crate) type SymbolChain = (Chain, usize);

/// Points of one function on their way to the cursor.
pub(crate) type Queue = std::collections::VecDeque<Point>;
