//! Which files a statement may touch.

use crate::SqlOptions;
use crate::error::{SqlError, SqlResult};
use std::path::{Component, Path, PathBuf};

/// What a statement wants of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// To read it.
    Read,
    /// To make it or replace it.
    Write,
}

/// The file that a statement means by `written`: any where everything is allowed, otherwise one
/// under the directory that is set, from which no name and no link leads out.
///
/// # Errors
/// If it may not be touched.
pub fn resolve(options: &SqlOptions, written: &str, purpose: FileUse) -> SqlResult<PathBuf> {
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
    fn nothing_leads_out_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink(dir.path(), inside.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", inside.join("file")).unwrap();
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
