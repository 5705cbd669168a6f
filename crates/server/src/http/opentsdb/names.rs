//! `/api/suggest`, `/api/search/lookup` and `/api/uid/assign`.

use super::asked::ask;
use super::error::OpenTsdbError;
use super::json_type::opentsdb_json;
use super::parameters::parameters;
use crate::admission::{MemoryPermit, RequestPermit};
use crate::http::HttpShared;
use crate::http::client_share::StopTime;
use crate::http::error::HttpError;
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use arrow::array::AsArray;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use marigram_opentsdb::{LookupQuery, ReadRequest, SuggestQuery, uid};
use marigram_service::{Answer, ServiceError};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Names that one request may ask the numbers of.
const ASSIGNED_MAX: usize = 10_000;

/// Values of JSON, as the database answers them.
pub(super) struct JsonTexts {
    texts: Vec<String>,
    lease: MemoryPermit,
    ticket: RequestPermit,
}

/// The text of an answer until it is sent, and what it holds of the server.
struct HeldText {
    text: String,
    _lease: MemoryPermit,
    _ticket: RequestPermit,
}

impl AsRef<[u8]> for HeldText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Runs a request and reads its whole answer, within the memory for requests.
pub(super) async fn json_texts(
    shared: &HttpShared,
    request: &ReadRequest,
) -> Result<JsonTexts, OpenTsdbError> {
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let mut lease = shared.server.gate.lease();
    let mut answers = ask(shared, request).await?;
    let stop = StopTime::new(shared, shared.server.config.statement_timeout());
    let mut texts = Vec::new();
    while let Some(answer) = stop.guard(async { Ok(answers.next().await) }).await? {
        let Answer::Rows(mut rows) = answer.answer? else {
            continue;
        };
        loop {
            let next = stop.guard(async { rows.batches.next().await.transpose() });
            let Some(batch) = next.await? else {
                break;
            };
            // The texts, and the body that they become.
            if !lease.grow_in_time(2 * batch.get_array_memory_size()).await {
                return Err(HttpError::buffers_full().into());
            }
            let column = batch.columns().first();
            let column = column.and_then(|column| column.as_string_opt::<i32>());
            let column = column.ok_or_else(|| {
                ServiceError::Internal("an answer has no column of texts".to_owned())
            })?;
            texts.extend(column.iter().flatten().map(str::to_owned));
        }
    }
    Ok(JsonTexts {
        texts,
        lease,
        ticket,
    })
}

impl JsonTexts {
    /// The answer that is an array of them.
    pub(super) fn array(self) -> Response {
        self.answer(|texts| format!("[{}]", texts.join(",")))
    }

    /// The texts, and the memory that they hold.
    pub(super) fn into_parts(self) -> (Vec<String>, MemoryPermit) {
        (self.texts, self.lease)
    }

