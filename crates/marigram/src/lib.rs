//! Marigram as a library: open a directory, write batches, run SQL, get Arrow back.
//!
//! ```no_run
//! # fn main() -> Result<(), marigram::Error> {
//! let db = marigram::Marigram::open("./data")?;
//! db.sql("CREATE TABLE weather (time TIMESTAMP, station STRING TAG, temp DOUBLE FIELD)")?;
//! db.sql("INSERT INTO weather VALUES ('2026-01-01T00:00:00Z', 'north', 3.5)")?;
//! let batches = db.sql("SELECT station, avg(temp) FROM weather GROUP BY station")?;
//! db.close()?;
//! # Ok(()) }
//! ```
//!
//! This crate is the composition root: it combines engine, SQL and runtime, and knows nothing of
//! sockets or terminals. Servers use it through the traits of `marigram_service`; the command line
//! uses the same public API as an embedder.
//!
//! Invariant: there is no global state. Two databases in one process share nothing but the machine.

mod allocator;
mod arrow_rows;
mod code_pages;
mod database;
mod descriptors;
mod error;
mod file_tables;
mod machine;
mod memory_watch;
mod metrics;
mod options;
mod password_checks;
mod reference;
mod runtime;
mod service;
mod statements;
mod units;

pub use allocator::tune_allocator;
pub use arrow;
pub use arrow_rows::{ConvertedRows, Roles, convert};
pub use database::{Marigram, restore};
pub use descriptors::Descriptors;
pub use error::{Error, Result};
pub use marigram_engine::backup;
pub use marigram_engine::{
    Engine, EngineError, EngineStatus, Holder, RejectedRow, TableGrowth, TableSpec, WriteOptions,
    WriteReport,
};
pub use marigram_env::Env;
pub use marigram_model::{
    BatchBuilder, BatchField, BatchTag, ColdCodec, ColumnCodec, Compressor, Encoding, FieldType,
    FieldValueRef, SeriesIdentity, TableOptions, TableSchema, TagType, TagValueRef, TimeRange,
    WriteBatch,
};
pub use marigram_service::{
    Answer, Authentication, Backup, DEFAULT_DATABASE, Identity, Ingest, Query, RowStream,
    ServiceError, Session, Status,
};
pub use memory_watch::resident_bytes;
pub use options::{Compaction, Durability, OpenOptions};
pub use reference::verify;
pub use units::{ByteSize, Span, UnitError};
