//! `marigram backup`: takes a backup, lists the backups in a folder, and verifies them.

use crate::directory;
use crate::remote::RemoteServer;
use crate::terminal;
use crate::tls_trust::TlsTrust;
use crate::verify;
use anyhow::{Result, bail};
use clap::Args;
use marigram::{Env, Marigram, backup};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Take a backup.
#[derive(Args)]
pub(crate) struct Backup {
    /// Folder of backups; created if missing. With --url: on the server's machine, in its
    /// backup_dir (a name alone means the folder of that name there)
    #[arg(value_name = "DIR", required_unless_present = "url")]
    folder: Option<PathBuf>,
    /// Running server to ask, such as http://127.0.0.1:8086 (or MARIGRAM_URL)
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    url: Option<String>,
    #[command(flatten)]
    tls: TlsTrust,
    /// Data directory that no process has open (or MARIGRAM_DATA)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keep this many backups, including the new one, and remove older ones
    #[arg(long, value_name = "NUMBER")]
    keep: Option<usize>,
    /// List the backups in the folder
    #[arg(long, conflicts_with_all = ["url", "data", "keep"], requires = "folder")]
    list: bool,
    /// Read the whole folder and check every checksum
    #[arg(long, conflicts_with_all = ["url", "data", "keep", "list"], requires = "folder")]
    verify: bool,
}

impl Backup {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.keep == Some(0) {
            bail!("--keep 0 would keep nothing, not even the new backup; give 1 or more");
        }
        match &self.folder {
            Some(folder) if self.list => return list(folder),
            Some(folder) if self.verify => return verify::run(folder),
            _ => {}
        }
        let from_env = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_told = self.url.is_some() || self.data.is_some();
        let url = self.url.clone();
        let url = url.or_else(|| from_env("MARIGRAM_URL").filter(|_| !is_told));
        let data = self.data.clone();
        let data = data.or_else(|| {
            let dir = from_env("MARIGRAM_DATA").filter(|_| !is_told);
            dir.map(PathBuf::from)
        });
        match (data, url, &self.folder) {
            (Some(data), _, Some(folder)) => self.of_directory(&data, folder),
            (_, Some(url), folder) => self.of_server(&url, folder.as_deref()),
            _ => bail!(
                "of what? Give --url URL to ask a running server, or --data DIR for a data \
                 directory that nobody has open"
            ),
        }
    }

    fn of_directory(&self, data: &Path, folder: &Path) -> Result<ExitCode> {
        if !data.join("MARIGRAM").exists() {
            bail!("{} is not a Marigram data directory", data.display());
        }
        let begin = Instant::now();
        let db = Marigram::open(data).map_err(|error| directory::not_opened(data, error, ""))?;
        // The paths may be spelled differently although one contains the other.
        let absolute = std::path::absolute(folder)?;
        let inside = data
            .canonicalize()
            .is_ok_and(|data| absolute.starts_with(data));
        let of_another = absolute
            .ancestors()
            .find(|dir| dir.join("MARIGRAM").exists() && !inside);
        if let Some(other) = of_another {
            bail!(
                "{} is inside the data directory {}; choose a folder outside it",
                folder.display(),
                other.display()
            );
        }
        if inside {
            bail!(
                "{} is inside the data directory: losing the one would lose the other",
                folder.display()
            );
        }
        let report = db.backup(folder, self.keep)?;
        db.close()?;
        tell(&TakenBackup {
            number: report.info.number,
            at_ns: report.info.taken_ns,
            folder: &folder.display().to_string(),
            bytes: report.info.bytes,
            bytes_new: report.info.bytes_new,
            pruned: &report.pruned,
            warnings: &report.warnings,
            begin,
        });
        Ok(ExitCode::SUCCESS)
    }

    fn of_server(&self, url: &str, folder: Option<&Path>) -> Result<ExitCode> {
        let begin = Instant::now();
        let report = RemoteServer::new(url, &self.tls)?.backup(folder, self.keep)?;
        tell(&TakenBackup {
            number: report.number,
            at_ns: report.taken_ns,
            folder: &report.dir,
            bytes: report.bytes,
            bytes_new: report.bytes_new,
            pruned: &report.pruned,
            warnings: &report.warnings,
            begin,
        });
        Ok(ExitCode::SUCCESS)
    }
}

/// A backup that this process or a server took.
struct TakenBackup<'a> {
    number: u64,
    at_ns: i64,
    folder: &'a str,
    bytes: u64,
    bytes_new: u64,
    pruned: &'a [u64],
    warnings: &'a [String],
    begin: Instant,
}

fn tell(taken: &TakenBackup<'_>) {
    outln!(
        "backup {} in {}: {}, {} of them new, as of {} UTC, in {}",
        taken.number,
        taken.folder,
        terminal::bytes(taken.bytes),
        terminal::bytes(taken.bytes_new),
        terminal::time(taken.at_ns),
        terminal::span(taken.begin.elapsed())
    );
    if let Some(pruned) = numbers(taken.pruned) {
        outln!("removed: {pruned}");
    }
    for warning in taken.warnings {
        erroutln!("note: {warning}");
    }
}

/// Numbers separated by commas; `None` if there are none.
fn numbers(numbers: &[u64]) -> Option<String> {
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn list(folder: &Path) -> Result<ExitCode> {
    let listed = backup::list(&Env::real(), folder)?;
    if listed.is_empty() {
        outln!("no backups yet in {}", folder.display());
    }
    let mut code = ExitCode::SUCCESS;
    for (number, info) in listed {
        match info {
            Ok(info) => outln!(
                "{number:>6}  {} UTC  {}, {} new",
                terminal::time(info.taken_ns),
                terminal::bytes(info.bytes),
                terminal::bytes(info.bytes_new)
            ),
            Err(error) => {
                outln!("{number:>6}  cannot be read: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}
