//! Buckets: databases and their retention policies.
//!
//! The default policy of a database is the bucket `database`, every other policy is
//! `database/policy`. Both forms name the default policy.

use super::accounts::{ORG_ID, parameters};
use super::error::V2Error;
use super::names::{id_of, is_id, parts, quoted};
use super::statements::{run, run_as};
use crate::http::HttpShared;
use crate::http::error::{HttpError, json_answer};
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use marigram_service::Identity;
use serde_json::{Value, json};

/// Buckets of a page, and the most that it may have.
const PAGE: usize = 20;
const PAGE_MAX: usize = 100;

/// A retention policy as a bucket.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    database: String,
    policy: String,
    is_default: bool,
    /// Seconds for which rows are kept; 0 for ever.
    every_s: u64,
    shard_s: u64,
}

impl Bucket {
    fn name(&self) -> String {
        if self.is_default {
            self.database.clone()
        } else {
            format!("{}/{}", self.database, self.policy)
        }
    }

    fn is_called(&self, name: &str) -> bool {
        match parts(name) {
            (database, None) => self.is_default && self.database == database,
            (database, Some(policy)) => self.database == database && self.policy == policy,
        }
    }

    fn json(&self) -> Value {
        let (name, id) = (self.name(), id_of(&self.name()));
        json!({
            "id": id, "orgID": ORG_ID, "type": "user", "name": name, "rp": self.policy,
            "retentionRules": [{
                "type": "expire", "everySeconds": self.every_s,
                "shardGroupDurationSeconds": self.shard_s,
            }],
            "labels": [],
            "links": {
                "self": format!("/api/v2/buckets/{id}"), "org": format!("/api/v2/orgs/{ORG_ID}"),
                "write": format!("/api/v2/write?org={ORG_ID}&bucket={id}"),
            },
        })
    }
}

/// Seconds of a duration as Go writes it (`168h0m0s`).
fn go_seconds(text: &str) -> u64 {
    let (mut seconds, mut number) = (0, 0_u64);
    for char in text.chars() {
        match char {
            '0'..='9' => number = number * 10 + u64::from(u32::from(char) - u32::from('0')),
            unit => {
                let unit_s = match unit {
                    'h' => 3600,
                    'm' => 60,
                    _ => 1,
                };
                seconds += number * unit_s;
                number = 0;
            }
        }
    }
    seconds
}

/// The buckets of a database. A client sees those of each database in which it has a right: one that
/// only writes must find the bucket that it writes to.
async fn of_database(shared: &HttpShared, database: &str) -> Result<Vec<Bucket>, HttpError> {
    let identity = if shared.rights()?.within(database).is_empty() {
        shared.identity.clone()
    } else {
        Identity::owner(&shared.identity.user)
    };
    let text = format!("SHOW RETENTION POLICIES ON {}", quoted(database));
    let columns = ["name", "duration", "shardGroupDuration", "default"];
    let rows = run_as(shared, identity, database, text, &columns).await?;
    let bucket = |row: Vec<String>| Bucket {
        database: database.to_owned(),
        policy: row[0].clone(),
        is_default: row[3] == "true",
        every_s: go_seconds(&row[1]),
        shard_s: go_seconds(&row[2]),
    };
    let rows = rows.into_iter().filter(|row| !row[0].is_empty());
    Ok(rows.map(bucket).collect())
}

/// All buckets, by name.
async fn all(shared: &HttpShared) -> Result<Vec<Bucket>, HttpError> {
    let databases = run(shared, "", "SHOW DATABASES".to_owned(), &["name"]).await?;
    let mut buckets = Vec::new();
    // Where there is no database, the listing has one row without a name.
    for row in databases.iter().filter(|row| !row[0].is_empty()) {
        match of_database(shared, &row[0]).await {
            Err(error) if error.status == StatusCode::FORBIDDEN => {}
            found => buckets.extend(found?),
        }
    }
    buckets.sort_by_key(Bucket::name);
    Ok(buckets)
}

