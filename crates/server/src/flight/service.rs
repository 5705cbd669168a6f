//! The calls of Arrow Flight, and which part answers each.

use super::answer::{self, AnswerHold, AnswerStream};
use super::call::{FlightCall, FlightShared, HandshakeProof};
use super::fault::FlightFault;
use super::incoming_rows::IncomingRows;
use super::ingest::{self, IngestTarget, no_transactions};
use super::login_sessions::LoggedIn;
use super::parameters::BOUND_BYTES_MAX;
use super::server_info::ServerInfo;
use super::{actions, catalogs, statements};
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{
    Any, Command, CommandPreparedStatementQuery, DoPutPreparedStatementResult, DoPutUpdateResult,
    ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, Result as ActionResult, SchemaAsIpc,
    SchemaResult, Ticket,
};
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_protocol::flight::{
    ArrowLimits, ArrowMessages, BoundMessage, FlightHandle, QueryTicket, StatementLanguage,
};
use marigram_service::{RowStream, ServiceError};
use prost::Message;
use prost::bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Response, Status, Streaming};

/// The Flight service over a database.
#[derive(Clone)]
pub(super) struct FlightSqlServer {
    shared: Arc<FlightShared>,
    info: Arc<ServerInfo>,
}

type Answers<T> = BoxStream<'static, Result<T, Status>>;

impl FlightSqlServer {
    /// Serves `shared`.
    pub(super) fn new(shared: Arc<FlightShared>, info: ServerInfo) -> Self {
        let info = Arc::new(info);
        Self { shared, info }
    }

    fn call<T>(&self, route: &'static str, request: &Request<T>) -> Result<FlightCall, Status> {
        FlightCall::new(&self.shared, route, request)
    }

    async fn flight_info(
        &self,
        call: &FlightCall,
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo, FlightFault> {
        let command = command_of(&descriptor.cmd)?;
        match command {
            Command::CommandStatementQuery(asked) => {
                check_transaction(asked.transaction_id.as_ref())?;
                let handle = FlightHandle::new("", &asked.query, StatementLanguage::Sql);
                statements::info(call, handle, descriptor, |handle| {
                    let statement_handle = handle.write();
                    ticket_of(&TicketStatementQuery { statement_handle })
                })
                .await
            }
            Command::CommandPreparedStatementQuery(asked) => {
                let handle = handle_of(&asked.prepared_statement_handle)?;
                statements::info(call, handle, descriptor, |handle| {
                    let prepared_statement_handle = handle.write();
                    ticket_of(&CommandPreparedStatementQuery {
                        prepared_statement_handle,
                    })
                })
                .await
            }
            other => {
                let schema = self.catalog_schema(&other)?;
                let ticket = Ticket::new(descriptor.cmd.clone());
                let endpoint = FlightEndpoint::new().with_ticket(ticket);
                Ok(statements::info_of(&schema, descriptor)?.with_endpoint(endpoint))
            }
        }
    }

    /// The columns of the answer to a command about databases and tables.
    fn catalog_schema(&self, command: &Command) -> Result<SchemaRef, FlightFault> {
        Ok(match command {
            Command::CommandGetCatalogs(asked) => asked.into_builder().schema(),
            Command::CommandGetDbSchemas(asked) => asked.clone().into_builder().schema(),
            Command::CommandGetTables(asked) => catalogs::tables_schema(asked),
            Command::CommandGetTableTypes(_) => catalogs::table_types()?.schema,
            Command::CommandGetSqlInfo(_) => self.info.sql.schema(),
            Command::CommandGetXdbcTypeInfo(_) => self.info.types.schema(),
            Command::CommandGetPrimaryKeys(_) => catalogs::primary_keys_schema(),
            Command::CommandGetExportedKeys(_)
            | Command::CommandGetImportedKeys(_)
            | Command::CommandGetCrossReference(_) => catalogs::foreign_keys_schema(),
            other => return Err(unsupported_command(other)),
        })
    }

    async fn catalog_rows(
        &self,
        call: &FlightCall,
        command: Command,
    ) -> Result<RowStream, FlightFault> {
        let internal = |error: arrow_flight::error::FlightError| {
            FlightFault::from(ServiceError::Internal(error.to_string()))
        };
        Ok(match command {
            Command::CommandGetCatalogs(_) => catalogs::catalogs(call).await?,
            Command::CommandGetDbSchemas(asked) => catalogs::schemas(call, asked).await?,
            Command::CommandGetTables(asked) => catalogs::tables(call, asked).await?,
            Command::CommandGetTableTypes(_) => catalogs::table_types()?,
            Command::CommandGetSqlInfo(mut asked) => {
                // Each costs a pass over the list.
                asked.info.sort_unstable();
                asked.info.dedup();
                asked.info.truncate(SQL_INFOS_MAX);
                catalogs::rows_of(
                    asked
                        .into_builder(&self.info.sql)
                        .build()
                        .map_err(internal)?,
                )
            }
            Command::CommandGetXdbcTypeInfo(asked) => catalogs::rows_of(
                asked
                    .into_builder(&self.info.types)
                    .build()
                    .map_err(internal)?,
            ),
            Command::CommandGetPrimaryKeys(asked) => catalogs::primary_keys(call, asked).await?,
            other => catalogs::nothing(self.catalog_schema(&other)?),
        })
    }

    async fn answer(&self, call: &FlightCall, ticket: &[u8]) -> Result<AnswerStream, FlightFault> {
        if QueryTicket::is_json(ticket) {
            return statements::rows_of_ticket(call, ticket).await;
        }
        match command_of(ticket)? {
            Command::TicketStatementQuery(asked) => {
                statements::rows(call, handle_of(&asked.statement_handle)?).await
            }
            Command::CommandPreparedStatementQuery(asked) => {
                statements::rows(call, handle_of(&asked.prepared_statement_handle)?).await
            }
            other => {
                let hold = AnswerHold {
                    _permit: call.enter()?,
                    guard: None,
                    stop: call.stop_time(),
                };
                let rows = self.catalog_rows(call, other);
                let rows = hold.guarded_call(rows).await?;
                answer::stream(call, rows, hold).await
            }
        }
    }

    async fn put(
        &self,
        call: &FlightCall,
        messages: Streaming<FlightData>,
    ) -> Result<PutResult, FlightFault> {
        let limit = call.shared.server.config.body_limit;
        let (descriptor, incoming) = IncomingRows::begin(messages, limit).await?;
        if descriptor.r#type() == DescriptorType::Path {
            let target = IngestTarget::from_path(descriptor.path)?;
            return updated(ingest::store(call, target, incoming).await?);
        }
        match command_of(&descriptor.cmd)? {
            Command::CommandStatementUpdate(asked) => {
                check_transaction(asked.transaction_id.as_ref())?;
                let _permit = call.enter()?;
                let handle = FlightHandle::new("", &asked.query, StatementLanguage::Sql);
                let planned = statements::plan(call, &handle).await?;
                let rows = statements::carry_out(call, planned).await?;
                updated(usize::try_from(rows).unwrap_or(usize::MAX))
            }
            Command::CommandStatementIngest(asked) => {
                let target = IngestTarget::from_command(asked)?;
                updated(ingest::store(call, target, incoming).await?)
            }
            Command::CommandPreparedStatementQuery(asked) => {
                let mut handle = handle_of(&asked.prepared_statement_handle)?;
                handle.parameters = bind(call, incoming).await?;
                let result = DoPutPreparedStatementResult {
                    prepared_statement_handle: Some(handle.write()),
                };
                Ok(put_result(&result))
            }
            Command::CommandPreparedStatementUpdate(asked) => {
                let handle = handle_of(&asked.prepared_statement_handle)?;
                let rows = update_rows(call, handle, incoming).await?;
                updated(usize::try_from(rows).unwrap_or(usize::MAX))
            }
            other => Err(unsupported_command(&other)),
        }
    }

