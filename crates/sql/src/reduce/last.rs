//! Last rows of series, from the last-value cache: where they are all that is asked for.

use super::recipe::Recipe;
use super::worker::Worker;
use crate::scan::external;
use arrow::array::{Array, ArrayRef};
use datafusion::common::Result;
use marigram_engine::{PageRows, Reducer, RowSpan, ScanRequest, TableSnapshot};
use marigram_model::{SortedRows, TimeRange};
use roaring::RoaringBitmap;

/// The last row of each of some series of a shard.
#[derive(Debug)]
pub struct LastRows {
    /// The shard.
    pub shard: usize,
    /// Those that tell all that is asked.
    pub series: RoaringBitmap,
    rows: SortedRows,
    spans: Vec<RowSpan>,
}

impl LastRows {
    /// The last rows of the series of `request`, which goes on with the series alone of which
    /// they do not tell all: because a field is null there, or the row is after the times asked
    /// for.
    ///
    /// # Errors
    /// The engine's.
    pub fn find(
        recipe: &Recipe,
        snapshot: &TableSnapshot,
        request: &mut ScanRequest,
    ) -> Result<Vec<Self>> {
        let found = snapshot.last_rows(&request.selection, &request.columns);
        let mut left = vec![RoaringBitmap::new(); request.selection.shards.len()];
        let mut all = Vec::new();
        for (shard, rows) in found.map_err(external)? {
            let matters = (0..rows.columns.len()).filter(|column| !recipe.takes_nulls(*column));
            let matters: Vec<&ArrayRef> = matters.map(|column| &rows.columns[column]).collect();
            let (mut spans, mut series) = (Vec::new(), RoaringBitmap::new());
            for (row, run) in rows.runs.iter().enumerate() {
                let time = rows.times[row];
                let unknown = matters.iter().any(|column| column.is_null(row));
                if time > request.range.max || (unknown && time >= request.range.min) {
                    if let Some(left) = left.get_mut(shard) {
                        left.insert(run.series.0);
                    }
                } else if time >= request.range.min {
                    series.insert(run.series.0);
                    spans.push(RowSpan {
                        series: run.series,
                        start: row as u32,
                        end: row as u32 + 1,
                    });
                }
            }
            all.push(Self {
                shard,
                series,
                rows,
                spans,
            });
        }
        request.selection.shards = left;
        all.retain(|rows| !rows.spans.is_empty());
        Ok(all)
    }

    /// Shows the rows to a worker.
    ///
    /// # Errors
    /// The worker's.
    pub fn show(&self, worker: &mut Worker) -> Result<()> {
        let times = self
            .spans
            .iter()
            .map(|span| self.rows.times[span.start as usize]);
        let (Some(min), Some(max)) = (times.clone().min(), times.max()) else {
            return Ok(());
        };
        let columns: Vec<Option<ArrayRef>> = self.rows.columns.iter().cloned().map(Some).collect();
        let rows = PageRows {
            spans: &self.spans,
            range: TimeRange { min, max },
            times: &self.rows.times,
            rows: self.rows.len(),
            columns: &columns,
        };
        worker.rows(rows).map_err(|failed| failed.0)
    }
}
