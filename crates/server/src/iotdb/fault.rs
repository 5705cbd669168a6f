//! Errors of the database in IoTDB's codes.

use crate::failures::{RequestFailure, kind_of};
use crate::listener::ServerState;
use marigram_iotdb::{IotDbFault, StatusCode};
use marigram_service::ServiceError;

/// The fault that a client sees for an error of a statement.
pub(super) fn statement_fault(error: &ServiceError) -> IotDbFault {
    let text = error.to_string();
    match error {
        ServiceError::Internal(_) => IotDbFault::new(StatusCode::INTERNAL, text),
        ServiceError::Unauthenticated(_) => IotDbFault::new(StatusCode::NOT_LOGIN, text),
        other => IotDbFault::from_text(&text, other.sqlstate()),
    }
}

/// The fault that a client sees for rows that were not stored.
pub(super) fn insert_fault(error: &ServiceError) -> IotDbFault {
    let code = match error {
        ServiceError::Busy { .. } => StatusCode::WRITE_REJECTED,
        ServiceError::ReadOnly(_) | ServiceError::ChangesRefused(_) => StatusCode::READ_ONLY,
        ServiceError::Forbidden(_) => StatusCode::NO_PERMISSION,
        ServiceError::Unauthenticated(_) => StatusCode::NOT_LOGIN,
        ServiceError::NotFound(_, "3D000") => StatusCode::DATABASE_NOT_EXIST,
        ServiceError::Internal(_) => StatusCode::INTERNAL,
        _ => StatusCode::WRITE_PROCESS,
    };
    IotDbFault::new(code, error.to_string())
}

/// The status that figures count an error as, as HTTP has them.
pub(super) fn status_of(error: &ServiceError) -> u16 {
    match error {
        ServiceError::Internal(_) => 500,
        ServiceError::Busy { .. } | ServiceError::ReadOnly(_) => 503,
        ServiceError::Unauthenticated(_) => 401,
        ServiceError::Forbidden(_) => 403,
        _ => 400,
    }
}

/// Logs a request that failed through no fault of its client.
pub(super) fn note_failure(
    server: &ServerState,
    route: &'static str,
    error: &ServiceError,
    statement: Option<&str>,
) {
    let status = status_of(error);
    if status < 500 {
        return;
    }
    let failure = RequestFailure {
        code: error.sqlstate(),
        error: error.to_string(),
        statement: statement.map(kind_of),
    };
    server.telemetry.failures.note(route, status, &failure);
}
