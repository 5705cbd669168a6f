//! What changes of reference tables' definitions mean for their rows: defaults of new columns, and conditions
//! that rows must meet from now on.

use super::row_expressions::{
    CheckedRows, RowExpressions, assigned, logical, parse_expression, table_schema,
};
use crate::error::{SqlError, SqlResult};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::ExprSchemable;
use marigram_functions::interrupt;
use marigram_reference::{
    NewColumn, NewConstraint, ReferenceAlteration, ReferenceScanRequest, ReferenceTable,
    ReferenceTransaction,
};

/// Rows that are read at a time.
const PAGE_ROWS: usize = 8192;

/// Refuses defaults that have no value of their column's type.
///
/// # Errors
/// Those of planning the defaults.
pub(crate) fn check_defaults<'a>(
    state: &SessionState,
    columns: impl IntoIterator<Item = &'a NewColumn>,
) -> SqlResult<()> {
    for column in columns {
        if let Some(default) = &column.default {
            default_value(state, default, &column.kind.data_type())?;
        }
    }
    Ok(())
}

fn default_value(
    state: &SessionState,
    default: &str,
    kind: &DataType,
) -> SqlResult<RowExpressions> {
    let none = DFSchema::empty();
    let value = assigned(state, parse_expression(default)?, &none, kind)?;
    RowExpressions::new(state, &[value], &none)
}

/// Refuses CHECK constraints that are not conditions on the columns of their table.
///
/// # Errors
/// Those of planning the conditions, and 42804 if one is not boolean.
pub(crate) fn check_conditions(state: &SessionState, table: &ReferenceTable) -> SqlResult<()> {
    let schema = table_schema(table, &table.name)?;
    for check in &table.checks {
        let condition = logical(state, parse_expression(&check.condition)?, &schema)?;
        let kind = condition.get_type(&schema)?;
        if kind != DataType::Boolean && kind != DataType::Null {
            let message = "argument of CHECK must be type boolean";
            return Err(SqlError::named("42804", &check.name, message));
        }
    }
    CheckedRows::new(state, table).map(|_| ())
}

/// Makes one change of a table, and of its rows. Blocks.
///
/// # Errors
/// If the table or its rows do not allow it; the caller takes back what was done.
pub(crate) fn alter(
    state: &SessionState,
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
    change: &ReferenceAlteration,
) -> SqlResult<()> {
    let (database, name) = (&table.database, &table.name);
    match change {
        ReferenceAlteration::AddColumn {
            column,
            if_not_exists,
        } => {
            if *if_not_exists && table.column(&column.name).is_some() {
                return Ok(());
            }
            check_defaults(state, [column])?;
            let changed = transaction.alter_table(database, name, change)?;
            fill_column(state, transaction, &changed, column)?;
            if !column.is_nullable {
                transaction.check_not_null(&changed, &column.name)?;
            }
        }
        ReferenceAlteration::Default {
            column,
            default: Some(default),
        } => {
            if let Some(known) = table.column(column) {
                default_value(state, default, &known.kind.data_type())?;
            }
            transaction.alter_table(database, name, change)?;
        }
        ReferenceAlteration::AddConstraint(NewConstraint::Check { .. }) => {
            let changed = transaction.alter_table(database, name, change)?;
            check_conditions(state, &changed)?;
            check_all_rows(state, transaction, &changed)?;
        }
        _ => {
            transaction.alter_table(database, name, change)?;
        }
    }
    Ok(())
}

/// Gives the rows that a table has the default of a new column.
fn fill_column(
    state: &SessionState,
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
    column: &NewColumn,
) -> SqlResult<()> {
    let Some(default) = &column.default else {
        return Ok(());
    };
    let value = default_value(state, default, &column.kind.data_type())?;
    let Some(position) = table.columns.iter().position(|it| it.name == column.name) else {
        return Ok(());
    };
    each_page(transaction, table, &[], |page| {
        let ids = page.column(0).as_primitive::<Int64Type>().values().to_vec();
        let values = value.evaluate(Vec::new(), ids.len())?;
        let field = arrow::datatypes::Field::new(&column.name, column.kind.data_type(), true);
        let schema = std::sync::Arc::new(arrow::datatypes::Schema::new(vec![field]));
        let values = RecordBatch::try_new(schema, values).map_err(DataFusionError::from)?;
        transaction.update(table, &ids, &[position], &values)?;
        Ok(())
    })
}

/// Checks the constraints of a table for the rows that it has.
fn check_all_rows(
    state: &SessionState,
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
) -> SqlResult<()> {
    let checks = CheckedRows::new(state, table)?;
    let all: Vec<usize> = (0..table.columns.len()).collect();
    each_page(transaction, table, &all, |page| {
        let own = page.project(&all).map_err(DataFusionError::from)?;
        checks.check(&own)
    })
}

/// Reads a table page by page: the columns at these positions, and the ids of the rows after them.
fn each_page(
    transaction: &ReferenceTransaction,
    table: &ReferenceTable,
    columns: &[usize],
    mut work: impl FnMut(&RecordBatch) -> SqlResult<()>,
) -> SqlResult<()> {
    let mut request = ReferenceScanRequest {
        columns: columns.to_vec(),
        with_row_id: true,
        filters: Vec::new(),
        after: i64::MIN,
        rows_max: PAGE_ROWS,
    };
    loop {
        interrupt::check().map_err(SqlError::from)?;
        let page = transaction.scan(table, &request)?;
        work(&page.rows)?;
        match page.last {
            Some(last) => request.after = last,
            None => return Ok(()),
        }
    }
}
