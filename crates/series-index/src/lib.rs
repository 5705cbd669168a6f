//! Tags to series and back: the series of a shard in memory ([`SeriesIndex`]) and on disk
//! ([`SeriesLog`], layout in `docs/formats/series.md`).
//!
//! Invariant: series ids are dense from 0, and an id never changes its meaning: it stands for one
//! (table, tag key), or, after its table was dropped, for nothing.

mod error;
mod index;
mod keys;
mod log;
mod tag_index;
mod tag_values;
#[cfg(test)]
mod tests;

pub use error::SeriesError;
pub use index::SeriesIndex;
pub use log::SeriesLog;
