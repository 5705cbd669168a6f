//! Statements: what `GetFlightInfo` plans, `DoGet` answers and `DoPut` carries out.
//!
//! A statement without rows runs in `GetFlightInfo`, because clients that ask for rows wait for that
//! call and may never come for the rows: `cursor.execute("CREATE TABLE …")` is done when it returns.

use super::answer::{self, AnswerHold, AnswerStream};
use super::call::FlightCall;
use super::fault::FlightFault;
use super::parameters::{BOUND_BYTES_MAX, bound_rows, to_parameters};
use super::running_statements::new_statement_id;
use crate::http::{bound_parameter, bound_sql, has_second_statement};
use arrow::array::{ArrayRef, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, Ticket};
use futures::{StreamExt, TryStreamExt};
use marigram_protocol::flight::{FlightHandle, QueryTicket, StatementLanguage};
use marigram_service::{
    Answer, Language, LanguageRequest, Prepared, RowStream, ServiceError, Session,
};
use std::sync::Arc;

/// A statement that is planned.
pub(super) struct PlannedStatement {
    pub session: Session,
    pub prepared: Arc<dyn Prepared>,
    /// Values of its parameters, a batch of one row for each time that it runs; none if it has no
    /// parameters.
    pub rows: Vec<RecordBatch>,
}

/// Plans the statement of a handle.
///
/// # Errors
/// If it is wrong, or its parameters do not fit.
pub(super) async fn plan(
    call: &FlightCall,
    handle: &FlightHandle,
) -> Result<PlannedStatement, FlightFault> {
    let rows = bound_rows(&handle.parameters, BOUND_BYTES_MAX)?;
    let schema = rows
        .first()
        .map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let planned = plan_for(call, handle, &schema).await?;
    Ok(PlannedStatement { rows, ..planned })
}

/// Plans the statement of a handle for parameters of these columns.
///
/// # Errors
/// As [`plan`].
pub(super) async fn plan_for(
    call: &FlightCall,
    handle: &FlightHandle,
    parameters: &Schema,
) -> Result<PlannedStatement, FlightFault> {
    let session = call.session(&handle.database).await?;
    let types = parameters.fields().iter();
    let types: Vec<DataType> = types.map(|field| value_type(field.data_type())).collect();
    let query = &call.shared.server.services.query;
    let stop = call.stop_time();
    let prepared = stop
        .guard(query.prepare_typed(&session, &handle.text, &types))
        .await?;
    Ok(PlannedStatement {
        session,
        prepared,
        rows: Vec::new(),
    })
}

/// The type of a column's values.
fn value_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, value) => value_type(value),
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        kind => kind.clone(),
    }
}

/// What `GetFlightInfo` tells of a statement; `to_ticket` makes the ticket of a handle.
///
/// # Errors
/// If the statement is wrong, or if it has no rows and failed.
pub(super) async fn info(
    call: &FlightCall,
    mut handle: FlightHandle,
    descriptor: FlightDescriptor,
    to_ticket: impl FnOnce(&FlightHandle) -> Ticket,
) -> Result<FlightInfo, FlightFault> {
    let permit = call.enter()?;
    let planned = plan(call, &handle).await?;
    let Some(schema) = planned.prepared.schema() else {
        let rows = carry_out(call, planned).await?;
        drop(permit);
        let info = info_of(&Schema::empty(), descriptor)?;
        return Ok(info.with_total_records(i64::try_from(rows).unwrap_or(i64::MAX)));
    };
    handle.database = planned.session.database;
    handle.id = new_statement_id().into();
    let endpoint = FlightEndpoint::new().with_ticket(to_ticket(&handle));
    Ok(info_of(&announced(&schema), descriptor)?.with_endpoint(endpoint))
}

/// What is known before a statement runs.
///
/// # Errors
/// If the schema cannot be written.
pub(super) fn info_of(
    schema: &Schema,
    descriptor: FlightDescriptor,
) -> Result<FlightInfo, FlightFault> {
    let info = FlightInfo::new().try_with_schema(schema);
    let info = info.map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(info.with_descriptor(descriptor).with_ordered(true))
}