/// The bucket with this name, if there is one.
async fn by_name(shared: &HttpShared, name: &str) -> Result<Option<Bucket>, HttpError> {
    // Not from the listing, which leaves out the default database while it is empty.
    let buckets = match of_database(shared, parts(name).0).await {
        Err(error) if error.message.starts_with("database not found") => return Ok(None),
        buckets => buckets?,
    };
    Ok(buckets.into_iter().find(|bucket| bucket.is_called(name)))
}

/// How many buckets the database of a bucket has; `None` if there is no such bucket.
///
/// # Errors
/// If the buckets cannot be listed.
pub(super) async fn buckets_beside(
    shared: &HttpShared,
    name: &str,
) -> Result<Option<usize>, HttpError> {
    if by_name(shared, name).await?.is_none() {
        return Ok(None);
    }
    Ok(Some(of_database(shared, parts(name).0).await?.len()))
}

async fn by_id(shared: &HttpShared, uri: &Uri) -> Result<Bucket, V2Error> {
    let id = uri.path().rsplit('/').next().unwrap_or_default();
    let buckets = all(shared).await?;
    let found = buckets
        .into_iter()
        .find(|bucket| id_of(&bucket.name()) == id);
    found.ok_or_else(|| V2Error::not_found("bucket not found"))
}

/// The name of a bucket that a request names, or gives the identifier of. A name need not exist.
///
/// # Errors
/// If the buckets cannot be listed.
pub(crate) async fn named_bucket(shared: &HttpShared, given: &str) -> Result<String, HttpError> {
    if is_id(given) {
        let buckets = all(shared).await?;
        let mut names = buckets.iter().map(Bucket::name);
        if let Some(name) = names.find(|name| id_of(name) == given) {
            return Ok(name);
        }
    }
    Ok(given.to_owned())
}

/// `GET /api/v2/buckets?name=&id=&limit=&offset=&after=`
pub(super) async fn list(
    RequestContext(shared): RequestContext,
    uri: Uri,
) -> Result<Response, V2Error> {
    let values = parameters(&uri)?;
    let number = |name: &str, usual: usize| match values.get(name) {
        None => Ok(usual),
        Some(text) => text.parse().map_err(|_| {
            HttpError::bad_request(format!("{name} '{text}' is not a number of buckets"))
        }),
    };
    let (limit, offset) = (number("limit", PAGE)?, number("offset", 0)?);
    if !(1..=PAGE_MAX).contains(&limit) {
        let message = format!("limit must be between 1 and {PAGE_MAX}");
        return Err(HttpError::bad_request(message).into());
    }
    let mut buckets = match values.get("name") {
        Some(name) => by_name(&shared, name).await?.into_iter().collect(),
        None => all(&shared).await?,
    };
    if let Some(id) = values.get("id") {
        buckets.retain(|bucket| id_of(&bucket.name()) == id);
    }
    if let Some(id) = values.get("after") {
        let last = buckets
            .iter()
            .position(|bucket| id_of(&bucket.name()) == id);
        buckets.drain(..last.map_or(buckets.len(), |place| place + 1));
    }
    let page = buckets.iter().skip(offset).take(limit);
    let page: Vec<Value> = page.map(Bucket::json).collect();
    let links = json!({"self": format!("/api/v2/buckets?limit={limit}&offset={offset}")});
    Ok(json_answer(
        StatusCode::OK,
        &json!({"links": links, "buckets": page}),
    ))
}

/// `GET /api/v2/buckets/{id}`
pub(super) async fn one(
    RequestContext(shared): RequestContext,
    uri: Uri,
) -> Result<Response, V2Error> {
    Ok(json_answer(
        StatusCode::OK,
        &by_id(&shared, &uri).await?.json(),
    ))
}

async fn json_body(
    shared: &HttpShared,
    headers: &HeaderMap,
    body: Body,
) -> Result<Value, HttpError> {
    let (body, _lease) = read_body(shared, headers, body).await?;
    serde_json::from_slice(&body)
        .map_err(|error| HttpError::bad_request(format!("failed to decode request body: {error}")))
}

