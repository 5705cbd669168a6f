//! How each peer gets into its folder: by the tools of its package registry, told to go there.

use super::postgres;
use super::programs::{QUESTDB, jar};
use super::tool::run;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

/// Puts `name` into `home`, tries it, and gives its version.
pub(super) fn install(name: &str, home: &Path) -> Result<String> {
    match name {
        "influxdb" => {
            let version = debian(home, "influxdb")?;
            run(Command::new(home.join("usr/bin/influxd")).arg("version"))?;
            Ok(version)
        }
        "victoriametrics" => {
            let version = debian(home, "victoria-metrics")?;
            run(Command::new(home.join("usr/bin/victoria-metrics")).arg("-version"))?;
            Ok(version)
        }
        "questdb" => {
            run(Command::new("java").arg("-version")).context("QuestDB needs Java 17")?;
            run(Command::new("mvn")
                .args(["-q", "dependency:copy"])
                .arg(format!("-Dartifact=org.questdb:questdb:{QUESTDB}"))
                .arg(format!("-DoutputDirectory={}", home.display()))
                .current_dir(home))?;
            let jar = home.join(jar());
            ensure!(jar.exists(), "mvn left no {}", jar.display());
            Ok(QUESTDB.to_owned())
        }
        "duckdb" => python(home, "duckdb", &["duckdb", "pyarrow"]),
        "chdb" => python(home, "chdb", &["chdb"]),
        "postgresql" => {
            let version = run(Command::new(postgres::program_of("postgres")?).arg("--version"))?;
            Ok(version
                .trim()
                .trim_start_matches("postgres (PostgreSQL) ")
                .to_owned())
        }
        _ => bail!("no way to install {name} is known"),
    }
}

/// Fetches a Debian package and unpacks it: neither root nor an installation is needed. Its version,
/// without Debian's own part.
fn debian(home: &Path, package: &str) -> Result<String> {
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

/// A virtual environment with `packages`, and the version of `module` in it.
fn python(home: &Path, module: &str, packages: &[&str]) -> Result<String> {
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
    fn debian_versions_lose_debians_part() {
        assert_eq!(upstream("1.6.7~rc0-1+b13"), "1.6.7");
        assert_eq!(upstream("1.79.5+ds1-2+b5"), "1.79.5");
        assert_eq!(upstream("2"), "2");
    }
}
