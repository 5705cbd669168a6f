//! Runs a relation, and tells the types of its columns.

use crate::relation::{Relation, builder};
use crate::run::TaosRun;
use crate::taos_value::arrow_type;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use marigram_tdengine::{PRECISION_KEY, TYPE_KEY, TaosType, type_meta};
use std::collections::HashMap;
use std::sync::Arc;

/// The rows of a relation.
pub(crate) async fn answer(run: &TaosRun<'_>, relation: Relation) -> SqlResult<StatementRows> {
    let shown: Vec<_> = relation.shown(None).cloned().collect();
    // Tags are dictionaries below: everything is answered in the type that belongs to its own.
    let exprs: Vec<Expr> = shown
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let kind = arrow_type(column.kind);
            let is_same = column
                .expr
                .get_type(relation.plan.schema().as_ref())
                .is_ok_and(|found| found == kind);
            let expr = if is_same {
                column.expr.clone()
            } else {
                cast(column.expr.clone(), kind)
            };
            expr.alias(format!("f{place}"))
        })
        .collect();
    let plan = builder(relation.plan).project(exprs)?.build()?;
    let state = run.state(run.current_database())?;
    let plan = state.create_physical_plan(&plan).await?;
    let types = plan.schema();
    let fields = shown.iter().zip(types.fields()).map(|(column, field)| {
        let kind = shown_type(column.kind);
        let metadata = HashMap::from([(TYPE_KEY.to_owned(), type_meta(kind))]);
        Field::new(&column.name, field.data_type().clone(), true).with_metadata(metadata)
    });
    let precision = relation.precision.name().to_owned();
    let metadata = HashMap::from([(PRECISION_KEY.to_owned(), precision)]);
    let fields: Vec<Field> = fields.collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let own = Arc::clone(&schema);
    let batches = execute_stream(plan, state.task_ctx())?.map(move |batch| {
        let columns = batch?.columns().to_vec();
        let batch = RecordBatch::try_new(Arc::clone(&own), columns);
        Ok::<_, SqlError>(batch.map_err(DataFusionError::from)?)
    });
    Ok(StatementRows::Rows {
        schema,
        batches: batches.boxed(),
    })
}

/// The type that is told: clients know no column of no type.
fn shown_type(kind: TaosType) -> TaosType {
    match kind {
        TaosType::Null => TaosType::Bool,
        other => other,
    }
}
