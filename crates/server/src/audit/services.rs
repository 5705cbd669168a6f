//! Wraps the services of a listener, so that the audit log learns what its clients do with them.

use super::{AuditEvent, AuditLog, AuditOutcome, AuditedAction, ClientAddress, outcome_of};
use crate::services::ServedDatabase;
use crate::slow_log::PEER;
use crate::statement_text::{action_of, loggable};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use async_trait::async_trait;
use futures::StreamExt;
use marigram_pgtext::split_script;
use marigram_service::{
    Answer, LanguageQuery, LanguageRequest, Prepared, Query, Result, ServiceError, Session,
    StatementAnswers,
};
use std::sync::Arc;

/// The services, as a listener should use them.
pub(crate) fn audited(
    services: ServedDatabase,
    log: &AuditLog,
    listener: &'static str,
) -> ServedDatabase {
    if !log.is_on() {
        return services;
    }
    let statements = StatementAudit {
        log: log.clone(),
        listener,
    };
    ServedDatabase {
        query: Arc::new(AuditedQuery {
            query: services.query,
            statements: statements.clone(),
        }),
        languages: Arc::new(AuditedLanguages {
            languages: services.languages,
            statements,
        }),
        ..services
    }
}

#[derive(Clone)]
struct StatementAudit {
    log: AuditLog,
    listener: &'static str,
}

/// A statement that may become an event.
struct StatementCase {
    audit: StatementAudit,
    client: Option<ClientAddress>,
    user: String,
    database: String,
    sql: String,
}

impl StatementAudit {
    fn case(&self, session: &Session, sql: &str) -> StatementCase {
        let listener = self.listener;
        let address = PEER.try_with(|peer| *peer).ok();
        StatementCase {
            audit: self.clone(),
            client: address.map(|address| ClientAddress { listener, address }),
            user: session.identity.user.clone(),
            database: session.database.clone(),
            sql: sql.to_owned(),
        }
    }
}

impl StatementCase {
    fn end(&self, error: Option<&ServiceError>) {
        let outcome = error.map_or(AuditOutcome::Done, outcome_of);
        let action = match action_of(&self.sql) {
            Some(action) => action,
            None if outcome == AuditOutcome::Refused => AuditedAction::Request,
            None => return,
        };
        self.audit.log.note(&AuditEvent {
            client: self.client,
            action,
            outcome,
            user: &self.user,
            database: Some(&self.database),
            statement: Some(&loggable(&self.sql)),
            error: error.map(ServiceError::sqlstate),
        });
    }

    /// Notes a refusal; other outcomes come later.
    fn end_if_refused<T>(&self, done: &Result<T>) {
        if let Err(error) = done
            && outcome_of(error) == AuditOutcome::Refused
        {
            self.end(Some(error));
        }
    }
}

struct AuditedQuery {
    query: Arc<dyn Query>,
    statements: StatementAudit,
}

#[async_trait]
impl Query for AuditedQuery {
    fn wrapped(&self) -> Option<&dyn Query> {
        Some(&*self.query)
    }

    async fn execute(&self, session: &mut Session, statement: &str) -> Result<Answer> {
        let case = self.statements.case(session, statement);
        let answer = self.query.execute(session, statement).await;
        case.end(answer.as_ref().err());
        answer
    }

    async fn prepare_typed(
        &self,
        session: &Session,
        statement: &str,
        types: &[DataType],
    ) -> Result<Arc<dyn Prepared>> {
        let prepared = self.query.prepare_typed(session, statement, types).await;
        let case = self.statements.case(session, statement);
        case.end_if_refused(&prepared);
        prepared
    }

    async fn execute_prepared(
        &self,
        session: &mut Session,
        prepared: &dyn Prepared,
        parameters: Vec<ArrayRef>,
    ) -> Result<Answer> {
        let case = self.statements.case(session, prepared.sql());
        let answer = self.query.execute_prepared(session, prepared, parameters);
        let answer = answer.await;
        case.end(answer.as_ref().err());
        answer
    }
}

struct AuditedLanguages {
    languages: Arc<dyn LanguageQuery>,
    statements: StatementAudit,
}

#[async_trait]
impl LanguageQuery for AuditedLanguages {
    async fn run(&self, session: &Session, request: LanguageRequest) -> Result<StatementAnswers> {
        let pieces = split_script(&request.text).into_iter();
        let texts: Vec<String> = pieces.map(|piece| piece.text.to_owned()).collect();
        let whole = self.statements.case(session, &request.text);
        let answers = self.languages.run(session, request).await;
        whole.end_if_refused(&answers);
        let answers = answers?.inspect(move |answer| {
            let text = texts.get(answer.statement_id);
            let case = StatementCase {
                audit: whole.audit.clone(),
                client: whole.client,
                user: whole.user.clone(),
                database: whole.database.clone(),
                sql: text.unwrap_or(&whole.sql).clone(),
            };
            case.end(answer.answer.as_ref().err());
        });
        Ok(answers.boxed())
    }
}
