//! The check of physical plans, which repairs what it can.
//!
//! DataFusion's rules of projections may write two expressions as one whose order it does not see any
//! more, after sorts were left out because of that order: `SELECT time … UNION SELECT date_trunc(…) …
//! ORDER BY 1 LIMIT 10`. Its last check refuses such a plan. Here the rule that adds what operators
//! require of their inputs goes over it once more, and only then is it refused.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// The rules with the check that repairs in the place of DataFusion's.
pub fn with_repairs(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> impl Iterator<Item = Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let check = SanityCheckPlan::new();
    rules.into_iter().map(move |rule| {
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
