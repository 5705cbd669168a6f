//! The storage engine: batches in, scans out; durable, and bounded in memory.
//!
//! The path of a write: [`Engine::write`] checks a batch, fits it to its table's schema
//! (`resolve`), finds each row's shard and series (`route`), reserves memory for it (`admission`)
//! and hands it to the shards. There, one of the waiting writers commits for all (`commit`,
//! `shard`): to the log, the memtable and the last values. Full memtables become segments
//! (`flush`). Segments are merged (`compaction`), and dropped when they are past their ttl
//! (`maintain`). `recovery` restores the state when the engine is opened.
//!
//! The path of a read: a [`TableSnapshot`] holds one version of every shard ([`ShardView`]); a scan
//! merges its chunks and segments (`merge`, `scan`).
//!
//! Modules have an order, and none imports a later one: options, names, error, memory, text,
//! layout, `shared_rows`, chunk, `segment_files`, view, pages; merge, filter, scan, `last_values`,
//! snapshot, compaction; health, catalog, rollups, resolve, `high_water_marks`, memtable, commit,
//! route, stats, reserve, trash, shard, flush, maintain, directory, survey, damage, recovery,
//! status, parallel, backup, verify, background, admission, engine.

mod admission;
mod background;
pub mod backup;
mod catalog;
mod chunk;
mod commit;
mod compaction;
mod damage;
mod directory;
mod engine;
mod error;
mod filter;
mod flush;
mod health;
mod high_water_marks;
mod last_values;
mod layout;
mod maintain;
mod memory;
mod memtable;
mod merge;
mod options;
mod pages;
mod parallel;
mod recovery;
mod reference_file;
mod reserve;
mod resolve;
mod rollups;
mod route;
mod scan;
mod segment_files;
mod shard;
mod shared_rows;
mod snapshot;
mod stats;
mod status;
mod survey;
mod table_gate;
mod text;
mod trash;
mod verify;
mod view;

pub use catalog::{OtherTables, TableChange, TableSpec};
pub use chunk::Chunk;
pub use compaction::{CompactionInfo, CompactionState};
pub use engine::{
    ConvertedColumn, Engine, RejectedRow, ReplacedCount, RetypeOutcome, RetypeRequest, TableGrowth,
    UnfitValue, WriteOptions, WriteReport,
};
pub use error::{EngineError, Result};
pub use filter::{SeriesSelection, TagFilter};
pub use maintain::TableCompaction;
pub use marigram_series_index::{PatternError, TableMemory, ValueTest};
pub use memory::{Holder, MemoryAccountant, MemoryReservation, MemoryUsage, ProcessMemory};
pub use options::{CompactionPolicy, Durability, EngineOptions};
pub use pages::{PageDetail, SegmentDetail};
pub use reference_file::{CopyReference, FOLDER as REFERENCE_FOLDER, has_reference_tables};
pub use rollups::RollupState;
pub use scan::{
    ColumnBounds, EdgeRequest, PageNeed, PageOutline, PageReducer, PageRows, PageTotals,
    ReducePartition, RowSpan, ScanMetrics, ScanPartition, ScanRequest,
};
pub use segment_files::SegmentFiles;
pub use snapshot::TableSnapshot;
pub use status::{EngineStatus, SegmentInfo};
pub use view::{OpenSegment, ShardView};

pub use marigram_segment::{
    GridPart, NumberGrids, PageInfo, PageStats, Progression, RegularIntegers,
};
