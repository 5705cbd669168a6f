//! The rows of a page that expressions see: those that were requested and that meet a condition.

use super::super::recipe::AggregateRecipe;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::compute::{filter, prep_null_mask_filter, take};
use datafusion::common::{Result, exec_err};
use marigram_engine::{PageRows, RowSpan};

/// The requested rows only.
pub(super) struct SelectedRows {
    pub(super) spans: Vec<RowSpan>,
    /// Empty if nothing needs them.
    pub(super) times: Vec<i64>,
    pub(super) columns: Vec<Option<ArrayRef>>,
    pub(super) rows: usize,
}

impl SelectedRows {
    pub(super) fn from_page(rows: &PageRows<'_>, recipe: &AggregateRecipe) -> Result<Self> {
        let asked: usize = rows.spans.iter().map(|span| span.len()).sum();
        let has_times = rows.times.len() == rows.rows;
        debug_assert!(has_times || !recipe.needs_times());
        if asked == rows.rows {
            return Ok(Self {
                spans: rows.spans.to_vec(),
                times: rows.times.to_vec(),
                columns: rows.columns.to_vec(),
                rows: asked,
            });
        }
        let mut places = Vec::with_capacity(asked);
        let mut spans = Vec::with_capacity(rows.spans.len());
        for span in rows.spans {
            let start = places.len() as u32;
            places.extend(span.start..span.end);
            spans.push(RowSpan {
                series: span.series,
                start,
                end: places.len() as u32,
            });
        }
        let times = if has_times {
            let times = places.iter().map(|row| rows.times[*row as usize]);
            times.collect()
        } else {
            Vec::new()
        };
        let places = UInt32Array::from(places);
        let columns = rows.columns.iter().map(|column| {
            let column = column.as_ref()?;
            Some(take(column, &places, None))
        });
        Ok(Self {
            spans,
            times,
            columns: columns.map(Option::transpose).collect::<Result<_, _>>()?,
            rows: asked,
        })
    }

    /// Keeps the rows for which `truths`, which has no nulls, is true.
    pub(super) fn filter(&mut self, truths: &BooleanArray) -> Result<()> {
        let bits = truths.values();
        let mut end = 0;
        for span in &mut self.spans {
            let kept = bits.slice(span.start as usize, span.len()).count_set_bits();
            (span.start, span.end) = (end, end + kept as u32);
            end = span.end;
        }
        self.spans.retain(|span| !span.is_empty());
        if !self.times.is_empty() {
            let kept = bits.set_indices().map(|row| self.times[row]);
            self.times = kept.collect();
        }
        for column in self.columns.iter_mut().flatten() {
            *column = filter(column, truths)?;
        }
        self.rows = end as usize;
        Ok(())
    }
}

/// The rows that meet a condition; null is not true.
pub(super) fn truths_of(values: &ArrayRef) -> Result<BooleanArray> {
    match values.as_boolean_opt() {
        Some(truths) if truths.null_count() == 0 => Ok(truths.clone()),
        Some(truths) => Ok(prep_null_mask_filter(truths)),
        None => exec_err!(
            "a condition must be of type boolean, not {}",
            values.data_type()
        ),
    }
}
