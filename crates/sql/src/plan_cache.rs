//! The plan cache: statements that were executed before are parsed, planned and optimized only
//! once.
//!
//! A plan is cached if it depends only on the statement, the database and the schemas of our
//! tables, and every function in it returns the same for the same arguments. Each execution reads
//! the current data. The cache also holds prepared statements, which may have parameters, since
//! many clients prepare each statement before each execution.

pub mod cached_plan;
pub mod generic_plan;
pub mod inline;
pub mod plan_template;
pub mod prepared;
pub mod text_memory;

use crate::catalog::plan_dependencies::{are_current, may_be_kept_prepared, tables_of};
use crate::dialect::column_names::Names;
use crate::plan_cache::cached_plan::CachedPlan;
use crate::plan_cache::prepared::PreparedStatement;
use datafusion::common::Result;
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
pub struct PlanCache {
    /// By the scope of a session's plans, which is its database and zone, and by text.
    statements: Mutex<HashMap<String, HashMap<String, PlanCacheEntry>>>,
    /// Counts uses, to find the least recently used statement.
    uses: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    template_hits: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct PlanCacheEntry {
    plan: Option<(Arc<CachedPlan>, Names)>,
    prepared: Option<Arc<PreparedStatement>>,
    tables: Vec<Arc<TableSchema>>,
    used: u64,
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
    /// The optimized plan of a statement, and the names of its result's columns.
    pub fn get(&self, engine: &Engine, scope: &str, sql: &str) -> Option<(Arc<CachedPlan>, Names)> {
        let plan = self.find(engine, scope, sql, |entry| entry.plan.clone())?;
        self.hit();
        Some(plan)
    }

    /// A statement that was prepared before.
    pub fn prepared(
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
    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts how often operators are reused.
    pub fn template_hit_counter(&self) -> &Arc<AtomicU64> {
        &self.template_hits
    }

    /// Counts a statement that must be planned.
    pub fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Caches the optimized plan of a statement, and the names of its result's columns. `plan` is
    /// the plan before optimization, whose tables may be missing from the optimized one, which may
    /// read rollups instead.
    ///
    /// # Errors
    /// DataFusion's errors, for plans that cannot be traversed.
    pub fn put(
        &self,
        scope: &str,
        sql: &str,
        names: &Names,
        plan: &LogicalPlan,
        optimized: &Arc<LogicalPlan>,
    ) -> Result<Arc<CachedPlan>> {
        let mut tables = tables_of(plan)?;
        tables.extend(tables_of(optimized)?);
        let cached = CachedPlan::new(Arc::clone(optimized), Arc::clone(&self.template_hits))?;
        let cached = Arc::new(cached);
        let own = Some((Arc::clone(&cached), names.clone()));
        self.keep(scope, sql, tables, |entry| entry.plan = own);
        Ok(cached)
    }

    /// Caches a prepared query, if it may be cached.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub fn put_prepared(&self, prepared: &Arc<PreparedStatement>) -> Result<()> {
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
    pub fn clear(&self) {
        self.statements.lock().clear();
    }

    /// How often the cache was used. The caller supplies `inline_statements`.
    pub fn usage(&self, inline_statements: u64) -> PlanCacheStats {
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
    entry.filter(|entry| entry.plan.is_some()).count()
}
