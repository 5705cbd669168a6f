//! Decides which files a statement may use.

use crate::SqlOptions;
use crate::error::{SqlError, SqlResult};
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

/// The longest file name, bytes: the limit of file systems, minus the suffix of a file that is
/// being written.
const NAME_BYTES_MAX: usize = 240;

/// How a statement uses a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUse {
    /// To read it.
    Read,
    /// To create or replace it.
    Write,
}

/// `path` as a URL, which DataFusion takes literally: in a bare path, it would read `*`, `?` and
/// `[` as a pattern.
///
/// # Errors
/// If it is not UTF-8.
pub fn file_url(path: &Path) -> SqlResult<String> {
    let failed = |error: std::io::Error| {
        SqlError::invalid("58030", format!("cannot use '{}': {error}", path.display()))
    };
    let absolute = std::path::absolute(path).map_err(failed)?;
    let text = absolute
        .to_str()
        .ok_or_else(|| SqlError::invalid("22021", "the name of the file is not UTF-8"))?;
    let mut url = String::from("file://");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
    Ok(url)
}

/// The file to which `written` refers: any file if all are allowed, otherwise one under the
/// configured directory, from which no name and no link leads out.
///
/// # Errors
/// If the statement may not use it.
pub(crate) fn resolve(options: &SqlOptions, written: &str, purpose: FileUse) -> SqlResult<PathBuf> {
    // The system's own error would come late, and say less.
    if written.contains('\0') {
        return Err(SqlError::invalid(
            "22021",
            "the name of a file cannot hold the character NUL",
        ));
    }
    if let Some(long) = written.split('/').find(|part| part.len() > NAME_BYTES_MAX) {
        let message = format!(
            "the name of a file has at most {NAME_BYTES_MAX} bytes, and this one has {}",
            long.len()
        );
        return Err(SqlError::invalid("42622", message));
    }
    if options.allow_files {
        return Ok(PathBuf::from(written));
    }
    let Some(dir) = &options.copy_dir else {
        return Err(SqlError::invalid(
            "42501",
            "a server does not read or write files of its machine unless copy_dir is set; use COPY \
             … FROM STDIN, COPY … TO STDOUT, or marigram import and export",
        ));
    };
    let outside = || {
        SqlError::invalid(
            "42501",
            format!("'{written}' is not a file under the server's copy_dir; give a path inside it"),
        )
    };
    let path = Path::new(written);
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !plain || written.is_empty() || written.contains("://") {
        return Err(outside());
    }
    let failed = |what: &Path, error: std::io::Error| {
        SqlError::invalid("58030", format!("cannot use '{}': {error}", what.display()))
    };
    let dir = dir.canonicalize().map_err(|error| failed(dir, error))?;
    let place = dir.join(path);
    let exists = place.symlink_metadata().is_ok();
    let real = if purpose == FileUse::Read || exists {
        place.canonicalize().map_err(|error| failed(path, error))?
    } else {
        let parent = place.parent().ok_or_else(outside)?;
        let parent = parent.canonicalize().map_err(|error| failed(path, error))?;
        parent.join(place.file_name().ok_or_else(outside)?)
    };
    if real.starts_with(&dir) && real != dir {
        Ok(real)
    } else {
        Err(outside())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_means_the_path_and_nothing_else() {
        let url = |path: &str| file_url(Path::new(path)).unwrap();
        assert_eq!(url("/data/a-b_1.csv"), "file:///data/a-b_1.csv");
        assert_eq!(
            url("/d/a*b?[c] %20#ü.csv"),
            "file:///d/a%2Ab%3F%5Bc%5D%20%2520%23%C3%BC.csv"
        );
    }

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        for options in [
            SqlOptions::default(),
            SqlOptions {
                allow_files: true,
                ..SqlOptions::default()
            },
        ] {
            let code = |written: &str| match resolve(&options, written, FileUse::Write) {
                Err(SqlError::Refused(refusal)) => refusal.sqlstate,
                other => panic!("{other:?}"),
            };
            assert_eq!(code("a\0b.csv"), "22021");
            assert_eq!(code(&format!("d/{}.csv", "x".repeat(300))), "42622");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink(dir.path(), inside.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", inside.join("file")).unwrap();
        std::os::unix::fs::symlink("../out", inside.join("dangling")).unwrap();
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
        let options = SqlOptions {
            copy_dir: Some(inside.clone()),
            ..SqlOptions::default()
        };
        let write = |written: &str| resolve(&options, written, FileUse::Write);
        let real = inside.canonicalize().unwrap();
        assert_eq!(write("x.csv").unwrap(), real.join("x.csv"));
        for wrong in [
            "",
            ".",
            "../x",
            "/etc/passwd",
            "link/x",
            "link",
            "file",
            "dangling",
            "dangling/x",
            "up",
            "up/x",
            "file:///etc/passwd",
            "a/../../x",
        ] {
            assert!(write(wrong).is_err(), "{wrong}");
            assert!(resolve(&options, wrong, FileUse::Read).is_err(), "{wrong}");
        }
        assert!(resolve(&options, "missing", FileUse::Read).is_err());
        let none = SqlOptions::default();
        assert!(resolve(&none, "x.csv", FileUse::Write).is_err());
        let all = SqlOptions {
            allow_files: true,
            ..SqlOptions::default()
        };
        assert_eq!(resolve(&all, "/x", FileUse::Read).unwrap(), Path::new("/x"));
    }
}
