//! Marigram's own SQL functions, and those of PostgreSQL that clients ask for.

mod bucket;
mod edges;
mod postgres;
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
    for udf in postgres::functions() {
        state.register_udf(Arc::new(udf))?;
    }
    Ok(())
}
