//! What the messages of a WebSocket ask for.

use super::reply::{Reply, ReplyHead, update_fields};
use super::results::{OpenResults, column_fields};
use super::statements::HeldStatements;
use crate::admission::{AdmissionControl, MemoryPermit, RequestPermit};
use crate::http::HttpShared;
use crate::http::connections::ConnectedPeer;
use crate::http::credentials::Credentials;
use crate::http::tdengine::asked::{TaosAnswer, TaosRows, run, session};
use crate::http::tdengine::error::TaosFailure;
use crate::http::tdengine::schemaless::{SchemalessLines, SchemalessProtocol, store};
use crate::http::tdengine::{VERSION, columns};
use axum::body::Bytes;
use marigram_service::Session;
use marigram_tdengine::ast::TaosStatement;
use marigram_tdengine::{BinaryBody, BinaryRequest, is_zone, parse_statement, push_quoted_name};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio_util::sync::CancellationToken;

/// The routes of messages, for figures.
const ROUTE: &str = "ws message";

/// Bytes of the ids and the action of a binary message, and of what stands before bound tables.
const HEAD_BYTES: usize = 24;
const TABLES_AT: usize = 30;

/// The option that sets the zone of a connection.
const OPTION_ZONE: i64 = 1;

/// What a connection has, and what its messages do with it.
pub(super) struct TaosActions {
    pub(super) shared: HttpShared,
    peer: SocketAddr,
    /// Those that came with the request for the WebSocket.
    credentials: Credentials,
    /// The session of the client; `None` before it logged in.
    pub(super) session: Option<Session>,
    results: OpenResults,
    pub(super) statements: HeldStatements,
}

impl TaosActions {
    pub(super) fn new(shared: HttpShared, peer: SocketAddr, credentials: Credentials) -> Self {
        let gate = &shared.server.gate;
        Self {
            results: OpenResults::new(gate.clone()),
            statements: HeldStatements::new(gate.clone()),
            shared,
            peer,
            credentials,
            session: None,
        }
    }

    /// Fires when running requests must stop.
    pub(super) fn kill(&self) -> CancellationToken {
        self.shared.server.kill.clone()
    }

    /// Whether the client has logged in.
    pub(super) fn has_login(&self) -> bool {
        self.session.is_some()
    }

    /// Gives permits for memory.
    pub(super) fn leases(&self) -> AdmissionControl {
        self.shared.server.gate.clone()
    }

    /// A permit that counts for a connection.
    pub(super) fn lease(&self, peer: &ConnectedPeer) -> MemoryPermit {
        self.shared.server.gate.lease_of(peer.held())
    }

    pub(super) fn enter(&self) -> Result<RequestPermit, TaosFailure> {
        let ticket = self.shared.server.gate.enter();
        ticket.ok_or_else(TaosFailure::too_many)
    }

    fn session(&self) -> Result<&Session, TaosFailure> {
        let session = self.session.as_ref();
        session.ok_or_else(|| TaosFailure::other("server not connected"))
    }

    /// Does what a message in JSON asks for.
    ///
    /// # Errors
    /// Why it failed.
    pub(super) async fn text(
        &mut self,
        head: &ReplyHead,
        args: &Value,
    ) -> Result<Reply, TaosFailure> {
        let done = self.text_action(head, args).await;
        self.count(head, done.as_ref().err());
        done
    }

    async fn text_action(&mut self, head: &ReplyHead, args: &Value) -> Result<Reply, TaosFailure> {
        match head.action.as_str() {
            "version" => return Ok(head.done(json!({"version": VERSION}))),
            "conn" => return self.conn(head, args).await,
            _ => {}
        }
        self.session()?;
        let id = || number(args, "id");
        match head.action.as_str() {
            "query" => self.query(head, text(args, "sql")?).await,
            "fetch" => {
                let _ticket = self.enter()?;
                let fields = self.results.fetch(id()?).await?;
                Ok(head.done(fields))
            }
            "fetch_block" => self.results.fetch_block(id()?, head),
            "free_result" => {
                self.results.free(id()?);
                Ok(Reply::None)
            }
            "num_fields" => {
                let count = self.results.column_count(number(args, "result_id")?)?;
                Ok(head.done(json!({"num_fields": count})))
            }
            "get_current_db" => {
                let database = &self.session()?.database;
                Ok(head.done(json!({"db": database})))
            }
            "get_server_info" => Ok(head.done(json!({"info": VERSION}))),
            "options_connection" => self.options(head, args),
            "insert" => self.schemaless(head, args).await,
            _ => self.statement(head, args).await,
        }
    }

