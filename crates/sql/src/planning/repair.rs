//! DataFusion's physical rules, without what makes wrong plans of right ones.
//!
//! *Filters* are pushed down by the logical rules. The physical ones look for the columns of a filter by
//! name, and of a RIGHT JOIN, of which the sides change places, they take the column of the other side
//! that is called the same: `… FROM t RIGHT JOIN q … WHERE coalesce(t.n, 99) < 13` kept rows without a
//! `t`. Scans of ours take nothing from them, so they are left out.
//!
//! *Orders* get lost where the rules of projections write two expressions as one whose order they do
//! not see, after sorts were left out because of it: `SELECT time … UNION SELECT date_trunc(…) … ORDER BY 1
//! LIMIT 10`. DataFusion's last check refuses such a plan. Here the rule that adds what operators
//! require of their inputs goes over it once more, and only then is it refused.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// DataFusion's rules as they are used here.
pub fn repaired(
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

/// See the head of this file.
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
