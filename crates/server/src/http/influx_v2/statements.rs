//! Statements of InfluxQL that requests run: on databases, retention policies and deletes.

use crate::http::HttpShared;
use crate::http::client_share::StopTime;
use crate::http::error::HttpError;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use futures::StreamExt;
use marigram_service::{Answer, Identity, Language, LanguageRequest, ServiceError, Session};

/// Rows that a listing may have.
const ROWS_MAX: usize = 100_000;

/// Runs a statement in a database, and gives the columns of its rows as text.
///
/// # Errors
/// Why it is not done, in InfluxDB's words.
pub(super) async fn run(
    shared: &HttpShared,
    database: &str,
    text: String,
    columns: &[&str],
) -> Result<Vec<Vec<String>>, HttpError> {
    run_as(shared, shared.identity.clone(), database, text, columns).await
}

/// [`run`] with the rights of `identity`.
pub(super) async fn run_as(
    shared: &HttpShared,
    identity: Identity,
    database: &str,
    text: String,
    columns: &[&str],
) -> Result<Vec<Vec<String>>, HttpError> {
    let mut session = Session::new(database, identity);
    session.statement_timeout = shared.server.config.statement_timeout();
    let stop = StopTime::new(shared, session.statement_timeout);
    let request = LanguageRequest::new(Language::InfluxQl, &text);
    let languages = &shared.server.services.languages;
    let work = async {
        let mut answers = languages.run(&session, request).await?;
        let mut found = Vec::new();
        while let Some(answer) = answers.next().await {
            let Answer::Rows(mut rows) = answer.answer? else {
                continue;
            };
            while let Some(batch) = rows.batches.next().await.transpose()? {
                let texts = columns.iter().map(|name| match batch.column_by_name(name) {
                    Some(array) => cast(array, &DataType::Utf8).map(Some),
                    None => Ok(None),
                });
                let texts: Result<Vec<Option<ArrayRef>>, _> = texts.collect();
                let texts = texts.map_err(|error| ServiceError::Internal(error.to_string()))?;
                for row in 0..batch.num_rows() {
                    let text = |array: &Option<ArrayRef>| match array {
                        Some(array) if !array.is_null(row) => {
                            array.as_string::<i32>().value(row).to_owned()
                        }
                        _ => String::new(),
                    };
                    if found.len() < ROWS_MAX {
                        found.push(texts.iter().map(text).collect());
                    }
                }
            }
        }
        Ok(found)
    };
    Ok(stop.guard(work).await?)
}
