//! Puts the rows of an INSERT into a reference table, batch by batch.

use super::change_node::ReferenceChangeNode;
use super::row_expressions::{CheckedRows, RowExpressions, conflict_schema};
use crate::error::{SqlError, SqlResult};
use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::compute::take;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::session_state::SessionState;
use marigram_reference::{OnConflict, ReferenceError, ReferenceTable, ReferenceTransaction};
use marigram_service::run_blocking;
use std::collections::HashSet;
use std::sync::Arc;

/// The rows of one INSERT on their way into the table.
pub(super) struct RowInserter {
    table: Arc<ReferenceTable>,
    transaction: Arc<ReferenceTransaction>,
    checks: CheckedRows,
    on_conflict: OnConflict,
    update: Option<PreparedUpdate>,
    /// The rows that the statement inserted or changed, which it must not change again.
    touched: HashSet<i64>,
    /// See [`ReferenceChangeNode`].
    given: Vec<usize>,
    overrides: bool,
}

/// `DO UPDATE`, ready to be evaluated.
struct PreparedUpdate {
    columns: Vec<usize>,
    /// The values, and the condition after them.
    parts: RowExpressions,
    has_condition: bool,
}

impl RowInserter {
    /// Prepares an INSERT.
    ///
    /// # Errors
    /// If an expression cannot be planned.
    pub(super) fn new(
        state: &SessionState,
        table: &Arc<ReferenceTable>,
        transaction: &Arc<ReferenceTransaction>,
        node: &ReferenceChangeNode,
    ) -> SqlResult<Self> {
        let conflict = node.conflict.as_ref();
        let on_conflict = conflict.map_or(OnConflict::Refuse, |conflict| {
            OnConflict::Skip(conflict.key.clone())
        });
        let update = conflict.and_then(|conflict| conflict.update.as_ref());
        let update = update.map(|update| {
            let parts: Vec<_> = update
                .values
                .iter()
                .chain(&update.condition)
                .cloned()
                .collect();
            // By position: the names in the expressions are those of the statement's alias.
            let qualifier = parts.iter().flat_map(|part| part.column_refs());
            let qualifier = qualifier
                .filter_map(|column| column.relation.as_ref())
                .map(|relation| relation.table().to_owned())
                .find(|name| name != super::row_expressions::EXCLUDED);
            let name = qualifier.unwrap_or_else(|| table.name.clone());
            let schema = conflict_schema(table, &name)?;
            Ok::<_, SqlError>(PreparedUpdate {
                columns: update.columns.clone(),
                parts: RowExpressions::new(state, &parts, &schema)?,
                has_condition: update.condition.is_some(),
            })
        });
        Ok(Self {
            table: Arc::clone(table),
            transaction: Arc::clone(transaction),
            checks: CheckedRows::new(state, table)?,
            on_conflict,
            update: update.transpose()?,
            touched: HashSet::new(),
            given: node.given.clone(),
            overrides: node.overrides,
        })
    }

    /// Inserts a batch with the columns of the table. Returns the ids of the rows that were inserted or
    /// changed, in the order of the batch.
    ///
    /// # Errors
    /// If a row violates a constraint: nothing of the statement may be kept then.
    pub(super) async fn insert(&mut self, rows: RecordBatch) -> SqlResult<Vec<i64>> {
        self.refuse_nulls(&rows)?;
        self.checks.check(&rows)?;
        let (table, transaction) = (Arc::clone(&self.table), Arc::clone(&self.transaction));
        let (given, on_conflict) = (rows.clone(), self.on_conflict.clone());
        let overrides = self.overrides;
        let insert = move || transaction.insert_overriding(&table, &given, &on_conflict, overrides);
        let inserted = run_blocking(insert).await??;
        if self.has_checked_numbers(&rows) && !inserted.row_ids.is_empty() {
            let stored = self.transaction.fetch(&self.table, &inserted.row_ids)?;
            self.checks.check(&stored)?;
        }
        let mut placed: Vec<(usize, i64)> = inserted
            .indices
            .iter()
            .copied()
            .zip(inserted.row_ids.iter().copied())
            .collect();
        if self.update.is_some() {
            self.touched.extend(&inserted.row_ids);
            placed.extend(self.update_conflicts(&rows, &inserted.conflicts).await?);
            placed.sort_unstable();
        }
        Ok(placed.into_iter().map(|(_, row_id)| row_id).collect())
    }

