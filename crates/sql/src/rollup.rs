//! Rollups: materialized views over buckets of time, which are kept up to date and which queries
//! use automatically.
//!
//! A rollup does not store the columns of a view but the parts from which they are computed: for a
//! mean, sum and count. So a query by hours can be answered from minutes, and one by site from
//! devices (`part`). A view's query is read once (`grouped_aggregate`, `rollup_definition`). The
//! view's rows combine the stored parts, for buckets whose source rows did not change, and parts
//! computed from the source, for all other buckets (`time_split`, `table_provider`). A rule
//! replaces a table with them when a query asks for the same result (`rule`), and `refresh` brings
//! the rollup up to date.

mod exec;
mod grouped_aggregate;
mod part;
mod refresh;
mod rollup_definition;
mod rollup_definitions;
mod rule;
mod show_views;
mod shown_table;
mod table_provider;
#[cfg(test)]
mod testing;
mod time_split;

pub(crate) use refresh::RollupRefresher;
pub use refresh::RollupStatus;
pub(crate) use rollup_definitions::{RollupDefinitions, read, read_stored};
pub(crate) use rule::RollupRewriteRule;
pub use show_views::touched_ns;
pub(crate) use show_views::{columns, statement, views};
pub(crate) use table_provider::RollupTableProvider;
