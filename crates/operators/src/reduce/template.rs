//! What those who keep plans want of the operator: what of it depends on no data, to be used again,
//! and whether it is short.

use super::exec::SeriesAggregate;
use super::inline::runs_inline;
use super::recipe::AggregateRecipe;
use crate::scan::{SeriesScan, with_scan_placeholders};
use datafusion::common::Result;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use std::sync::Arc;

/// An aggregate over no scan yet.
#[derive(Debug)]
pub struct SeriesAggregateTemplate {
    recipe: Arc<AggregateRecipe>,
    fallback: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl SeriesAggregate {
    /// The same over no scan.
    ///
    /// # Errors
    /// DataFusion's, of operators that cannot be walked through.
    pub fn template(&self) -> Result<SeriesAggregateTemplate> {
        Ok(SeriesAggregateTemplate {
            recipe: Arc::clone(&self.recipe),
            fallback: with_scan_placeholders(&self.fallback)?,
            properties: Arc::clone(&self.properties),
        })
    }

    /// Whether it takes little time, unless there are more pages to be read than are read at once.
    pub fn runs_inline(&self) -> bool {
        runs_inline(&self.recipe, &self.scan)
    }
}

impl SeriesAggregateTemplate {
    /// The aggregate over a scan of the same columns.
    pub fn over(&self, scan: Arc<SeriesScan>) -> SeriesAggregate {
        SeriesAggregate::with(
            Arc::clone(&self.recipe),
            scan,
            Arc::clone(&self.fallback),
            Arc::clone(&self.properties),
        )
    }
}
