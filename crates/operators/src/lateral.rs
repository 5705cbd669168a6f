//! `LATERAL (SELECT … WHERE t.dev = d.dev ORDER BY time DESC LIMIT n)`: the first rows that belong
//! to each row of the left side.
//!
//! DataFusion decorrelates a lateral subquery by moving the conditions that name the left side from
//! the subquery to the join. A LIMIT prevents that, because it would then count the rows of all
//! left rows together. Here `decorrelate` moves the conditions together with the LIMIT. If the
//! conditions are equalities, the LIMIT becomes the first rows of each key, and a LIMIT of one row
//! becomes an aggregate that last values can answer. Otherwise `rule` turns the join into an
//! `ASOF JOIN`, or numbers the left side's rows and counts for each.

mod decorrelate;
mod over_aggregates;
mod refusal;
mod rows;
mod rule;

pub use decorrelate::{CorrelatedCondition, DecorrelatedSubquery};
pub use over_aggregates::LateralAggregateRule;
pub use rows::{FIRST, columns_of};
pub use rule::LateralLimitRule;
