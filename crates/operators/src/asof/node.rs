//! The logical node of the join.

use datafusion::common::{DFSchemaRef, JoinType, Result, internal_err};
use datafusion::logical_expr::logical_plan::builder::build_join_schema;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The condition on times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsOfCondition {
    /// Whether rows at the same time do not match.
    pub strict: bool,
    /// Whether the next row matches instead of the last.
    pub forward: bool,
    /// The longest time between two matching rows; inclusive.
    pub most: Option<i64>,
}

/// See the module documentation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsOfJoin {
    /// The rows that the join returns, once each.
    pub left: LogicalPlan,
    /// The rows that may match.
    pub right: LogicalPlan,
    /// The expressions that must be equal: of the left side, of the right side.
    pub on: Vec<(Expr, Expr)>,
    /// The times to compare: of the left side, of the right side.
    pub times: (Expr, Expr),
    /// The condition on these times.
    pub matching: AsOfCondition,
    schema: DFSchemaRef,
}

impl AsOfJoin {
    /// Creates the join of two plans.
    ///
    /// # Errors
    /// If both have a column with the same name.
    pub fn new(
        left: LogicalPlan,
        right: LogicalPlan,
        on: Vec<(Expr, Expr)>,
        times: (Expr, Expr),
        matching: AsOfCondition,
    ) -> Result<Self> {
        let schema = build_join_schema(left.schema(), right.schema(), &JoinType::Left)?;
        Ok(Self {
            left,
            right,
            on,
            times,
            matching,
            schema: Arc::new(schema),
        })
    }

    /// The node of a plan, if it is one.
    pub fn from_plan(plan: &LogicalPlan) -> Option<&Self> {
        match plan {
            LogicalPlan::Extension(Extension { node }) => node.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Wraps the node in a plan.
    pub fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension {
            node: Arc::new(self),
        })
    }
}

/// Nodes have no order; they can only be equal.
impl PartialOrd for AsOfJoin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for AsOfJoin {
    fn name(&self) -> &'static str {
        "AsOfJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let keys = self.on.iter().flat_map(|(left, right)| [left, right]);
        keys.chain([&self.times.0, &self.times.1])
            .cloned()
            .collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self
            .on
            .iter()
            .map(|(left, right)| format!("{left} = {right}"));
        let keys: Vec<String> = keys.collect();
        let sign = match (self.matching.forward, self.matching.strict) {
            (false, false) => ">=",
            (false, true) => ">",
            (true, false) => "<=",
            (true, true) => "<",
        };
        let (left, right) = &self.times;
        write!(
            f,
            "AsOfJoin: on=[{}], match={left} {sign} {right}",
            keys.join(", ")
        )?;
        match self.matching.most {
            Some(most) => write!(f, ", most={most}"),
            None => Ok(()),
        }
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let left = self.left.schema().fields().len();
        let (of_left, of_right): (Vec<usize>, Vec<usize>) =
            output.iter().copied().partition(|at| *at < left);
        Some(vec![of_left, of_right.iter().map(|at| at - left).collect()])
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([left, right]) = <[LogicalPlan; 2]>::try_from(inputs) else {
            return internal_err!("two plans are joined");
        };
        let mut pairs = Vec::with_capacity(self.on.len() + 1);
        let mut exprs = exprs.into_iter();
        while let (Some(left), Some(right)) = (exprs.next(), exprs.next()) {
            pairs.push((left, right));
        }
        let Some(times) = pairs.pop() else {
            return internal_err!("a join by time compares times");
        };
        Self::new(left, right, pairs, times, self.matching)
    }
}
