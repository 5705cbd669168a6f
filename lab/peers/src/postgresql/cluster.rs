//! A PostgreSQL cluster of the laboratory's own: where the programs are, initdb, and the command of its
//! server.
//!
//! PostgreSQL refuses to run as root. Where the laboratory is root, the cluster belongs to the user
//! `postgres`, and `setpriv` starts its programs, which leaves no process of its own.

use anyhow::{Context, Result, bail, ensure};
use marigram_lab_drivers::process::Program;
use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The superuser of the clusters that `lab run` makes.
pub(super) const LAB_USER: &str = "lab";

/// A cluster, which need not exist yet.
pub(super) struct Cluster {
    /// The folder with `initdb` and `postgres`.
    programs: PathBuf,
    /// The cluster's own folder.
    data: PathBuf,
    /// What begins each command line, to run it as the cluster's owner.
    owner: Vec<String>,
}

impl Cluster {
    /// The cluster `name` in `dir`, which exists. Makes its folder, and hands it to its owner. Fails if
    /// PostgreSQL is not installed.
    pub(super) fn find(peers: &Path, dir: &Path, name: &str) -> Result<Self> {
        let data = dir.join(name);
        fs::create_dir_all(&data)?;
        let mut owner = Vec::new();
        if procfs::process::Process::myself()?.uid()? == 0 {
            let (user, group) = user_ids("postgres")?;
            // The owner must be able to pass through the folder above.
            let mode = fs::metadata(dir)?.permissions().mode();
            fs::set_permissions(dir, Permissions::from_mode(mode | 0o011))?;
            chown(&data, Some(user), Some(group))?;
            owner.extend([
                "setpriv".to_owned(),
                format!("--reuid={user}"),
                format!("--regid={group}"),
                "--clear-groups".to_owned(),
            ]);
        }
        Ok(Self {
            programs: programs(peers)?,
            data,
            owner,
        })
    }

    fn line(&self, program: &str) -> Vec<String> {
        let mut line = self.owner.clone();
        line.push(self.programs.join(program).display().to_string());
        line.extend(["-D".to_owned(), self.data.display().to_string()]);
        line
    }

    /// Makes the cluster with `user` as its superuser, without a password, unless it exists.
    pub(super) fn init(&self, user: &str) -> Result<()> {
        if self.data.join("PG_VERSION").exists() {
            return Ok(());
        }
        let mut line = self.line("initdb");
        line.push(format!("--username={user}"));
        let options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
        line.extend(options.map(str::to_owned));
        let made = Command::new(&line[0])
            .args(&line[1..])
            .current_dir("/")
            .output()
            .with_context(|| format!("starting {}", line[0]))?;
        ensure!(
            made.status.success(),
            "initdb in {}, which PostgreSQL's user must be able to reach: {}",
            self.data.display(),
            String::from_utf8_lossy(&made.stderr)
        );
        Ok(())
    }

    /// The command of its server on `port` of loopback, with these settings (`name=value`).
    pub(super) fn program(&self, port: u16, settings: &[String], log: &Path) -> Program {
        let mut line = self.line("postgres");
        line.extend(["-p".to_owned(), port.to_string()]);
        // Without socket files: their folder may be missing, or not writable.
        let loopback = ["listen_addresses=127.0.0.1", "unix_socket_directories="];
        let loopback = loopback.iter().map(ToString::to_string);
        for setting in loopback.chain(settings.iter().cloned()) {
            line.extend(["-c".to_owned(), setting]);
        }
        Program::new(line, "/", log)
    }

    /// Fails unless this PostgreSQL has the extension `name`.
    pub(super) fn check_extension(&self, name: &str) -> Result<()> {
        let asked = Command::new(self.programs.join("pg_config"))
            .arg("--sharedir")
            .output()
            .context("pg_config, which says where extensions are")?;
        let folder = String::from_utf8(asked.stdout)?;
        let control = Path::new(folder.trim())
            .join("extension")
            .join(format!("{name}.control"));
        ensure!(
            control.is_file(),
            "the extension {name} is not installed: there is no {}",
            control.display()
        );
        Ok(())
    }
}

/// The folder with `initdb` and `postgres`: of the installed peers, of the distribution (the newest
/// version), or of the PATH.
pub(super) fn programs(peers: &Path) -> Result<PathBuf> {
    let mut folders = Vec::new();
    for base in [
        peers.join("usr/lib/postgresql"),
        "/usr/lib/postgresql".into(),
    ] {
        let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(base)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let version = entry.file_name().to_str()?.parse().ok()?;
                Some((version, entry.path().join("bin")))
            })
            .collect();
        versions.sort();
        folders.extend(versions.into_iter().rev().map(|(_, folder)| folder));
    }
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let has_programs = |folder: &PathBuf| {
        ["initdb", "postgres"]
            .iter()
            .all(|program| folder.join(program).is_file())
    };
    let found = folders.into_iter().find(has_programs);
    found.context(
        "PostgreSQL is not installed (no folder has initdb and postgres): \
         run `apt-get install postgresql-15`",
    )
}

/// Numbers of a user and its group.
fn user_ids(name: &str) -> Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").context("the users of the machine")?;
    for line in users.lines() {
        // name:password:user:group:…
        let columns: Vec<&str> = line.split(':').collect();
        if let [found, _, user, group, ..] = columns.as_slice()
            && *found == name
        {
            return Ok((user.parse()?, group.parse()?));
        }
    }
    bail!("PostgreSQL does not run as root, and there is no user {name}")
}
