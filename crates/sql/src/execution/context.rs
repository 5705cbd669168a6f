//! DataFusion's session states: one per database, created when it is first used, and copied for
//! each statement.

use crate::SqlOptions;
use crate::access::AccessControl;
use crate::catalog::plain_views::ViewPlans;
use crate::catalog::reference_functions;
use crate::catalog::table_functions::{self, DescribedTables};
use crate::catalog::{CatalogRoles, DatabaseCatalogs, ExternalTables, PgCatalog};
use crate::error::{SqlError, SqlResult, know_functions};
use crate::execution::execution_session::{ExecutionSession, SharedExecutionState};
use crate::execution::memory::AccountedPool;
use crate::planning::any_pattern::AnyPattern;
use crate::planning::empty_subqueries::EmptySubqueries;
use crate::planning::json_operators::JsonOperators;
use crate::planning::list_conditions::ListConditions;
use crate::planning::logical_repair::repaired_logical;
use crate::planning::moments::read_moment;
use crate::planning::repair::repaired;
use crate::planning::row_functions::RowFunctionPlanner;
use crate::planning::sort_keys::DistinctSortKeys;
use crate::planning::subqueries::SubqueryValues;
use crate::planning::tag_patterns::TagPatterns;
use crate::planning::time_texts::TimeTexts;
use crate::planning::unknown_literals::UnknownLiterals;
use crate::planning::using_joins::UsingJoinPlanner;
use crate::planning::zones::{DateComparison, SessionZone, ZonedTimes};
use crate::rollup::{RollupDefinitions, RollupRewriteRule};
use crate::statements::privilege_functions::privilege_functions;
use crate::statements::session_functions::{describing_functions, session_functions};
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider};
use datafusion::common::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::optimizer::Optimizer;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::{
    PgCatalogSchemaProvider, PgCatalogStaticTables, create_current_database_udf, setup_pg_catalog,
};
use marigram_access::AccessRights;
use marigram_engine::Engine;
use marigram_functions::arithmetic::CheckedArithmetic;
use marigram_functions::comparison::DurationComparison;
use marigram_functions::floats::FloatOrderRule;
use marigram_functions::interval_arithmetic::IntervalArithmetic;
use marigram_functions::interval_order::IntervalOrder;
use marigram_functions::numeric_division::NumericDivision;
use marigram_functions::operator_chains::OperatorChains;
use marigram_functions::value_casts::ValueCasts;
use marigram_functions::zoned::UTC;
use marigram_operators::asof::AsOfJoinRule;
use marigram_operators::gapfill::GapFillRule;
use marigram_operators::interruptible_rule::InterruptibleRule;
use marigram_operators::lateral::{LateralAggregateRule, LateralLimitRule};
use marigram_operators::outer_join_sides::OuterJoinSides;
use marigram_operators::planner::MarigramQueryPlanner;
use marigram_operators::reduce::{GroupCache, SeriesAggregateRule};
use marigram_operators::scan::{NewestRowsRule, PartitionRows};
use marigram_operators::spilling_joins::SpillingJoins;
use marigram_operators::yielding::YieldingOperators;
use marigram_reference::ReferenceStore;
use marigram_service::{ServiceError, Session};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// The catalog in which PostgreSQL's functions are set up before any database exists.
const BASE: &str = "base";

/// Creates session states.
#[derive(Debug)]
pub(crate) struct SessionStates {
    engine: Engine,
    reference: ReferenceStore,
    access: Arc<AccessControl>,
    options: SqlOptions,
    runtime: Arc<RuntimeEnv>,
    files: ExternalTables,
    rollup_definitions: RollupDefinitions,
    views: ViewPlans,
    made: Mutex<CachedSessionState>,
}

#[derive(Debug, Default)]
struct CachedSessionState {
    base: Option<SessionState>,
    databases: HashMap<String, Arc<SharedExecutionState>>,
    /// For clients who are no administrators, by database and rights: they see other catalogs.
    restricted: HashMap<(String, Arc<AccessRights>), Arc<SharedExecutionState>>,
}

/// Most states that are kept for clients who are no administrators.
const RESTRICTED_MAX: usize = 100;

/// The parts that all services share: functions, and the fixed tables of PostgreSQL's catalog.
/// Setting them up takes about 100 ms.
#[derive(Debug)]
struct SessionPrototype {
    state: SessionState,
    tables: Arc<PgCatalogStaticTables>,
}

static PROTOTYPE: LazyLock<Result<SessionPrototype, String>> =
    LazyLock::new(|| SessionPrototype::new().map_err(|error| error.to_string()));

