//! Annotations in the database: rows of a table of their own.

use super::error::OpenTsdbError;
use super::names::json_texts;
use crate::admission::MemoryPermit;
use crate::http::HttpShared;
use crate::http::client_share::StopTime;
use crate::http::error::HttpError;
use axum::http::StatusCode;
use marigram_access::DatabasePrivileges;
use marigram_opentsdb::{
    ANNOTATION_TABLE, ANNOTATION_TAG, Annotation, AnnotationChange, AnnotationQuery,
    AnnotationRange, ReadRequest, annotation_tag,
};
use marigram_protocol::opentsdb::annotation_batch;
use marigram_service::ServiceError;
use std::collections::HashMap;
use tokio::sync::Mutex;

/// A change reads what is stored before it writes: one after another, so that none is lost.
static CHANGING: Mutex<()> = Mutex::const_new(());

/// Annotations, and the memory that they hold.
pub(super) struct FoundAnnotations {
    pub(super) annotations: Vec<Annotation>,
    _lease: MemoryPermit,
}

/// The annotations that are asked for.
pub(super) async fn find(
    shared: &HttpShared,
    query: AnnotationQuery,
) -> Result<FoundAnnotations, OpenTsdbError> {
    let texts = json_texts(shared, &ReadRequest::Annotations(query)).await?;
    let (texts, lease) = texts.into_parts();
    let read = texts.iter().map(|text| serde_json::from_str(text));
    let annotations = read.collect::<Result<_, _>>().map_err(|error| {
        ServiceError::Internal(format!("a stored annotation cannot be read: {error}"))
    })?;
    Ok(FoundAnnotations {
        annotations,
        _lease: lease,
    })
}

/// Makes changes, each of which says something, and returns what is stored then. With `replaces`,
/// nothing of what was stored before stays.
pub(super) async fn change(
    shared: &HttpShared,
    changes: &[AnnotationChange],
    replaces: bool,
) -> Result<Vec<Annotation>, OpenTsdbError> {
    check_rights(shared)?;
    let _changing = CHANGING.lock().await;
    let mut stored: HashMap<(String, i64), Annotation> = HashMap::new();
    if !replaces {
        let places = changes.iter().map(AnnotationChange::place).collect();
        let found = find(shared, AnnotationQuery::Places(places)).await?;
        let found = found.annotations.into_iter();
        stored.extend(found.map(|known| ((known.tsuid.clone(), known.start_ms()), known)));
    }
    let mut changed = Vec::with_capacity(changes.len());
    for change in changes {
        let place = change.place();
        let annotation = change.applied(stored.get(&place), replaces);
        stored.insert(place, annotation.clone());
        changed.push(annotation);
    }
    let rows: Vec<Annotation> = changes
        .iter()
        .filter_map(|change| stored.remove(&change.place()))
        .collect();
    if !rows.is_empty() {
        store(shared, &rows).await?;
    }
    Ok(changed)
}

/// Deletes the annotations of a range, and returns how many there were.
pub(super) async fn delete(
    shared: &HttpShared,
    range: AnnotationRange,
) -> Result<usize, OpenTsdbError> {
    check_rights(shared)?;
    let _changing = CHANGING.lock().await;
    let found = find(shared, AnnotationQuery::Range(range.clone())).await?;
    let count = found.annotations.len();
    if count == 0 {
        return Ok(0);
    }
    let tsuids = range.tsuids.iter().map(String::as_str);
    for tsuid in tsuids.chain(range.global.then_some("")) {
        if found.annotations.iter().any(|known| known.tsuid == tsuid) {
            delete_of_series(shared, tsuid, &range).await?;
        }
    }
    Ok(count)
}

fn check_rights(shared: &HttpShared) -> Result<(), HttpError> {
    let database = &shared.server.config.opentsdb_database;
    if shared.rights()?.allow(database, DatabasePrivileges::WRITE) {
        return Ok(());
    }
    let user = &shared.identity.user;
    let message =
        format!("\"{user}\" user is not authorized: this needs WRITE on database \"{database}\"");
    Err(ServiceError::Forbidden(message).into())
}

async fn store(shared: &HttpShared, annotations: &[Annotation]) -> Result<(), OpenTsdbError> {
    let _ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let server = &shared.server;
    let database = &server.config.opentsdb_database;
    let rights = shared.rights()?;
    let may_create =
        server.config.write_creates_databases && rights.allow(database, DatabasePrivileges::ALL);
    let batch = annotation_batch(annotations);
    let ingest = &server.services.ingest;
    let reports = ingest.write(database, vec![batch], may_create).await?;
    for report in reports {
        let user = &shared.identity.user;
        server
            .audit
            .note_created(shared.listener, user, database, &report.created);
        if let Some(rejected) = report.rejected.into_iter().next() {
            let message = "Failed to save the Annotation to storage";
            return Err(
                OpenTsdbError::new(StatusCode::BAD_REQUEST, message).with_details(rejected.reason)
            );
        }
    }
    Ok(())
}

async fn delete_of_series(
    shared: &HttpShared,
    tsuid: &str,
    range: &AnnotationRange,
) -> Result<(), OpenTsdbError> {
    let _ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    // Numbers of series have hexadecimal digits only.
    let (tag, first, last) = (annotation_tag(tsuid), range.start_ms, range.end_ms);
    let statement = format!(
        "DELETE FROM {ANNOTATION_TABLE} WHERE {ANNOTATION_TAG} = '{tag}' \
         AND time >= to_timestamp_millis({first}) AND time <= to_timestamp_millis({last})"
    );
    let query = &shared.server.services.query;
    let database = &shared.server.config.opentsdb_database;
    let timeout = shared.server.config.statement_timeout();
    let stop = StopTime::new(shared, timeout);
    let work = async {
        let mut session = query.session(Some(database), &shared.identity).await?;
        session.statement_timeout = timeout;
        query.execute(&mut session, &statement).await
    };
    stop.guard(work).await?;
    Ok(())
}
