//! Marigram's own SQL functions, and those of PostgreSQL that clients ask for.

mod aggregate;
mod arguments;
mod bucket;
mod edges;
mod extent;
mod histogram;
mod keys;
mod lttb;
pub mod marks;
mod mode;
mod numbers;
mod over_time;
mod pairs;
mod postgres;
mod ranks;
mod steps;
mod time_bucket;

pub use bucket::Buckets;
pub use postgres::session_functions;
pub use time_bucket::buckets as time_buckets;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use std::sync::Arc;

/// Makes the functions known to a session.
///
/// # Errors
/// If the registry refuses one.
pub fn register(state: &mut SessionState) -> datafusion::common::Result<()> {
    state.register_udf(Arc::new(ScalarUDF::from(time_bucket::TimeBucket::new())))?;
    for udaf in [edges::Edge::first(), edges::Edge::last()] {
        state.register_udaf(Arc::new(AggregateUDF::from(udaf)))?;
    }
    for udaf in aggregates() {
        state.register_udaf(Arc::new(udaf))?;
    }
    for udwf in steps::functions() {
        state.register_udwf(Arc::new(udwf))?;
    }
    for udf in marks::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    for udf in postgres::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    Ok(())
}

/// The aggregates of time series.
fn aggregates() -> Vec<AggregateUDF> {
    let mut aggregates = vec![
        aggregate::aggregate(extent::Extent::Spread),
        aggregate::aggregate(extent::Extent::Elapsed),
        aggregate::aggregate(mode::Mode),
        aggregate::aggregate(ranks::Ranks::Top),
        aggregate::aggregate(ranks::Ranks::Bottom),
        aggregate::aggregate(histogram::Histogram),
        aggregate::aggregate(lttb::Lttb),
    ];
    aggregates.extend(over_time::ALL.map(aggregate::aggregate));
    aggregates
}

#[cfg(test)]
mod tests;
