//! A connection from its first message to its last: startup, simple queries, and the order of the
//! extended protocol.

use crate::failures::{RequestFailure, kind_of};
use crate::postgres::cancel::RegistryEntry;
use crate::postgres::control::{ControlStatement, recognize};
use crate::postgres::error::PgError;
use crate::postgres::io::{ConnectionEnd, HaltWatch, PostgresSocket, StatementHalt};
use crate::postgres::login::log_in;
use crate::postgres::messages::{FrontendMessage, put_text};
use crate::postgres::opening::{ClientStartup, read_startup};
use crate::postgres::portal::{
    NamedStatement, Portal, PortalLifetime, PortalProgress, StatementKind, classify,
};
use crate::postgres::savepoints::Savepoints;
use crate::postgres::setting_scope::{SessionSettings, SettingScope};
use crate::postgres::{PostgresShared, SERVER_VERSION};
use crate::slow_log::PEER;
use crate::tls::ClientStream;
use bytes::BufMut;
use marigram_pgtext::{ScriptPiece, split_script};
use marigram_service::{Identity, ServiceError, Session, SessionTransaction, TransactionStep};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

/// Time in which a client must complete its startup.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// The transaction state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionState {
    /// None.
    Idle,
    /// Within BEGIN and COMMIT.
    Open,
    /// The same, after an error.
    Failed,
}

impl TransactionState {
    /// The letter in `ReadyForQuery`.
    pub(super) fn letter(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Open => b'T',
            Self::Failed => b'E',
        }
    }
}

/// A connection.
pub(super) struct PostgresConnection<'a> {
    pub(super) shared: &'a PostgresShared,
    pub(super) io: PostgresSocket,
    pub(super) session: Session,
    /// Settings of the session when it began.
    pub(super) at_startup: SessionSettings,
    /// Settings before the first `SET LOCAL` of the transaction.
    pub(super) at_set_local: Option<SessionSettings>,
    pub(super) entry: RegistryEntry,
    pub(super) block: TransactionState,
    /// Whether a statement of the transaction block changed something, since its last savepoint.
    pub(super) has_changed: bool,
    pub(super) savepoints: Savepoints,
    pub(super) statements: HashMap<String, Arc<NamedStatement>>,
    pub(super) portals: HashMap<String, Portal>,
}

impl<'a> PostgresConnection<'a> {
    /// Serves a client until it disconnects. It takes one of `places` once it has said what it wants;
    /// if there is none, it gets an error.
    ///
    /// # Errors
    /// Why the connection ended, other than at the client's request.
    pub(super) async fn run(
        socket: TcpStream,
        shared: &'a PostgresShared,
        places: Arc<Semaphore>,
    ) -> Result<(), ConnectionEnd> {
        let limit = shared
            .server
            .gate
            .body_limit("body_limit", shared.server.config.body_limit);
        let write_timeout = shared.server.config.write_timeout();
        // Before the login, messages are as small as those of a startup.
        let stream = ClientStream::plain(socket);
        let mut io = PostgresSocket::new(stream, 0, &shared.server.gate, write_timeout);
        let until = tokio::time::Instant::now() + STARTUP_TIMEOUT;
        let opening = shared.openings.enter();
        let startup = tokio::select! {
            read = timeout_at(until, read_startup(&mut io, shared)) => read,
            () = opening.must_end() => return Ok(()),
            () = shared.stop.cancelled() => return Err(ConnectionEnd::Stopping),
        };
        drop(opening);
        let startup = match startup {
            Ok(Ok(Some(startup))) => startup,
            // A request to cancel, or a client that did not complete its startup in time.
            Ok(Ok(None)) | Err(_) => return Ok(()),
            Ok(Err(halt)) => return Self::refuse(io, halt, shared).await,
        };
        // Held until the connection ends.
        let place = places.try_acquire_owned().ok();
        let open = Self::open(&mut io, shared, startup, place.is_some());
        let opened = tokio::select! {
            opened = timeout_at(until, open) => opened,
            () = shared.stop.cancelled() => return Err(ConnectionEnd::Stopping),
        };
        let (session, entry) = match opened {
            Ok(Ok(opened)) => opened,
            Err(_) => return Ok(()),
            Ok(Err(halt)) => return Self::refuse(io, halt, shared).await,
        };
        io.allow_messages_of(limit.bytes);
        let mut connection = Self {
            shared,
            io,
            at_startup: SessionSettings::of_session(&session),
            at_set_local: None,
            session,
            entry,
            block: TransactionState::Idle,
            has_changed: false,
            savepoints: Savepoints::default(),
            statements: HashMap::new(),
            portals: HashMap::new(),
        };
        match connection.serve().await {
            Ok(()) => {
                connection.io.close().await;
                Ok(())
            }
            Err(gone) => Self::part(connection.io, gone, &shared.stop).await,
        }
    }

