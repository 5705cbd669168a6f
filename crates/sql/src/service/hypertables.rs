//! The calls of TimescaleDB that change something: their arguments are evaluated like a query, then each
//! call is executed, and their results are joined into one answer.

use super::SqlServiceInner;
use super::changes::StatementDone;
use crate::dialect::parse;
use crate::dialect::statement::{CallAnswerForm, Command, HypertableCall, HypertableStatement};
use crate::dialect::timescale::arguments::CallArguments;
use crate::error::{SqlError, SqlResult};
use crate::statements::hypertable::{self, CallOutcome, CallPlace};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::physical_plan::collect;
use futures::StreamExt;
use marigram_service::{Answer, CommitPoint, RowStream, Session};
use std::sync::Arc;

impl SqlServiceInner {
    /// Executes calls in their order.
    pub(super) async fn call_hypertables(
        self: Arc<Self>,
        session: &Session,
        statement: HypertableStatement,
    ) -> SqlResult<Answer> {
        let schema = schema(&statement);
        // All arguments first: after a call has begun, nothing stops the statement.
        let mut evaluated = Vec::with_capacity(statement.calls.len());
        for call in &statement.calls {
            evaluated.push(self.evaluated(session, call).await?);
        }
        let mut outcomes = Vec::with_capacity(statement.calls.len());
        for (call, arguments) in statement.calls.iter().zip(evaluated) {
            let (inner, call) = (Arc::clone(&self), call.clone());
            let place = CallPlace {
                database: session.database.clone(),
                time_zone: session.time_zone.clone(),
            };
            let work = move || hypertable::execute(&inner.engine, &place, &call, &arguments);
            let outcome = self.workers.commit(work).await?;
            if let Some(view) = &outcome.refresh {
                // The call only found the view; its refresh may take long.
                CommitPoint::of_task().begin_statement();
                self.refresh_view(view).await?;
            }
            outcomes.push(outcome);
        }
        let notices = |outcomes: &mut [CallOutcome]| {
            let told = outcomes.iter_mut().map(|outcome| &mut outcome.notices);
            told.flat_map(std::mem::take).collect::<Vec<_>>()
        };
        let notices = notices(&mut outcomes);
        let Some(schema) = schema else {
            return Ok(StatementDone::new("CALL").telling(notices).into());
        };
        let rows = rows(statement.form, outcomes);
        let rows = batch(&schema, &rows)?;
        let batches = futures::stream::iter([Ok(rows)]).boxed();
        Ok(Answer::Rows(RowStream {
            schema,
            batches,
            notices,
        }))
    }

    /// The values of a call's arguments.
    async fn evaluated(
        &self,
        session: &Session,
        call: &HypertableCall,
    ) -> SqlResult<CallArguments> {
        if call.arguments.is_empty() {
            return Ok(CallArguments::default());
        }
        let columns = call.arguments.iter().enumerate();
        let columns = columns.map(|(at, (_, sql))| format!("({sql}) AS \"{at}\""));
        // One row is expected; a second one shows that there are more.
        let text = format!("SELECT {} LIMIT 2", columns.collect::<Vec<_>>().join(", "));
        let Command::Plan(statement, _) = parse::parse(&text)? else {
            return Err(SqlError::syntax("the arguments of a call are values"));
        };
        if statement.need().is_deep() {
            let message = "the arguments of a call are nested too deeply";
            return Err(SqlError::invalid("54001", message.to_owned()));
        }
        let state = self.contexts.state(session)?;
        let plan = self.plan(&state, session, statement.into_inner()).await?;
        let physical = state.create_physical_plan(&plan).await?;
        let batches = collect(physical, state.task_ctx()).await?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let row = batches
            .iter()
            .find(|batch| rows == 1 && batch.num_rows() == 1);
        let Some(row) = row else {
            return Err(SqlError::syntax("the arguments of a call are values"));
        };
        let names = call.arguments.iter().map(|(name, _)| *name);
        let values = row.columns().iter();
        let values = values.map(|column| ScalarValue::try_from_array(column, 0));
        let named = names.zip(values).map(|(name, value)| Ok((name, value?)));
        let named = named.collect::<Result<Vec<_>, DataFusionError>>()?;
        Ok(CallArguments(named))
    }
}

/// The columns of the answer; `None` if it has no rows.
pub(super) fn schema(statement: &HypertableStatement) -> Option<SchemaRef> {
    let fields = match statement.form {
        CallAnswerForm::Nothing => return None,
        CallAnswerForm::Columns => statement
            .calls
            .iter()
            .flat_map(hypertable::fields)
            .collect(),
        CallAnswerForm::Values => {
            let calls = statement.calls.iter();
            let column = |call: &HypertableCall| {
                let kind = match hypertable::fields(call).as_slice() {
                    [one] => one.data_type().clone(),
                    _ => DataType::Utf8,
                };
                Field::new(&call.column, kind, true)
            };
            calls.map(column).collect::<Vec<_>>()
        }
    };
    Some(Arc::new(Schema::new(fields)))
}

/// The rows of the answer.
fn rows(form: CallAnswerForm, outcomes: Vec<CallOutcome>) -> Vec<Vec<ScalarValue>> {
    if form == CallAnswerForm::Columns {
        return outcomes
            .into_iter()
            .flat_map(|outcome| outcome.rows)
            .collect();
    }
    if let [_] = outcomes.as_slice() {
        let rows = outcomes.into_iter().flat_map(|outcome| outcome.rows);
        return rows.map(|row| vec![value(row)]).collect();
    }
    let first = |outcome: CallOutcome| {
        let row = outcome.rows.into_iter().next();
        row.map_or(ScalarValue::Null, value)
    };
    vec![outcomes.into_iter().map(first).collect()]
}

/// The value of a call: that of its one column, or its columns as a record.
fn value(mut row: Vec<ScalarValue>) -> ScalarValue {
    if row.len() == 1
        && let Some(one) = row.pop()
    {
        return one;
    }
    let text = |value: &ScalarValue| match value {
        ScalarValue::Boolean(Some(true)) => "t".to_owned(),
        ScalarValue::Boolean(Some(false)) => "f".to_owned(),
        null if null.is_null() => String::new(),
        other => other.to_string(),
    };
    let values: Vec<String> = row.iter().map(text).collect();
    ScalarValue::Utf8(Some(format!("({})", values.join(","))))
}

fn batch(schema: &SchemaRef, rows: &[Vec<ScalarValue>]) -> SqlResult<RecordBatch> {
    let fields = schema.fields().iter().enumerate();
    let columns = fields.map(|(at, field)| {
        let values = rows.iter().map(|row| {
            let value = row.get(at).unwrap_or(&ScalarValue::Null);
            value.cast_to(field.data_type())
        });
        let values = values.collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            return Ok(arrow::array::new_empty_array(field.data_type()));
        }
        ScalarValue::iter_to_array(values)
    });
    let columns = columns.collect::<Result<Vec<_>, DataFusionError>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| SqlError::DataFusion(error.into()))
}
