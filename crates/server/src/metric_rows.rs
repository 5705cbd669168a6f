//! Stores points of OpenTSDB, whichever way they came.

use crate::listener::ServerState;
use marigram_access::DatabasePrivileges;
use marigram_opentsdb::DataPoint;
use marigram_protocol::opentsdb::{MetricBatch, metric_batches};
use marigram_service::{Identity, ServiceError, run_inline_if};

/// Points that become rows on the thread that serves the connection.
const POINTS_INLINE: usize = 256;

/// Which client stores points, and how it came.
#[derive(Clone, Copy)]
pub(crate) struct PointSource<'a> {
    /// The setting of the listener.
    pub listener: &'static str,
    /// The route, for figures.
    pub route: &'static str,
    /// The client.
    pub identity: &'a Identity,
}

/// What became of points.
pub(crate) struct StoredPoints {
    /// The points as they came.
    pub points: Vec<DataPoint>,
    /// The numbers of those that were not stored, ascending, and why.
    pub rejected: Vec<(usize, String)>,
}

/// Stores points. Those that are not rejected are as durable as the settings require.
///
/// # Errors
/// Why no point may be relied on to be stored.
pub(crate) async fn store_points(
    server: &ServerState,
    source: PointSource<'_>,
    points: Vec<DataPoint>,
) -> Result<StoredPoints, ServiceError> {
    let database = &server.config.opentsdb_database;
    let rights = server.services.access.rights(source.identity)?;
    let user = &source.identity.user;
    if !rights.allow(database, DatabasePrivileges::WRITE) {
        return Err(ServiceError::Forbidden(format!(
            "\"{user}\" user is not authorized: this needs WRITE on database \"{database}\""
        )));
    }
    let is_short = points.len() <= POINTS_INLINE;
    let work = move || {
        let batches = metric_batches(&points);
        (points, batches)
    };
    let (points, metrics) = run_inline_if(is_short, work).await?;
    let mut rejected = Vec::new();
    if metrics.is_empty() {
        return Ok(StoredPoints { points, rejected });
    }
    let may_create =
        server.config.write_creates_databases && rights.allow(database, DatabasePrivileges::ALL);
    let (batches, numbers): (Vec<_>, Vec<_>) = metrics
        .into_iter()
        .map(|MetricBatch { batch, points }| (batch, points))
        .unzip();
    let ingest = &server.services.ingest;
    let reports = ingest.write(database, batches, may_create).await?;
    let mut stored = 0;
    for (report, numbers) in reports.into_iter().zip(numbers) {
        stored += report.stored;
        server
            .audit
            .note_created(source.listener, user, database, &report.created);
        let named = report.rejected.into_iter();
        rejected.extend(named.filter_map(|row| Some((*numbers.get(row.row)?, row.reason))));
    }
    rejected.sort_by_key(|(number, _)| *number);
    server.telemetry.rows(source.route, stored as u64);
    Ok(StoredPoints { points, rejected })
}
