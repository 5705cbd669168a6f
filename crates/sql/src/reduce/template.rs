//! What those who keep plans want of the operator: what of it depends on no data, to be used again,
//! and whether it is short.

use super::exec::SeriesAggregate;
use super::recipe::Recipe;
use super::short::is_short;
use crate::scan::{SeriesScan, with_holes};
use datafusion::common::Result;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use std::sync::Arc;

/// An aggregate over no scan yet.
#[derive(Debug)]
pub struct Template {
    recipe: Arc<Recipe>,
    other_way: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl SeriesAggregate {
    /// The same over no scan.
    ///
    /// # Errors
    /// DataFusion's, of operators that cannot be walked through.
    pub fn template(&self) -> Result<Template> {
        Ok(Template {
            recipe: Arc::clone(&self.recipe),
            other_way: with_holes(&self.other_way)?,
            properties: Arc::clone(&self.properties),
        })
    }

    /// Whether it takes little time, unless there are more pages to be read than are read at once.
    pub fn is_short(&self) -> bool {
        is_short(&self.recipe, &self.scan)
    }
}

impl Template {
    /// The aggregate over a scan of the same columns.
    pub fn over(&self, scan: Arc<SeriesScan>) -> SeriesAggregate {
        SeriesAggregate::with(
            Arc::clone(&self.recipe),
            scan,
            Arc::clone(&self.other_way),
            Arc::clone(&self.properties),
        )
    }
}
