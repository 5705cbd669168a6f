//! Plain views as plans: the query of each view is planned when a statement first needs it, and
//! again when something that it reads has changed.
//!
//! The catalog keeps everything that a view reads from being dropped, so that planning only fails
//! if a function of another version is gone; a statement that uses such a view gets an error.

use crate::catalog::plan_dependencies::are_current;
use crate::error::SqlError;
use crate::tables::table::SeriesTable;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DataFusionError, Result};
use datafusion::datasource::{DefaultTableSource, TableProvider, ViewTable};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource};
use marigram_engine::Engine;
use marigram_model::{TableId, TableSchema, View};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// See the module documentation. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewPlans {
    read: Arc<Mutex<HashMap<TableId, ViewPlan>>>,
}

#[derive(Debug)]
struct ViewPlan {
    /// The view, and everything that it reads, directly or through other views.
    made_of: Vec<Arc<TableSchema>>,
    /// The plan, or why there is none.
    plan: std::result::Result<LogicalPlan, String>,
}

impl ViewPlans {
    /// Views whose plans are missing or outdated, each after those that it reads. Forgets views
    /// that were dropped.
    pub(crate) fn missing(&self, engine: &Engine) -> Vec<Arc<TableSchema>> {
        let all = engine.views();
        let mut read = self.read.lock();
        if all.is_empty() {
            read.clear();
            return all;
        }
        read.retain(|id, plan| {
            all.iter().any(|view| view.id == *id) && are_current(&plan.made_of, engine)
        });
        let mut missing: Vec<_> = all
            .into_iter()
            .filter(|view| !read.contains_key(&view.id))
            .collect();
        drop(read);
        missing.sort_by_key(|view| through(engine, view).len());
        missing
    }

    /// Stores the plan of a view's query, or why there is none.
    pub(crate) fn put(
        &self,
        engine: &Engine,
        view: &Arc<TableSchema>,
        plan: std::result::Result<LogicalPlan, String>,
    ) {
        let made_of = through(engine, view);
        let plan = plan.and_then(|plan| {
            let query = view.view.as_deref().ok_or("it is not a view")?;
            columns(plan, query).map_err(|error| error.to_string())
        });
        self.read.lock().insert(view.id, ViewPlan { made_of, plan });
    }

    /// A view as a table of a statement.
    ///
    /// # Errors
    /// If its query has no plan.
    pub(crate) fn provider(&self, view: &TableSchema) -> Result<Arc<dyn TableProvider>> {
        let read = self.read.lock();
        let query = view.view.as_ref().map(|view| view.query.clone());
        let reason = match read.get(&view.id).map(|view| &view.plan) {
            Some(Ok(plan)) => return Ok(Arc::new(ViewTable::new(plan.clone(), query))),
            Some(Err(reason)) => reason.as_str(),
            None => "it is being changed; try again",
        };
        let message = format!("the query of view '{}' cannot be read: {reason}", view.name);
        Err(DataFusionError::External(Box::new(SqlError::invalid(
            "55000", message,
        ))))
    }
}

/// A view and everything that it reads, directly or through other views; each once.
pub(crate) fn through(engine: &Engine, view: &Arc<TableSchema>) -> Vec<Arc<TableSchema>> {
    let mut found = vec![Arc::clone(view)];
    let mut next = 0;
    while let Some(table) = found.get(next).cloned() {
        next += 1;
        let reads = table.view.iter().flat_map(|view| &view.reads);
        for id in reads {
            if !found.iter().any(|known| known.id == *id) {
                found.extend(engine.table_by_id(*id));
            }
        }
    }
    found
}

/// The columns that a view had when it was created, under the names that it gives them.
fn columns(plan: LogicalPlan, view: &View) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let columns = view.columns.iter().map(|column| {
        let (qualifier, field) = schema.qualified_field_with_unqualified_name(&column.of_query)?;
        let of_query = Expr::Column(Column::from((qualifier, field)));
        Ok(of_query.alias(&column.name))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The same plan, in which all scans of a table see one snapshot, whether they are inside views or
/// not.
///
/// # Errors
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn one_snapshot(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut tables: HashMap<(TableId, bool), Arc<dyn TableSource>> = HashMap::new();
    let shared = plan.transform_down_with_subqueries(|mut node| {
        let LogicalPlan::TableScan(scan) = &mut node else {
            return Ok(Transformed::no(node));
        };
        let source = scan.source.downcast_ref::<DefaultTableSource>();
        let table = source.and_then(|source| source.table_provider.downcast_ref::<SeriesTable>());
        let Some(table) = table else {
            return Ok(Transformed::no(node));
        };
        let key = (table.table_schema().id, table.may_be_rolled_up());
        let known = tables
            .entry(key)
            .or_insert_with(|| Arc::clone(&scan.source));
        if Arc::ptr_eq(known, &scan.source) || known.schema() != scan.source.schema() {
            return Ok(Transformed::no(node));
        }
        scan.source = Arc::clone(known);
        Ok(Transformed::yes(node))
    })?;
    Ok(shared.data)
}
