//! Plans of statements that were asked before: parsed, planned and optimized once.
//!
//! A plan is kept where it depends on nothing but the statement, the database and the schemas of
//! our tables: every function in it gives the same for the same arguments. Data are looked at anew
//! by each execution. What clients prepared is kept beside the plan, since many prepare each
//! statement before each execution; it may have parameters.

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

/// Statements of which something is kept.
const STATEMENTS_MAX: usize = 256;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct PlanCache {
    /// By what a session's plans are kept under, its database and zone, and by text.
    statements: Mutex<HashMap<String, HashMap<String, PlanCacheEntry>>>,
    /// Counts uses, to tell the statement that was not used for longest.
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

/// How often plans were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanCacheStats {
    /// Statements whose plan was there.
    pub hits: u64,
    /// Statements that were planned.
    pub misses: u64,
    /// Plans that are kept.
    pub plans: usize,
    /// Statements of which the operators were there too.
    pub template_hits: u64,
    /// Statements that were carried out by the thread that asked.
    pub inline_statements: u64,
}

impl PlanCache {
    /// The optimized plan of a statement, and the names of its answer's columns.
    pub fn get(&self, engine: &Engine, scope: &str, sql: &str) -> Option<(Arc<CachedPlan>, Names)> {
        let plan = self.find(engine, scope, sql, |entry| entry.plan.clone())?;
        self.hit();
        Some(plan)
    }

    /// A statement as it was prepared before.
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

    /// Counts a statement whose plan was there.
    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// What counts how often operators are used again.
    pub fn template_hit_counter(&self) -> &Arc<AtomicU64> {
        &self.template_hits
    }

    /// Counts a statement that is planned.
    pub fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the optimized plan of a statement, and the names of its answer's columns. `plan` is what it was made of, with tables that
    /// the optimized one may do without; that may read rollups in their place.
    ///
    /// # Errors
    /// DataFusion's, of plans that cannot be walked through.
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

    /// Keeps a query that was prepared, where it may be kept.
    ///
    /// # Errors
    /// As [`put`](Self::put).
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
            // What is there was made for other schemas.
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

    /// Forgets all plans: there may be better ones now.
    pub fn clear(&self) {
        self.statements.lock().clear();
    }

    /// How often plans were found. `inline_statements` is what others tell.
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

/// How many statements of a database have a plan.
fn with_plans(statements: &HashMap<String, PlanCacheEntry>) -> usize {
    let entry = statements.values();
    entry.filter(|entry| entry.plan.is_some()).count()
}
