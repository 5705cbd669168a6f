//! The first rows of each group: those of each series, where the condition selects whole series; otherwise
//! read in windows of time from one end of the table, each wider than the one before, until every group has
//! enough of them.
//!
//! The windows share the snapshot of the first one: its plan is kept until the end.

use super::edge_rows::edge_rows;
use super::measurement::{MeasurementRequest, MeasurementRows, series_filter};
use super::{RowOrder, RowSource};
use crate::budget::Budget;
use crate::listing::series_keys;
use crate::point::Row;
use crate::series::{SeriesKey, same};
use crate::value::Value;
use datafusion::execution::session_state::SessionState;
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_engine::Engine;
use marigram_model::TimeRange;
use marigram_sql::SqlResult;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Each window is this many times wider than the one before.
const GROWTH: u128 = 8;
/// For more rows of a group than this, the table is read as a whole.
const GROUP_ROWS_MAX: u64 = 1_000;
/// With more series than this, the table is read as a whole, unless there is one group.
const SERIES_MAX: u64 = 100_000;
/// Up to this many groups that lack rows, later windows read their series alone.
const LACKING_MAX: usize = 64;
/// The number of rows that are returned at once.
const ROWS_AT_ONCE: usize = 8_192;

/// The first rows of each group of a table.
pub(crate) struct FirstRows {
    engine: Engine,
    state: Arc<SessionState>,
    budget: Budget,
    request: MeasurementRequest,
    order: RowOrder,
    group_rows: u64,
    reading: Reading,
}

/// The state of reading.
enum Reading {
    NotBegun,
    /// All rows, in the order of the request.
    Whole(Box<MeasurementRows>),
    /// The rows that were found.
    Found(std::vec::IntoIter<Row>),
}

/// What each group still lacks.
struct GroupRowCounter {
    rows_max: u64,
    groups: HashSet<SeriesKey>,
    seen: HashMap<Arc<SeriesKey>, u64>,
    /// A group that has enough rows.
    complete: Option<Arc<SeriesKey>>,
}

impl GroupRowCounter {
    /// Nothing was read yet.
    fn new(rows_max: u64, groups: HashSet<SeriesKey>) -> Self {
        Self {
            rows_max,
            groups,
            seen: HashMap::new(),
            complete: None,
        }
    }

    /// Counts a row; returns whether it is among the first of its group.
    fn admits(&mut self, series: &Arc<SeriesKey>) -> bool {
        if let Some(complete) = &self.complete
            && same(complete, series)
        {
            return false;
        }
        let seen = self.seen.entry(Arc::clone(series)).or_default();
        let is_first = *seen < self.rows_max;
        *seen += u64::from(is_first);
        if *seen == self.rows_max {
            self.groups.remove(&**series);
            self.complete = Some(Arc::clone(series));
        }
        is_first
    }
}

impl FirstRows {
    /// The first `group_rows` rows of each group of `request`, which are the series with its keys, from
    /// its end of time. The rows are returned in `order`; there may be more of them.
    pub(crate) fn new(
        (engine, state, budget): (&Engine, &Arc<SessionState>, &Budget),
        request: MeasurementRequest,
        order: RowOrder,
        group_rows: u64,
    ) -> Self {
        Self {
            engine: engine.clone(),
            state: Arc::clone(state),
            budget: budget.clone(),
            request,
            order,
            group_rows,
            reading: Reading::NotBegun,
        }
    }

    /// The times of the table within those of the request, and the width of the first window; `None` if
    /// the table should be read as a whole.
    fn first_window(&self) -> SqlResult<Option<(TimeRange, u128)>> {
        let table = &self.request.measurement.table;
        let snapshot = self.engine.snapshot(&table.database, &table.name)?;
        let (rows, stored) = snapshot.estimate();
        let series = snapshot.series_total();
        let is_many = !self.request.keys.is_empty() && series > SERIES_MAX;
        if self.group_rows > GROUP_ROWS_MAX || is_many || rows == 0 {
            return Ok(None);
        }
        let (min, max) = self.request.range;
        let stored = stored.intersect(TimeRange { min, max });
        let all = u128::from(stored.max.abs_diff(stored.min));
        let wanted = 2 * (u128::from(self.group_rows) + 1) * u128::from(series);
        let width = all * wanted / u128::from(rows) + 1;
        let is_narrow = !stored.is_empty() && width * GROWTH < all;
        Ok(is_narrow.then_some((stored, width)))
    }

    /// The first rows of each series, of which those of the groups are taken.
    fn rows_from_edges(&self) -> SqlResult<Option<Vec<Row>>> {
        let parts = (&self.engine, &self.state, &self.budget);
        let Some(mut rows) = edge_rows(parts, &self.request, self.group_rows)? else {
            return Ok(None);
        };
        let mut lacking = GroupRowCounter::new(self.group_rows, HashSet::new());
        rows.retain(|row| lacking.admits(&row.series));
        self.keep(&rows)?;
        self.sort(&mut rows);
        Ok(Some(rows))
    }