/// Runs a statement to its end, once for each row of parameters, and returns the number of rows that
/// it changed.
///
/// # Errors
/// That of the first run that failed; those before it stay done.
pub(super) async fn carry_out(
    call: &FlightCall,
    mut planned: PlannedStatement,
) -> Result<u64, FlightFault> {
    let mut changed = 0;
    let runs = planned.rows.len().max(1);
    for run in 0..runs {
        let parameters = match planned.rows.get(run) {
            Some(row) => to_parameters(row, planned.prepared.parameters())?,
            None => Vec::new(),
        };
        let stop = call.stop_time();
        let done = stop.guard(run_to_end(call, &mut planned, parameters));
        changed += done.await.map_err(|error| named(error, run, runs))?;
    }
    Ok(changed)
}

/// The error of one of several runs says which one it is.
fn named(error: ServiceError, run: usize, runs: usize) -> FlightFault {
    let mut fault = FlightFault::from(error);
    if runs > 1 {
        fault.message = format!("parameters of row {}: {}", run + 1, fault.message);
    }
    fault
}

async fn run_to_end(
    call: &FlightCall,
    planned: &mut PlannedStatement,
    parameters: Vec<ArrayRef>,
) -> Result<u64, ServiceError> {
    let query = &call.shared.server.services.query;
    let PlannedStatement {
        session, prepared, ..
    } = planned;
    let answer = query.execute_prepared(session, &**prepared, parameters);
    match answer.await? {
        Answer::Done { rows, .. } => Ok(rows),
        Answer::Rows(mut rows) => {
            let mut count = 0;
            while let Some(batch) = rows.batches.try_next().await? {
                count += batch.num_rows() as u64;
            }
            Ok(count)
        }
    }
}

/// The rows of a statement.
///
/// # Errors
/// If it fails before its first rows.
pub(super) async fn rows(
    call: &FlightCall,
    handle: FlightHandle,
) -> Result<AnswerStream, FlightFault> {
    let hold = hold(call, &handle)?;
    if handle.language() == StatementLanguage::InfluxQl {
        return Err(FlightFault::malformed("a handle of InfluxQL has no rows"));
    }
    if handle.parameters.is_empty() {
        let mut session = call.session(&handle.database).await?;
        let query = &call.shared.server.services.query;
        let answer = query.execute(&mut session, &handle.text);
        let answer = hold.guarded(answer).await?;
        return answer::stream(call, as_announced(as_rows(answer)?), hold).await;
    }
    let planned = plan(call, &handle).await?;
    let rows = rows_of_all(call, planned)?;
    answer::stream(call, as_announced(rows), hold).await
}

fn hold(call: &FlightCall, handle: &FlightHandle) -> Result<AnswerHold, FlightFault> {
    let guard =
        (!handle.id.is_empty()).then(|| call.shared.running.begin(&handle.id, &call.identity));
    Ok(AnswerHold {
        _permit: call.enter()?,
        guard,
        stop: call.stop_time(),
    })
}

/// The rows of a statement that runs once for each row of parameters, one after the other.
fn rows_of_all(call: &FlightCall, planned: PlannedStatement) -> Result<RowStream, FlightFault> {
    let PlannedStatement {
        session,
        prepared,
        rows,
    } = planned;
    let schema = prepared
        .schema()
        .ok_or_else(|| FlightFault::malformed("the statement has no rows"))?;
    let parameters = rows
        .iter()
        .map(|row| to_parameters(row, prepared.parameters()))
        .collect::<Result<Vec<_>, _>>()?;
    let query = Arc::clone(&call.shared.server.services.query);
    let runs = futures::stream::iter(parameters).then(move |parameters| {
        let (query, prepared) = (Arc::clone(&query), Arc::clone(&prepared));
        let mut session = session.clone();
        async move {
            let answer = query.execute_prepared(&mut session, &*prepared, parameters);
            match answer.await? {
                Answer::Rows(rows) => Ok(rows.batches),
                Answer::Done { .. } => Ok(futures::stream::empty().boxed()),
            }
        }
    });
    Ok(RowStream::new(schema, runs.try_flatten().boxed()))
}

