//! Turns a prepared SELECT into rows: functions over its sources, joined by series and time.

mod cursor;
mod functions;
mod reading;
mod series_limit;
mod sources;
mod wanted;

use crate::budget::Budget;
use crate::point::{Point, Row};
use crate::prepare::{PreparedSelect, PreparedSource};
use crate::series::sorted_keys;
use crate::source::{Nothing, RowSource, SourceColumn};
use crate::stage::{Chain, Limit};
use crate::typing::type_of;
use crate::value::Value;
use crate::window::Windows;
use cursor::Cursor;
use datafusion::execution::session_state::SessionState;
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_engine::Engine;
use marigram_influxql::ast::Fill;
use marigram_sql::SqlResult;
use reading::{TableReading, reading_of_functions, reading_of_rows};
use series_limit::LimitedSeries;
use sources::{SourceRequest, sources};
use std::sync::Arc;
use wanted::SelectSymbols;

/// The environment in which SELECTs run.
#[derive(Clone)]
pub(crate) struct Running {
    /// The engine.
    pub engine: Engine,
    /// DataFusion's state for the statement.
    pub state: Arc<SessionState>,
    /// The statement's memory.
    pub budget: Budget,
    /// Whether answers may come from less than all rows.
    pub takes_fast_paths: bool,
}

/// What a SELECT inherits from the enclosing one.
#[derive(Clone)]
pub(crate) struct EnclosingScope {
    /// The tags by which the outermost SELECT groups: rows are ordered by them.
    order: Arc<[Arc<str>]>,
    /// The tags that the enclosing SELECT needs.
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
}

/// The rows of a SELECT.
///
/// # Errors
/// What InfluxDB refuses of its functions and types.
pub(crate) fn rows(prepared: &PreparedSelect, running: &Running) -> SqlResult<Box<dyn RowSource>> {
    prepared.check_types()?;
    let rows = build(prepared, running, None)?;
    Ok(match prepared.series_limit {
        (0, 0) => rows,
        limits if limits_its_answer(prepared) => Box::new(LimitedSeries::new(rows, limits)),
        _ => rows,
    })
}

/// Whether SLIMIT counts the series of the answer, and not those of a table.
fn limits_its_answer(prepared: &PreparedSelect) -> bool {
    prepared.sources.iter().all(PreparedSource::is_subquery)
}

/// What a SELECT groups and limits by, with what an outer SELECT passes to it.
fn scope_of(prepared: &PreparedSelect, around: Option<&EnclosingScope>) -> EnclosingScope {
    let own = sorted_keys(prepared.dimensions.iter().cloned());
    let Some(around) = around else {
        return EnclosingScope {
            order: Arc::clone(&own),
            keys: own,
            series_limit: if limits_its_answer(prepared) {
                (0, 0)
            } else {
                prepared.series_limit
            },
            range: (prepared.min_ns, prepared.max_ns),
        };
    };
    let all = own.iter().chain(around.keys.iter());
    let (limit, offset) = prepared.series_limit;
    EnclosingScope {
        order: Arc::clone(&around.order),
        keys: sorted_keys(all.map(ToString::to_string)),
        series_limit: (
            limit.saturating_add(around.series_limit.0),
            offset.saturating_add(around.series_limit.1),
        ),
        range: (
            prepared.min_ns.max(around.range.0),
            prepared.max_ns.min(around.range.1),
        ),
    }
}

/// How the functions of a SELECT group.
fn grouping_of(
    prepared: &PreparedSelect,
    running: &Running,
    scope: &EnclosingScope,
    is_inner: bool,
) -> Grouping {
    Grouping {
        windows: Windows {
            every_ns: prepared.interval.map_or(0, |interval| interval.every_ns),
            offset_ns: prepared.interval.map_or(0, |interval| interval.offset_ns),
            start_ns: scope.range.0,
            end_ns: scope.range.1,
            zone: prepared.zone.clone(),
        },
        order: Arc::clone(&scope.order),
        keys: Arc::clone(&scope.keys),
        ascending: prepared.ascending,
        fill: match prepared.fill {
            Fill::Null if is_inner => Fill::None,
            fill => fill,
        },
        fill_value: match prepared.fill {
            Fill::Integer(value) => Value::Integer(value),
            Fill::Float(value) => Value::Float(value),
            _ => Value::Null,
        },
        budget: running.budget.clone(),
    }
}