    async fn schema(
        &self,
        call: &FlightCall,
        descriptor: FlightDescriptor,
    ) -> Result<SchemaResult, FlightFault> {
        let schema = match command_of(&descriptor.cmd)? {
            Command::CommandStatementQuery(asked) => {
                let handle = FlightHandle::new("", &asked.query, StatementLanguage::Sql);
                statements::schema_of(call, &handle).await?
            }
            Command::CommandPreparedStatementQuery(asked) => {
                let handle = handle_of(&asked.prepared_statement_handle)?;
                statements::schema_of(call, &handle).await?
            }
            other => self.catalog_schema(&other)?,
        };
        let result = SchemaAsIpc::new(&schema, &IpcWriteOptions::default()).try_into();
        result.map_err(|error: arrow::error::ArrowError| {
            ServiceError::Internal(error.to_string()).into()
        })
    }
}

/// Values of `GetSqlInfo` that a client may ask for at once; there are fewer.
const SQL_INFOS_MAX: usize = 1000;

/// The command in a descriptor or ticket.
fn command_of(bytes: &[u8]) -> Result<Command, FlightFault> {
    let any = Any::decode(bytes).map_err(|error| {
        FlightFault::malformed(format!("this is not a command of Flight SQL: {error}"))
    })?;
    Command::try_from(any).map_err(|error| FlightFault::malformed(error.to_string()))
}

fn unsupported_command(command: &Command) -> FlightFault {
    let url: String = command.type_url().chars().take(100).collect();
    FlightFault::unsupported(format!("the command '{url}' is not offered here"))
}

fn handle_of(bytes: &[u8]) -> Result<FlightHandle, FlightFault> {
    FlightHandle::read(bytes)
        .ok_or_else(|| FlightFault::malformed("this is not the handle of a statement"))
}

fn check_transaction(id: Option<&Bytes>) -> Result<(), FlightFault> {
    match id {
        Some(id) if !id.is_empty() => Err(no_transactions()),
        _ => Ok(()),
    }
}

fn ticket_of(command: &impl ProstMessageExt) -> Ticket {
    Ticket::new(command.as_any().encode_to_vec())
}

