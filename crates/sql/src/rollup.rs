//! Rollups: materialized views over buckets of time, kept up to date and used unasked.
//!
//! What is stored of a view is not its columns but the parts that they are made of: of a mean, sum
//! and count. So a query by hours can be answered from minutes, and one by site from devices
//! (`part`). A view's query is read once (`grouped`, `shape`); its rows are the parts that are
//! stored, for the buckets that storage knows to be as they were, and parts made from the source
//! for all others (`times`, `partials`). A rule puts them in the place of a table that is asked for
//! the same (`rule`), and `refresh` tells the rollup what is new.

mod exec;
mod grouped_aggregate;
mod part;
mod refresh;
mod rollup_definition;
mod rollup_definitions;
mod rule;
mod show_views;
mod table_provider;
#[cfg(test)]
mod testing;
mod time_split;

pub use refresh::{RollupRefresher, RollupStatus};
pub use rollup_definitions::{RollupDefinitions, read};
pub use rule::RollupRewriteRule;
pub use show_views::{columns, statement, touched_ns, views};
pub use table_provider::RollupTableProvider;