    /// Does what a binary message asks for; `message` is the whole of it.
    ///
    /// # Errors
    /// Why it failed.
    pub(super) async fn binary(
        &mut self,
        head: &ReplyHead,
        request: &BinaryRequest<'_>,
        message: &Bytes,
    ) -> Result<Reply, TaosFailure> {
        let done = self.binary_action(head, request, message).await;
        self.count(head, done.as_ref().err());
        done
    }

    async fn binary_action(
        &mut self,
        head: &ReplyHead,
        request: &BinaryRequest<'_>,
        message: &Bytes,
    ) -> Result<Reply, TaosFailure> {
        self.session()?;
        match request.body {
            BinaryBody::Query(sql) => self.query(head, sql).await,
            BinaryBody::FetchRawBlock => {
                let _ticket = self.enter()?;
                Ok(self.results.fetch_raw_block(request.id, head).await)
            }
            BinaryBody::ValidateSql(sql) => {
                let code = match parse_statement(sql) {
                    Ok(_) => 0,
                    Err(error) => error.code.number(),
                };
                Ok(head.done(json!({"result_code": code})))
            }
            BinaryBody::SetTags(block) => {
                let statement = self.statements.get(request.id, false)?;
                statement.set_block_tags(block)?;
                Ok(head.done(Value::Null))
            }
            BinaryBody::Bind(_) => {
                let statement = self.statements.get(request.id, false)?;
                statement.bind_block(message.clone(), HEAD_BYTES).await?;
                Ok(head.done(Value::Null))
            }
            BinaryBody::Stmt2Bind { column, .. } => {
                if column >= 0 {
                    return Err(TaosFailure::other(
                        "binding a single column is not supported",
                    ));
                }
                let statement = self.statements.get(request.id, true)?;
                statement.bind_tables(message.clone(), TABLES_AT).await?;
                Ok(head.done(Value::Null))
            }
            BinaryBody::Malformed(reason) => Err(TaosFailure::other(reason)),
            BinaryBody::Unknown => {
                let message = format!("unknown action {}", request.action);
                Err(TaosFailure::other(message))
            }
        }
    }

    /// Counts a message.
    fn count(&self, head: &ReplyHead, failure: Option<&TaosFailure>) {
        let status = failure.map_or(200, |failure| failure.status.as_u16());
        let telemetry = &self.shared.server.telemetry;
        telemetry.request(ROUTE, status, head.begin);
    }

    /// `conn`: logs in.
    async fn conn(&mut self, head: &ReplyHead, args: &Value) -> Result<Reply, TaosFailure> {
        if self.session.is_some() {
            return Err(TaosFailure::other("duplicate connections"));
        }
        let given = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let credentials = if !given("bearer_token").is_empty() {
            Credentials::Token(given("bearer_token").to_owned())
        } else if self.credentials != Credentials::None {
            self.credentials.clone()
        } else if given("user").is_empty() {
            Credentials::None
        } else {
            Credentials::Password(given("user").to_owned(), given("password").to_owned())
        };
        let identity = self.shared.authenticate(Some(credentials), self.peer).await;
        let identity = identity.map_err(|error| {
            let mut failure = TaosFailure::from(error);
            if failure.status == axum::http::StatusCode::UNAUTHORIZED {
                failure.code = marigram_tdengine::TaosCode::AuthenticationFailure.number();
            }
            failure
        })?;
        let mut session = session(&self.shared.server, "", &identity);
        let zone = given("tz");
        if !is_zone(zone) {
            return Err(columns::unknown_zone(zone).into());
        }
        if !zone.is_empty() {
            zone.clone_into(&mut session.time_zone);
        }
        let database = given("db");
        if !database.is_empty() {
            let _ticket = self.enter()?;
            let mut sql = "USE ".to_owned();
            push_quoted_name(database, &mut sql);
            run(&self.shared.server, &session, &sql).await?;
            database.clone_into(&mut session.database);
        }
        self.session = Some(session);
        Ok(head.done(json!({"version": VERSION})))
    }