/// `DURATION … SHARD DURATION …` of the first retention rule, if there is one.
fn rule(body: &Value) -> Result<Option<String>, HttpError> {
    let Some(rule) = body.get("retentionRules").and_then(|rules| rules.get(0)) else {
        return Ok(None);
    };
    let seconds = |name: &str| match rule.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => value.as_u64().ok_or_else(|| {
            HttpError::bad_request(format!("retentionRules: {name} is not a number of seconds"))
        }),
    };
    let (every_s, shard_s) = (
        seconds("everySeconds")?,
        seconds("shardGroupDurationSeconds")?,
    );
    let kept = if every_s == 0 {
        "DURATION INF".to_owned()
    } else {
        format!("DURATION {every_s}s")
    };
    let shards = if shard_s == 0 {
        String::new()
    } else {
        format!(" SHARD DURATION {shard_s}s")
    };
    Ok(Some(format!("{kept} REPLICATION 1{shards}")))
}

/// `POST /api/v2/buckets`
pub(super) async fn create(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, V2Error> {
    let body = json_body(&shared, &headers, body).await?;
    let name = body["name"].as_str().unwrap_or_default();
    let (database, policy) = parts(name);
    if database.is_empty() {
        return Err(HttpError::bad_request("bucket name is empty").into());
    }
    let rule = rule(&body)?;
    if by_name(&shared, name).await?.is_some() {
        return Err(V2Error::conflict(format!(
            "bucket with name {name} already exists"
        )));
    }
    let kept = rule.as_deref().unwrap_or("DURATION INF REPLICATION 1");
    let text = match policy {
        None => format!("CREATE DATABASE {} WITH {kept}", quoted(database)),
        Some(policy) => {
            let make = format!("CREATE DATABASE {}", quoted(database));
            run(&shared, database, make, &[]).await?;
            let (policy, database) = (quoted(policy), quoted(database));
            format!("CREATE RETENTION POLICY {policy} ON {database} {kept}")
        }
    };
    run(&shared, database, text, &[]).await?;
    let made = by_name(&shared, name).await?;
    let made = made.ok_or_else(|| V2Error::not_found("bucket not found"))?;
    Ok(json_answer(StatusCode::CREATED, &made.json()))
}

/// `PATCH /api/v2/buckets/{id}`: changes the retention rules.
pub(super) async fn change(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, V2Error> {
    let body = json_body(&shared, &headers, body).await?;
    let bucket = by_id(&shared, &uri).await?;
    if body["name"]
        .as_str()
        .is_some_and(|name| !bucket.is_called(name))
    {
        let message = "a bucket keeps its name: it is a database or a retention policy";
        return Err(HttpError::bad_request(message).into());
    }
    if let Some(rule) = rule(&body)? {
        let (policy, database) = (quoted(&bucket.policy), quoted(&bucket.database));
        let text = format!("ALTER RETENTION POLICY {policy} ON {database} {rule}");
        run(&shared, &bucket.database, text, &[]).await?;
    }
    one(RequestContext(shared), uri).await
}

/// `DELETE /api/v2/buckets/{id}`: drops the retention policy, or the database with its last one.
pub(super) async fn remove(
    RequestContext(shared): RequestContext,
    uri: Uri,
) -> Result<Response, V2Error> {
    let bucket = by_id(&shared, &uri).await?;
    let database = quoted(&bucket.database);
    let siblings = of_database(&shared, &bucket.database).await?.len();
    if bucket.is_default && siblings > 1 {
        return Err(HttpError::bad_request(format!(
            "the database {} has other buckets, of its retention policies; delete them first",
            bucket.database
        ))
        .into());
    }
    let text = if siblings > 1 {
        format!(
            "DROP RETENTION POLICY {} ON {database}",
            quoted(&bucket.policy)
        )
    } else {
        format!("DROP DATABASE {database}")
    };
    run(&shared, &bucket.database, text, &[]).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_are_read() {
        assert_eq!(go_seconds("168h0m0s"), 604_800);
        assert_eq!(go_seconds("0s"), 0);
        assert_eq!(go_seconds("1h1m1s"), 3661);
    }
}
