//! `/api/v1/backup`: a backup into a folder on the server's machine.
//!
//! Anyone who can reach the port can ask for a backup, so it goes into the folder that the operator
//! named, or one below it, and nowhere else: neither `..` nor a link leads out. `backup_dir` itself
//! may be a link, because the operator created it.

use crate::http::error::{HttpError, json_answer};
use crate::http::request_context::RequestContext;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::Response;
use marigram_service::run_blocking;
use serde::Deserialize;
use serde_json::json;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

/// Longest name of a folder that systems accept, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Parameters of the query string.
#[derive(Debug, Default, Deserialize)]
pub(super) struct BackupParameters {
    dir: Option<PathBuf>,
    keep: Option<usize>,
}

/// `POST /api/v1/backup?dir=&keep=`.
pub(super) async fn post(
    RequestContext(shared): RequestContext,
    given: Result<Query<BackupParameters>, QueryRejection>,
) -> Result<Response, HttpError> {
    let Query(parameters) =
        given.map_err(|error| HttpError::bad_request(format!("bad parameters: {error}")))?;
    shared.check_administrator("a backup")?;
    let folder = folder(shared.server.config.backup_dir.as_deref(), parameters.dir)?;
    let _ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let begin = Instant::now();
    if let Some(allowed) = shared.server.config.backup_dir.clone() {
        let folder = folder.clone();
        run_blocking(move || check_links(&allowed, &folder)).await??;
    }
    let report = shared
        .server
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

/// The folder that `asked` names: `allowed`, or one below it.
fn folder(allowed: Option<&Path>, asked: Option<PathBuf>) -> Result<PathBuf, HttpError> {
    let Some(allowed) = allowed else {
        return Err(HttpError::bad_request(
            "this server takes no backups by request: start it with --backup-dir DIR (backup_dir \
             in its configuration)",
        ));
    };
    let asked = asked.unwrap_or_default();
    if asked.to_string_lossy().contains(char::is_control) {
        return Err(HttpError::bad_request(
            "the name of a folder must not contain control characters",
        ));
    }
    let folder = allowed.join(asked);
    // What the operator configured may lead upwards; what a client adds may not.
    let is_plain = |below: &Path| {
        let mut parts = below.components();
        parts.all(|part| !matches!(part, Component::ParentDir))
    };
    if folder.strip_prefix(allowed).is_ok_and(is_plain) {
        // Without the slash that joining an empty path leaves.
        return Ok(folder.components().collect());
    }
    Err(HttpError::bad_request(format!(
        "'{}' is not inside {}, the folder where this server keeps backups; name one inside it, \
         or a name alone",
        folder.display(),
        allowed.display()
    )))
}

/// Refuses a folder that is not a directory, that contains a link, or whose path contains one. The
/// backup creates what does not exist yet.
fn check_links(allowed: &Path, folder: &Path) -> Result<(), HttpError> {
    let below = folder.strip_prefix(allowed).unwrap_or(folder);
    // The system reports a name that is too long only if the folder above it exists.
    let mut names = below.iter();
    if let Some(name) = names.find(|name| name.len() > NAME_BYTES_MAX) {
        return Err(no_name(name));
    }
    let mut place = allowed.to_owned();
    for part in below.components() {
        place.push(part);
        let found = match place.symlink_metadata() {
            Ok(found) => found,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::InvalidInput | ErrorKind::InvalidFilename => {
                        Err(no_name(part.as_os_str()))
                    }
                    // The backup creates it, or fails and reports the error itself.
                    _ => Ok(()),
                };
            }
        };
        if !found.is_dir() {
            return Err(not_followed(&place, found.is_symlink()));
        }
    }
    let Ok(inside) = place.read_dir() else {
        return Ok(());
    };
    for entry in inside.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            return Err(not_followed(&entry.path(), true));
        }
    }
    Ok(())
}

fn no_name(name: &OsStr) -> HttpError {
    let name = name.to_string_lossy();
    let start: String = name.chars().take(40).collect();
    HttpError::bad_request(format!(
        "no folder can be named '{}': a name has at most {NAME_BYTES_MAX} bytes and no NUL",
        start.escape_debug()
    ))
}

fn not_followed(place: &Path, is_link: bool) -> HttpError {
    let what = if is_link {
        "a symbolic link, which backups do not follow"
    } else {
        "not a directory"
    };
    HttpError::bad_request(format!(
        "'{}' is {what}; name another folder",
        place.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = root.path().join("outside");
        let allowed = root.path().join("backups");
        for dir in [
            &outside,
            &allowed,
            &allowed.join("real/deep"),
            &allowed.join("full"),
        ] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(outside.join("file"), "x").unwrap();
        fs::write(allowed.join("plain"), "x").unwrap();
        symlink(outside.join("file"), allowed.join("to_file")).unwrap();
        symlink(&outside, allowed.join("to_dir")).unwrap();
        symlink(root.path().join("nowhere"), allowed.join("dangling")).unwrap();
        symlink("..", allowed.join("up")).unwrap();
        symlink(allowed.join("real"), allowed.join("inside")).unwrap();
        symlink(&outside, allowed.join("full/objects")).unwrap();
        let check = |allowed: &Path, below: &str| check_links(allowed, &allowed.join(below));
        for below in ["real", "real/deep", "new", "new/deeper", "real/new"] {
            assert!(check(&allowed, below).is_ok(), "{below}");
        }
        for below in [
            "to_file",
            "to_dir",
            "to_dir/new",
            "dangling",
            "dangling/new",
            "up",
            "up/outside",
            "inside",
            "inside/deep",
            "plain",
            "plain/new",
            // What a backup would write through.
            "full",
            // backup_dir itself, because it contains links.
            "",
        ] {
            let error = check(&allowed, below).expect_err(below);
            assert_eq!(error.status, StatusCode::BAD_REQUEST, "{below}");
        }
        let long = "x".repeat(300);
        let missing = root.path().join("missing");
        assert!(check(&missing, "new").is_ok() && check(&missing, &long).is_err());
        for below in ["a\0b", &long] {
            let error = check(&allowed, below).expect_err(below);
            assert_eq!(error.status, StatusCode::BAD_REQUEST);
            assert!(error.message.len() < 200, "{}", error.message);
        }
        // The operator's own link is followed.
        let linked = root.path().join("linked");
        symlink(allowed.join("real"), &linked).unwrap();
        assert!(check(&linked, "").is_ok() && check(&linked, "deep").is_ok());
        assert!(!root.path().join("nowhere").exists());
    }

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
            "two\nlines",
            "a\0b",
        ] {
            assert_eq!(folder(outside), None, "{outside}");
        }
        let upwards = Some(Path::new("../backups"));
        let folder = |asked: &str| super::folder(upwards, Some(PathBuf::from(asked))).ok();
        assert_eq!(folder(""), Some("../backups".into()));
        assert_eq!(folder("nightly"), Some("../backups/nightly".into()));
        assert_eq!(folder("../x"), None);
        let error = super::folder(None, None).unwrap_err();
        assert!(error.message.contains("--backup-dir"), "{}", error.message);
    }
}
