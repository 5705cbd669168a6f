//! The plan cache: statements that were executed before are parsed, planned and optimized only
//! once.
//!
//! A plan is cached if it depends only on the statement, the database and the schemas of our
//! tables, and every function in it returns the same for the same arguments. Each execution reads
//! the current data. Many clients prepare each statement before each execution, so the cache also
//! holds prepared statements.
//!
//! A statement passes through these stages, and the cache keeps the last one that may be reused:
//!
//! | stage | type |
//! |---|---|
//! | parsed and planned, with its parameters | [`prepared::PreparedStatement`] |
//! | optimized, for any values of its parameters | [`generic_plan::GenericPlan`] |
//! | optimized, with the values of its parameters | [`cached_plan::CachedPlan`] |
//! | operators, without data | [`plan_template::PhysicalPlanTemplate`] |
//!
//! An execution says by its [`PlanRetention`] for what its plan may be reused.

pub(crate) mod cached_plan;
pub(crate) mod generic_plan;
pub(crate) mod inline;
mod plan_parameters;
pub(crate) mod plan_template;
pub(crate) mod prepared;
pub(crate) mod text_memory;

use crate::catalog::plan_dependencies::{
    are_current, may_be_kept, may_be_kept_prepared, tables_of,
};
use crate::dialect::column_names::Names;
use crate::plan_cache::cached_plan::CachedPlan;
use crate::plan_cache::generic_plan::GenericPlan;
use crate::plan_cache::prepared::PreparedStatement;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::LogicalPlan;
use marigram_engine::Engine;
use marigram_model::TableSchema;
use marigram_service::Prepared;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest number of cached statements.
const STATEMENTS_MAX: usize = 256;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    /// By the scope of a session's plans, which is its database and zone, and by text.
    statements: Mutex<HashMap<String, HashMap<String, PlanCacheEntry>>>,
    /// Counts uses, to find the least recently used statement.
    uses: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    template_hits: Arc<AtomicU64>,
}

/// The stages of a statement.
#[derive(Debug, Default)]
struct PlanCacheEntry {
    /// Planned, if a client prepared it; with its generic plan, if it has parameters.
    prepared: Option<Arc<PreparedStatement>>,
    /// Optimized, if it was executed without parameters; with its operators.
    optimized: Option<Arc<CachedPlan>>,
    /// The tables for which both were made.
    tables: Vec<Arc<TableSchema>>,
    used: u64,
}

/// For what the plan of an execution may be reused.
#[derive(Clone, Copy)]
pub(crate) enum PlanRetention<'a> {
    Nothing,
    /// For the same text in the same scope.
    Text {
        scope: &'a str,
        sql: &'a str,
    },
    /// For other values of the parameters; and those of this execution.
    Generic(&'a GenericPlan, &'a [ScalarValue]),
}

impl PlanRetention<'_> {
    /// Whether a plan, not yet optimized, may be cached as that of this text.
    ///
    /// # Errors
    /// DataFusion's errors, for plans that cannot be traversed.
    pub(crate) fn keeps_text(&self, plan: &LogicalPlan) -> Result<bool> {
        match self {
            Self::Text { sql, .. } => may_be_kept(sql, plan),
            Self::Nothing | Self::Generic(..) => Ok(false),
        }
    }
}

/// How often the cache was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanCacheStats {
    /// Statements whose plan was cached.
    pub hits: u64,
    /// Statements that were planned.
    pub misses: u64,
    /// The number of cached plans.
    pub plans: usize,
    /// Statements whose operators were cached, too.
    pub template_hits: u64,
    /// Statements that ran on the calling thread.
    pub inline_statements: u64,
}

impl PlanCache {
    /// The optimized plan of a statement.
    pub(crate) fn get(&self, engine: &Engine, scope: &str, sql: &str) -> Option<Arc<CachedPlan>> {
        let plan = self.find(engine, scope, sql, |entry| entry.optimized.clone())?;
        self.hit();
        Some(plan)
    }

    /// A statement that was prepared before.
    pub(crate) fn prepared(
        &self,
        engine: &Engine,
        scope: &str,
        sql: &str,
    ) -> Option<Arc<PreparedStatement>> {
        self.find(engine, scope, sql, |entry| entry.prepared.clone())
    }

    fn find<T>(
        &self,
        engine: &Engine,
        scope: &str,
        sql: &str,
        what: impl FnOnce(&PlanCacheEntry) -> Option<T>,
    ) -> Option<T> {
        let mut statements = self.statements.lock();
        let of_scope = statements.get_mut(scope)?;
        let entry = of_scope.get_mut(sql)?;
        if !are_current(&entry.tables, engine) {
            of_scope.remove(sql);
            return None;
        }
        entry.used = self.uses.fetch_add(1, Ordering::Relaxed);
        what(entry)
    }

