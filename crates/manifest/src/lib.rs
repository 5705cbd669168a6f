//! The contents of a shard (`MANIFEST`), and the databases and tables of a directory (`CATALOG`).
//!
//! A witness (`WITNESS`) beside each detects a log that was cut short or replaced. Both files are the
//! same kind of log: a snapshot of a state and the edits since, each one checksummed and durable
//! before it takes effect. `docs/formats/manifest.md` and `docs/formats/catalog.md` describe the
//! layouts.
//!
//! Invariant: a reader sees the state after some whole number of edits, and at least all those
//! whose commit returned.

mod attributes;
mod bytes;
mod catalog;
mod catalog_bytes;
mod error;
mod log;
mod manifest;
mod manifest_bytes;
mod proof;
mod record;
mod replay;
mod state;
#[cfg(test)]
mod tests;
mod witness;

pub use catalog::{Catalog, CatalogEdit, CatalogState};
pub use error::ManifestError;
pub use log::LogOptions;
pub use manifest::Manifest;
pub use proof::LogProof;
pub use replay::{LogExtent, TornTail};
pub use state::{
    ManifestEdit, ManifestState, Partition, SegmentId, SegmentMeta, SegmentSpace, Tombstone,
};
pub use witness::{WitnessFile, WitnessOwner, WitnessedShard, WitnessedState};