impl SessionPrototype {
    fn get() -> SqlResult<&'static Self> {
        PROTOTYPE
            .as_ref()
            .map_err(|reason| ServiceError::Internal(reason.clone()).into())
    }

    fn new() -> SqlResult<Self> {
        let config = SessionConfig::new()
            .with_default_catalog_and_schema(BASE, "public")
            .with_create_default_catalog_and_schema(false);
        let mut builder = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features();
        // Before the planners that ask for types, which takes long in a long chain.
        let planners = builder.expr_planners().get_or_insert_default();
        planners.insert(0, Arc::new(OperatorChains));
        let state = builder.build();
        let context = SessionContext::new_with_state(state);
        let catalog: Arc<dyn CatalogProvider> = Arc::new(MemoryCatalogProvider::new());
        context.register_catalog(BASE, catalog);
        setup_pg_catalog(&context, BASE, EmptyContextProvider)
            .map_err(|error: Box<DataFusionError>| SqlError::DataFusion(*error))?;
        let mut state = context.state();
        marigram_functions::register(&mut state)?;
        state.register_udf(Arc::new(read_moment()))?;
        for udf in describing_functions() {
            state.register_udf(Arc::new(udf))?;
        }
        for udf in marigram_functions::zone_functions::functions() {
            state.register_udf(Arc::new(udf))?;
        }
        state.register_expr_planner(Arc::new(DurationComparison))?;
        state.register_expr_planner(Arc::new(IntervalArithmetic))?;
        state.register_expr_planner(Arc::new(NumericDivision))?;
        state.register_expr_planner(Arc::new(DateComparison))?;
        state.register_expr_planner(Arc::new(UnknownLiterals))?;
        state.register_expr_planner(Arc::new(JsonOperators))?;
        state.register_relation_planner(Arc::new(UsingJoinPlanner))?;
        state.register_relation_planner(Arc::new(RowFunctionPlanner))?;
        state.register_expr_planner(Arc::new(marigram_functions::SignedCounts))?;
        let scalars = state.scalar_functions().keys();
        let aggregates = state.aggregate_functions().keys();
        let windows = state.window_functions().keys();
        know_functions(scalars.chain(aggregates).chain(windows));
        Ok(Self {
            state,
            tables: Arc::new(PgCatalogStaticTables::try_new()?),
        })
    }
}

/// Sets up what every service needs in advance, so that the first statement does not wait for it.
pub(crate) fn warm() {
    LazyLock::force(&PROTOTYPE);
}