    /// Counts a statement whose plan was cached.
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a statement that must be planned.
    pub(crate) fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Caches the optimized plan of a statement, and the names of its result's columns, as far as
    /// they may be reused; returns what was cached. `plan` is the plan before optimization, whose
    /// tables may be missing from the optimized one, which may read rollups instead.
    ///
    /// # Errors
    /// DataFusion's errors, for plans that cannot be traversed.
    pub(crate) fn retain(
        &self,
        retention: PlanRetention<'_>,
        names: &Names,
        plan: &LogicalPlan,
        optimized: &Arc<LogicalPlan>,
    ) -> Result<Option<Arc<CachedPlan>>> {
        let uses = &self.template_hits;
        match retention {
            PlanRetention::Generic(generic_plan, values) => {
                generic_plan.learn(values, optimized, names, uses)
            }
            PlanRetention::Text { scope, sql } if may_be_kept(sql, plan).unwrap_or(false) => {
                let mut tables = tables_of(plan)?;
                tables.extend(tables_of(optimized)?);
                let cached =
                    CachedPlan::new(Arc::clone(optimized), names.clone(), Arc::clone(uses))?;
                let cached = Arc::new(cached);
                let own = Some(Arc::clone(&cached));
                self.keep(scope, sql, tables, |entry| entry.optimized = own);
                Ok(Some(cached))
            }
            PlanRetention::Nothing | PlanRetention::Text { .. } => Ok(None),
        }
    }

    /// Caches a prepared query, if it may be cached.
    ///
    /// # Errors
    /// Those of [`retain`](Self::retain).
    pub(crate) fn put_prepared(&self, prepared: &Arc<PreparedStatement>) -> Result<()> {
        let (Some(plan), Some(_)) = (&prepared.plan, prepared.schema()) else {
            return Ok(());
        };
        if plan.need().is_deep() || prepared.reads_views {
            return Ok(());
        }
        let sql = prepared.sql();
        if may_be_kept_prepared(sql, plan)? {
            let tables = tables_of(plan)?;
            let own = Some(Arc::clone(prepared));
            self.keep(&prepared.scope, sql, tables, |entry| entry.prepared = own);
        }
        Ok(())
    }

    fn keep(
        &self,
        scope: &str,
        sql: &str,
        tables: Vec<Arc<TableSchema>>,
        set: impl FnOnce(&mut PlanCacheEntry),
    ) {
        let mut statements = self.statements.lock();
        let cached = statements
            .get(scope)
            .is_some_and(|of_scope| of_scope.contains_key(sql));
        if !cached && statements.values().map(HashMap::len).sum::<usize>() >= STATEMENTS_MAX {
            let all = statements.iter().flat_map(|(database, of_scope)| {
                let entry = of_scope.iter();
                entry.map(move |(sql, entry)| (entry.used, database.clone(), sql.clone()))
            });
            if let Some((_, database, sql)) = all.min()
                && let Some(of_scope) = statements.get_mut(&database)
            {
                of_scope.remove(&sql);
            }
            statements.retain(|_, of_scope| !of_scope.is_empty());
        }
        let of_scope = statements.entry(scope.to_owned()).or_default();
        let entry = of_scope.entry(sql.to_owned()).or_default();
        let is_other = |cached: &Arc<TableSchema>| {
            let same = |table: &&Arc<TableSchema>| {
                cached.name == table.name && cached.database == table.database
            };
            tables
                .iter()
                .find(same)
                .is_some_and(|table| table != cached)
        };
        if entry.tables.iter().any(is_other) {
            // The existing entry was made for other schemas.
            *entry = PlanCacheEntry::default();
        }
        for table in tables {
            if !entry.tables.contains(&table) {
                entry.tables.push(table);
            }
        }
        entry.used = self.uses.fetch_add(1, Ordering::Relaxed);
        set(entry);
    }

    /// Removes all plans: there may be better ones now.
    pub(crate) fn clear(&self) {
        self.statements.lock().clear();
    }

    /// How often the cache was used. The caller supplies `inline_statements`.
    pub(crate) fn usage(&self, inline_statements: u64) -> PlanCacheStats {
        PlanCacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            plans: self.statements.lock().values().map(with_plans).sum(),
            template_hits: self.template_hits.load(Ordering::Relaxed),
            inline_statements,
        }
    }
}

/// The number of statements of a database that have a plan.
fn with_plans(statements: &HashMap<String, PlanCacheEntry>) -> usize {
    let entry = statements.values();
    entry.filter(|entry| entry.optimized.is_some()).count()
}
