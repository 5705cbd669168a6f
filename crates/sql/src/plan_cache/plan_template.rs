//! Physical plan templates: the operators of cached plans, made once and reused with the current
//! data.
//!
//! DataFusion plans and optimizes operators for each execution, which takes several times as long
//! as answering most small queries. In a chain of operators over one table, only the scan depends
//! on data: the others are cached, with a placeholder instead of the scan. The cache holds no data,
//! no files and no versions.

use crate::tables::table::SeriesTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, ReplaceChildrenOptions};
use marigram_operators::reduce::{SeriesAggregate, SeriesAggregateTemplate};
use marigram_operators::scan::{ScanPlaceholder, SeriesScan};
use std::sync::Arc;

const SAME: ReplaceChildrenOptions = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);

/// The scan of a plan that is a chain of operators over one table of ours, without subqueries.
///
/// # Errors
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn only_scan(plan: &LogicalPlan) -> Result<Option<&TableScan>> {
    Ok(match leaf_of_chain(plan)? {
        Some(LogicalPlan::TableScan(scan)) if table_of(scan).is_some() => Some(scan),
        _ => None,
    })
}

/// The leaf of a chain of operators without subqueries; `None` if the plan is not such a chain.
///
/// # Errors
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn leaf_of_chain(plan: &LogicalPlan) -> Result<Option<&LogicalPlan>> {
    let mut node = plan;
    loop {
        let mut has_subqueries = false;
        node.apply_subqueries(|_| {
            has_subqueries = true;
            Ok(TreeNodeRecursion::Stop)
        })?;
        if has_subqueries {
            return Ok(None);
        }
        node = match node {
            LogicalPlan::TableScan(_) | LogicalPlan::EmptyRelation(_) => return Ok(Some(node)),
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::Filter(node) => &node.input,
            LogicalPlan::Aggregate(node) => &node.input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Limit(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            _ => return Ok(None),
        };
    }
}

/// The table of a scan, if it is ours.
pub(crate) fn table_of(scan: &TableScan) -> Option<&SeriesTable> {
    let source = scan.source.downcast_ref::<DefaultTableSource>()?;
    source.table_provider.downcast_ref::<SeriesTable>()
}

/// Whether an operator has one input and does little work for each row.
pub(crate) fn is_plain(node: &dyn ExecutionPlan) -> bool {
    node.is::<ProjectionExec>()
        || node.is::<FilterExec>()
        || node.is::<SortExec>()
        || node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<CooperativeExec>()
}

/// Whether an operator tells those below which rows it still needs while it runs: they keep state
/// that is not for another execution.
fn is_top_k(node: &dyn ExecutionPlan) -> bool {
    let sort = node.downcast_ref::<SortExec>();
    sort.is_some_and(|sort| sort.fetch().is_some())
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct PhysicalPlanTemplate {
    provider: Arc<dyn TableProvider>,
    projection: Option<Vec<usize>>,
    limit: Option<usize>,
    /// The operators from the top down.
    above: Vec<Arc<dyn ExecutionPlan>>,
    leaf: TemplateLeaf,
}

/// The leaf of the chain of operators.
#[derive(Debug)]
enum TemplateLeaf {
    /// The scan; it must have these properties.
    Scan(Arc<PlanProperties>),
    Aggregate(SeriesAggregateTemplate),
}

impl PhysicalPlanTemplate {
    /// Creates a template from the operators that were made from `scan`, the only one of its plan;
    /// `None` if they are not a chain, or are other operators.
    ///
    /// # Errors
    /// DataFusion's errors, for operators that cannot be traversed.
    pub(crate) fn from_operators(
        scan: &TableScan,
        operators: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<Self>> {
        let Some(source) = scan.source.downcast_ref::<DefaultTableSource>() else {
            return Ok(None);
        };
        let (mut above, mut node) = (Vec::new(), operators);
        let leaf = loop {
            if let Some(scan) = node.downcast_ref::<SeriesScan>() {
                if scan.is_of_newest() {
                    return Ok(None);
                }
                break TemplateLeaf::Scan(Arc::clone(scan.properties()));
            }
            if let Some(aggregate) = node.downcast_ref::<SeriesAggregate>() {
                break TemplateLeaf::Aggregate(aggregate.template()?);
            }
            match node.children()[..] {
                [input] if is_plain(node.as_ref()) && !is_top_k(node.as_ref()) => {
                    let hole: Arc<dyn ExecutionPlan> = ScanPlaceholder::in_place_of(input.as_ref());
                    above.push(Arc::clone(node).replace_children(vec![hole], SAME)?);
                    node = input;
                }
                _ => return Ok(None),
            }
        };
        Ok(Some(Self {
            provider: Arc::clone(&source.table_provider),
            projection: scan.projection.clone(),
            limit: scan.fetch,
            above,
            leaf,
        }))
    }

    /// The operators over the current data that match `filters`; `None` if the data requires other
    /// operators.
    ///
    /// # Errors
    /// Those of a scan.
    pub(crate) fn plan(
        &self,
        session: &dyn Session,
        filters: &[Expr],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(table) = self.provider.downcast_ref::<SeriesTable>() else {
            return internal_err!("a cached plan reads a table that is not ours");
        };
        let projection = self.projection.as_ref();
        let scan = table.series_scan(session, projection, filters, self.limit)?;
        let mut plan: Arc<dyn ExecutionPlan> = match &self.leaf {
            TemplateLeaf::Aggregate(template) => Arc::new(template.over(Arc::new(scan))),
            TemplateLeaf::Scan(known) => {
                let now = scan.properties();
                let is_same = now.output_partitioning().partition_count()
                    == known.output_partitioning().partition_count()
                    && now.output_ordering() == known.output_ordering();
                if !is_same {
                    return Ok(None);
                }
                Arc::new(scan)
            }
        };
        for node in self.above.iter().rev() {
            plan = Arc::clone(node).replace_children(vec![plan], SAME)?;
            if plan.is::<SortExec>() {
                // The operator keeps counters.
                plan = plan.reset_state()?;
            }
        }
        Ok(Some(plan))
    }
}
