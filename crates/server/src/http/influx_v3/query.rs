//! `/api/v3/query_sql` and `/api/v3/query_influxql`: one statement in, rows out.

use super::error::V3Error;
use super::placeholders::{bound_sql, has_second_statement};
use crate::http::HttpShared;
use crate::http::client_share::{ClientShare, StopTime};
use crate::http::error::HttpError;
use crate::http::format::ResponseFormat;
use crate::http::influx::{FormValues, bound_parameter, read_body};
use crate::http::request_context::RequestContext;
use crate::http::response_body;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use marigram_service::{Answer, Language, LanguageRequest, ServiceError, Session};
use serde_json::{Map, Value};
use std::time::Instant;

/// What a request asks for.
struct V3QueryRequest {
    database: String,
    text: String,
    format: Option<String>,
    params: Map<String, Value>,
    /// Whether it came by GET.
    read_only: bool,
}

/// `GET /api/v3/query_sql?db=&q=&format=&params=`
pub(crate) async fn get_sql(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, V3Error> {
    sql(&shared, from_url(&uri)?, &headers)
        .await
        .map_err(Into::into)
}

/// `POST /api/v3/query_sql`: the same parameters as members of a JSON object.
pub(crate) async fn post_sql(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, V3Error> {
    let asked = from_body(&shared, &headers, body).await?;
    sql(&shared, asked, &headers).await.map_err(Into::into)
}

/// `GET /api/v3/query_influxql?db=&q=&format=&params=`
pub(crate) async fn get_influxql(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, V3Error> {
    influxql(&shared, from_url(&uri)?, &headers)
        .await
        .map_err(Into::into)
}

/// `POST /api/v3/query_influxql`: the same parameters as members of a JSON object.
pub(crate) async fn post_influxql(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, V3Error> {
    let asked = from_body(&shared, &headers, body).await?;
    influxql(&shared, asked, &headers).await.map_err(Into::into)
}

fn missing(name: &str) -> HttpError {
    HttpError::bad_request(format!("missing query parameter '{name}'"))
}

fn from_url(uri: &Uri) -> Result<V3QueryRequest, HttpError> {
    let values = FormValues::from_url(uri)?;
    let params = match values.get("params") {
        None => Map::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            HttpError::bad_request(format!("params is no JSON object: {error}"))
        })?,
    };
    Ok(V3QueryRequest {
        database: values.get("db").unwrap_or_default().to_owned(),
        text: values.get("q").ok_or_else(|| missing("q"))?.to_owned(),
        format: values.get("format").map(str::to_owned),
        params,
        read_only: true,
    })
}

async fn from_body(
    shared: &HttpShared,
    headers: &HeaderMap,
    body: Body,
) -> Result<V3QueryRequest, HttpError> {
    let (body, _lease) = read_body(shared, headers, body).await?;
    let wrong = |error: serde_json::Error| {
        HttpError::bad_request(format!("the body is not the JSON of a query: {error}"))
    };
    let mut body: Map<String, Value> = serde_json::from_slice(&body).map_err(wrong)?;
    let text = |names: [&str; 2]| {
        names.iter().find_map(|name| match body.get(*name) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => None,
        })
    };
    let (database, format) = (text(["db", "database"]), text(["format", "format"]));
    let query = text(["q", "query_str"]).ok_or_else(|| missing("q"))?;
    let params = match body.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(HttpError::bad_request("params is no JSON object")),
    };
    Ok(V3QueryRequest {
        database: database.unwrap_or_default(),
        text: query,
        format,
        params,
        read_only: false,
    })
}

/// The format that the request names, or that `Accept` does.
fn format(asked: &V3QueryRequest, headers: &HeaderMap) -> Result<ResponseFormat, HttpError> {
    if let Some(name) = &asked.format {
        return Ok(match name.to_ascii_lowercase().as_str() {
            "json" => ResponseFormat::Objects,
            "jsonl" | "json_lines" => ResponseFormat::ObjectLines,
            "csv" => ResponseFormat::Csv,
            "parquet" => ResponseFormat::Parquet,
            "pretty" => ResponseFormat::Pretty,
            _ => {
                let message = format!(
                    "format '{name}' is not known; there are json, jsonl, csv, parquet and pretty"
                );
                return Err(HttpError::bad_request(message));
            }
        });
    }
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    let kind = accept.unwrap_or("").split([',', ';']).next().unwrap_or("");
    Ok(match kind.trim() {
        "application/jsonl" => ResponseFormat::ObjectLines,
        "text/csv" => ResponseFormat::Csv,
        "application/vnd.apache.parquet" => ResponseFormat::Parquet,
        "text/plain" => ResponseFormat::Pretty,
        _ => ResponseFormat::Objects,
    })
}

