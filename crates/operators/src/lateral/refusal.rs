//! How a lateral join is refused.

use datafusion::common::DataFusionError;
use marigram_functions::refused_at;

/// An error of the statement, at the position of the join.
pub(super) fn lateral_error(message: impl Into<String>) -> DataFusionError {
    refused_at("0A000", "lateral", message)
}
