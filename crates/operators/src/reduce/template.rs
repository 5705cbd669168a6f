//! What plan caches need from the operator: the part of it that depends on no data and can be
//! reused, and whether it can run inline.

use super::exec::SeriesAggregate;
use super::inline::runs_inline;
use super::recipe::AggregateRecipe;
use crate::scan::{SeriesScan, with_scan_placeholders};
use datafusion::common::Result;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use marigram_service::InlineDecision;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An aggregate that has no scan yet.
#[derive(Debug)]
pub struct SeriesAggregateTemplate {
    recipe: Arc<AggregateRecipe>,
    fallback: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl SeriesAggregate {
    /// The aggregate without its scan.
    ///
    /// # Errors
    /// DataFusion's errors, for operators that cannot be traversed.
    pub fn template(&self) -> Result<SeriesAggregateTemplate> {
        Ok(SeriesAggregateTemplate {
            recipe: Arc::clone(&self.recipe),
            fallback: with_scan_placeholders(&self.fallback)?,
            properties: Arc::clone(&self.properties),
        })
    }

    /// Whether it runs inline, unless it must read more pages than the policy allows.
    ///
    /// # Errors
    /// Why not.
    pub fn runs_inline(&self) -> InlineDecision {
        runs_inline(&self.recipe, &self.scan)
    }

    /// Whether an execution left the thread that polled it.
    pub fn was_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Relaxed)
    }
}

impl SeriesAggregateTemplate {
    /// The aggregate over a scan with the same columns.
    pub fn over(&self, scan: Arc<SeriesScan>) -> SeriesAggregate {
        SeriesAggregate::with(
            Arc::clone(&self.recipe),
            scan,
            Arc::clone(&self.fallback),
            Arc::clone(&self.properties),
        )
    }
}
