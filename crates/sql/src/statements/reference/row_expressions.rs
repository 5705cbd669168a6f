//! Expressions over the rows of a reference table: they are planned, and evaluated batch by batch.

use crate::dialect::parse;
use crate::dialect::statement::Command;
use crate::error::{SqlError, SqlResult};
use crate::tables::reference::marked_schema;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DFSchema, DataFusionError, TableReference};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{EmptyRelation, Expr, ExprSchemable, LogicalPlan, Projection, cast};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, ExprWithAlias, SelectItem, SetExpr};
use marigram_reference::{ReferenceError, ReferenceTable};
use std::collections::HashSet;
use std::sync::Arc;

/// The name by which ON CONFLICT calls the row that was not inserted.
pub(crate) const EXCLUDED: &str = "excluded";

/// The columns of a table under its name, or under an alias.
pub(crate) fn table_schema(table: &ReferenceTable, name: &str) -> SqlResult<DFSchema> {
    let qualifier = TableReference::bare(name);
    Ok(DFSchema::try_from_qualified_schema(
        qualifier,
        &marked_schema(table),
    )?)
}

/// The columns of a row that is there, and of the row that was not inserted.
pub(crate) fn conflict_schema(table: &ReferenceTable, name: &str) -> SqlResult<DFSchema> {
    let existing = table_schema(table, name)?;
    Ok(existing.join(&table_schema(table, EXCLUDED)?)?)
}

/// The expression that a definition keeps as text.
///
/// # Errors
/// If it is no expression any more.
pub(crate) fn parse_expression(text: &str) -> SqlResult<ast::Expr> {
    let wrong = || SqlError::syntax(format!("'{text}' is not an expression"));
    // In a line of its own: the text may end in a comment.
    let Command::Plan(statement, _) = parse::parse(&format!("SELECT {text}\n"))? else {
        return Err(wrong());
    };
    let Statement::Statement(statement) = statement.into_inner() else {
        return Err(wrong());
    };
    let ast::Statement::Query(query) = *statement else {
        return Err(wrong());
    };
    let SetExpr::Select(select) = *query.body else {
        return Err(wrong());
    };
    match select.projection.into_iter().next() {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => Ok(expr),
        _ => Err(wrong()),
    }
}

/// Plans an expression.
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn logical(state: &SessionState, expr: ast::Expr, schema: &DFSchema) -> SqlResult<Expr> {
    let expr = ExprWithAlias { expr, alias: None };
    Ok(state.create_logical_expr_from_sql_expr(expr, schema)?)
}

/// The same, as a value for a column of this type.
///
/// # Errors
/// DataFusion's errors, and those of types that do not convert.
pub(crate) fn assigned(
    state: &SessionState,
    expr: ast::Expr,
    schema: &DFSchema,
    kind: &DataType,
) -> SqlResult<Expr> {
    let mut expr = logical(state, expr, schema)?;
    if let Expr::Placeholder(placeholder) = &mut expr {
        let field = arrow::datatypes::Field::new("", kind.clone(), true);
        placeholder.field = placeholder.field.take().or_else(|| Some(Arc::new(field)));
    }
    if expr.get_type(schema)? == *kind {
        return Ok(expr);
    }
    Ok(cast(expr, kind.clone()))
}

/// Expressions over rows with this schema as the analyzer leaves them, as it does with those of a query: values
/// have common types, and casts follow PostgreSQL.
///
/// # Errors
/// The analyzer's errors.
pub(crate) fn analyzed(
    state: &SessionState,
    expressions: &[Expr],
    schema: &DFSchema,
) -> SqlResult<Vec<Expr>> {
    if expressions.is_empty() {
        return Ok(Vec::new());
    }
    let named = expressions.iter().enumerate();
    let named = named.map(|(at, expr)| expr.clone().unalias().alias(format!("value {at}")));
    let rows = LogicalPlan::EmptyRelation(EmptyRelation {
        produce_one_row: false,
        schema: Arc::new(schema.clone()),
    });
    let query = Projection::try_new(named.collect(), Arc::new(rows))?;
    let options = state.config_options();
    let query = LogicalPlan::Projection(query);
    let query = state
        .analyzer()
        .execute_and_check(query, options, |_, _| {})?;
    match query {
        LogicalPlan::Projection(query) if query.expr.len() == expressions.len() => {
            Ok(query.expr.into_iter().map(Expr::unalias).collect())
        }
        _ => Ok(expressions.to_vec()),
    }
}

