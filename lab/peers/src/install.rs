//! Installing peers: each into a folder of its own, by the tools of its package registry.
//!
//! ```text
//! FOLDER/NAME/version   written last, when the peer was seen to work: an installation without it
//!                       is begun again
//! FOLDER/NAME/data      data of the instance that `up` starts; drivers bring folders of their own
//! FOLDER/NAME/pid       process of that instance and its start time; FOLDER/NAME/log its output
//! ```
//!
//! Nothing is installed into the system. The user's own tools (`apt-get`, `pip`, `mvn`) fetch the
//! peers, so the user's settings of registries (mirrors, credentials) apply.

mod tool;

pub use tool::run;

use anyhow::{Context, Result, ensure};
use marigram_lab_drivers::process::Program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A peer that can be installed.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is and where it comes from, in a line.
    pub about: &'static str,
    /// Installs it into its folder, tries it, and returns its version.
    pub install: fn(home: &Path) -> Result<String>,
    /// How it is started; `None` if it runs in its client's process.
    pub server: Option<PeerServer>,
}

/// A peer that is a server.
#[derive(Clone, Copy, Debug)]
pub struct PeerServer {
    /// Its usual port.
    pub port: u16,
    /// Its command, given the folder of the peers, the folder of its data, and a port. Further ports
    /// keep their usual distance from that port.
    pub program: fn(folder: &Path, data: &Path, port: u16) -> Result<Program>,
}

/// Version of `name` as installed in `folder`; `None` if it is not installed.
#[must_use]
pub fn version(folder: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(name).join("version")).ok()?;
    Some(text.trim().to_owned())
}

/// The folder of the peer `name`. Fails, and says what to do, unless it is installed in `folder`.
pub fn installed(folder: &Path, name: &str) -> Result<PathBuf> {
    ensure!(
        version(folder, name).is_some(),
        "{name} is not installed in {}: run `marigram lab peers install {name}`",
        folder.display()
    );
    // Programs run in folders of their own, where a relative path would lead nowhere.
    let home = folder.join(name);
    std::path::absolute(&home).with_context(|| format!("the path {}", home.display()))
}

/// `line`, run in `data` with its log there.
#[must_use]
pub fn program(line: impl Into<Vec<String>>, data: &Path) -> Program {
    Program::new(line, data, data.join("log"))
}

/// Fetches a Debian package and unpacks it into `home`, which needs neither root nor an installation.
/// Returns its version, without Debian's own part.
pub fn debian(home: &Path, package: &str) -> Result<String> {
    let fetched = home.join("package");
    if fetched.exists() {
        std::fs::remove_dir_all(&fetched).context("clearing an earlier attempt")?;
    }
    std::fs::create_dir_all(&fetched)?;
    run(Command::new("apt-get")
        .args(["download", package])
        .current_dir(&fetched))
    .context(
        "if apt-get knows no such package: is this Debian 12, and was `apt-get update` run?",
    )?;
    let entry = std::fs::read_dir(&fetched)?.next();
    let file = entry.context("apt-get left no file")??.path();
    let version = run(Command::new("dpkg-deb").arg("-f").arg(&file).arg("Version"))?;
    run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(home))?;
    std::fs::remove_dir_all(&fetched).context("removing the package's file")?;
    Ok(upstream(version.trim()).to_owned())
}

/// `1.6.7` of `1.6.7~rc0-1+b13`.
fn upstream(version: &str) -> &str {
    version.split(['~', '+', '-']).next().unwrap_or(version)
}

/// Makes a virtual environment in `home` with `packages`. Returns the version of `module` in it.
pub fn python_package(home: &Path, module: &str, packages: &[&str]) -> Result<String> {
    run(Command::new("python3").args(["-m", "venv"]).arg(home))?;
    run(Command::new(home.join("bin/pip"))
        .args(["install", "-q"])
        .args(packages))?;
    let print = format!("import {module}; print({module}.__version__)");
    let version = run(Command::new(home.join("bin/python")).args(["-c", &print]))?;
    Ok(version.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = installed(folder.path(), "duckdb").expect_err("not installed");
        let error = error.to_string();
        assert!(
            error.contains("run `marigram lab peers install duckdb`"),
            "{error}"
        );
    }

    #[test]
    fn debian_versions_lose_debians_part() {
        assert_eq!(upstream("1.6.7~rc0-1+b13"), "1.6.7");
        assert_eq!(upstream("1.79.5+ds1-2+b5"), "1.79.5");
        assert_eq!(upstream("2"), "2");
    }
}
