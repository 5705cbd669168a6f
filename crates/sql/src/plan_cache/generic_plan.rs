//! Generic plans for prepared statements whose parameters only determine which rows are read.
//!
//! Optimizing a plan and making operators from it takes several times as long as most small
//! queries. If parameters only occur in conditions that a scan evaluates itself, one plan and its
//! operators serve for all values. A mark on a literal of an optimized plan says which parameter it
//! was. Other values of a parameter are trusted if an execution with another value led to the same
//! plan: then nothing else in the plan was derived from the value.

use crate::dialect::column_names::Names;
use crate::plan_cache::cached_plan::CachedPlan;
use crate::plan_cache::plan_template::{only_scan, table_of};
use datafusion::common::metadata::{FieldMetadata, ScalarAndMetadata};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use marigram_operators::predicate::{PredicateClass, classify};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The metadata key for the number of a literal's parameter.
const MARK: &str = "marigram.parameter";
/// After this many failed executions, learning stops.
const TRIES_MAX: usize = 4;

/// The parameters, and how often each occurs.
type ParameterCounts = BTreeMap<usize, usize>;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct GenericPlan {
    /// How often each parameter occurs in the statement.
    parameters: ParameterCounts,
    state: Mutex<GenericPlanState>,
}

#[derive(Debug)]
enum GenericPlanState {
    /// This many executions led to no plan that could serve for others.
    New(usize),
    Learned(LearnedPlan),
    Refused,
}

/// An execution whose plan serves for others.
#[derive(Debug)]
struct LearnedPlan {
    values: Vec<ScalarValue>,
    /// For each parameter, whether other values led to the same plan.
    varies: Vec<bool>,
    cached: Arc<CachedPlan>,
}

impl LearnedPlan {
    /// The parameters whose values differ.
    fn differing(&self, values: &[ScalarValue]) -> impl Iterator<Item = usize> {
        let pairs = self.values.iter().zip(values).enumerate();
        pairs.filter_map(|(at, (before, now))| (before != now).then_some(at))
    }

    /// Whether the plan is known to be the same for these values.
    fn serves(&self, values: &[ScalarValue]) -> bool {
        self.differing(values).all(|at| self.varies[at])
    }
}

