//! `/api/v2/delete`: rows of a bucket, by time, measurement and tags.

use super::accounts::parameters;
use super::buckets::{buckets_beside, named_bucket};
use super::error::V2Error;
use super::names::{parts, quoted, quoted_text};
use super::statements::run;
use crate::http::error::HttpError;
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// `POST /api/v2/delete?bucket=&org=`, with `start`, `stop` and `predicate` as JSON.
pub(super) async fn post(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, V2Error> {
    let values = parameters(&uri)?;
    let bucket = values.get("bucket").or_else(|| values.get("bucketID"));
    let missing = || HttpError::bad_request("Please provide either bucketID or bucket");
    let bucket = named_bucket(&shared, bucket.ok_or_else(missing)?).await?;
    let (database, _) = parts(&bucket);
    let Some(siblings) = buckets_beside(&shared, &bucket).await? else {
        return Err(V2Error::not_found(format!("bucket \"{bucket}\" not found")));
    };
    // DELETE of InfluxQL is of all retention policies.
    if siblings > 1 {
        let message = format!(
            "the database {database} has several buckets, one for each retention policy, and a delete \
             would be of them all; use DELETE of SQL"
        );
        return Err(HttpError::bad_request(message).into());
    }
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let body: Value = serde_json::from_slice(&body)
        .map_err(|error| HttpError::bad_request(format!("error decoding json body: {error}")))?;
    let time = |name: &str| match body[name].as_str() {
        Some(text) if is_time(text) => Ok(quoted_text(text)),
        _ => Err(HttpError::bad_request(format!(
            "invalid RFC3339Nano for field {name}, please format your time with RFC3339Nano \
             format, example: 2009-01-02T23:00:00Z"
        ))),
    };
    let (start, stop) = (time("start")?, time("stop")?);
    let terms = terms(body["predicate"].as_str().unwrap_or_default())?;
    let mut from = String::new();
    let mut conditions = vec![format!("time >= {start}"), format!("time <= {stop}")];
    for (name, value) in terms {
        match name.as_str() {
            "_measurement" => {
                from = format!("FROM {} ", quoted(&value));
            }
            "_field" | "_value" | "_time" => {
                let message = format!("delete by {name} is not supported");
                return Err(HttpError::bad_request(message).into());
            }
            name => conditions.push(format!("{} = {}", quoted(name), quoted_text(&value))),
        }
    }
    let text = format!("DELETE {from}WHERE {}", conditions.join(" AND "));
    run(&shared, database, text, &[]).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Whether a text is a time as RFC 3339 writes it.
fn is_time(text: &str) -> bool {
    chrono::DateTime::parse_from_rfc3339(text).is_ok()
}

fn refused(predicate: &str) -> HttpError {
    HttpError::bad_request(format!(
        "invalid request; error parsing request json: the predicate {predicate:?} is not of the \
         form key=\"value\" AND …"
    ))
}

/// The terms of `key="value" AND key="value"`.
fn terms(predicate: &str) -> Result<Vec<(String, String)>, HttpError> {
    let wrong = || refused(predicate);
    let (mut rest, mut terms) = (predicate.trim(), Vec::new());
    while !rest.is_empty() {
        let (name, behind) = operand(rest).ok_or_else(wrong)?;
        let behind = behind.trim_start().strip_prefix('=').ok_or_else(wrong)?;
        let behind = behind.strip_prefix('=').unwrap_or(behind);
        let (value, behind) = operand(behind.trim_start()).ok_or_else(wrong)?;
        terms.push((name, value));
        rest = behind.trim_start();
        if rest.is_empty() {
            break;
        }
        let word = rest
            .get(..3)
            .filter(|word| word.eq_ignore_ascii_case("and"));
        word.ok_or_else(wrong)?;
        rest = rest[3..].trim_start();
        if rest.is_empty() {
            return Err(wrong());
        }
    }
    Ok(terms)
}

/// A name or a text at the head of `rest`, and what is behind it.
fn operand(rest: &str) -> Option<(String, &str)> {
    let quote = rest.chars().next()?;
    if quote != '"' && quote != '\'' {
        let stop =
            |char: char| char.is_whitespace() || matches!(char, '=' | '"' | '\'' | '(' | '!');
        let end = rest.find(stop).unwrap_or(rest.len());
        return (end > 0).then(|| (rest[..end].to_owned(), &rest[end..]));
    }
    let (mut text, mut chars) = (String::new(), rest.char_indices().skip(1));
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => text.push(chars.next()?.1),
            char if char == quote => return Some((text, &rest[at + 1..])),
            char => text.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(predicate: &str) -> Option<Vec<(String, String)>> {
        terms(predicate).ok()
    }

    #[test]
    fn predicates_are_terms_of_equality() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read(""), Some(vec![]));
        assert_eq!(
            read(r#"_measurement="my m" AND host = 'a\'b' and "odd key"="v""#),
            Some(vec![
                pair("_measurement", "my m"),
                pair("host", "a'b"),
                pair("odd key", "v")
            ])
        );
        for wrong in [
            "host",
            "host=",
            "host!=\"a\"",
            "a=\"b\" OR c=\"d\"",
            "a=\"b\" AND",
            "a=\"b",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
