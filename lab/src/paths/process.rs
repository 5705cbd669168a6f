//! A server process for a way in, and how long it takes to come back after `kill -9`.

use anyhow::{Context, Result, ensure};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server on loopback; killed when dropped.
pub struct Process {
    child: Child,
    binary: PathBuf,
    data: PathBuf,
    pub http: u16,
    pub postgres: u16,
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Process {
    /// Starts a server on `data` and waits until it answers.
    pub fn start(binary: &Path, data: &Path) -> Result<Self> {
        std::fs::create_dir_all(data)?;
        let (http, postgres) = (free_port()?, free_port()?);
        let child = spawn(binary, data, http, postgres)?;
        let mut process = Self {
            child,
            binary: binary.to_owned(),
            data: data.to_owned(),
            http,
            postgres,
        };
        process.wait_until_up()?;
        Ok(process)
    }

    fn wait_until_up(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_mins(2);
        while ureq::get(self.url("/health")).call().is_err() {
            let ended = self.child.try_wait()?;
            ensure!(ended.is_none(), "the server ended instead of starting");
            ensure!(
                Instant::now() < deadline,
                "the server did not answer within two minutes"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// An address of the HTTP face.
    pub fn url(&self, target: &str) -> String {
        format!("http://127.0.0.1:{}{target}", self.http)
    }

    /// Runs SQL in the default database.
    pub fn sql(&self, statement: &str) -> Result<()> {
        ureq::post(self.url("/api/v1/sql"))
            .send(statement)
            .context(statement.to_owned())?;
        Ok(())
    }

    /// Kills the server and starts it again; gives the time to its first answer and the WAL that
    /// it replayed, bytes.
    pub fn restart(&mut self) -> Result<(Duration, u64)> {
        self.child.kill()?;
        self.child.wait()?;
        let start = Instant::now();
        self.child = spawn(&self.binary, &self.data, self.http, self.postgres)?;
        self.wait_until_up()?;
        let restart = start.elapsed();
        let metrics = ureq::get(self.url("/metrics"))
            .call()?
            .body_mut()
            .read_to_string()?;
        let replayed = metrics
            .lines()
            .find_map(|line| line.strip_prefix("marigram_recovery_wal_bytes "))
            .context("the metrics say what was replayed")?;
        Ok((restart, replayed.parse::<f64>()? as u64))
    }
}

fn spawn(binary: &Path, data: &Path, http: u16, postgres: u16) -> Result<Child> {
    Command::new(binary)
        .arg("serve")
        .arg("--data")
        .arg(data)
        .args(["--http", &format!("127.0.0.1:{http}")])
        .args(["--postgres", &format!("127.0.0.1:{postgres}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("the server's binary")
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
