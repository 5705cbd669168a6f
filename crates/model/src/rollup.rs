//! Rollups: tables that are kept from another table.

use crate::{TableId, TimeSet};

/// How a rollup comes from its source. What `query` says is SQL's affair; storage keeps the times
/// that were written since.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rollup {
    /// The table that it is kept from, of the same database.
    pub source: TableId,
    /// The query that it answers.
    pub query: String,
    /// Width of the cells in which touched times are kept, ns; positive.
    pub cell_ns: i64,
    /// A time at which a cell begins, ns.
    pub cell_origin_ns: i64,
    /// How often it is brought up to date, ns; positive.
    pub refresh_ns: i64,
    /// How far it stays behind the newest row of its source, ns; not negative.
    pub lag_ns: i64,
}

/// How far a rollup tells what its source holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollupProgress {
    /// It tells of the times before this one, ns; [`i64::MIN`]: of none.
    pub through_ns: i64,
    /// Times before `through_ns` in which rows were written or deleted since it was told of them.
    pub touched: TimeSet,
}

impl RollupProgress {
    /// Most ranges of touched times that are kept; more are joined.
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
