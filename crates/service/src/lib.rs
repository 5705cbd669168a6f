//! The interface between servers and a database, as traits: store rows ([`Ingest`]), answer SQL
//! ([`Query`]) and other query languages ([`LanguageQuery`]), report the state ([`Status`]), take
//! backups ([`Backup`]), and tell who clients are ([`Authentication`]).
//!
//! Transports are above these traits and storage is below them, so neither knows the other. No type
//! of the engine or of the SQL planner appears here: rows pass as Arrow or as
//! [`marigram_model::WriteBatch`].
//!
//! Invariants for implementations: CPU-bound work and disk I/O do not run on the polling thread
//! (the threads that serve connections); dropping a future or stream stops the work behind it,
//! except a write that has begun: whoever stops a statement and reports that asks its
//! [`CommitPoint`] first. Work that takes less time than handing it
//! over is excepted, as [`InlinePolicy`] says.

mod authentication;
mod backup;
mod blocking;
mod commit_point;
mod error;
mod ingest;
mod inline;
mod language;
mod query;
mod status;
mod transaction;

pub use authentication::{Authentication, Identity, IdentityProof, OpenAccess, wrong_password};
pub use backup::{Backup, BackupReport};
pub use blocking::{run_blocking, run_blocking_on, run_inline_if};
pub use commit_point::{
    CommitPoint, WriteStep, stopped_error, stored_note, timed_out, write_blocking,
};
pub use error::{Result, ServiceError, ViolatedConstraint};
pub use ingest::{ArrowRoles, Ingest, RejectedRow, WriteReport};
pub use inline::{InlineDecision, InlinePolicy, InlineRefusal, ScanSize};
pub use language::{
    FLUX_DEFAULT_KEY, FLUX_GROUP_KEY, FLUX_RESULT_KEY, FLUX_TABLE_KEY, Language, LanguageQuery,
    LanguageRequest, ParameterValue, ROLE_KEY, StatementAnswer, StatementAnswers,
};
pub use query::{
    Answer, DEFAULT_DATABASE, IDLE_IN_TRANSACTION_TIMEOUT, PG_TYPE_KEY, Prepared, Query, RowStream,
    Session,
};
pub use status::{Metric, Status};
pub use transaction::{SessionTransaction, TransactionBlockState, TransactionStep};
