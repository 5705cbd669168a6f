//! PostgreSQL, as the system has it: found, given a cluster, started.

use super::installed;
use super::programs::program;
use super::tool::run;
use anyhow::{Context, Result};
use marigram_lab_drivers::process::Program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of PostgreSQL's: on the path, or of the newest version that Debian put aside.
pub(super) fn program_of(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut versions: Vec<(u32, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
    {
        let entry = entry?;
        if let Some(version) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        {
            versions.push((version, entry.path().join("bin")));
        }
    }
    versions.sort();
    places.extend(versions.into_iter().rev().map(|(_, place)| place));
    let found = places.iter().map(|place| place.join(program));
    found
        .into_iter()
        .find(|file| file.is_file())
        .with_context(|| format!("there is no {program} here: run `apt-get install postgresql-15`"))
}

/// An instance of PostgreSQL on `port`; its cluster is made under `data` if it is not there. The
/// user is `postgres`, without a password.
///
/// PostgreSQL refuses to run as root. Root hands `data` to the system's user `postgres`, who must be
/// able to reach it, and runs it as that user.
pub fn postgresql(folder: &Path, data: &Path, port: u16) -> Result<Program> {
    installed(folder, "postgresql")?;
    let data = std::path::absolute(data)?;
    let is_root = procfs::process::Process::myself()?.uid()? == 0;
    if is_root {
        run(Command::new("chown").args(["-R", "postgres:"]).arg(&data))?;
    }
    let cluster = data.join("cluster");
    if !cluster.join("PG_VERSION").exists() {
        let line = line(
            is_root,
            "initdb",
            &["-U", "postgres", "-A", "trust"],
            &cluster,
        )?;
        run(Command::new(&line[0]).args(&line[1..]).current_dir(&data))?;
    }
    // Without its socket files: their folder may not be there, or not be writable.
    let options = ["-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""];
    Ok(program(
        line(is_root, "postgres", &options, &cluster)?,
        &data,
    ))
}

/// A command line for `program` with `options` on `cluster`, as the user `postgres` if need be.
fn line(as_user: bool, program: &str, options: &[&str], cluster: &Path) -> Result<Vec<String>> {
    let user = [
        "setpriv",
        "--reuid=postgres",
        "--regid=postgres",
        "--clear-groups",
        "--",
    ];
    let mut line: Vec<String> = Vec::new();
    if as_user {
        line.extend(user.map(str::to_owned));
    }
    line.push(program_of(program)?.display().to_string());
    line.extend(options.iter().map(|option| (*option).to_owned()));
    line.extend(["-D".to_owned(), cluster.display().to_string()]);
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = postgresql(folder.path(), folder.path(), 1).expect_err("not installed");
        assert!(
            error.to_string().contains("peers install postgresql"),
            "{error}"
        );
        let error = program_of("no-such-program").expect_err("there is none");
        assert!(
            error.to_string().contains("apt-get install postgresql-15"),
            "{error}"
        );
    }
}