    async fn begin(&mut self) -> SqlResult<()> {
        if let Some(found) = self.rows_from_edges()? {
            self.reading = Reading::Found(found.into_iter());
            return Ok(());
        }
        let window = self.first_window()?;
        self.reading = match window {
            Some((stored, width)) => Reading::Found(self.find(stored, width).await?.into_iter()),
            None => {
                let (state, request) = (Arc::clone(&self.state), self.request.clone());
                // Read from the other end, rows would be in another order.
                let is_in_order = request.ascending == self.order.ascending;
                let mut rows = MeasurementRows::new(state, request);
                if is_in_order {
                    Reading::Whole(Box::new(rows))
                } else {
                    let mut lacking = GroupRowCounter::new(self.group_rows, HashSet::new());
                    let mut found = Vec::new();
                    while let Some(mut some) = rows.next().await? {
                        some.retain(|row| lacking.admits(&row.series));
                        self.keep(&some)?;
                        found.extend(some);
                    }
                    self.sort(&mut found);
                    Reading::Found(found.into_iter())
                }
            }
        };
        Ok(())
    }

    /// Reserves the memory of rows.
    fn keep(&self, rows: &[Row]) -> SqlResult<()> {
        let bytes = rows.iter().map(|row| {
            let texts: usize = row.values.iter().map(Value::heap_bytes).sum();
            size_of::<Row>() + size_of_val(&*row.values) + texts
        });
        self.budget.keep(bytes.sum())
    }

    /// Reads windows until there are enough rows.
    async fn find(&mut self, stored: TimeRange, mut width: u128) -> SqlResult<Vec<Row>> {
        let request = &self.request;
        let groups = series_keys(
            (&self.engine, &self.budget),
            &request.measurement,
            &request.keys,
            request.condition.as_ref(),
        )?;
        let is_shown = |series: &SeriesKey| {
            let shown = request.series.as_ref();
            shown.is_none_or(|shown| shown.contains(series))
        };
        let groups = groups.into_iter().filter(is_shown);
        let mut lacking = GroupRowCounter::new(self.group_rows, groups.collect());
        let (mut left, mut found, mut kept) = (request.range, Vec::new(), Vec::new());
        let is_from_start = request.ascending;
        let mut edge = if is_from_start {
            stored.min
        } else {
            stored.max
        };
        while left.0 <= left.1 && !lacking.groups.is_empty() {
            let mut window = left;
            let step = i64::try_from(width).unwrap_or(i64::MAX);
            if is_from_start {
                edge = edge.saturating_add(step);
                if edge < stored.max {
                    window.1 = edge;
                }
            } else {
                edge = edge.saturating_sub(step);
                if edge > stored.min {
                    window.0 = edge;
                }
            }
            width = width.saturating_mul(GROWTH);
            let mut part = request.clone();
            part.range = window;
            if !kept.is_empty() && lacking.groups.len() <= LACKING_MAX {
                part.filters.extend(series_filter(&part, &lacking.groups));
            }
            let mut rows = MeasurementRows::new(Arc::clone(&self.state), part);
            while let Some(mut some) = rows.next().await? {
                some.retain(|row| lacking.admits(&row.series));
                self.keep(&some)?;
                found.extend(some);
            }
            kept.push(rows);
            let is_last = window == left;
            if is_last {
                break;
            }
            if is_from_start {
                left.0 = window.1.saturating_add(1);
            } else {
                left.1 = window.0.saturating_sub(1);
            }
        }
        self.sort(&mut found);
        Ok(found)
    }

    /// Brings rows into the order of the answer, which may not be that of reading.
    fn sort(&self, rows: &mut [Row]) {
        let keys = &self.request.keys;
        rows.sort_by(|a, b| {
            let order = self.order.compare((&a.series, a.time), (&b.series, b.time));
            order.then_with(|| {
                let order = a.series.order_by(&b.series, keys);
                if self.order.ascending {
                    order
                } else {
                    order.reverse()
                }
            })
        });
    }
}

impl RowSource for FirstRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            let (min, max) = self.request.range;
            if min > max {
                return Ok(None);
            }
            if matches!(self.reading, Reading::NotBegun) {
                self.begin().await?;
            }
            match &mut self.reading {
                Reading::NotBegun => Ok(None),
                Reading::Whole(rows) => rows.next().await,
                Reading::Found(rows) => {
                    let some: Vec<Row> = rows.by_ref().take(ROWS_AT_ONCE).collect();
                    Ok((!some.is_empty()).then_some(some))
                }
            }
        }
        .boxed()
    }
}
