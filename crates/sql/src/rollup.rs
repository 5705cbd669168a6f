//! Rollups: materialized views over buckets of time, kept up to date and used unasked.
//!
//! What is stored of a view is not its columns but the parts that they are made of: of a mean, sum
//! and count. So a query by hours can be answered from minutes, and one by site from devices
//! (`part`). A view's query is read once (`grouped`, `shape`); its rows are the parts that are
//! stored, for the buckets that storage knows to be as they were, and parts made from the source
//! for all others (`times`, `partials`). A rule puts them in the place of a table that is asked for
//! the same (`rule`), and `refresh` tells the rollup what is new.

mod exec;
mod grouped;
mod part;
mod partials;
mod refresh;
mod rule;
mod shape;
mod shapes;
mod shown;
#[cfg(test)]
mod testing;
mod times;

pub use partials::Partials;
pub use refresh::{Refresher, RollupStatus};
pub use rule::UseRollups;
pub use shapes::{Shapes, read};
pub use shown::{columns, statement, touched_ns, views};