    /// Refuses NULL where the statement gives the number of a row.
    fn refuse_nulls(&self, rows: &RecordBatch) -> SqlResult<()> {
        let is_missing = |at: &&usize| rows.column(**at).null_count() > 0;
        let missing = self.given.iter().find(is_missing);
        match missing.and_then(|at| self.table.columns.get(*at)) {
            Some(column) => {
                Err(ReferenceError::missing_value(&self.table.name, &column.name).into())
            }
            None => Ok(()),
        }
    }

    /// Whether a CHECK needs a number that the table has yet to give.
    fn has_checked_numbers(&self, rows: &RecordBatch) -> bool {
        let mut columns = self.table.columns.iter().zip(rows.columns());
        columns.any(|(column, values)| {
            column.identity.is_some()
                && values.null_count() > 0
                && self.checks.concern(&column.name)
        })
    }

    /// Changes the rows that have the keys of rows of the batch.
    async fn update_conflicts(
        &mut self,
        rows: &RecordBatch,
        conflicts: &[(usize, i64)],
    ) -> SqlResult<Vec<(usize, i64)>> {
        let Some(update) = self.update.as_ref().filter(|_| !conflicts.is_empty()) else {
            return Ok(Vec::new());
        };
        for (_, row_id) in conflicts {
            if !self.touched.insert(*row_id) {
                let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
                return Err(SqlError::invalid("21000", message));
            }
        }
        let row_ids: Vec<i64> = conflicts.iter().map(|(_, row_id)| *row_id).collect();
        let existing = self.transaction.fetch(&self.table, &row_ids)?;
        let indices: UInt64Array = conflicts.iter().map(|(at, _)| *at as u64).collect();
        let excluded = taken(rows.columns(), &indices)?;
        let both = existing.columns().iter().cloned().chain(excluded).collect();
        let mut values = update.parts.evaluate(both, row_ids.len())?;
        let condition = update.has_condition.then(|| values.pop()).flatten();
        let chosen: Vec<usize> = (0..row_ids.len())
            .filter(|at| is_true(condition.as_ref(), *at))
            .collect();
        let indices: UInt64Array = chosen.iter().map(|at| *at as u64).collect();
        let values = taken(&values, &indices)?;
        let mut whole = taken(existing.columns(), &indices)?;
        for (column, value) in update.columns.iter().zip(&values) {
            whole[*column] = Arc::clone(value);
        }
        let nullable = nullable_schema(&existing);
        let whole = RecordBatch::try_new(nullable, whole).map_err(DataFusionError::from)?;
        self.checks.check(&whole)?;
        let changed = whole
            .project(&update.columns)
            .map_err(DataFusionError::from)?;
        let chosen: Vec<(usize, i64)> = chosen.into_iter().map(|at| conflicts[at]).collect();
        let row_ids: Vec<i64> = chosen.iter().map(|(_, row_id)| *row_id).collect();
        let (table, transaction) = (Arc::clone(&self.table), Arc::clone(&self.transaction));
        let columns = update.columns.clone();
        run_blocking(move || transaction.update(&table, &row_ids, &columns, &changed)).await??;
        Ok(chosen)
    }
}

/// Whether a row meets a condition, if there is one.
fn is_true(condition: Option<&ArrayRef>, at: usize) -> bool {
    let Some(condition) = condition else {
        return true;
    };
    let truths = condition.as_boolean_opt();
    truths.is_some_and(|truths| truths.is_valid(at) && truths.value(at))
}

fn taken(columns: &[ArrayRef], indices: &UInt64Array) -> SqlResult<Vec<ArrayRef>> {
    let taken = columns.iter().map(|column| take(column, indices, None));
    let taken: Result<_, _> = taken.collect();
    Ok(taken.map_err(DataFusionError::from)?)
}

/// The schema of rows, in which each value may be missing: the store checks that.
pub(super) fn nullable_schema(rows: &RecordBatch) -> arrow::datatypes::SchemaRef {
    let fields = rows.schema_ref().fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()))
}
