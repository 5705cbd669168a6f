//! Maps tags to series and back: the series of a shard in memory ([`SeriesIndex`]) and on disk
//! ([`SeriesLog`], layout in `docs/formats/series.md`).
//!
//! Invariant: series ids are dense from 0, and an id never changes its meaning. It stands for one
//! (table, tag key), or for nothing after its table was dropped or all its rows were deleted.

mod compact;
mod error;
mod id_table;
mod index;
mod keys;
mod log;
mod tag_index;
#[cfg(test)]
mod tests;
mod value_test;

pub use error::SeriesError;
pub use index::{RetiredSeriesPin, SeriesIndex, TableMemory};
pub use log::{DiscardFile, LogPosition, SeriesLog};
pub use value_test::{PatternError, ValueTest};
