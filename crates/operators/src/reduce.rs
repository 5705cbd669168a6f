//! Aggregates over a table's series, by tags and by time: one operator in place of a scan, a
//! repartition and two hash aggregates.
//!
//! What it knows and a general operator cannot: all rows of a series have the same tags, so that a
//! group is found once a series and not once a row; rows of a series are in order of time, so that
//! a bucket is a slice; a page's statistics may answer for it; and the order in which rows are added
//! up does not matter, so that late rows need no merge ([`marigram_engine::ReducePartition`]).
//!
//! `rule` finds aggregates that it can do and reads them into a `recipe`; `exec` carries a
//! recipe out: a `worker` a partition sorts rows into `groups` and hands them to `fold`s.
//! Functions that are not ours bring their own accumulators. A sort by group keys above it is done by
//! `order`. Where there is not enough memory for
//! the groups, DataFusion's operators do it, which can spill.

mod exec;
mod fold;
mod group_cache;
mod groups;
mod inline;
mod last;
mod order;
mod recipe;
mod rule;
mod template;
mod threads;
mod worker;

pub use exec::SeriesAggregate;
pub use group_cache::GroupCache;
pub use rule::SeriesAggregateRule;
pub use template::SeriesAggregateTemplate;
