//! Operators of known plans, made once and used again with the data of the moment.
//!
//! DataFusion plans and optimizes operators anew for each execution, which takes several times as
//! long as to answer most small queries. Of a line of operators over one table, only the scan depends
//! on data: the others are kept, with a hole in its place. No data are kept, no files and no versions.

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

/// The scan of a plan that is a line of operators over one table of ours, without subqueries.
///
/// # Errors
/// DataFusion's, of plans that cannot be walked through.
pub fn only_scan(plan: &LogicalPlan) -> Result<Option<&TableScan>> {
    Ok(match leaf_of_chain(plan)? {
        Some(LogicalPlan::TableScan(scan)) if table_of(scan).is_some() => Some(scan),
        _ => None,
    })
}

/// What a line of operators without subqueries ends in; `None` for what is no such line.
///
/// # Errors
/// DataFusion's, of plans that cannot be walked through.
pub fn leaf_of_chain(plan: &LogicalPlan) -> Result<Option<&LogicalPlan>> {
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

/// The table of ours that a scan is of.
pub fn table_of(scan: &TableScan) -> Option<&SeriesTable> {
    let source = scan.source.downcast_ref::<DefaultTableSource>()?;
    source.table_provider.downcast_ref::<SeriesTable>()
}

/// Whether an operator takes rows from one other and does little with each.
pub fn is_plain(node: &dyn ExecutionPlan) -> bool {
    node.is::<ProjectionExec>()
        || node.is::<FilterExec>()
        || node.is::<SortExec>()
        || node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<CooperativeExec>()
}

/// Whether an operator tells those below which rows it still wants, while it goes on: what they keep
/// of that is not for another execution.
fn is_top_k(node: &dyn ExecutionPlan) -> bool {
    let sort = node.downcast_ref::<SortExec>();
    sort.is_some_and(|sort| sort.fetch().is_some())
}

/// See the head of this file.
#[derive(Debug)]
pub struct PhysicalPlanTemplate {
    provider: Arc<dyn TableProvider>,
    projection: Option<Vec<usize>>,
    limit: Option<usize>,
    /// Operators from the top down.
    above: Vec<Arc<dyn ExecutionPlan>>,
    leaf: TemplateLeaf,
}

/// What the line of operators ends in.
#[derive(Debug)]
enum TemplateLeaf {
    /// The scan; it must have such properties.
    Scan(Arc<PlanProperties>),
    Aggregate(SeriesAggregateTemplate),
}

impl PhysicalPlanTemplate {
    /// Out of the operators that were made of `scan`, the only one of its plan; `None` where they
    /// are no line, or other than these.
    ///
    /// # Errors
    /// DataFusion's, of operators that cannot be walked through.
    pub fn from_operators(
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

    /// The operators over the data of the moment that meet `filters`; `None` where those want other
    /// operators.
    ///
    /// # Errors
    /// As those of a scan.
    pub fn plan(
        &self,
        session: &dyn Session,
        filters: &[Expr],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(table) = self.provider.downcast_ref::<SeriesTable>() else {
            return internal_err!("a plan was kept of a table that is not ours");
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
                // It keeps what it counts.
                plan = plan.reset_state()?;
            }
        }
        Ok(Some(plan))
    }
}