impl SessionStates {
    /// Creates session states over an engine and the reference tables beside it.
    ///
    /// # Errors
    /// If the spill directory cannot be used.
    pub(crate) fn new(
        (engine, reference): (Engine, ReferenceStore),
        access: Arc<AccessControl>,
        options: SqlOptions,
    ) -> SqlResult<Self> {
        let mode = match &options.spill_dir {
            Some(dir) => DiskManagerMode::Directories(vec![dir.clone()]),
            None => DiskManagerMode::OsTmpDirectory,
        };
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(AccountedPool::new(Arc::clone(engine.memory()))))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
            .build_arc()?;
        let files = ExternalTables::default();
        Ok(Self {
            engine,
            reference,
            access,
            options,
            runtime,
            files,
            rollup_definitions: RollupDefinitions::default(),
            views: ViewPlans::default(),
            made: Mutex::default(),
        })
    }

    /// The state for one statement of a session.
    ///
    /// # Errors
    /// If DataFusion's own parts cannot be set up.
    pub(crate) fn state(&self, session: &Session) -> SqlResult<SessionState> {
        let mut state = self
            .shared(&session.database, &session.rights)?
            .state
            .clone();
        for udf in session_functions(session) {
            state.register_udf(Arc::new(udf))?;
        }
        if !session.rights.is_administrator {
            for udf in privilege_functions(session) {
                state.register_udf(Arc::new(udf))?;
            }
        }
        if let Some(zone) = SessionZone::from_session(session) {
            state.config_mut().options_mut().extensions.insert(zone);
        }
        state.mark_start_execution();
        Ok(state)
    }

    /// The pool from which all statements reserve memory.
    pub(crate) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        &self.runtime.memory_pool
    }

    /// The rollups whose queries have been read.
    pub(crate) fn rollup_definitions(&self) -> &RollupDefinitions {
        &self.rollup_definitions
    }

    /// The plain views whose queries have been planned.
    pub(crate) fn views(&self) -> &ViewPlans {
        &self.views
    }

    /// The session for executing a cached plan; the execution begins now.
    ///
    /// # Errors
    /// Those of [`state`](Self::state).
    pub(crate) fn execution(&self, session: &Session) -> SqlResult<ExecutionSession> {
        let shared = self.shared(&session.database, &session.rights)?;
        Ok(ExecutionSession::begin(shared))
    }

    fn shared(
        &self,
        database: &str,
        rights: &Arc<AccessRights>,
    ) -> SqlResult<Arc<SharedExecutionState>> {
        let mut made = self.made.lock();
        let key = || (database.to_owned(), Arc::clone(rights));
        let known = if rights.is_administrator {
            made.databases.get(database)
        } else {
            made.restricted.get(&key())
        };
        if let Some(known) = known {
            return Ok(Arc::clone(known));
        }
        let base = match &made.base {
            Some(base) => base.clone(),
            None => made.base.insert(self.base()?).clone(),
        };
        let state = self.database(base, database, rights)?;
        let shared = Arc::new(SharedExecutionState::new(state));
        // Names that do not exist must not accumulate.
        if self.engine.tables(database).is_err() {
            return Ok(shared);
        }
        if rights.is_administrator {
            let name = database.to_owned();
            made.databases.insert(name, Arc::clone(&shared));
        } else {
            if made.restricted.len() >= RESTRICTED_MAX {
                made.restricted.clear();
            }
            made.restricted.insert(key(), Arc::clone(&shared));
        }
        Ok(shared)
    }

    /// Removes a database that was dropped.
    pub(crate) fn forget(&self, database: &str) {
        let mut made = self.made.lock();
        made.databases.remove(database);
        made.restricted.retain(|(name, _), _| name != database);
        drop(made);
        self.files.write().retain(|key, _| key.0 != database);
    }

    /// Whether a table over files has this name.
    pub(crate) fn has_file_table(&self, database: &str, table: &str) -> bool {
        let key = (database.to_owned(), table.to_owned());
        self.files.read().contains_key(&key)
    }

    /// Removes a table over files; returns whether it existed.
    pub(crate) fn forget_file_table(&self, database: &str, table: &str) -> bool {
        self.files
            .write()
            .remove(&(database.to_owned(), table.to_owned()))
            .is_some()
    }

    fn base(&self) -> SqlResult<SessionState> {
        let limit = self.engine.memory().limit();
        let groups = GroupCache::new((limit / 256).clamp(64 << 10, 16 << 20));
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema(BASE, "public")
            .with_create_default_catalog_and_schema(false)
            .with_target_partitions(self.options.target_partitions.max(1))
            .with_batch_size(BATCH_ROWS)
            .with_extension(Arc::new(PartitionRows(self.options.partition_rows)))
            .with_extension(Arc::new(groups));
        // A few rows are not worth handing to other threads.
        config
            .options_mut()
            .execution
            .use_row_number_estimates_to_optimize_partitioning = true;
        // For the columns of a UNION, logical and physical plans keep different metadata, which
        // this check would report as an error: a time column combined with a field has neither
        // role.
        config
            .options_mut()
            .execution
            .skip_physical_aggregate_schema_check = true;
        // Of types only: a rule of ours applies the session's zone.
        config.options_mut().execution.time_zone = Some(UTC.to_owned());
        let parser = &mut config.options_mut().sql_parser;
        parser.collect_spans = true;
        parser.map_string_types_to_utf8view = false;
        // The memory that a sort reserves for merging what it spilled: small if the limit is small.
        config.options_mut().execution.sort_spill_reservation_bytes =
            (limit / 64).clamp(64 << 10, 10 << 20);
        let pool = &self.runtime.memory_pool;
        let bounds = Arc::new(marigram_functions::BoundFunctions::new(Arc::clone(pool)));
        let mut builder =
            SessionStateBuilder::new_from_existing(SessionPrototype::get()?.state.clone())
                .with_config(config)
                .with_runtime_env(Arc::clone(&self.runtime))
                .with_analyzer_rule(Arc::new(SubqueryValues))
                .with_analyzer_rule(Arc::new(EmptySubqueries))
                .with_analyzer_rule(Arc::new(TimeTexts))
                .with_analyzer_rule(Arc::new(ValueCasts))
                .with_analyzer_rule(Arc::new(IntervalOrder))
                .with_analyzer_rule(Arc::new(ZonedTimes))
                .with_analyzer_rule(Arc::new(TagPatterns))
                .with_analyzer_rule(Arc::new(AnyPattern))
                .with_analyzer_rule(bounds)
                .with_analyzer_rule(Arc::new(CheckedArithmetic))
                .with_analyzer_rule(Arc::new(FloatOrderRule))
                .with_optimizer_rules(self.logical_rules())
                .with_query_planner(Arc::new(MarigramQueryPlanner))
                .with_physical_optimizer_rules(self.physical_rules());
        let defaults = builder.analyzer().iter_mut();
        let defaults = defaults.flat_map(|analyzer| &mut analyzer.rules);
        for rule in defaults {
            *rule = InterruptibleRule::new(Arc::clone(rule));
        }
        for rule in builder.analyzer_rules().iter_mut().flatten() {
            *rule = InterruptibleRule::new(Arc::clone(rule));
        }
        let mut state = builder.build();
        let known: Vec<_> = state.scalar_functions().values().cloned().collect();
        for function in known {
            // Functions that return times return them with the zone of the configuration.
            let zoned = function.inner().with_updated_config(state.config_options());
            let is_zoned = zoned.is_some();
            let function = zoned.map_or(function, Arc::new);
            let bounded = marigram_functions::bounded(&function, pool);
            if is_zoned || !Arc::ptr_eq(&bounded, &function) {
                state.register_udf(bounded)?;
            }
        }
        Ok(state)
    }

    /// Our logical rules, then DataFusion's. Ours remove marker functions, which have no value of
    /// their own, and use rollups; the last two define the order of
    /// floats, and remove sort keys that occur twice.
    fn logical_rules(&self) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
        let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
            Arc::new(ListConditions),
            Arc::new(GapFillRule),
            Arc::new(LateralLimitRule),
            Arc::new(LateralAggregateRule),
            Arc::new(AsOfJoinRule),
        ];
        if self.options.knows_series {
            let (engine, rollup_definitions) =
                (self.engine.clone(), self.rollup_definitions.clone());
            let use_rollups =
                RollupRewriteRule::new(engine, rollup_definitions, self.options.partition_rows);
            rules.push(Arc::new(use_rollups));
        }
        rules.extend(repaired_logical(Optimizer::new().rules));
        let pool = Arc::clone(&self.runtime.memory_pool);
        rules.push(Arc::new(marigram_functions::BoundConstants::new(pool)));
        rules.push(Arc::new(FloatOrderRule));
        rules.push(Arc::new(DistinctSortKeys));
        rules
            .into_iter()
            .map(|rule| InterruptibleRule::new(rule) as Arc<dyn OptimizerRule + Send + Sync>)
            .collect()
    }

    /// Our physical rules, then DataFusion's: ours see plans before they are partitioned.
    fn physical_rules(&self) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
        let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = Vec::new();
        if self.options.knows_series {
            rules.push(Arc::new(SeriesAggregateRule));
            rules.push(Arc::new(NewestRowsRule));
        }
        rules.push(Arc::new(OuterJoinSides));
        let selects_joins = JoinSelection::new();
        for rule in repaired(PhysicalOptimizer::new().rules) {
            let is_selection = rule.name() == selects_joins.name();
            rules.push(rule);
            if is_selection {
                let pool = Arc::clone(&self.runtime.memory_pool);
                rules.push(Arc::new(SpillingJoins::new(pool)));
            }
        }
        rules.push(Arc::new(YieldingOperators));
        rules
            .into_iter()
            .map(|rule| {
                InterruptibleRule::new(rule) as Arc<dyn PhysicalOptimizerRule + Send + Sync>
            })
            .collect()
    }

    fn database(
        &self,
        mut state: SessionState,
        name: &str,
        rights: &Arc<AccessRights>,
    ) -> SqlResult<SessionState> {
        let plain = DatabaseCatalogs {
            engine: self.engine.clone(),
            reference: self.reference.clone(),
            current: name.to_owned(),
            rights: Arc::clone(rights),
            files: Arc::clone(&self.files),
            rollup_definitions: self.rollup_definitions.clone(),
            views: self.views.clone(),
            pg_catalog: None,
        };
        let tables = Arc::clone(&SessionPrototype::get()?.tables);
        let roles = CatalogRoles {
            access: Arc::clone(&self.access),
            rights: Arc::clone(rights),
        };
        let pg = PgCatalogSchemaProvider::try_new(plain.clone(), tables, roles)?;
        let pg = PgCatalog {
            inner: Arc::new(pg),
            engine: self.engine.clone(),
            reference: self.reference.clone(),
            rights: Arc::clone(rights),
            database: name.to_owned(),
        };
        let databases = DatabaseCatalogs {
            pg_catalog: Some(Arc::new(pg)),
            ..plain
        };
        state.register_catalog_list(Arc::new(databases));
        name.clone_into(&mut state.config_mut().options_mut().catalog.default_catalog);
        state.register_udf(Arc::new(create_current_database_udf(name)))?;
        let tables = DescribedTables {
            engine: self.engine.clone(),
            database: name.to_owned(),
            rights: Arc::clone(rights),
        };
        table_functions::register(&mut state, &tables)?;
        reference_functions::register(&mut state, &self.reference, name, rights)?;
        Ok(state)
    }
}

#[cfg(test)]
mod tests;