    /// Tells a client why it gets no session.
    async fn refuse(
        mut io: PostgresSocket,
        halt: StatementHalt,
        shared: &PostgresShared,
    ) -> Result<(), ConnectionEnd> {
        let error = match halt {
            StatementHalt::Gone(gone) => return Self::part(io, gone, &shared.stop).await,
            StatementHalt::Error(error) => error,
        };
        if let Ok(peer) = PEER.try_with(|peer| *peer) {
            let failure = RequestFailure {
                code: error.sqlstate,
                error: error.message.clone(),
                statement: None,
            };
            let failures = &shared.server.telemetry.failures;
            failures.note_refused("postgres connect", 400, &failure, peer);
        }
        PgError {
            fatal: true,
            ..error
        }
        .write(&mut io.out);
        io.flush().await?;
        io.close().await;
        Ok(())
    }

    /// Tells the client why the connection ends, if possible.
    async fn part(
        mut io: PostgresSocket,
        gone: ConnectionEnd,
        stop: &CancellationToken,
    ) -> Result<(), ConnectionEnd> {
        let error = match &gone {
            ConnectionEnd::Socket(_) => return Err(gone),
            // A client of another protocol would misread any message. A stalled client does not
            // read at all.
            ConnectionEnd::Foreign | ConnectionEnd::Stalled => {
                tracing::info!(reason = %gone, "a PostgreSQL connection is closed");
                return Err(gone);
            }
            ConnectionEnd::Slow => PgError::fatal("57P05", gone.to_string()),
            ConnectionEnd::Malformed(malformed) => PgError::fatal("08P01", malformed.to_string()),
            ConnectionEnd::Full(_) => PgError::fatal("53200", gone.to_string()),
            ConnectionEnd::Stopping => {
                PgError::fatal("57P01", "the server is stopping; connect again later")
            }
        };
        error.write(&mut io.out);
        // The client may not be reading.
        let told = tokio::time::timeout(Duration::from_secs(1), io.flush()).await;
        if matches!(told, Ok(Ok(()))) {
            io.linger(stop.clone()).await;
        }
        Err(gone)
    }

    /// Lets the client log in, and begins its session.
    async fn open(
        io: &mut PostgresSocket,
        shared: &PostgresShared,
        startup: ClientStartup,
        place: bool,
    ) -> Result<(Session, RegistryEntry), StatementHalt> {
        if !place {
            let max = shared.server.config.connections_max;
            let message = format!("all {max} connections are taken; close some or try again");
            return Err(PgError::fatal("53300", message).into());
        }
        let parameter = |name: &str| startup.parameter(name);
        let (minor, parameters) = (startup.minor, &startup.parameters);
        let unknown: Vec<_> = parameters
            .iter()
            .map(|(name, _)| name)
            .filter(|name| name.starts_with("_pq_."))
            .collect();
        if minor > 0 || !unknown.is_empty() {
            io.out.message(b'v', |body| {
                body.put_u32(3 << 16);
                body.put_u32(unknown.len() as u32);
                for name in &unknown {
                    put_text(body, name);
                }
            });
        }
        let user = parameter("user").unwrap_or("postgres");
        let identity = log_in(io, shared, user).await?;
        let mut session = open_session(shared, parameter("database"), &identity).await?;
        session.statement_timeout = shared.server.config.statement_timeout();
        apply_settings(shared, &mut session, parameters).await?;
        let entry = shared.registry.enter();
        let out = &mut io.out;
        out.message(b'R', |body| body.put_u32(0));
        for (name, value) in [
            ("server_version", SERVER_VERSION),
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO, MDY"),
            ("IntervalStyle", "postgres"),
            ("TimeZone", &session.time_zone),
            ("integer_datetimes", "on"),
            ("standard_conforming_strings", "on"),
            (
                "is_superuser",
                if session.rights.is_administrator {
                    "on"
                } else {
                    "off"
                },
            ),
            ("session_authorization", user),
            ("default_transaction_read_only", "off"),
            ("in_hot_standby", "off"),
            (
                "application_name",
                parameter("application_name").unwrap_or(""),
            ),
        ] {
            out.parameter_status(name, value);
        }
        out.message(b'K', |body| {
            body.put_i32(entry.process);
            body.put_i32(entry.secret);
        });
        out.ready(b'I');
        io.flush().await?;
        Ok((session, entry))
    }

