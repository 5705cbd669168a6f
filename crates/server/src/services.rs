//! The database that the servers serve, as traits, so that no server depends on a particular one.

use marigram_service::{Authentication, Backup, Ingest, LanguageQuery, Query, Status};
use std::sync::Arc;

/// The database that is served.
#[derive(Clone)]
pub struct ServedDatabase {
    /// Takes rows.
    pub ingest: Arc<dyn Ingest>,
    /// Answers SQL.
    pub query: Arc<dyn Query>,
    /// Answers InfluxQL.
    pub languages: Arc<dyn LanguageQuery>,
    /// Tells who clients are, and what they may do.
    pub access: Arc<dyn Authentication>,
    /// Reports the state of the database.
    pub status: Arc<dyn Status>,
    /// Takes backups.
    pub backup: Arc<dyn Backup>,
}
