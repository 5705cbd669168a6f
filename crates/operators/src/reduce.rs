//! Aggregates over a table's series, by tags and by time: one operator replaces a scan, a
//! repartition and two hash aggregates.
//!
//! It uses facts that a general operator cannot know: all rows of a series have the same tags, so
//! that it looks up a group once per series and not once per row; the rows of a series are in order
//! of time, so that a bucket is a slice; a page's statistics may replace its rows; and the order in
//! which rows are added does not matter, so that late rows need no merge
//! ([`marigram_engine::ReducePartition`]).
//!
//! `rule` finds aggregates that the operator supports and reads them into a `recipe`. `exec` runs a
//! recipe: one `worker` per partition assigns rows to `groups` and passes them to `fold`s.
//! Functions that are not ours use their own accumulators. `order` implements a sort by group keys
//! above the aggregate. If memory does not suffice for the groups, DataFusion's operators, which
//! can spill, take over.

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
