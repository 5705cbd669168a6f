//! Which buckets there are, and which of them a client may read.

use crate::value::FluxBucket;
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;

/// Finds the buckets that a client may read.
pub(crate) trait BucketAccess: Send + Sync {
    /// A bucket by its name.
    ///
    /// # Errors
    /// `Forbidden` if the client may not read it, whether there is such a bucket or not; `NotFound`
    /// if there is none.
    fn bucket(&self, at: FluxPosition, name: &str) -> SqlResult<FluxBucket>;
}
