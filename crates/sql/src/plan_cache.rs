//! Plans of statements that were asked before: parsed, planned and optimized once.
//!
//! A plan is kept where it depends on nothing but the statement, the database and the schemas of
//! our tables: every function in it gives the same for the same arguments. Data are looked at anew
//! by each execution.

use crate::prepared::{are_current, tables_of};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use marigram_engine::Engine;
use marigram_model::TableSchema;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Plans that are kept.
const PLANS_MAX: usize = 256;
/// Longest statement whose plan is kept, bytes.
const STATEMENT_BYTES_MAX: usize = 16 << 10;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct PlanCache {
    plans: Mutex<HashMap<String, HashMap<String, Kept>>>,
    /// Counts uses, to tell the plan that was not used for longest.
    uses: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug)]
struct Kept {
    plan: Arc<LogicalPlan>,
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
}

impl PlanCache {
    /// The optimized plan of a statement.
    pub fn get(&self, engine: &Engine, database: &str, sql: &str) -> Option<Arc<LogicalPlan>> {
        let mut plans = self.plans.lock();
        let of_database = plans.get_mut(database)?;
        let kept = of_database.get_mut(sql)?;
        if !are_current(&kept.tables, engine) {
            of_database.remove(sql);
            return None;
        }
        kept.used = self.uses.fetch_add(1, Ordering::Relaxed);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(Arc::clone(&kept.plan))
    }

    /// Counts a statement that is planned.
    pub fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the optimized plan of a statement.
    ///
    /// # Errors
    /// DataFusion's, of plans that cannot be walked through.
    pub fn put(&self, database: &str, sql: &str, plan: &Arc<LogicalPlan>) -> Result<()> {
        let kept = Kept {
            plan: Arc::clone(plan),
            tables: tables_of(plan)?,
            used: self.uses.fetch_add(1, Ordering::Relaxed),
        };
        let mut plans = self.plans.lock();
        if plans.values().map(HashMap::len).sum::<usize>() >= PLANS_MAX {
            let all = plans.iter().flat_map(|(database, of_database)| {
                let kept = of_database.iter();
                kept.map(move |(sql, kept)| (kept.used, database.clone(), sql.clone()))
            });
            if let Some((_, database, sql)) = all.min()
                && let Some(of_database) = plans.get_mut(&database)
            {
                of_database.remove(&sql);
            }
            plans.retain(|_, of_database| !of_database.is_empty());
        }
        let of_database = plans.entry(database.to_owned()).or_default();
        of_database.insert(sql.to_owned(), kept);
        Ok(())
    }

    /// Forgets all plans: there may be better ones now.
    pub fn clear(&self) {
        self.plans.lock().clear();
    }

    /// How often plans were found.
    pub fn usage(&self) -> PlanCacheUse {
        PlanCacheUse {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            plans: self.plans.lock().values().map(HashMap::len).sum(),
        }
    }
}

/// Whether a plan, not yet optimized, depends on nothing but what the cache knows of.
///
/// # Errors
/// As [`PlanCache::put`].
pub fn may_be_kept(sql: &str, plan: &LogicalPlan) -> Result<bool> {
    if sql.len() > STATEMENT_BYTES_MAX {
        return Ok(false);
    }
    let (mut scans, mut kept) = (0, true);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(_) => scans += 1,
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => kept = false,
            _ => {}
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                let volatility = match part {
                    Expr::ScalarFunction(call) => call.func.signature().volatility,
                    Expr::Placeholder(_) => Volatility::Volatile,
                    _ => Volatility::Immutable,
                };
                kept &= volatility == Volatility::Immutable;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    // Tables that are not ours tell nobody when they change.
    Ok(kept && tables_of(plan)?.len() == scans)
}
