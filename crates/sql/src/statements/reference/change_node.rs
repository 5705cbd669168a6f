//! A planned change of a reference table, as a node around DataFusion's plan of it.

use datafusion::common::{DFSchemaRef, DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::fmt;

/// What happens to a row whose key exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConflictPlan {
    /// The positions of the key's columns; `None` for any key.
    pub key: Option<Vec<usize>>,
    /// What the row there becomes; `None` if it stays.
    pub update: Option<ConflictUpdate>,
}

/// `DO UPDATE SET …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConflictUpdate {
    /// The positions of the columns that change.
    pub columns: Vec<usize>,
    /// Their values, over the columns of the row there and of `excluded`.
    pub values: Vec<Expr>,
    /// Which rows change.
    pub condition: Option<Expr>,
}

/// A change of a reference table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReferenceChangeNode {
    /// DataFusion's plan of the INSERT, UPDATE or DELETE.
    pub change: LogicalPlan,
    /// ON CONFLICT.
    pub conflict: Option<ConflictPlan>,
    /// RETURNING, over the columns of the table.
    pub returning: Option<Vec<Expr>>,
    /// The columns of RETURNING.
    pub schema: DFSchemaRef,
    /// The positions of identity columns to which every row gives a value.
    pub given: Vec<usize>,
    /// Whether these may be columns that are always generated.
    pub overrides: bool,
}

impl PartialOrd for ReferenceChangeNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for ReferenceChangeNode {
    fn name(&self) -> &'static str {
        "ReferenceChangeNode"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.change]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let update = self.conflict.as_ref().and_then(|it| it.update.as_ref());
        let values = update.iter().flat_map(|update| &update.values);
        let conditions = update.iter().flat_map(|update| &update.condition);
        let returning = self.returning.iter().flatten();
        returning.chain(values).chain(conditions).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReferenceChangeNode")
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let wrong = || DataFusionError::Internal("a change has other parts".to_owned());
        let (mut changed, mut exprs) = (self.clone(), exprs.into_iter());
        changed.change = inputs.into_iter().next().ok_or_else(wrong)?;
        let mut replace = |old: &mut Expr| -> Result<()> {
            *old = exprs.next().ok_or_else(wrong)?;
            Ok(())
        };
        let returning = changed.returning.iter_mut().flatten();
        returning.into_iter().try_for_each(&mut replace)?;
        let update = changed.conflict.as_mut().and_then(|it| it.update.as_mut());
        if let Some(update) = update {
            let parts = update.values.iter_mut().chain(&mut update.condition);
            parts.into_iter().try_for_each(&mut replace)?;
        }
        Ok(changed)
    }
}
