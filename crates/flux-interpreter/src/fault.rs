//! Errors with the place in the script.

use marigram_flux::FluxPosition;
use marigram_sql::SqlError;

/// An error at a place of the script.
pub(crate) fn fault(at: FluxPosition, message: impl AsRef<str>) -> SqlError {
    SqlError::invalid("42000", format!("error @{at}: {}", message.as_ref()))
}

/// An error of something that Flux has, and Marigram does not.
pub(crate) fn unsupported(at: FluxPosition, what: &str) -> SqlError {
    let message = format!("error @{at}: {what} is not supported");
    SqlError::invalid("0A000", message)
}
