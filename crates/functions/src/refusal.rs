//! Values that a function refuses.

use datafusion::common::DataFusionError;
use marigram_service::ServiceError;

/// The error of a function that refuses its arguments, with PostgreSQL's SQLSTATE.
pub fn refused(sqlstate: &'static str, message: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(ServiceError::Invalid {
        message: message.into(),
        position: None,
        sqlstate,
    }))
}
