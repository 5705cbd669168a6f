//! Stores the rows of inserts, and tells what became of each part.

use super::IotDbShared;
use super::LISTENER;
use super::device_batches::DatabaseRows;
use super::fault::{insert_fault, note_failure, status_of};
use super::insert::{InsertFault, InsertShape, ReadInsert, read_insert};
use super::insert_rows::RowPreparation;
use bytes::Bytes;
use marigram_access::{AccessRights, DatabasePrivileges};
use marigram_iotdb::{IotDbFault, StatusCode};
use marigram_model::WriteBatch;
use marigram_service::{Identity, InlinePolicy, ServiceError, run_inline_if};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The route of inserts, for figures.
const ROUTE: &str = "iotdb insert";

/// Frames that are read on the thread that serves the connection.
const FRAME_BYTES_INLINE: usize = InlinePolicy::DEFAULT.body_inline_bytes;

/// How often an insert is read again after it lacked knowledge of the database, or that was wrong.
const ROUNDS_MAX: usize = 64;

/// What became of an insert.
pub(super) struct InsertOutcome {
    /// How it is told.
    pub(super) shape: InsertShape,
    /// The faults of its parts.
    pub(super) faults: BTreeMap<usize, IotDbFault>,
}

/// Stores the rows of a frame.
///
/// # Errors
/// If the frame is malformed, or nothing of it can be stored.
pub(super) async fn store_insert(
    shared: &IotDbShared,
    identity: &Identity,
    frame: &Bytes,
) -> Result<InsertOutcome, InsertFault> {
    let begin = Instant::now();
    let stored = store(shared, identity, frame, begin).await;
    let status = match &stored {
        Ok((outcome, None)) if outcome.faults.is_empty() => 200,
        Ok((_, Some(error))) => {
            note_failure(&shared.server, ROUTE, error, None);
            status_of(error)
        }
        _ => 400,
    };
    shared.server.telemetry.request(ROUTE, status, begin);
    stored.map(|(outcome, _)| outcome)
}

async fn store(
    shared: &IotDbShared,
    identity: &Identity,
    frame: &Bytes,
    begin: Instant,
) -> Result<(InsertOutcome, Option<ServiceError>), InsertFault> {
    let access = &shared.server.services.access;
    let rights = access.rights(identity).map_err(|it| insert_fault(&it))?;
    let mut may_repeat = true;
    loop {
        let (shape, databases, faults) = read(shared, frame, begin).await?;
        let mut storing = Storing {
            shared,
            identity,
            rights: &rights,
            faults: BTreeMap::new(),
            error: None,
            misfits: None,
        };
        for (part, fault) in faults {
            storing.note(part, fault);
        }
        for rows in databases {
            storing.store(rows).await;
        }
        // Somebody may have given the measurements another type meanwhile.
        if let (Some(database), true) = (&storing.misfits, may_repeat) {
            may_repeat = false;
            let changed = shared.catalog.has_changed(&shared.server, database).await;
            if changed.is_ok_and(|changed| changed) {
                continue;
            }
        }
        let outcome = InsertOutcome {
            shape,
            faults: storing.faults,
        };
        return Ok((outcome, storing.error));
    }
}

type ReadRows = (InsertShape, Vec<DatabaseRows>, Vec<(usize, IotDbFault)>);

/// Reads the rows of a frame, and asks the database for what must be known for that.
async fn read(
    shared: &IotDbShared,
    frame: &Bytes,
    begin: Instant,
) -> Result<ReadRows, InsertFault> {
    let internal = |error: ServiceError| InsertFault::Request(insert_fault(&error));
    for _ in 0..ROUNDS_MAX {
        let (catalog, bytes) = (Arc::clone(&shared.catalog), frame.clone());
        let work = move || read_insert(&bytes, &catalog, begin);
        let is_short = frame.len() <= FRAME_BYTES_INLINE;
        let read = run_inline_if(is_short, work).await.map_err(internal)?;
        let ReadInsert { shape, rows } = read?;
        match rows {
            RowPreparation::Ready(databases, faults) => return Ok((shape, databases, faults)),
            RowPreparation::Missing(parts) => {
                for part in parts {
                    let learned = shared.catalog.learn(&shared.server, part).await;
                    learned.map_err(internal)?;
                }
            }
        }
    }
    let fault = IotDbFault::new(
        StatusCode::WRITE_REJECTED,
        "the schema changes faster than rows can be stored; send them again",
    );
    Err(fault.into())
}

struct Storing<'a> {
    shared: &'a IotDbShared,
    identity: &'a Identity,
    rights: &'a AccessRights,
    faults: BTreeMap<usize, IotDbFault>,
    error: Option<ServiceError>,
    /// A database that refused rows which might fit elsewhere.
    misfits: Option<String>,
}

impl Storing<'_> {
    /// Notes a fault; the first one of a part counts.
    fn note(&mut self, part: usize, fault: IotDbFault) {
        self.faults.entry(part).or_insert(fault);
    }

    async fn store(&mut self, rows: DatabaseRows) {
        let DatabaseRows { database, batches } = rows;
        let (batches, parts): (Vec<WriteBatch>, Vec<Vec<usize>>) = batches.into_iter().unzip();
        let name = &database.name;
        let stored = self.write(name, batches).await;
        let reports = match stored {
            Ok(reports) => reports,
            Err(error) => {
                if database.exists && matches!(error, ServiceError::NotFound(..)) {
                    self.misfits = Some(name.clone());
                }
                let fault = insert_fault(&error);
                for part in parts.into_iter().flatten() {
                    self.note(part, fault.clone());
                }
                self.error = Some(error);
                return;
            }
        };
        let server = &self.shared.server;
        let mut stored = 0;
        for (report, parts) in reports.into_iter().zip(parts) {
            stored += report.stored;
            let user = &self.identity.user;
            server
                .audit
                .note_created(LISTENER.setting, user, name, &report.created);
            if !report.created.is_empty() {
                self.shared.catalog.forget_tables();
            }
            for row in report.rejected {
                self.misfits = Some(name.clone());
                if let Some(part) = parts.get(row.row) {
                    let fault = IotDbFault::new(StatusCode::WRITE_PROCESS, row.reason);
                    self.faults.entry(*part).or_insert(fault);
                }
            }
        }
        server.telemetry.rows(ROUTE, stored as u64);
    }

    async fn write(
        &self,
        database: &str,
        batches: Vec<WriteBatch>,
    ) -> Result<Vec<marigram_service::WriteReport>, ServiceError> {
        let server = &self.shared.server;
        if !self.rights.allow(database, DatabasePrivileges::WRITE) {
            let user = &self.identity.user;
            return Err(ServiceError::Forbidden(format!(
                "No permissions for this operation: \"{user}\" needs WRITE on database \"{database}\""
            )));
        }
        let may_create = server.config.write_creates_databases
            && self.rights.allow(database, DatabasePrivileges::ALL);
        let ingest = &server.services.ingest;
        ingest.write(database, batches, may_create).await
    }
}