/// The functions of a SELECT as chains of stages.
fn chains_of(
    prepared: &PreparedSelect,
    wanted: &mut SelectSymbols,
    grouping: &Grouping,
    (is_selector, keeps_rows): (bool, bool),
) -> SqlResult<Vec<SymbolChain>> {
    let mut chains = Vec::new();
    for (call, symbol) in &wanted.calls {
        if type_of(call)?.is_none() {
            continue;
        }
        let driver = functions::driver(call);
        let has_driver = driver.is_some_and(|var| {
            let mut sources = prepared.sources.iter();
            sources.any(|source| source.type_of(&var.name).is_some())
        });
        let mut place = |column: SourceColumn| wanted.sources.place(column);
        let context = functions::FunctionContext {
            grouping,
            is_selector,
            keeps_rows,
            has_driver,
        };
        let mut chain = functions::chain(call, &context, &mut place)?;
        if prepared.limit != (0, 0) {
            let (limit, offset) = prepared.limit;
            chain.stages.push(Box::new(Limit::new(limit, offset)));
        }
        chains.push((chain, *symbol));
    }
    Ok(chains)
}

fn build(
    prepared: &PreparedSelect,
    running: &Running,
    around: Option<&EnclosingScope>,
) -> SqlResult<Box<dyn RowSource>> {
    let scope = scope_of(prepared, around);
    let grouping = grouping_of(prepared, running, &scope, around.is_some());
    let EnclosingScope {
        order,
        keys,
        series_limit,
        range,
    } = scope.clone();
    let mut wanted = SelectSymbols::default();
    let columns = wanted.columns(prepared);
    let mut source_keys = keys.to_vec();
    source_keys.extend(wanted.grouped_in_calls());
    let source_keys = sorted_keys(source_keys.iter().map(ToString::to_string));
    let is_selector = wanted.calls.len() == 1
        && wanted
            .calls
            .first()
            .is_some_and(|(call, _)| functions::is_selector(call));
    let keeps_rows = !wanted.names.is_empty();
    let mut chains = chains_of(prepared, &mut wanted, &grouping, (is_selector, keeps_rows))?;
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
    let of_subqueries = prepared.sources.iter().all(PreparedSource::is_subquery);
    if of_subqueries {
        for (chain, _) in &mut chains {
            chain.read_subqueries(read_range);
        }
    }
    let is_limited = is_raw && around.is_some() && prepared.limit != (0, 0);
    let interleaves = keys != order;
    let series_rows =
        (is_limited && (interleaves || prepared.limit.0 == 0)).then_some(prepared.limit);
    // A materialized view has no pages of its own from which less could be read.
    let reads_view = prepared.sources.iter().any(PreparedSource::reads_view);
    let reading = if reads_view || !running.takes_fast_paths {
        TableReading::Rows
    } else if is_raw {
        reading_of_rows(prepared, &scope, series_rows)
    } else {
        let read = (&chains[..], &wanted.sources.columns[..]);
        reading_of_functions(prepared, read, &grouping, (is_selector, keeps_rows))
    };
    if let TableReading::Groups(_) = reading {
        for (place, (chain, _)) in chains.iter_mut().enumerate() {
            chain.read_groups(place);
        }
    }
    let inner = EnclosingScope {
        order: Arc::clone(&order),
        keys: Arc::clone(&source_keys),
        series_limit,
        range: read_range,
    };
    let fetch = (is_raw && series_rows.is_none() && keys.is_empty() && prepared.limit.0 > 0)
        .then(|| usize::try_from(prepared.limit.0 + prepared.limit.1).ok())
        .flatten();
    let request = SourceRequest {
        columns: &wanted.sources.columns,
        inner: &inner,
        is_raw,
        fetch,
        series_rows,
        reading: &reading,
    };
    let source = sources(prepared, running, &request)?;
    let symbols = wanted.symbols();
    let cursor = Cursor::new(
        columns,
        symbols,
        chains,
        wanted.raw_places(),
        &grouping,
        (prepared.limit, is_limited && interleaves),
    );
    Ok(Box::new(SelectRows {
        source,
        cursor,
        budget: running.budget.clone(),
        stops_early: is_raw && keys.is_empty() && prepared.sources.len() == 1,
        ended: false,
    }))
}

/// The rows of a SELECT, computed on demand.
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
