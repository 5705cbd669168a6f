//! What servers ask of a database, as traits: take rows ([`Ingest`]), answer SQL ([`Query`])
//! and other query languages ([`LanguageQuery`]), tell how it is ([`Status`]) and take backups ([`Backup`]).
//!
//! Transports stand above these traits and storage below them, so neither knows the other. No type
//! of the engine or of the SQL planner appears here: rows come and go as Arrow or as
//! [`marigram_model::WriteBatch`].
//!
//! Invariants for those who implement them: CPU-bound work and disk I/O do not run on the thread
//! that polls (the threads that serve connections); a future or stream that is dropped stops the
//! work behind it, except that a write which has begun may still be stored.

mod backup;
mod error;
mod ingest;
mod language;
mod query;
mod status;

pub use backup::{Backup, BackupReport};
pub use error::{Result, ServiceError};
pub use ingest::{Ingest, RejectedRow, WriteReport};
pub use language::{
    Language, LanguageQuery, LanguageRequest, ParameterValue, ROLE_KEY, StatementAnswer,
    StatementAnswers,
};
pub use query::{Answer, DEFAULT_DATABASE, Prepared, Query, RowStream, Session};
pub use status::{Metric, Status};
