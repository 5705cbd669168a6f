//! DataFusion's logical rules, without what turns correct plans into wrong ones.
//!
//! *Filters over aggregates*: `PushDownFilter` moves a condition without columns, such as an
//! uncorrelated subquery, below an aggregate. Where that makes a group of no rows at all (no GROUP
//! BY, or an empty grouping set), the group stays although the condition should remove it.
//!
//! *NULLs as keys*: `EliminateCrossJoin` joins a chain of inner joins anew, with the treatment of
//! NULL that the topmost has. Beside `a.x IS NOT DISTINCT FROM b.x`, a plain `=` of another join
//! then holds for two NULLs, or the other way round. Such chains stay as they were written.

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan};
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// DataFusion's rules in the form that Marigram uses.
pub(crate) fn repaired_logical(rules: Vec<Rule>) -> impl Iterator<Item = Rule> {
    let (filters, joins) = (PushDownFilter::new(), EliminateCrossJoin::new());
    let (filters, joins) = (filters.name().to_owned(), joins.name().to_owned());
    rules.into_iter().map(move |rule| {
        let refuses = match rule.name() {
            name if name == filters => filters_rows_of_no_group,
            name if name == joins => joins_nulls,
            _ => return rule,
        };
        Arc::new(RestrictedRule { rule, refuses })
    })
}

/// A rule that leaves some plans as they are.
#[derive(Debug)]
struct RestrictedRule {
    rule: Rule,
    refuses: fn(&LogicalPlan) -> bool,
}

impl OptimizerRule for RestrictedRule {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if (self.refuses)(&plan) {
            return Ok(Transformed::no(plan));
        }
        self.rule.rewrite(plan, config)
    }
}

/// Whether a plan is a filter over an aggregate that has a group without rows. None of its
/// conditions is about a column by which all groups are made.
fn filters_rows_of_no_group(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else {
        return false;
    };
    let LogicalPlan::Aggregate(aggregate) = filter.input.as_ref() else {
        return false;
    };
    let groups = &aggregate.group_expr;
    groups.is_empty() || matches!(groups.as_slice(), [Expr::GroupingSet(_)])
}

/// Whether a plan has an inner join for which two NULLs are equal.
fn joins_nulls(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        found = matches!(node, LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner
                && join.null_equality == NullEquality::NullEqualsNull);
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    found || visited.is_err()
}
