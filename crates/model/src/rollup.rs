//! Rollups: tables derived from another table.

use crate::{TableId, TimeSet};

/// How a rollup is derived from its source. Only SQL interprets `query`; storage records the times
/// that were written since.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rollup {
    /// The source table, in the same database.
    pub source: TableId,
    /// The query that the rollup answers.
    pub query: String,
    /// Width of the cells in which touched times are recorded, ns; positive.
    pub cell_ns: i64,
    /// A time at which a cell begins, ns.
    pub cell_origin_ns: i64,
    /// How often the rollup is refreshed, ns; positive.
    pub refresh_ns: i64,
    /// How far it stays behind the newest row of its source, ns; not negative.
    pub lag_ns: i64,
}

/// How far a rollup covers its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollupProgress {
    /// The watermark: the rollup covers times before this one, ns; [`i64::MIN`] if it covers none.
    pub through_ns: i64,
    /// Times before `through_ns` whose rows were written or deleted since their last refresh.
    pub touched: TimeSet,
}

impl RollupProgress {
    /// Most ranges of touched times; further ones are merged.
    pub const RANGES_MAX: usize = 4096;
}

impl Default for RollupProgress {
    fn default() -> Self {
        Self {
            through_ns: i64::MIN,
            touched: TimeSet::default(),
        }
    }
}
