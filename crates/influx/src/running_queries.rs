//! Running statements, for SHOW QUERIES and KILL QUERY.
//!
//! A statement runs from its start until its rows have been read or its answer is dropped.

use crate::budget::INTERRUPTED;
use crate::schema::refused;
use futures::StreamExt;
use futures::stream::{AbortHandle, Abortable, abortable};
use marigram_service::Session;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The running statements.
#[derive(Debug, Default)]
pub(crate) struct RunningQueries {
    last: AtomicU64,
    running: Mutex<BTreeMap<u64, RunningQuery>>,
}

/// A running statement.
#[derive(Debug)]
struct RunningQuery {
    text: String,
    user: String,
    database: String,
    begun: Instant,
    is_killed: Arc<AtomicBool>,
    abort: Option<AbortHandle>,
}

/// What SHOW QUERIES shows about a statement.
#[derive(Clone, Debug)]
pub(crate) struct QueryInfo {
    /// Its number.
    pub id: u64,
    /// The statement.
    pub text: String,
    /// Who sent it.
    pub user: String,
    /// The database of its request.
    pub database: String,
    /// How long it has run.
    pub elapsed: Duration,
    /// Whether it is being stopped.
    pub is_killed: bool,
}

/// The statement is registered as long as this is held.
#[derive(Debug)]
pub(crate) struct RunningGuard {
    queries: Arc<RunningQueries>,
    id: u64,
    is_killed: Arc<AtomicBool>,
}

impl RunningQueries {
    /// Registers a statement.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a statement has run is told, and decides nothing"
    )]
    pub(crate) fn begin(self: &Arc<Self>, text: String, session: &Session) -> RunningGuard {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let is_killed = Arc::new(AtomicBool::new(false));
        let query = RunningQuery {
            text,
            user: session.identity.user.clone(),
            database: session.database.clone(),
            begun: Instant::now(),
            is_killed: Arc::clone(&is_killed),
            abort: None,
        };
        self.running.lock().insert(id, query);
        RunningGuard {
            queries: Arc::clone(self),
            id,
            is_killed,
        }
    }

    /// The running statements, ascending by number.
    pub(crate) fn list(&self) -> Vec<QueryInfo> {
        let running = self.running.lock();
        let info = running.iter().map(|(id, query)| QueryInfo {
            id: *id,
            text: query.text.clone(),
            user: query.user.clone(),
            database: query.database.clone(),
            elapsed: query.begun.elapsed(),
            is_killed: query.is_killed.load(Ordering::Relaxed),
        });
        info.collect()
    }

    /// Stops a statement when it next produces rows.
    ///
    /// # Errors
    /// If there is no such statement.
    pub(crate) fn kill(&self, id: u64) -> SqlResult<()> {
        let running = self.running.lock();
        let Some(query) = running.get(&id) else {
            return Err(refused(format!("no such query id: {id}")));
        };
        query.is_killed.store(true, Ordering::Relaxed);
        if let Some(abort) = &query.abort {
            abort.abort();
        }
        Ok(())
    }
}

impl RunningGuard {
    /// Whether the statement was killed.
    pub(crate) const fn is_killed(&self) -> &Arc<AtomicBool> {
        &self.is_killed
    }

    /// Keeps the statement registered until its rows have been read.
    ///
    /// # Errors
    /// If it was killed before.
    pub(crate) fn watch(self, rows: StatementRows) -> SqlResult<StatementRows> {
        let StatementRows::Rows { schema, batches } = rows else {
            return Ok(rows);
        };
        let (batches, abort) = abortable(batches);
        if let Some(query) = self.queries.running.lock().get_mut(&self.id) {
            query.abort = Some(abort);
        }
        if self.is_killed.load(Ordering::Relaxed) {
            return Err(refused(INTERRUPTED));
        }
        let state = (Some(self), batches);
        let batches = futures::stream::unfold(state, |(guard, mut batches)| async move {
            let next = Abortable::next(&mut batches).await;
            match (next, &guard) {
                (Some(batch), _) => Some((batch, (guard, batches))),
                (None, Some(running)) if running.is_killed.load(Ordering::Relaxed) => {
                    Some((Err(refused(INTERRUPTED)), (None, batches)))
                }
                (None, _) => None,
            }
        });
        Ok(StatementRows::Rows {
            schema,
            batches: batches.boxed(),
        })
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.queries.running.lock().remove(&self.id);
    }
}