    /// `options_connection`: only the zone has a meaning here.
    fn options(&mut self, head: &ReplyHead, args: &Value) -> Result<Reply, TaosFailure> {
        let options = args.get("options").and_then(Value::as_array);
        for option in options.into_iter().flatten() {
            if option.get("option").and_then(Value::as_i64) != Some(OPTION_ZONE) {
                continue;
            }
            let zone = option.get("value").and_then(Value::as_str).unwrap_or("UTC");
            if !is_zone(zone) {
                return Err(columns::unknown_zone(zone).into());
            }
            if let Some(session) = &mut self.session {
                zone.clone_into(&mut session.time_zone);
            }
        }
        Ok(head.done(Value::Null))
    }

    /// Runs a statement.
    async fn query(&mut self, head: &ReplyHead, sql: &str) -> Result<Reply, TaosFailure> {
        let _ticket = self.enter()?;
        let used = used_database(sql);
        match run(&self.shared.server, self.session()?, sql).await? {
            TaosAnswer::Done(rows) => {
                if let (Some(database), Some(session)) = (used, &mut self.session) {
                    session.database = database;
                }
                Ok(head.done(update_fields(rows)))
            }
            TaosAnswer::Rows(rows) => self.keep(head, rows, "id"),
        }
    }

    /// Keeps rows as a result, and tells its columns.
    pub(super) fn keep(
        &mut self,
        head: &ReplyHead,
        rows: TaosRows,
        id_name: &str,
    ) -> Result<Reply, TaosFailure> {
        let mut fields = column_fields(&rows.columns);
        let id = self.results.keep(rows)?;
        if let Some(fields) = fields.as_object_mut() {
            fields.insert(id_name.to_owned(), id.into());
        }
        Ok(head.done(fields))
    }

    /// `insert`: lines of other protocols.
    async fn schemaless(&mut self, head: &ReplyHead, args: &Value) -> Result<Reply, TaosFailure> {
        let _ticket = self.enter()?;
        let protocol = args.get("protocol").and_then(Value::as_u64);
        let protocol = protocol.and_then(SchemalessProtocol::of_number);
        let protocol = protocol
            .ok_or_else(|| TaosFailure::other("schemaless write protocol is not supported"))?;
        let given = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let lines = SchemalessLines {
            protocol,
            precision: given("precision"),
            name_key: given("table_name_key"),
            data: given("data").as_bytes(),
        };
        let session = self.session()?;
        let rows = store(&self.shared.server, session, lines).await?;
        let telemetry = &self.shared.server.telemetry;
        telemetry.rows(ROUTE, rows);
        Ok(head.done(json!({"affected_rows": rows, "total_rows": rows})))
    }
}

/// The text of an argument.
pub(super) fn text<'a>(args: &'a Value, name: &str) -> Result<&'a str, TaosFailure> {
    let text = args.get(name).and_then(Value::as_str);
    text.ok_or_else(|| TaosFailure::other(format!("the argument {name} is missing")))
}

/// The number of an argument.
pub(super) fn number(args: &Value, name: &str) -> Result<u64, TaosFailure> {
    let number = args.get(name).and_then(Value::as_u64);
    number.ok_or_else(|| TaosFailure::other(format!("the argument {name} is missing")))
}

/// The database that a statement selects for the connection.
fn used_database(sql: &str) -> Option<String> {
    let sql = sql.trim_start();
    if !sql.get(..3)?.eq_ignore_ascii_case("use") {
        return None;
    }
    match parse_statement(sql) {
        Ok(TaosStatement::UseDatabase(database)) => Some(database),
        _ => None,
    }
}
