//! A PostgreSQL cluster of the laboratory's own: where the programs are, initdb, the settings, and
//! its end.
//!
//! PostgreSQL refuses to run as root. Where the laboratory is root, the cluster belongs to the user
//! `postgres`, and its programs are started by `setpriv`, which leaves no process of its own.

use anyhow::{Context, Result, bail, ensure};
use marigram_lab::target::Settings;
use marigram_lab_drivers::process::{Program, free_port};
use procfs::Current;
use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long killed processes may take to vanish.
const END_MAX: Duration = Duration::from_secs(30);

/// Files and settings of a cluster that is not running yet.
pub struct Cluster {
    program: Program,
    port: u16,
    shared_buffers_mb: u64,
}

impl Cluster {
    /// Makes a cluster in `dir`, which loads `extension`. Fails when PostgreSQL or the extension
    /// is not installed, or when the user `postgres` cannot reach `dir`.
    pub fn make(dir: &Path, settings: &Settings, extension: Option<&str>) -> Result<Self> {
        let programs = programs(&settings.peers)?;
        if let Some(name) = extension {
            check_extension(&programs, name)?;
        }
        let data = dir.join("data");
        fs::create_dir_all(&data)?;
        let mut line = Vec::new();
        if procfs::process::Process::myself()?.uid()? == 0 {
            let (user, group) = user("postgres")?;
            // What is above `data` must let the user through.
            let mode = fs::metadata(dir)?.permissions().mode();
            fs::set_permissions(dir, Permissions::from_mode(mode | 0o011))?;
            chown(&data, Some(user), Some(group))?;
            line.extend([
                "setpriv".to_owned(),
                format!("--reuid={user}"),
                format!("--regid={group}"),
                "--clear-groups".to_owned(),
            ]);
        }
        let data = data.display().to_string();
        let initdb = programs.join("initdb").display().to_string();
        let arguments = ["--auth=trust", "--username=lab", "--encoding=UTF8"];
        let mut init = line.clone();
        init.extend([initdb, format!("--pgdata={data}")]);
        init.extend(arguments.map(str::to_owned));
        init.extend(["--locale=C".to_owned(), "--no-sync".to_owned()]);
        let made = Command::new(&init[0])
            .args(&init[1..])
            .current_dir("/")
            .output()
            .with_context(|| format!("starting {}", init[0]))?;
        ensure!(
            made.status.success(),
            "initdb in {data}, which PostgreSQL's user must be able to reach: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let port = free_port()?;
        let memory = match settings.memory_bytes {
            Some(bytes) => bytes,
            None => procfs::Meminfo::current()?.mem_total,
        };
        // A quarter of the memory, as PostgreSQL's manual recommends for a server.
        let shared_buffers_mb = (memory >> 22).max(1);
        let postgres = programs.join("postgres").display().to_string();
        line.extend([postgres, "-D".to_owned(), data, "-p".to_owned()]);
        line.push(port.to_string());
        let mut options = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            format!("shared_buffers={shared_buffers_mb}MB"),
            "max_wal_size=4GB".to_owned(),
            "max_connections=500".to_owned(),
        ];
        options.extend(extension.map(|name| format!("shared_preload_libraries={name}")));
        for option in options {
            line.extend(["-c".to_owned(), option]);
        }
        let program = Program {
            line,
            environment: Vec::new(),
            folder: PathBuf::from("/"),
            log: dir.join("server.log"),
            cores: settings.cores,
        };
        Ok(Self {
            program,
            port,
            shared_buffers_mb,
        })
    }

    /// The command of its server.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// How clients connect.
    pub fn address(&self) -> String {
        let port = self.port;
        format!("host=127.0.0.1 port={port} user=lab dbname=postgres")
    }

    /// Settings that are not the defaults.
    pub fn notes(&self) -> String {
        format!(
            "shared_buffers a quarter of the memory ({} MB), max_wal_size 4 GB.",
            self.shared_buffers_mb
        )
    }
}

/// The folder with `initdb` and `postgres`: of the installed peers, of the distribution (the newest
/// version), or of the PATH.
fn programs(peers: &Path) -> Result<PathBuf> {
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
    let has = |folder: &PathBuf| {
        ["initdb", "postgres"]
            .iter()
            .all(|program| folder.join(program).is_file())
    };
    let found = folders.into_iter().find(has);
    found.context("PostgreSQL is not installed: no folder has initdb and postgres")
}

/// Fails unless the PostgreSQL in `programs` has the extension `name`.
fn check_extension(programs: &Path, name: &str) -> Result<()> {
    let asked = Command::new(programs.join("pg_config"))
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

/// Numbers of a user and its group.
fn user(name: &str) -> Result<(u32, u32)> {
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

/// Kills a server with its children (SIGKILL), and waits until the children are gone: what they
/// share with the server keeps a new one from starting.
pub fn kill(server: u32) -> Result<()> {
    let parent = server as i32;
    let mut children = Vec::new();
    for process in procfs::process::all_processes()? {
        // A process may end meanwhile.
        let Ok(stat) = process.and_then(|process| process.stat()) else {
            continue;
        };
        if stat.ppid == parent {
            children.push((stat.pid, stat.starttime));
        }
    }
    let ids: Vec<String> = [parent]
        .into_iter()
        .chain(children.iter().map(|child| child.0))
        .map(|id| id.to_string())
        .collect();
    // Some may have ended already, which is what is wanted.
    Command::new("sh")
        .args(["-c", &format!("kill -9 {}", ids.join(" "))])
        .output()
        .context("kill")?;
    let is_there = |(id, start): &(i32, u64)| {
        let stat = procfs::process::Process::new(*id).and_then(|process| process.stat());
        stat.is_ok_and(|stat| stat.starttime == *start && stat.state != 'Z')
    };
    let deadline = Instant::now() + END_MAX;
    while children.iter().any(is_there) {
        ensure!(Instant::now() < deadline, "killed processes do not end");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