impl GenericPlan {
    /// Reads a plan that is not yet optimized; `None` if parameters occur elsewhere than in
    /// conditions.
    ///
    /// # Errors
    /// DataFusion's errors, for plans that cannot be traversed.
    pub(crate) fn from_plan(plan: &LogicalPlan) -> Result<Option<Self>> {
        let (mut parameters, mut fits) = (ParameterCounts::new(), true);
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    if let Expr::Placeholder(placeholder) = part {
                        let number = placeholder.id.strip_prefix('$');
                        let number = number.and_then(|number| number.parse().ok());
                        fits &= number.is_some() && matches!(node, LogicalPlan::Filter(_));
                        *parameters.entry(number.unwrap_or_default()).or_default() += 1;
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        let state = Mutex::new(GenericPlanState::New(0));
        Ok((fits && !parameters.is_empty()).then_some(Self { parameters, state }))
    }

    /// The plan for these values, if a plan is trusted and serves for them.
    ///
    /// # Errors
    /// Those of [`from_plan`](Self::from_plan).
    pub(crate) fn plan_for(&self, values: &[ScalarValue]) -> Result<Option<Arc<CachedPlan>>> {
        let cached = match &*self.state.lock() {
            GenericPlanState::Learned(learned) if learned.serves(values) => {
                Arc::clone(&learned.cached)
            }
            _ => return Ok(None),
        };
        Ok(with_values(&cached, values)?.map(Arc::new))
    }

    /// Learns from an execution with these values, which are marked in its optimized plan; returns
    /// the plan with a cell for operators, if it may serve for other values. `names` are those of
    /// its result's columns.
    ///
    /// # Errors
    /// Those of [`from_plan`](Self::from_plan).
    pub(crate) fn learn(
        &self,
        values: &[ScalarValue],
        optimized: &Arc<LogicalPlan>,
        names: &Names,
        uses: &Arc<AtomicU64>,
    ) -> Result<Option<Arc<CachedPlan>>> {
        let mut state = self.state.lock();
        match &mut *state {
            GenericPlanState::New(tries) => {
                if !self.is_in_scan(optimized)? {
                    *tries += 1;
                    if *tries == TRIES_MAX {
                        *state = GenericPlanState::Refused;
                    }
                    return Ok(None);
                }
                let cached =
                    CachedPlan::new(Arc::clone(optimized), names.clone(), Arc::clone(uses))?;
                let cached = Arc::new(cached);
                *state = GenericPlanState::Learned(LearnedPlan {
                    values: values.to_vec(),
                    varies: vec![false; values.len()],
                    cached: Arc::clone(&cached),
                });
                Ok(Some(cached))
            }
            GenericPlanState::Learned(learned) => {
                let Some(other) = with_values(&learned.cached, values)? else {
                    return Ok(None);
                };
                if other.plan != *optimized {
                    *state = GenericPlanState::Refused;
                    return Ok(None);
                }
                let differing: Vec<usize> = learned.differing(values).collect();
                for at in differing {
                    learned.varies[at] = true;
                }
                Ok(Some(Arc::new(other)))
            }
            GenericPlanState::Refused => Ok(None),
        }
    }

    /// Whether a plan reads one table in a chain of operators, and all parameters occur in
    /// conditions that the scan evaluates itself, as often as in the statement.
    fn is_in_scan(&self, plan: &LogicalPlan) -> Result<bool> {
        let Some(scan) = only_scan(plan)? else {
            return Ok(false);
        };
        let mut marks = ParameterCounts::new();
        for filter in &scan.filters {
            count_marks(filter, &mut marks)?;
        }
        let mut all = ParameterCounts::new();
        plan.apply(|node| {
            node.apply_expressions(|expr| {
                count_marks(expr, &mut all)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(marks == self.parameters && all == marks && are_answered(scan))
    }
}

/// Whether the scan itself evaluates its conditions.
fn are_answered(scan: &TableScan) -> bool {
    let Some(table) = table_of(scan) else {
        return false;
    };
    let is_answered = |filter: &Expr| {
        let filter = unnormalize_col(filter.clone());
        matches!(
            classify(&filter, table.table_schema()),
            PredicateClass::Exact(_) | PredicateClass::PerSeries
        )
    };
    scan.filters.iter().all(is_answered)
}

/// The parameter from which a literal was made.
fn mark_of(expr: &Expr) -> Option<usize> {
    let Expr::Literal(_, Some(metadata)) = expr else {
        return None;
    };
    metadata.inner().get(MARK)?.parse().ok()
}

fn count_marks(expr: &Expr, counts: &mut ParameterCounts) -> Result<()> {
    expr.apply(|part| {
        if let Some(number) = mark_of(part) {
            *counts.entry(number).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The marked values of `$1…$n` for a plan.
pub(crate) fn marked(values: &[ScalarValue]) -> ParamValues {
    let marked = values.iter().enumerate().map(|(at, value)| {
        let mark = BTreeMap::from([(MARK.to_owned(), (at + 1).to_string())]);
        ScalarAndMetadata::new(value.clone(), Some(FieldMetadata::new(mark)))
    });
    ParamValues::List(marked.collect())
}

/// A plan with other values of its parameters; `None` if the scan would not evaluate its conditions
/// itself for them.
fn with_values(cached: &CachedPlan, values: &[ScalarValue]) -> Result<Option<CachedPlan>> {
    let mut fits = values.iter().all(|value| !value.is_null());
    let set = |expr: Expr| -> Result<Transformed<Expr>> {
        let value = mark_of(&expr).and_then(|number| values.get(number.checked_sub(1)?));
        Ok(match (value, expr) {
            (Some(value), Expr::Literal(_, metadata)) => {
                Transformed::yes(Expr::Literal(value.clone(), metadata))
            }
            (_, other) => Transformed::no(other),
        })
    };
    let plan = LogicalPlan::clone(&cached.plan).transform_down(|node| {
        let LogicalPlan::TableScan(mut scan) = node else {
            return Ok(Transformed::no(node));
        };
        let filters = std::mem::take(&mut scan.filters).into_iter();
        let filters = filters.map(|filter| Ok(filter.transform_up(set)?.data));
        scan.filters = filters.collect::<Result<_>>()?;
        fits &= are_answered(&scan);
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })?;
    if !fits {
        return Ok(None);
    }
    cached.with_plan(Arc::new(plan.data)).map(Some)
}
