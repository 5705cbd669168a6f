//! `/api/v1/backup`: a backup into a folder on the server's machine.
//!
//! Who can reach the port can ask for one, so it goes into the folder that the operator named, or
//! one below it, and nowhere else.

use crate::http::Shared;
use crate::http::error::{HttpError, json_answer};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

/// Parameters of the query string.
#[derive(Debug, Default, Deserialize)]
pub struct Parameters {
    dir: Option<PathBuf>,
    keep: Option<usize>,
}

/// `POST /api/v1/backup?dir=&keep=`.
pub async fn post(
    State(shared): State<Shared>,
    given: Result<Query<Parameters>, QueryRejection>,
) -> Result<Response, HttpError> {
    let Query(parameters) =
        given.map_err(|error| HttpError::bad_request(format!("bad parameters: {error}")))?;
    let folder = folder(shared.config.backup_dir.as_deref(), parameters.dir)?;
    let _ticket = shared.gate.enter().ok_or_else(HttpError::too_many)?;
    let begin = Instant::now();
    let report = shared
        .services
        .backup
        .backup(&folder, parameters.keep)
        .await?;
    let body = json!({
        "number": report.number,
        "dir": folder.display().to_string(),
        "taken_ns": report.taken_ns,
        "files": report.files,
        "bytes": report.bytes,
        "bytes_new": report.bytes_new,
        "rows": report.rows,
        "pruned": report.pruned,
        "warnings": report.warnings,
        "elapsed_ms": begin.elapsed().as_secs_f64() * 1e3,
    });
    Ok(json_answer(StatusCode::OK, &body))
}

/// The folder that is meant by `asked`: `allowed`, or one below it.
fn folder(allowed: Option<&Path>, asked: Option<PathBuf>) -> Result<PathBuf, HttpError> {
    let Some(allowed) = allowed else {
        return Err(HttpError::bad_request(
            "this server takes no backups by request: start it with --backup-dir DIR (backup_dir \
             in its configuration)",
        ));
    };
    let folder = allowed.join(asked.unwrap_or_default());
    let is_plain = folder
        .components()
        .all(|part| !matches!(part, Component::ParentDir));
    if is_plain && folder.starts_with(allowed) {
        // Without the slash that joining nothing leaves behind.
        return Ok(folder.components().collect());
    }
    Err(HttpError::bad_request(format!(
        "'{}' does not lie in {}, the folder where this server keeps backups; name one that does, \
         or a name alone",
        folder.display(),
        allowed.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_configured_folder_and_those_below_are_taken() {
        let allowed = Path::new("/var/backups");
        let folder = |asked: &str| {
            let asked = Some(PathBuf::from(asked)).filter(|_| asked != "-");
            folder(Some(allowed), asked).ok()
        };
        assert_eq!(folder("-"), Some("/var/backups".into()));
        assert_eq!(folder(""), Some("/var/backups".into()));
        assert_eq!(folder("nightly"), Some("/var/backups/nightly".into()));
        assert_eq!(folder("/var/backups/a/b"), Some("/var/backups/a/b".into()));
        for outside in [
            "/etc",
            "../x",
            "a/../../x",
            "/var/backups/../x",
            "/var/backups2",
        ] {
            assert_eq!(folder(outside), None, "{outside}");
        }
        let error = super::folder(None, None).unwrap_err();
        assert!(error.message.contains("--backup-dir"), "{}", error.message);
    }
}
