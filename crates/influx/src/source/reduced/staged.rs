//! Groups made of rows: what the series-aware aggregate is replaced by where it fails.

use super::{ReducedCall, ReducedRequest};
use crate::budget::Budget;
use crate::point::{Point, Row};
use crate::source::RowSource;
use crate::stage::{Reduce, Stage};
use crate::value::Value;
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The rows of a table, and the index of each function's input in them.
pub(crate) struct ReducedFallback {
    /// The rows.
    pub rows: Box<dyn RowSource>,
    /// The indexes.
    pub places: Vec<usize>,
}

/// Groups made of rows, by the stages of the functions. Each row has the value of one function.
pub(super) struct StagedRows {
    fallback: ReducedFallback,
    stages: Vec<Reduce>,
    ended: bool,
}

impl StagedRows {
    /// Groups of a request, made of the rows of `fallback`.
    pub(super) fn new(
        fallback: ReducedFallback,
        request: &ReducedRequest,
        budget: &Budget,
    ) -> Self {
        let stage = |call: &ReducedCall| {
            Reduce::new(
                call.aggregate.clone(),
                request.windows.clone(),
                Arc::clone(&request.order),
                Arc::clone(&request.keys),
                budget.clone(),
            )
        };
        Self {
            fallback,
            stages: request.calls.iter().map(stage).collect(),
            ended: false,
        }
    }

    /// The row that has the value of a point, which is that of a function.
    fn row(&self, place: usize, point: Point) -> Row {
        let mut values = vec![Value::Null; self.stages.len()];
        values[place] = point.value;
        Row {
            series: point.series,
            time: point.time,
            values: values.into(),
        }
    }
}

impl RowSource for StagedRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            while !self.ended {
                let (mut found, mut given) = (Vec::new(), Vec::new());
                let rows = self.fallback.rows.next().await?;
                self.ended = rows.is_none();
                for place in 0..self.stages.len() {
                    match &rows {
                        Some(rows) => rows.iter().for_each(|row| {
                            let value = row.values.get(self.fallback.places[place]);
                            let point = Point {
                                series: Arc::clone(&row.series),
                                time: row.time,
                                value: value.cloned().unwrap_or_default(),
                                row: None,
                            };
                            self.stages[place].push(point, &mut given);
                        }),
                        None => self.stages[place].finish(&mut given),
                    }
                    found.extend(given.drain(..).map(|point| self.row(place, point)));
                }
                if !found.is_empty() {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
        .boxed()
    }
}
