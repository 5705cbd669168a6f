//! Errors of the embedded API, and their translation for servers.

use marigram_engine::EngineError;
use marigram_model::BatchError;
use marigram_reference::ReferenceError;
use marigram_service::ServiceError;

/// Why a call of the embedded API failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The storage engine refused or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A statement was wrong or failed.
    #[error(transparent)]
    Query(#[from] ServiceError),
    /// A batch is inconsistent.
    #[error("the batch is inconsistent: {0}")]
    Batch(#[from] BatchError),
    /// Arrow rows cannot be converted to rows of the table.
    #[error("{0}")]
    Arrow(String),
    /// An option has an invalid value.
    #[error("{0}")]
    Option(String),
    /// The threads that answer queries could not be started.
    #[error("cannot start the threads that answer queries: {0}")]
    Runtime(std::io::Error),
    /// The spill directory of queries cannot be created or emptied.
    #[error("cannot create or empty the directory to which queries spill: {0}")]
    Spill(std::io::Error),
    /// The reference tables cannot be opened.
    #[error("the reference tables: {0}")]
    Reference(#[from] ReferenceError),
}

/// Result of the embedded API.
pub type Result<T> = std::result::Result<T, Error>;

/// Translates an engine error for servers. The codes are PostgreSQL's SQLSTATEs.
pub(crate) fn service_error(error: EngineError) -> ServiceError {
    let message = error.to_string();
    match error {
        EngineError::NotFound { kind, .. } => ServiceError::NotFound(
            message,
            match kind {
                "database" => "3D000",
                "table" => "42P01",
                "column" | "tag" | "field" => "42703",
                _ => "42704",
            },
        ),
        EngineError::AlreadyExists { kind, .. } => ServiceError::AlreadyExists(
            message,
            match kind {
                "database" => "42P04",
                "table" => "42P07",
                "column" | "tag" | "field" => "42701",
                _ => "42710",
            },
        ),
        EngineError::Invalid(_) => ServiceError::Invalid {
            message,
            position: None,
            sqlstate: "22023",
        },
        EngineError::Schema(error) => ServiceError::Invalid {
            message,
            position: None,
            sqlstate: marigram_sql::schema_sqlstate(&error),
        },
        EngineError::Busy { retry_after, .. } => ServiceError::Busy {
            message,
            retry_after,
        },
        EngineError::ReadOnly(_) => ServiceError::ReadOnly(message),
        EngineError::Closed => ServiceError::Invalid {
            message,
            position: None,
            sqlstate: "57P03",
        },
        EngineError::Io { source, .. } => {
            marigram_sql::disk_full(&source, &message).unwrap_or(ServiceError::Internal(message))
        }
        _ => ServiceError::Internal(message),
    }
}

/// Translates an error of this crate for servers.
pub(crate) fn to_service(error: Error) -> ServiceError {
    match error {
        Error::Engine(error) => service_error(error),
        Error::Query(error) => error,
        Error::Batch(_) | Error::Arrow(_) | Error::Option(_) => ServiceError::Invalid {
            message: error.to_string(),
            position: None,
            sqlstate: "22023",
        },
        Error::Runtime(_) | Error::Spill(_) | Error::Reference(_) => {
            ServiceError::Internal(error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_errors_keep_their_words_and_gain_a_code() {
        let missing = EngineError::NotFound {
            kind: "table",
            name: "sensor".into(),
            nearest: Some("sensors".into()),
        };
        let ServiceError::NotFound(message, code) = service_error(missing) else {
            panic!("a missing table is reported as not found")
        };
        assert_eq!(code, "42P01");
        assert!(message.contains("sensors"), "{message}");
        for (error, sqlstate) in [
            (EngineError::Closed, "57P03"),
            (EngineError::Invalid("no".into()), "22023"),
            (
                EngineError::Schema(marigram_model::SchemaError::EmptyName { kind: "table" }),
                "42602",
            ),
            (
                EngineError::Io {
                    path: "f".into(),
                    source: std::io::Error::from(std::io::ErrorKind::StorageFull),
                },
                "53100",
            ),
            (
                EngineError::Corrupt {
                    path: "f".into(),
                    offset: 0,
                    reason: "a checksum".into(),
                },
                "XX000",
            ),
        ] {
            let what = error.to_string();
            assert_eq!(service_error(error).sqlstate(), sqlstate, "{what}");
        }
        let full = service_error(EngineError::ReadOnly("no space left".into()));
        assert!(matches!(full, ServiceError::ReadOnly(reason) if reason.contains("no space left")));
    }
}
