//! Requests of OpenTSDB's query language, as the database runs them.

use crate::http::HttpShared;
use marigram_opentsdb::ReadRequest;
use marigram_service::{Language, LanguageRequest, ServiceError, Session, StatementAnswers};

/// Runs a request of the query language.
pub(super) async fn ask(
    shared: &HttpShared,
    request: &ReadRequest,
) -> Result<StatementAnswers, ServiceError> {
    let database = &shared.server.config.opentsdb_database;
    let mut session = Session::new(database, shared.identity.clone());
    session.read_only = true;
    session.statement_timeout = shared.server.config.statement_timeout();
    let request = LanguageRequest::new(Language::OpenTsdb, &request.to_text());
    let languages = &shared.server.services.languages;
    languages.run(&session, request).await
}