    async fn serve(&mut self) -> Result<(), ConnectionEnd> {
        // After an error in the extended protocol, messages are skipped until Sync.
        let mut skipping = false;
        loop {
            let message = tokio::select! {
                message = self.io.next() => message?,
                () = self.shared.stop.cancelled() => return Err(ConnectionEnd::Stopping),
                () = idle_in_transaction(&self.session) => return self.end_idle().await,
            };
            let begin = Instant::now();
            let done = match message {
                FrontendMessage::Terminate => return Ok(()),
                FrontendMessage::Query(sql) => {
                    skipping = false;
                    let done = self.simple(&sql).await;
                    self.count(("postgres simple", Some(&sql)), &done, begin);
                    self.report(done)?;
                    self.end_cycle().await?;
                    continue;
                }
                FrontendMessage::Sync => {
                    skipping = false;
                    self.end_cycle().await?;
                    continue;
                }
                // The rest of a COPY that ended early, and unrequested passwords.
                FrontendMessage::CopyData(_)
                | FrontendMessage::CopyDone
                | FrontendMessage::CopyFail(_)
                | FrontendMessage::Password(_) => continue,
                _ if skipping => continue,
                FrontendMessage::Flush => self.io.flush().await.map_err(StatementHalt::from),
                FrontendMessage::Parse { name, sql, types } => self.parse(name, sql, types).await,
                FrontendMessage::Bind(bind) => self.bind(bind),
                FrontendMessage::Describe { kind, name } => self.describe(kind, &name),
                FrontendMessage::Close { kind, name } => self.close(kind, &name),
                FrontendMessage::Execute { portal, rows_max } => {
                    // The portal may be gone after it ran.
                    let run = self.portals.get(&portal);
                    let prepared = run.and_then(|portal| portal.statement.prepared.clone());
                    let done = self.execute(&portal, rows_max as usize).await;
                    self.count(
                        ("postgres execute", prepared.as_ref().map(|own| own.sql())),
                        &done,
                        begin,
                    );
                    done
                }
            };
            skipping = done.is_err();
            self.report(done)?;
            if skipping {
                // A client that sent a Flush waits for the error before its Sync.
                self.io.flush().await?;
            } else {
                self.io.flush_if_much().await?;
            }
        }
    }

    /// Ends a connection whose transaction block others wait for, and which sends nothing.
    async fn end_idle(&mut self) -> Result<(), ConnectionEnd> {
        let message = "terminating connection due to idle-in-transaction timeout";
        PgError::new("25P03", message).write(&mut self.io.out);
        self.io.flush().await
    }

    /// Ends a cycle of messages: drops the portals outside of a block that nothing holds, and lets
    /// the client continue.
    async fn end_cycle(&mut self) -> Result<(), ConnectionEnd> {
        if self.block == TransactionState::Idle {
            self.portals
                .retain(|_, portal| portal.life != PortalLifetime::Block);
        }
        self.io.out.ready(self.block.letter());
        self.io.flush().await
    }

    /// Sends an error to the client.
    fn report(&mut self, done: Result<(), StatementHalt>) -> Result<(), ConnectionEnd> {
        match done {
            Ok(()) => Ok(()),
            Err(StatementHalt::Gone(gone)) => Err(gone),
            Err(StatementHalt::Error(error)) => {
                error.write(&mut self.io.out);
                if self.block == TransactionState::Open {
                    self.block = TransactionState::Failed;
                }
                Ok(())
            }
        }
    }

