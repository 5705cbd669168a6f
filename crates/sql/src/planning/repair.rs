//! DataFusion's physical rules, without those that turn correct plans into wrong ones.
//!
//! *Filters*: the logical rules push them down. The physical rules find the columns of a filter by
//! name. In a RIGHT JOIN whose sides are swapped, they take the column of the other side with the
//! same name: `… FROM t RIGHT JOIN q … WHERE coalesce(t.n, 99) < 13` kept rows without a `t`. Our
//! scans do not use these rules, so they are left out.
//!
//! *Orders*: they are lost if the rules for projections merge two expressions into one whose order
//! they do not recognize, after sorts were removed because of that order: `SELECT time … UNION SELECT
//! date_trunc(…) … ORDER BY 1 LIMIT 10`. DataFusion's last check refuses such a plan. Here, if that
//! check fails, the rule that adds what operators require of their inputs runs once more, and the
//! plan is checked again.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// DataFusion's rules in the form that Marigram uses.
pub(crate) fn repaired(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> impl Iterator<Item = Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let check = SanityCheckPlan::new();
    let filters = [
        FilterPushdown::new(),
        FilterPushdown::new_post_optimization(),
    ];
    rules
        .into_iter()
        .filter(move |rule| filters.iter().all(|filter| filter.name() != rule.name()))
        .map(move |rule| {
            if rule.name() == check.name() {
                Arc::new(RepairingCheck)
            } else {
                rule
            }
        })
}

/// See the module documentation.
#[derive(Debug)]
struct RepairingCheck;

impl PhysicalOptimizerRule for RepairingCheck {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let check = SanityCheckPlan::new();
        check.optimize(Arc::clone(&plan), config).or_else(|_| {
            let repaired = EnsureRequirements::new().optimize(plan, config)?;
            check.optimize(repaired, config)
        })
    }

    fn name(&self) -> &'static str {
        "check_and_repair"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