fn check_single(asked: &V3QueryRequest) -> Result<(), HttpError> {
    if has_second_statement(&asked.text) {
        return Err(HttpError::bad_request(
            "a query is one statement; there are several",
        ));
    }
    Ok(())
}

/// The error of a query, with InfluxDB 3's words for a database that is not there.
fn failed(error: ServiceError, database: &str) -> HttpError {
    match error {
        ServiceError::NotFound(_, "3D000") => HttpError::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("database not found: {database}"),
        ),
        error => error.into(),
    }
}

async fn sql(
    shared: &HttpShared,
    asked: V3QueryRequest,
    headers: &HeaderMap,
) -> Result<Response, HttpError> {
    let begin = Instant::now();
    if asked.database.is_empty() {
        return Err(missing("db"));
    }
    check_single(&asked)?;
    let form = format(&asked, headers)?;
    let text = bound_sql(&asked.text, &asked.params)?;
    let text = text.trim().trim_end_matches(';');
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let query = &shared.server.services.query;
    let database = Some(asked.database.as_str());
    let session = if asked.read_only {
        query.read_only_session(database, &shared.identity).await
    } else {
        query.session(database, &shared.identity).await
    };
    let mut session = session.map_err(|error| failed(error, &asked.database))?;
    session.statement_timeout = shared.server.config.statement_timeout();
    let stop = StopTime::new(shared, session.statement_timeout);
    let answer = stop.guard(query.execute(&mut session, text)).await;
    let answer = answer.map_err(|error| failed(error, &asked.database).of_statement(text))?;
    send(shared, answer, form, (begin, stop), ticket).await
}

async fn influxql(
    shared: &HttpShared,
    asked: V3QueryRequest,
    headers: &HeaderMap,
) -> Result<Response, HttpError> {
    let begin = Instant::now();
    check_single(&asked)?;
    let form = format(&asked, headers)?;
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let mut session = Session::new(&asked.database, shared.identity.clone());
    session.read_only = asked.read_only;
    session.statement_timeout = shared.server.config.statement_timeout();
    let params = asked.params.into_iter();
    let request = LanguageRequest {
        language: Language::InfluxQl,
        text: asked.text,
        prelude: String::new(),
        retention_policy: None,
        parameters: params
            .map(|(name, value)| (name, bound_parameter(value)))
            .collect(),
    };
    let stop = StopTime::new(shared, session.statement_timeout);
    let languages = &shared.server.services.languages;
    let mut answers = languages.run(&session, request).await?;
    let next = stop.guard(async { Ok(answers.next().await) }).await?;
    let answer = next.ok_or_else(|| missing("q"))?.answer;
    let answer = answer.map_err(|error| in_status(error, &asked.database))?;
    send(shared, answer, form, (begin, stop), ticket).await
}

/// InfluxQL's error of a database that is not there has its own words and no code.
fn in_status(error: ServiceError, database: &str) -> HttpError {
    let is_unknown = error.to_string().starts_with("database not found");
    if is_unknown {
        let message = format!("database not found: {database}");
        return HttpError::new(StatusCode::NOT_FOUND, "not_found", message);
    }
    error.into()
}

async fn send(
    shared: &HttpShared,
    answer: Answer,
    form: ResponseFormat,
    (begin, stop): (Instant, StopTime),
    ticket: crate::admission::RequestPermit,
) -> Result<Response, HttpError> {
    match answer {
        Answer::Rows(rows) => {
            let share = ClientShare::new(shared, ticket);
            response_body::stream(rows, form, begin, stop, share).await
        }
        Answer::Done { .. } => Ok(match form {
            ResponseFormat::Objects => {
                ([(header::CONTENT_TYPE, "application/json")], "[]").into_response()
            }
            _ => StatusCode::OK.into_response(),
        }),
    }
}
