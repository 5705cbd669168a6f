//! Plans of statements that were asked before: parsed, planned and optimized once.
//!
//! A plan is kept where it depends on nothing but the statement, the database and the schemas of
//! our tables: every function in it gives the same for the same arguments. Data are looked at anew
//! by each execution. What clients prepared is kept beside the plan, since many prepare each
//! statement before each execution; it may have parameters.

use crate::column_names::Names;
use crate::dependence::{are_current, may_be_kept_prepared, tables_of};
use crate::known::Known;
use crate::prepared::PreparedStatement;
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
    statements: Mutex<HashMap<String, HashMap<String, Kept>>>,
    /// Counts uses, to tell the statement that was not used for longest.
    uses: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    ready: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Kept {
    plan: Option<(Arc<Known>, Names)>,
    prepared: Option<Arc<PreparedStatement>>,
    tables: Vec<Arc<TableSchema>>,
    used: u64,
}

/// How often plans were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanCacheUse {
    /// Statements whose plan was there.
    pub hits: u64,
    /// Statements that were planned.
    pub misses: u64,
    /// Plans that are kept.
    pub plans: usize,
    /// Statements of which the operators were there too.
    pub ready: u64,
    /// Statements that were carried out by the thread that asked.
    pub short: u64,
}

impl PlanCache {
    /// The optimized plan of a statement, and the names of its answer's columns.
    pub fn get(&self, engine: &Engine, scope: &str, sql: &str) -> Option<(Arc<Known>, Names)> {
        let plan = self.find(engine, scope, sql, |kept| kept.plan.clone())?;
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
        self.find(engine, scope, sql, |kept| kept.prepared.clone())
    }

    fn find<T>(
        &self,
        engine: &Engine,
        scope: &str,
        sql: &str,
        what: impl FnOnce(&Kept) -> Option<T>,
    ) -> Option<T> {
        let mut statements = self.statements.lock();
        let of_database = statements.get_mut(scope)?;
        let kept = of_database.get_mut(sql)?;
        if !are_current(&kept.tables, engine) {
            of_database.remove(sql);
            return None;
        }
        kept.used = self.uses.fetch_add(1, Ordering::Relaxed);
        what(kept)
    }

    /// Counts a statement whose plan was there.
    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// What counts how often operators are used again.
    pub fn ready_uses(&self) -> &Arc<AtomicU64> {
        &self.ready
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
    ) -> Result<Arc<Known>> {
        let mut tables = tables_of(plan)?;
        tables.extend(tables_of(optimized)?);
        let known = Known::new(Arc::clone(optimized), Arc::clone(&self.ready))?;
        let known = Arc::new(known);
        let own = Some((Arc::clone(&known), names.clone()));
        self.keep(scope, sql, tables, |kept| kept.plan = own);
        Ok(known)
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
            self.keep(&prepared.scope, sql, tables, |kept| kept.prepared = own);
        }
        Ok(())
    }

    fn keep(
        &self,
        scope: &str,
        sql: &str,
        tables: Vec<Arc<TableSchema>>,
        set: impl FnOnce(&mut Kept),
    ) {
        let mut statements = self.statements.lock();
        let known = statements
            .get(scope)
            .is_some_and(|of_database| of_database.contains_key(sql));
        if !known && statements.values().map(HashMap::len).sum::<usize>() >= STATEMENTS_MAX {
            let all = statements.iter().flat_map(|(database, of_database)| {
                let kept = of_database.iter();
                kept.map(move |(sql, kept)| (kept.used, database.clone(), sql.clone()))
            });
            if let Some((_, database, sql)) = all.min()
                && let Some(of_database) = statements.get_mut(&database)
            {
                of_database.remove(&sql);
            }
            statements.retain(|_, of_database| !of_database.is_empty());
        }
        let of_database = statements.entry(scope.to_owned()).or_default();
        let kept = of_database.entry(sql.to_owned()).or_default();
        let is_other = |known: &Arc<TableSchema>| {
            let same = |table: &&Arc<TableSchema>| {
                known.name == table.name && known.database == table.database
            };
            tables.iter().find(same).is_some_and(|table| table != known)
        };
        if kept.tables.iter().any(is_other) {
            // What is there was made for other schemas.
            *kept = Kept::default();
        }
        for table in tables {
            if !kept.tables.contains(&table) {
                kept.tables.push(table);
            }
        }
        kept.used = self.uses.fetch_add(1, Ordering::Relaxed);
        set(kept);
    }

    /// Forgets all plans: there may be better ones now.
    pub fn clear(&self) {
        self.statements.lock().clear();
    }

    /// How often plans were found. `short` is what others tell.
    pub fn usage(&self, short: u64) -> PlanCacheUse {
        PlanCacheUse {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            plans: self.statements.lock().values().map(with_plans).sum(),
            ready: self.ready.load(Ordering::Relaxed),
            short,
        }
    }
}

/// How many statements of a database have a plan.
fn with_plans(statements: &HashMap<String, Kept>) -> usize {
    let kept = statements.values();
    kept.filter(|kept| kept.plan.is_some()).count()
}