    /// The answer that `write` makes of them. It holds its memory and its place among the requests until
    /// the client has taken it.
    fn answer(self, write: impl FnOnce(Vec<String>) -> String) -> Response {
        let mut lease = self.lease;
        let text = write(self.texts);
        // The texts are gone.
        lease.shrink(lease.held().saturating_sub(text.capacity()));
        let text = HeldText {
            text,
            _lease: lease,
            _ticket: self.ticket,
        };
        let mut response = Response::new(Body::from(Bytes::from_owner(text)));
        let kind = HeaderValue::from_static("application/json; charset=UTF-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// `GET /api/suggest?type=&q=&max=`
pub(super) async fn get_suggest(
    RequestContext(shared): RequestContext,
    uri: Uri,
) -> Result<Response, OpenTsdbError> {
    suggest(&shared, &parameters(&uri)?).await
}

/// `POST /api/suggest`
pub(super) async fn post_suggest(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let fields = object(&body)?;
    if !fields.contains_key("type") {
        let message = "Missing 'type' parameter";
        return Err(OpenTsdbError::new(StatusCode::BAD_REQUEST, message));
    }
    let given: Vec<(String, String)> = fields
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => (name, text),
            other => (name, other.to_string()),
        })
        .collect();
    suggest(&shared, &given).await
}

async fn suggest(
    shared: &HttpShared,
    given: &[(String, String)],
) -> Result<Response, OpenTsdbError> {
    let query = SuggestQuery::from_parameters(given)?;
    let texts = json_texts(shared, &ReadRequest::Suggest(query)).await?;
    Ok(texts.array())
}

fn object(body: &[u8]) -> Result<Map<String, Value>, OpenTsdbError> {
    if body.is_empty() {
        let message = "Missing message content";
        return Err(OpenTsdbError::new(StatusCode::BAD_REQUEST, message)
            .with_details("Supply valid JSON formatted data in the body of your request"));
    }
    serde_json::from_slice(body).map_err(|error| {
        OpenTsdbError::new(StatusCode::BAD_REQUEST, "Unable to parse the given JSON")
            .with_details(error.to_string())
    })
}

/// `GET /api/search/lookup?m=&limit=`
pub(super) async fn get_lookup(
    RequestContext(shared): RequestContext,
    uri: Uri,
) -> Result<Response, OpenTsdbError> {
    let query = LookupQuery::from_parameters(&parameters(&uri)?)?;
    lookup(&shared, query).await
}

/// `POST /api/search/lookup`
pub(super) async fn post_lookup(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    lookup(&shared, LookupQuery::from_json(&body)?).await
}

async fn lookup(shared: &HttpShared, query: LookupQuery) -> Result<Response, OpenTsdbError> {
    let begin = Instant::now();
    let asked = query.series.tags.iter();
    let asked: Vec<Value> = asked
        .map(|(key, value)| json!({"key": key, "value": value}))
        .collect();
    let (metric, limit) = (query.series.metric.clone(), query.limit);
    let texts = json_texts(shared, &ReadRequest::Lookup(query)).await;
    let texts = texts.map_err(OpenTsdbError::told_by_lookup)?;
    let time = begin.elapsed().as_millis();
    Ok(texts.answer(|mut texts| {
        // The last one is the number of all.
        let total = texts.pop().unwrap_or_else(|| "0".to_owned());
        format!(
            "{{\"type\":\"LOOKUP\",\"metric\":{},\"tags\":{},\"limit\":{limit},\"time\":{time},\
             \"results\":[{}],\"startIndex\":0,\"totalResults\":{total}}}",
            json!(metric),
            json!(asked),
            texts.join(","),
        )
    }))
}

/// `GET /api/uid/assign?metric=&tagk=&tagv=`: the numbers that these names have.
pub(super) async fn get_assign(uri: Uri) -> Result<Response, OpenTsdbError> {
    let given = parameters(&uri)?.into_iter();
    let names = given.flat_map(|(kind, names)| {
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        names.into_iter().map(move |name| (kind.clone(), name))
    });
    assign(names)
}

/// `POST /api/uid/assign`
pub(super) async fn post_assign(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let fields = object(&body)?.into_iter();
    let names = fields.flat_map(|(kind, names)| {
        let names: Vec<String> = match names {
            Value::Array(names) => names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            Value::String(name) => vec![name],
            _ => Vec::new(),
        };
        names.into_iter().map(move |name| (kind.clone(), name))
    });
    assign(names)
}

/// Names have their numbers without being assigned any: nothing is stored.
fn assign(names: impl Iterator<Item = (String, String)>) -> Result<Response, OpenTsdbError> {
    let mut answer = Map::new();
    for (kind, name) in names.take(ASSIGNED_MAX) {
        if !["metric", "tagk", "tagv"].contains(&kind.as_str()) || name.is_empty() {
            continue;
        }
        let number = uid(&kind, &name);
        let known = answer.entry(kind).or_insert_with(|| json!({}));
        if let Some(known) = known.as_object_mut() {
            known.insert(name, number.into());
        }
    }
    if answer.is_empty() {
        let message = "Missing values to assign UIDs";
        return Err(OpenTsdbError::new(StatusCode::BAD_REQUEST, message));
    }
    Ok(opentsdb_json(StatusCode::OK, &Value::Object(answer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::tests::gate;

    #[tokio::test]
    async fn an_answer_holds_its_memory_and_its_place_until_it_is_sent() {
        let gate = gate(1000);
        let (mut lease, ticket) = (gate.lease(), gate.enter().unwrap());
        assert!(lease.grow(800));
        let texts = vec!["1".repeat(300)];
        let response = JsonTexts {
            texts,
            lease,
            ticket,
        }
        .array();
        assert!(gate.enter().is_none(), "the answer is not sent");
        assert!(!gate.lease().grow(699) && gate.lease().grow(200));
        let body = axum::body::to_bytes(response.into_body(), 1000).await;
        let body = body.unwrap();
        assert_eq!(body.len(), 302);
        assert!(!gate.lease().grow(699));
        drop(body);
        assert!(gate.enter().is_some() && gate.lease().grow(1000));
    }
}
