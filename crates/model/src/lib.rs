//! The basic types of Marigram: ids, time, column types, schemas, tag sets and columnar rows.
//!
//! Every other crate uses these types. Nothing here does I/O, reads a clock or draws a random
//! number, so each function is a pure function of its arguments.

mod ascending;
mod batch;
mod builder;
mod deleted_rows;
mod ids;
mod names;
mod options;
mod owner;
mod retention;
mod rollup;
mod rows;
mod schema;
mod sums;
mod tags;
mod time;
mod time_set;
mod types;
mod view;

pub use ascending::cut_ascending;
pub use batch::{BatchError, BatchField, BatchTag, WriteBatch};
pub use builder::{BatchBuilder, FieldValueRef};
pub use deleted_rows::{DeletedRows, DeletedRowsError, SeriesTimeRange};
pub use ids::{ColumnId, SeriesId, TableColumn, TableId};
pub use names::{always_quoted, nearest, quoted, suggested};
pub use options::{ColdCodec, ColumnCodec, SeriesIdentity, TableOptions};
pub use owner::LogOwner;
pub use retention::{RetentionPolicies, RetentionPolicy};
pub use rollup::{Rollup, RollupProgress};
pub use rows::{SeriesRun, SortedRows};
pub use schema::{FieldColumn, Limits, SchemaError, TableSchema, TagColumn};
pub use sums::{sum_i32, sum_i64, sum_u64, sums_i32};
pub use tags::{TagKey, TagKeyError, TagValue, TagValueRef, tag_key_entries};
pub use time::{DAY_NS, TimeRange, partition_start};
pub use time_set::TimeSet;
pub use types::{FieldType, FieldValue, TagType};
pub use view::{View, ViewColumn};

pub use marigram_codec::{Compressor, Encoding};
