//! Segments: immutable columnar files, sorted by table, series and time.
//!
//! [`SegmentWriter`] takes sorted rows and writes pages, indexes and footer; [`Segment`] opens a
//! file and gives directories, page statistics and decoded pages one at a time. The format is
//! specified in `docs/formats/segment.md`.
//!
//! Invariant: a checksum covers every byte, and is checked before the byte is used. Damage is an
//! error with path and offset, never a panic and never a wrong value.

mod error;
mod layout;
mod options;
mod page;
mod page_buffer;
mod segment;
mod stats;
mod times_cache;
mod verify;
mod whole_table;
mod writer;

pub use error::SegmentError;
pub use layout::{FORMAT_VERSION, PageMeta, RowGroup, SegmentColumn, SegmentSummary};
pub use marigram_codec::{GridPart, NumberGrids, Progression, RegularIntegers};
pub use options::{SegmentOptions, TableLayout};
pub use page::{PageInfo, PageTimes};
pub use segment::Segment;
pub use stats::PageStats;
pub use whole_table::WholeTable;
pub use writer::{PageSource, SegmentWriter};

#[cfg(test)]
mod tests;