fn put_result(message: &impl Message) -> PutResult {
    PutResult {
        app_metadata: message.encode_to_vec().into(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it ends the arms of a match")]
fn updated(rows: usize) -> Result<PutResult, FlightFault> {
    let record_count = i64::try_from(rows).unwrap_or(i64::MAX);
    Ok(put_result(&DoPutUpdateResult { record_count }))
}

/// The messages that bind parameters, once each was read and found whole.
async fn bind(
    call: &FlightCall,
    mut incoming: IncomingRows,
) -> Result<Vec<BoundMessage>, FlightFault> {
    let mut reader = ArrowMessages::new(ArrowLimits {
        dictionary_bytes: BOUND_BYTES_MAX,
    });
    let (mut bound, mut bytes) = (Vec::new(), 0);
    while let Some(message) = incoming.message(call).await? {
        let FlightData {
            data_header: header,
            data_body: body,
            ..
        } = message;
        bytes += header.len() + body.len();
        if bytes > BOUND_BYTES_MAX {
            let message = format!(
                "the parameters are larger than {BOUND_BYTES_MAX} bytes; send them in parts, or \
                 ingest the rows"
            );
            return Err(FlightFault::new(Code::ResourceExhausted, "54000", message));
        }
        reader.read(&header, body.clone())?;
        if !header.is_empty() {
            bound.push(BoundMessage { header, body });
        }
    }
    Ok(bound)
}

/// Runs a prepared statement for each row of a stream; once if there are none.
async fn update_rows(
    call: &FlightCall,
    handle: FlightHandle,
    mut incoming: IncomingRows,
) -> Result<u64, FlightFault> {
    let (mut changed, mut runs) = (0, 0);
    while let Some(batch) = incoming.next(call).await? {
        let _permit = call.enter()?;
        let mut planned = statements::plan_for(call, &handle, &batch.schema()).await?;
        planned.rows = (0..batch.num_rows())
            .map(|row| batch.slice(row, 1))
            .collect();
        if !planned.rows.is_empty() {
            runs += planned.rows.len();
            changed += statements::carry_out(call, planned).await?;
        }
    }
    if runs > 0 {
        return Ok(changed);
    }
    let _permit = call.enter()?;
    let planned = statements::plan(call, &handle).await?;
    statements::carry_out(call, planned).await
}

fn one<T: Send + 'static>(answer: T) -> Answers<T> {
    futures::stream::iter([Ok(answer)]).boxed()
}

#[async_trait]
impl FlightService for FlightSqlServer {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = AnswerStream;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<ActionResult>;
    type ListActionsStream = Answers<ActionType>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        let call = self.call("flight/Handshake", &request)?;
        let token = match &call.proof {
            Some(HandshakeProof::Token(token)) => token.clone(),
            Some(HandshakeProof::Password(verifiers)) => {
                let client = LoggedIn {
                    identity: call.identity.clone(),
                    verifiers: verifiers.clone(),
                };
                self.shared.sessions.begin(client, Instant::now())
            }
            None => return Err(Status::internal("the call did not pass the gate")),
        };
        let header = format!("Bearer {token}");
        let header = MetadataValue::try_from(header).map_err(|error| {
            FlightFault::from(ServiceError::Internal(error.to_string())).to_status()
        })?;
        let answer = HandshakeResponse {
            protocol_version: 0,
            payload: token.into(),
        };
        let mut response = call.finish(Ok(one(answer)))?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        let call = self.call("flight/ListFlights", &request)?;
        call.finish(Err(FlightFault::unsupported(
            "ListFlights is not offered here; GetTables of Flight SQL lists the tables",
        )))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let call = self.call("flight/GetFlightInfo", &request)?;
        let done = self.flight_info(&call, request.into_inner()).await;
        call.finish(done)
    }

    async fn poll_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        let call = self.call("flight/PollFlightInfo", &request)?;
        // Nothing runs before its rows are fetched, so every statement is ready at once.
        let done = self.flight_info(&call, request.into_inner()).await;
        call.finish(done.map(|info| PollInfo::new().with_info(info)))
    }

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        let call = self.call("flight/GetSchema", &request)?;
        let done = self.schema(&call, request.into_inner()).await;
        call.finish(done)
    }

    async fn do_get(
        &self,
        request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        let call = self.call("flight/DoGet", &request)?;
        let done = self.answer(&call, &request.into_inner().ticket).await;
        call.finish(done)
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        let call = self.call("flight/DoPut", &request)?;
        let done = self.put(&call, request.into_inner()).await;
        call.finish(done.map(one))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        let call = self.call("flight/DoExchange", &request)?;
        call.finish(Err(FlightFault::unsupported(
            "DoExchange is not offered here",
        )))
    }

    async fn do_action(
        &self,
        request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        let call = self.call("flight/DoAction", &request)?;
        let done = actions::act(&call, request.into_inner()).await;
        call.finish(done.map(|answers| futures::stream::iter(answers).map(Ok).boxed()))
    }

    async fn list_actions(
        &self,
        request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        let call = self.call("flight/ListActions", &request)?;
        call.finish(Ok(futures::stream::iter(actions::all()).map(Ok).boxed()))
    }
}
