//! The rows among which `min` or `max` finds its row: the extreme of each group is computed first, and then
//! only rows with that value are read.

use super::RowSource;
use super::measurement::{
    MeasurementRequest, MeasurementRows, ReadColumn, column, requested_column, series_filter,
};
use super::reduced::{ReducedInput, ReducedRequest, ReducedRows};
use crate::budget::Budget;
use crate::point::Row;
use crate::value::Value;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, lit};
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::sync::Arc;

/// With more groups than this, all rows are read.
const GROUPS_MAX: usize = 32;

/// The rows of a table that have the extreme value of their group.
pub(crate) struct ExtremeRows {
    state: Arc<SessionState>,
    budget: Budget,
    /// The request for the extremes, whose one function is `min` or `max`.
    extremes: ReducedRequest,
    request: MeasurementRequest,
    rows: Option<MeasurementRows>,
}

impl ExtremeRows {
    /// The rows of `request`, of which only those with one of the `extremes` are necessary.
    pub(crate) fn new(
        state: Arc<SessionState>,
        budget: Budget,
        extremes: ReducedRequest,
        request: MeasurementRequest,
    ) -> Self {
        Self {
            state,
            budget,
            extremes,
            request,
            rows: None,
        }
    }

    /// The condition that only rows with an extreme of their group fulfil; `None` if there are too many
    /// groups.
    async fn filter(&mut self) -> Option<Expr> {
        let call = self.extremes.calls.first()?;
        let ReducedInput::Column(input) = &call.input else {
            return None;
        };
        let ReadColumn::Field { name, .. } = requested_column(&self.request.measurement, input)
        else {
            return None;
        };
        let (state, extremes) = (Arc::clone(&self.state), self.extremes.clone());
        let mut groups = ReducedRows::new(state, extremes, self.budget.clone(), None);
        // Where the aggregate fails, all rows are read.
        let groups = groups.compute().await.ok().flatten()?;
        if groups.len() > GROUPS_MAX {
            return None;
        }
        let mut filters = Vec::with_capacity(groups.len());
        for row in &groups {
            let value = match row.values.first()? {
                Value::Null => continue,
                Value::Float(value) if value.is_finite() => lit(*value),
                Value::Integer(value) => lit(*value),
                Value::Unsigned(value) => lit(*value),
                _ => return None,
            };
            let is_extreme = column(&name).eq(value);
            filters.push(if row.series.tags.is_empty() {
                is_extreme
            } else {
                series_filter(&self.request, [&*row.series])?.and(is_extreme)
            });
        }
        Some(filters.into_iter().reduce(Expr::or).unwrap_or(lit(false)))
    }
}

impl RowSource for ExtremeRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            if self.rows.is_none() {
                let (min, max) = self.request.range;
                let mut request = self.request.clone();
                if min <= max {
                    request.filters.extend(self.filter().await);
                }
                self.rows = Some(MeasurementRows::new(Arc::clone(&self.state), request));
            }
            match &mut self.rows {
                Some(rows) => rows.next().await,
                None => Ok(None),
            }
        }
        .boxed()
    }
}