/// An answer as rows; one without rows says what was done.
fn as_rows(answer: Answer) -> Result<RowStream, FlightFault> {
    let (tag, rows) = match answer {
        Answer::Rows(rows) => return Ok(rows),
        Answer::Done { tag, rows, .. } => (tag, rows),
    };
    let columns: [(&str, ArrayRef); 2] = [
        ("tag", Arc::new(StringArray::from(vec![tag]))),
        ("rows_affected", Arc::new(UInt64Array::from(vec![rows]))),
    ];
    let batch = RecordBatch::try_from_iter(columns)
        .map_err(|error| ServiceError::Internal(error.to_string()))?;
    let schema = batch.schema();
    Ok(RowStream::new(
        schema,
        futures::stream::iter([Ok(batch)]).boxed(),
    ))
}

/// The rows of a query in the ticket of one of InfluxDB 3's clients.
///
/// # Errors
/// If the ticket is wrong, or the query fails before its first rows.
pub(super) async fn rows_of_ticket(
    call: &FlightCall,
    ticket: &[u8],
) -> Result<AnswerStream, FlightFault> {
    let asked = QueryTicket::read(ticket)?;
    if has_second_statement(&asked.text) {
        return Err(FlightFault::malformed(
            "a query is one statement; there are several",
        ));
    }
    match &*asked.language {
        "sql" => {
            let text = bound_sql(&asked.text, &asked.params)?;
            let text = text.trim().trim_end_matches(';');
            let handle = FlightHandle::new(&asked.database, text, StatementLanguage::Sql);
            rows(call, handle).await
        }
        "influxql" => influxql(call, asked).await,
        other => Err(FlightFault::malformed(format!(
            "query_type '{other}' is not known; there are sql and influxql"
        ))),
    }
}

async fn influxql(call: &FlightCall, asked: QueryTicket) -> Result<AnswerStream, FlightFault> {
    let hold = AnswerHold {
        _permit: call.enter()?,
        guard: None,
        stop: call.stop_time(),
    };
    let mut session = Session::new(&asked.database, call.identity.clone());
    session.statement_timeout = call.shared.server.config.statement_timeout();
    let params = asked.params.into_iter();
    let request = LanguageRequest {
        prelude: String::new(),
        language: Language::InfluxQl,
        text: asked.text,
        retention_policy: None,
        parameters: params
            .map(|(name, value)| (name, bound_parameter(value)))
            .collect(),
    };
    let languages = &call.shared.server.services.languages;
    let mut answers = hold.guarded(languages.run(&session, request)).await?;
    let next = hold.guarded(async { Ok(answers.next().await) }).await?;
    let answer = next.ok_or_else(|| FlightFault::malformed("there is no statement"))?;
    answer::stream(call, as_rows(answer.answer?)?, hold).await
}

/// The columns of a statement's answer.
///
/// # Errors
/// If it is wrong.
pub(super) async fn schema_of(
    call: &FlightCall,
    handle: &FlightHandle,
) -> Result<SchemaRef, FlightFault> {
    let planned = plan(call, handle).await?;
    let schema = planned.prepared.schema();
    Ok(announced(
        &schema.unwrap_or_else(|| Arc::new(Schema::empty())),
    ))
}

/// The schema as clients learn it before the rows come: every column may be NULL. Planning of the
/// rows may show that a column is never NULL, and ADBC refuses rows of another schema.
fn announced(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn as_announced(rows: RowStream) -> RowStream {
    RowStream {
        schema: announced(&rows.schema),
        ..rows
    }
}