/// Expressions that are ready to be evaluated.
#[derive(Debug)]
pub(crate) struct RowExpressions {
    schema: Arc<Schema>,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
}

impl RowExpressions {
    /// Prepares expressions over rows with this schema.
    ///
    /// # Errors
    /// DataFusion's errors; a subquery cannot be evaluated.
    pub(crate) fn new(
        state: &SessionState,
        expressions: &[Expr],
        schema: &DFSchema,
    ) -> SqlResult<Self> {
        let context = SimplifyContext::builder()
            .with_schema(Arc::new(schema.clone()))
            .with_config_options(Arc::clone(state.config_options()))
            .with_query_execution_start_time(state.execution_props().query_execution_start_time)
            .build();
        // Some functions exist only until they are simplified.
        let simplifier = ExprSimplifier::new(context);
        let expressions = analyzed(state, expressions, schema)?
            .into_iter()
            .map(|expr| {
                let simple = simplifier.simplify(expr.unalias())?;
                state.create_physical_expr(simple, schema)
            })
            .collect::<Result<_, DataFusionError>>()?;
        Ok(Self {
            schema: Arc::clone(schema.inner()),
            expressions,
        })
    }

    /// The values for each row.
    ///
    /// # Errors
    /// If an expression fails for a row.
    pub(crate) fn evaluate(&self, columns: Vec<ArrayRef>, rows: usize) -> SqlResult<Vec<ArrayRef>> {
        let fields = self.schema.fields().iter();
        // Names may repeat, and a value may be missing that is checked later.
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)
            .map_err(DataFusionError::from)?;
        let values = self.expressions.iter().map(|expression| {
            let value = expression.evaluate(&batch)?;
            Ok(value.into_array(rows)?)
        });
        values.collect()
    }
}

/// The CHECK constraints of a table.
#[derive(Debug)]
pub(crate) struct CheckedRows {
    names: Vec<String>,
    conditions: RowExpressions,
    /// The columns that they name.
    columns: HashSet<String>,
    table: String,
}

impl CheckedRows {
    /// Prepares the constraints.
    ///
    /// # Errors
    /// If one cannot be planned.
    pub(crate) fn new(state: &SessionState, table: &ReferenceTable) -> SqlResult<Self> {
        let schema = table_schema(table, &table.name)?;
        let conditions = table.checks.iter().map(|check| {
            let condition = parse_expression(&check.condition)?;
            logical(state, condition, &schema)
        });
        let conditions = conditions.collect::<SqlResult<Vec<_>>>()?;
        let columns = conditions.iter().flat_map(|it| it.column_refs());
        let columns = columns.map(|column| column.name.clone()).collect();
        Ok(Self {
            names: table
                .checks
                .iter()
                .map(|check| check.name.clone())
                .collect(),
            conditions: RowExpressions::new(state, &conditions, &schema)?,
            columns,
            table: table.name.clone(),
        })
    }

    /// Whether one of them names a column.
    pub(crate) fn concern(&self, column: &str) -> bool {
        self.columns.contains(column)
    }

    /// Checks rows, which have all columns of the table.
    ///
    /// # Errors
    /// 23514 if a condition is false for one.
    pub(crate) fn check(&self, rows: &RecordBatch) -> SqlResult<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let truths = self
            .conditions
            .evaluate(rows.columns().to_vec(), rows.num_rows())?;
        for (name, truths) in self.names.iter().zip(&truths) {
            let is_false = truths.as_boolean_opt().is_none_or(|truths| {
                (0..truths.len()).any(|at| truths.is_valid(at) && !truths.value(at))
            });
            if is_false && !truths.is_empty() {
                return Err(ReferenceError::failed_check(&self.table, name).into());
            }
        }
        Ok(())
    }
}