    /// Counts a request, and logs it if it failed through no fault of the client.
    fn count(
        &self,
        (route, sql): (&'static str, Option<&str>),
        done: &Result<(), StatementHalt>,
        begin: Instant,
    ) {
        let status = match done {
            Ok(()) => 200,
            Err(StatementHalt::Error(error)) if error.sqlstate == "XX000" => 500,
            Err(StatementHalt::Error(_)) => 400,
            Err(StatementHalt::Gone(_)) => 499,
        };
        self.shared.server.telemetry.request(route, status, begin);
        if let Err(StatementHalt::Error(error)) = done
            && error.is_of_server()
        {
            let failure = RequestFailure {
                code: error.sqlstate,
                error: error.message.clone(),
                statement: sql.map(kind_of),
            };
            self.shared
                .server
                .telemetry
                .failures
                .note(route, status, &failure);
        }
    }

    /// Answers the statements of a simple query.
    async fn simple(&mut self, script: &str) -> Result<(), StatementHalt> {
        let statements = split_script(script);
        if statements.is_empty() {
            self.io.out.bare(b'I');
            return Ok(());
        }
        let is_one_transaction = statements.len() > 1
            && self.block == TransactionState::Idle
            && statements
                .iter()
                .all(|statement| recognize(statement.text).is_none());
        if !is_one_transaction {
            return self.in_turn(script, &statements).await;
        }
        self.step(TransactionStep::Begin {
            is_serializable: None,
        })
        .await?;
        let done = self.in_turn(script, &statements).await;
        let end = match done {
            Ok(()) => TransactionStep::Commit,
            Err(_) => TransactionStep::RollBack,
        };
        let ended = self.step(end).await;
        done.and(ended)
    }

    async fn in_turn(
        &mut self,
        script: &str,
        statements: &[ScriptPiece<'_>],
    ) -> Result<(), StatementHalt> {
        for statement in statements {
            self.one(statement.text).await.map_err(|halt| match halt {
                StatementHalt::Error(mut error) => {
                    let before = statement.characters_before(script);
                    error.position = error.position.map(|position| position + before);
                    StatementHalt::Error(error)
                }
                gone @ StatementHalt::Gone(_) => gone,
            })?;
        }
        Ok(())
    }

    /// Begins, ends or divides the transaction of the session.
    pub(super) async fn step(&mut self, step: TransactionStep) -> Result<(), StatementHalt> {
        let watch = self.watch();
        let query = &self.shared.server.services.query;
        let work = query.transaction(&mut self.session, step);
        self.io.guard(&watch, work).await
    }

    async fn one(&mut self, sql: &str) -> Result<(), StatementHalt> {
        let kind = classify(sql)?;
        self.check_block(&kind)?;
        match kind {
            StatementKind::Empty => {
                self.io.out.bare(b'I');
                Ok(())
            }
            StatementKind::Control(control) => self.control(&control).await,
            StatementKind::Copy(copy) => self.copy(&copy).await,
            StatementKind::Session(statement) => {
                let mut portal = Portal {
                    statement: Arc::new(NamedStatement {
                        kind: StatementKind::Empty,
                        prepared: None,
                        oids: Vec::new(),
                        scope: SettingScope::Other,
                    }),
                    parameters: Vec::new(),
                    formats: Vec::new(),
                    progress: PortalProgress::Ready,
                    life: PortalLifetime::Block,
                };
                self.session_statement(&statement, &mut portal, true, 0)
                    .await
            }
            StatementKind::Query => self.query(sql).await,
        }
    }

    /// Refuses statements in a failed block, except those that end it.
    pub(super) fn check_block(&self, kind: &StatementKind) -> Result<(), PgError> {
        let ends = matches!(
            kind,
            StatementKind::Empty
                | StatementKind::Control(
                    ControlStatement::Commit
                        | ControlStatement::Rollback
                        | ControlStatement::RollbackTo(_)
                )
        );
        if self.block == TransactionState::Failed && !ends {
            let message = "a statement of this transaction block failed; nothing is executed until \
                           ROLLBACK";
            return Err(PgError::new("25P02", message));
        }
        Ok(())
    }

    /// Ends the transaction block, and with it the cursors that end with the block.
    fn end_block(&mut self, is_committed: bool) {
        self.block = TransactionState::Idle;
        self.session.transaction_read_only = None;
        let has_changed = std::mem::take(&mut self.has_changed) | self.savepoints.end();
        if has_changed && !is_committed {
            let notice = "what this block changed in tables of series stays changed";
            self.io.out.notice(notice);
        }
        if let Some(settings) = self.at_set_local.take() {
            let zone = self.session.time_zone.clone();
            settings.restore(&mut self.session, SettingScope::Local);
            self.report_zone(&zone);
        }
        if is_committed {
            for portal in self.portals.values_mut() {
                if portal.life == PortalLifetime::SessionOnceCommitted {
                    portal.life = PortalLifetime::Session;
                }
            }
        }
        self.portals
            .retain(|_, portal| portal.life == PortalLifetime::Session);
    }

    /// Executes a statement about savepoints; returns its command tag.
    async fn savepoint(
        &mut self,
        control: &ControlStatement,
    ) -> Result<&'static str, StatementHalt> {
        let tag = match control {
            ControlStatement::Savepoint(_) => "SAVEPOINT",
            ControlStatement::Release(_) => "RELEASE SAVEPOINT",
            _ => "ROLLBACK TO SAVEPOINT",
        };
        if self.block == TransactionState::Idle {
            let message = format!("{tag} can only be used in transaction blocks");
            return Err(PgError::new("25P01", message).into());
        }
        match control {
            ControlStatement::Savepoint(name) => {
                self.savepoints.set(name, &mut self.has_changed)?;
                self.step(TransactionStep::Savepoint(name.clone())).await?;
                Ok("SAVEPOINT")
            }
            ControlStatement::Release(name) => {
                self.savepoints.release(name, &mut self.has_changed)?;
                self.step(TransactionStep::Release(name.clone())).await?;
                Ok("RELEASE")
            }
            ControlStatement::RollbackTo(name) => {
                let back = TransactionStep::RollBackTo(name.clone());
                if self.savepoints.roll_back(name, &mut self.has_changed)? {
                    let notice =
                        "what was changed in tables of series since the savepoint stays changed";
                    self.io.out.notice(notice);
                }
                self.step(back).await?;
                self.block = TransactionState::Open;
                Ok("ROLLBACK")
            }
            _ => Ok(tag),
        }
    }

    /// Executes a control statement and reports it.
    pub(super) async fn control(
        &mut self,
        control: &ControlStatement,
    ) -> Result<(), StatementHalt> {
        let tag = match control {
            ControlStatement::Begin(modes) => {
                self.step(TransactionStep::Begin {
                    is_serializable: modes.is_serializable,
                })
                .await?;
                self.block = TransactionState::Open;
                let before = self.session.is_transaction_read_only();
                let read_only = modes.read_only.unwrap_or(before);
                self.session.transaction_read_only = Some(read_only);
                if modes.is_started {
                    "START TRANSACTION"
                } else {
                    "BEGIN"
                }
            }
            ControlStatement::Commit if self.block != TransactionState::Failed => {
                let committed = self.step(TransactionStep::Commit).await;
                self.end_block(committed.is_ok());
                committed?;
                "COMMIT"
            }
            ControlStatement::Commit | ControlStatement::Rollback => {
                let ended = self.step(TransactionStep::RollBack).await;
                self.end_block(false);
                ended?;
                "ROLLBACK"
            }
            ControlStatement::Savepoint(_)
            | ControlStatement::Release(_)
            | ControlStatement::RollbackTo(_) => self.savepoint(control).await?,
            ControlStatement::Nothing(tag) => tag,
            ControlStatement::Deallocate(Some(name)) => {
                if self.statements.remove(name).is_none() {
                    let message = format!("prepared statement \"{name}\" does not exist");
                    return Err(PgError::new("26000", message).into());
                }
                "DEALLOCATE"
            }
            ControlStatement::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
        };
        self.io.out.complete(tag);
        Ok(())
    }

    /// What may stop the statement that now begins.
    pub(super) fn watch(&self) -> HaltWatch {
        self.entry.flag.lower();
        let deadline = self
            .session
            .statement_timeout
            .and_then(|timeout| Some((tokio::time::Instant::now().checked_add(timeout)?, timeout)));
        HaltWatch {
            flag: self.entry.flag.clone(),
            kill: self.shared.server.kill.clone(),
            deadline,
        }
    }
}

/// Waits until a transaction block has been idle for too long; for ever if nobody waits for it.
async fn idle_in_transaction(session: &Session) {
    let holds_others = session
        .transaction
        .as_ref()
        .is_some_and(SessionTransaction::holds_others);
    match session.idle_in_transaction_timeout {
        Some(timeout) if holds_others => tokio::time::sleep(timeout).await,
        _ => std::future::pending().await,
    }
}

/// Opens the session in `database`. If that does not exist and is only the name of the user (which
/// clients send if no database is named) or `postgres` (to which they connect to create another),
/// the default database takes its place.
async fn open_session(
    shared: &PostgresShared,
    database: Option<&str>,
    identity: &Identity,
) -> Result<Session, ServiceError> {
    let query = &shared.server.services.query;
    match query.session(database, identity).await {
        Err(ServiceError::NotFound(..) | ServiceError::Forbidden(_))
            if database.is_none_or(|name| name == identity.user || name == "postgres") =>
        {
            query.session(None, identity).await
        }
        other => other,
    }
}

/// Applies the settings among the parameters of a startup.
///
/// # Errors
/// If a setting cannot have the value: the client would misread the answers, or wait for a timeout
/// that never comes. A setting that does not exist is ignored.
async fn apply_settings(
    shared: &PostgresShared,
    session: &mut Session,
    parameters: &[(String, String)],
) -> Result<(), ServiceError> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for (name, value) in parameters {
        match name.as_str() {
            "user" | "database" | "replication" => {}
            "options" => settings.extend(options(value)),
            other if other.starts_with("_pq_.") => {}
            other => settings.push((other.to_owned(), value.clone())),
        }
    }
    for (name, value) in &settings {
        let quoted = value.replace('\'', "''");
        let set = format!(
            "SET \"{}\" = '{quoted}'",
            name.to_lowercase().replace('"', "")
        );
        match shared.server.services.query.execute(session, &set).await {
            Ok(_) => {}
            Err(error) if error.sqlstate() == "42704" => {
                // A client that asks for an unknown setting can do without it.
                tracing::debug!(%error, name, "ignored a setting in a client's startup");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Settings in `options`: `-c name=value` and `--name=value`.
fn options(text: &str) -> Vec<(String, String)> {
    let mut words = text.split_whitespace();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word {
            "-c" => words.next(),
            _ => word.strip_prefix("--").or_else(|| word.strip_prefix("-c")),
        };
        if let Some((name, value)) = setting.and_then(|setting| setting.split_once('=')) {
            settings.push((name.replace('-', "_"), value.to_owned()));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_startup() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            options("-c statement_timeout=5s --time-zone=UTC -cjit=off"),
            [
                pair("statement_timeout", "5s"),
                pair("time_zone", "UTC"),
                pair("jit", "off")
            ]
        );
    }

    #[test]
    fn statements_are_classified() {
        assert!(matches!(classify(" ;; -- x"), Ok(StatementKind::Empty)));
        assert!(matches!(
            classify("commit"),
            Ok(StatementKind::Control(ControlStatement::Commit))
        ));
        assert!(matches!(
            classify("Copy t from stdin"),
            Ok(StatementKind::Copy(_))
        ));
        assert!(matches!(classify("select 1"), Ok(StatementKind::Query)));
        for file in [
            "copy t to 'x.tsfile'",
            "copy (select 'to' from t) to 'x.csv'",
            "copy d.t from 'x.parquet'",
        ] {
            assert!(matches!(classify(file), Ok(StatementKind::Query)), "{file}");
        }
        assert!(classify("copy t").is_err());
    }
}
