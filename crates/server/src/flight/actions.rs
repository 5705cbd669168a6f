//! `DoAction`: prepare a statement, and stop one that runs.

use super::call::FlightCall;
use super::fault::FlightFault;
use super::ingest::no_transactions;
use super::running_statements::cancel_progress;
use super::statements;
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, Any, Command, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo,
    IpcMessage, Result as ActionResult, SchemaAsIpc,
};
use marigram_protocol::flight::{FlightHandle, StatementLanguage};
use marigram_service::ServiceError;
use prost::Message;
use prost::bytes::Bytes;

const PREPARE: &str = "CreatePreparedStatement";
const CLOSE: &str = "ClosePreparedStatement";
const CANCEL: &str = "CancelFlightInfo";
/// What clients sent before there was [`CANCEL`].
const CANCEL_QUERY: &str = "CancelQuery";

/// The actions that there are.
pub(super) fn all() -> Vec<ActionType> {
    [
        (PREPARE, "Prepares a statement"),
        (CLOSE, "Ends the use of a prepared statement"),
        (CANCEL, "Stops the statement of a FlightInfo"),
        (
            CANCEL_QUERY,
            "Stops the statement of a FlightInfo, as older clients ask",
        ),
    ]
    .map(|(name, description)| ActionType {
        r#type: name.to_owned(),
        description: description.to_owned(),
    })
    .into()
}

/// Carries an action out.
///
/// # Errors
/// If there is no such action, or it fails.
pub(super) async fn act(
    call: &FlightCall,
    action: Action,
) -> Result<Vec<ActionResult>, FlightFault> {
    match &*action.r#type {
        PREPARE => {
            let asked = unpacked::<ActionCreatePreparedStatementRequest>(&action.body)?;
            let result = prepare(call, asked).await?;
            Ok(vec![ActionResult {
                body: result.as_any().encode_to_vec().into(),
            }])
        }
        // A handle holds all that there is of a statement.
        CLOSE => Ok(Vec::new()),
        CANCEL => {
            let asked = CancelFlightInfoRequest::decode(&*action.body);
            let asked = asked.map_err(|error| FlightFault::malformed(error.to_string()))?;
            let status = cancel(call, asked.info.as_ref());
            let result = CancelFlightInfoResult {
                status: status.into(),
            };
            Ok(vec![ActionResult {
                body: result.encode_to_vec().into(),
            }])
        }
        CANCEL_QUERY => {
            let asked = unpacked::<ActionCancelQueryRequest>(&action.body)?;
            let info = FlightInfo::decode(&*asked.info);
            let info = info.map_err(|error| FlightFault::malformed(error.to_string()))?;
            // The numbers of CancelStatus are those of the older result.
            let result = ActionCancelQueryResult {
                result: cancel(call, Some(&info)).into(),
            };
            Ok(vec![ActionResult {
                body: result.as_any().encode_to_vec().into(),
            }])
        }
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            Err(no_transactions())
        }
        other => {
            let name: String = other.chars().take(100).collect();
            Err(FlightFault::unsupported(format!(
                "the action '{name}' is not offered here; there are {PREPARE}, {CLOSE} and {CANCEL}"
            )))
        }
    }
}

fn unpacked<T: ProstMessageExt>(body: &[u8]) -> Result<T, FlightFault> {
    let malformed = |error: String| FlightFault::malformed(error);
    let any = Any::decode(body).map_err(|error| malformed(error.to_string()))?;
    let found = any
        .unpack::<T>()
        .map_err(|error| malformed(error.to_string()))?;
    found.ok_or_else(|| malformed(format!("the action's body is not {}", T::type_url())))
}

async fn prepare(
    call: &FlightCall,
    asked: ActionCreatePreparedStatementRequest,
) -> Result<ActionCreatePreparedStatementResult, FlightFault> {
    if asked.transaction_id.is_some_and(|id| !id.is_empty()) {
        return Err(no_transactions());
    }
    let _permit = call.enter()?;
    let mut handle = FlightHandle::new("", &asked.query, StatementLanguage::Sql);
    let planned = statements::plan(call, &handle).await?;
    handle.database = planned.session.database;
    let parameters = planned.prepared.parameters().iter().enumerate();
    let parameters: Vec<Field> = parameters
        .map(|(at, kind)| Field::new(format!("${}", at + 1), kind.clone(), true))
        .collect();
    let written = |schema: &Schema| {
        let message = SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into();
        let message = message.map(|IpcMessage(bytes)| bytes);
        message.map_err(|error: arrow::error::ArrowError| {
            FlightFault::from(ServiceError::Internal(error.to_string()))
        })
    };
    Ok(ActionCreatePreparedStatementResult {
        prepared_statement_handle: handle.write(),
        dataset_schema: match planned.prepared.schema() {
            Some(schema) => written(&schema)?,
            None => Bytes::new(),
        },
        parameter_schema: if parameters.is_empty() {
            Bytes::new()
        } else {
            written(&Schema::new(parameters))?
        },
    })
}

/// Stops the statement of what `GetFlightInfo` told.
fn cancel(call: &FlightCall, info: Option<&FlightInfo>) -> CancelStatus {
    let endpoints = info.map(|info| &*info.endpoint).unwrap_or_default();
    let tickets = endpoints
        .iter()
        .filter_map(|endpoint| endpoint.ticket.as_ref());
    let ids = tickets.filter_map(|ticket| statement_id(&ticket.ticket));
    let statuses = ids.filter_map(|id| call.shared.running.stop(&id, &call.identity));
    statuses
        .max_by_key(|status| cancel_progress(*status))
        .unwrap_or(CancelStatus::NotCancellable)
}

/// The number of the statement in a ticket.
fn statement_id(ticket: &[u8]) -> Option<Bytes> {
    let handle = match Command::try_from(Any::decode(ticket).ok()?).ok()? {
        Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) => {
            statement_handle
        }
        Command::CommandPreparedStatementQuery(asked) => asked.prepared_statement_handle,
        _ => return None,
    };
    let id = FlightHandle::read(&handle)?.id;
    Some(id).filter(|id| !id.is_empty())
}
