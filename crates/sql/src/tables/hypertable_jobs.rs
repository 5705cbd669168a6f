//! The settings of tables and views that work in the background, as TimescaleDB's jobs.

use crate::error::SqlResult;
use marigram_engine::Engine;
use marigram_functions::duration::format_ns;
use marigram_model::{ColdCodec, TableSchema};
use std::sync::Arc;

/// The first number of a job; those below are TimescaleDB's own.
const FIRST_ID: i32 = 1000;
/// Numbers of each table.
const KINDS: i32 = 10;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// Drops old rows.
    Retention,
    /// Stores cold rows in smaller forms.
    Columnstore,
    /// Refreshes a view.
    Refresh,
}

impl JobKind {
    /// What it is called in messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Retention => "retention policy",
            Self::Columnstore => "columnstore policy",
            Self::Refresh => "refresh policy",
        }
    }

    /// The name of its procedure in TimescaleDB.
    pub(crate) fn procedure(self) -> &'static str {
        match self {
            Self::Retention => "policy_retention",
            Self::Columnstore => "policy_compression",
            Self::Refresh => "policy_refresh_continuous_aggregate",
        }
    }

    /// The title of the application in TimescaleDB.
    pub(crate) fn application(self) -> &'static str {
        match self {
            Self::Retention => "Retention Policy",
            Self::Columnstore => "Columnstore Policy",
            Self::Refresh => "Refresh Continuous Aggregate Policy",
        }
    }

    /// The number of a table's job.
    pub(crate) fn id(self, table: &TableSchema) -> i32 {
        let table = i32::try_from(table.id.0).unwrap_or(i32::MAX / KINDS - FIRST_ID);
        FIRST_ID + table * KINDS + self as i32
    }
}

/// A setting that works in the background.
#[derive(Clone, Debug)]
pub(crate) struct HypertableJob {
    /// Its number.
    pub id: i32,
    /// What it does.
    pub kind: JobKind,
    /// Its table or view.
    pub table: Arc<TableSchema>,
}

impl HypertableJob {
    /// How often it works, if that is a setting.
    pub(crate) fn schedule(&self) -> Option<String> {
        let rollup = self.table.rollup.as_ref();
        let refresh = rollup.map(|rollup| format_ns(rollup.refresh_ns));
        refresh.filter(|_| self.kind == JobKind::Refresh)
    }

    /// Its settings as JSON.
    pub(crate) fn config(&self) -> String {
        let table = self.table.id.0;
        match self.kind {
            JobKind::Retention => {
                let kept = self.table.options.ttl_ns.map(format_ns).unwrap_or_default();
                format!("{{\"drop_after\": \"{kept}\", \"hypertable_id\": {table}}}")
            }
            JobKind::Columnstore => format!("{{\"hypertable_id\": {table}}}"),
            JobKind::Refresh => {
                let rollup = self.table.rollup.as_ref();
                let lag = rollup.map(|rollup| format_ns(rollup.lag_ns));
                format!(
                    "{{\"end_offset\": \"{}\", \"start_offset\": null, \"mat_hypertable_id\": {table}}}",
                    lag.unwrap_or_default()
                )
            }
        }
    }
}

/// The jobs of a database, by their numbers.
///
/// # Errors
/// If there is no such database.
pub(crate) fn list_jobs(engine: &Engine, database: &str) -> SqlResult<Vec<HypertableJob>> {
    let mut found = Vec::new();
    for table in engine.tables(database)? {
        let options = &table.options;
        let kinds = [
            (JobKind::Retention, options.ttl_ns.is_some()),
            (JobKind::Columnstore, options.cold_codec == ColdCodec::Auto),
            (JobKind::Refresh, table.rollup.is_some()),
        ];
        for (kind, is_set) in kinds {
            if is_set && table.view.is_none() {
                found.push(HypertableJob {
                    id: kind.id(&table),
                    kind,
                    table: Arc::clone(&table),
                });
            }
        }
    }
    found.sort_by_key(|job| job.id);
    Ok(found)
}
