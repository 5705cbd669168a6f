//! The definitions of an engine's rollups, for use in statements.

use super::part::StoredMeans;
use super::rollup_definition::RollupDefinition;
use super::table_provider::RollupTableProvider;
use crate::dialect::aliased_calls::rename_aliased_calls;
use crate::dialect::column_names::alias_outermost;
use crate::dialect::parse;
use crate::dialect::statement::Command;
use crate::error::{SqlError, SqlResult};
use crate::planning::growth;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::{TableProvider, ViewTable, provider_as_source};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use marigram_engine::Engine;
use marigram_model::{TableId, TableSchema};
use marigram_operators::gapfill::ConstantEvaluator;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// See the module documentation. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct RollupDefinitions {
    /// `None` for a rollup whose query cannot be read.
    read: Arc<Mutex<HashMap<TableId, Option<Arc<RollupDefinition>>>>>,
}

impl RollupDefinitions {
    /// The engine's rollups whose queries have not been read yet. Forgets rollups that were
    /// dropped.
    pub(crate) fn missing(&self, engine: &Engine) -> Vec<Arc<TableSchema>> {
        let all = engine.rollups();
        let mut read = self.read.lock();
        read.retain(|id, _| all.iter().any(|table| table.id == *id));
        let known = |table: &Arc<TableSchema>| read.contains_key(&table.id);
        all.into_iter().filter(|table| !known(table)).collect()
    }

    /// Stores the definition of a rollup, or that it cannot be read.
    pub(crate) fn put(&self, rollup: TableId, shape: Option<RollupDefinition>) {
        self.read.lock().insert(rollup, shape.map(Arc::new));
    }

    /// The definition of a rollup, if it was read.
    pub(crate) fn for_table(&self, table: &TableSchema) -> Option<Arc<RollupDefinition>> {
        self.read.lock().get(&table.id).cloned().flatten()
    }

    /// A rollup as a view.
    ///
    /// # Errors
    /// If its query has not been read.
    pub(crate) fn view(
        &self,
        engine: &Engine,
        table: Arc<TableSchema>,
    ) -> Result<Arc<dyn TableProvider>> {
        let Some(shape) = self.for_table(&table) else {
            let message = format!(
                "the query of materialized view '{}' cannot be read",
                table.name
            );
            return Err(DataFusionError::External(Box::new(SqlError::invalid(
                "55000", message,
            ))));
        };
        let query = table.rollup.as_ref().map(|rollup| rollup.query.clone());
        let name = table.name.clone();
        let partials = RollupTableProvider::for_view(engine.clone(), Arc::clone(&shape), table);
        let plan = shape.view(&name, provider_as_source(Arc::new(partials)))?;
        Ok(Arc::new(ViewTable::new(plan, query)))
    }
}

/// Reads the query of a new rollup.
///
/// # Errors
/// If it cannot be planned, or a rollup cannot have its form.
pub(crate) async fn read(state: &SessionState, query: &str) -> SqlResult<RollupDefinition> {
    let plan = analyzed(state, query).await?;
    RollupDefinition::from_plan(&plan, &ConstantEvaluator::new(state), StoredMeans::Exact)
}

/// Reads the query of a rollup that `table` stores; `None` if it stores other columns.
///
/// # Errors
/// Those of [`read`].
pub(crate) async fn read_stored(
    state: &SessionState,
    query: &str,
    table: &TableSchema,
) -> SqlResult<Option<RollupDefinition>> {
    let plan = analyzed(state, query).await?;
    let constants = ConstantEvaluator::new(state);
    for means in [StoredMeans::Exact, StoredMeans::Rounded] {
        let shape = RollupDefinition::from_plan(&plan, &constants, means)?;
        if shape.is_held_by(table) {
            return Ok(Some(shape));
        }
    }
    Ok(None)
}

async fn analyzed(state: &SessionState, query: &str) -> SqlResult<LogicalPlan> {
    let Command::Plan(mut statement, _) = parse::parse(query)? else {
        return Err(SqlError::syntax("a materialized view needs a SELECT"));
    };
    if statement.need().is_deep() {
        let message = "the query of a materialized view is nested too deeply; statements that read \
                       the view would be as deep";
        return Err(SqlError::invalid("54001", message));
    }
    alias_outermost(&mut statement);
    let mut statement = statement.into_inner();
    growth::check_copies(&statement)?;
    rename_aliased_calls(state, &mut statement)?;
    let plan = state.statement_to_plan(statement).await?;
    growth::check_nested_subqueries(&plan)?;
    growth::check_inlining(&plan)?;
    let options = state.config_options();
    Ok(state
        .analyzer()
        .execute_and_check(plan, options, |_, _| {})?)
}
