//! A server process: on loopback, in a folder of its own, killed when dropped.

use crate::wait::wait_until;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer for the first time.
const START_MAX: Duration = Duration::from_mins(2);

/// How long killed processes may take to disappear.
const END_MAX: Duration = Duration::from_secs(30);

/// A port of loopback that nobody listens on.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A command that can be run again, after a crash that the laboratory caused.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub line: Vec<String>,
    /// Environment variables, in addition to the laboratory's own.
    pub environment: Vec<(String, String)>,
    /// Working folder.
    pub folder: PathBuf,
    /// File that stdout and stderr are appended to.
    pub log: PathBuf,
    /// Number of cores that it may use (the first ones); `None`: all.
    pub cores: Option<usize>,
}

/// A running server.
#[derive(Debug)]
pub struct Process {
    program: Program,
    child: Child,
}

impl Program {
    /// `line`, run in `folder`, with its output in `log`.
    pub fn new(
        line: impl Into<Vec<String>>,
        folder: impl Into<PathBuf>,
        log: impl Into<PathBuf>,
    ) -> Self {
        Self {
            line: line.into(),
            environment: Vec::new(),
            folder: folder.into(),
            log: log.into(),
            cores: None,
        }
    }

    /// The command, ready to be started.
    fn command(&self) -> Result<Command> {
        let mut line: Vec<String> = Vec::new();
        if let Some(cores) = self.cores {
            let list = format!("0-{}", cores.max(1) - 1);
            line.extend(["taskset".to_owned(), "-c".to_owned(), list]);
        }
        line.extend(self.line.iter().cloned());
        let (program, arguments) = line.split_first().context("a program to start")?;
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("the log {}", self.log.display()))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(self.environment.iter().cloned())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }

    fn spawn(&self) -> Result<Child> {
        let mut command = self.command()?;
        let child = command.spawn();
        child.with_context(|| format!("starting {}", command.get_program().display()))
    }

    /// Starts it apart from this process, which it outlives, and returns its process id. Ctrl-C in
    /// the terminal does not reach it.
    pub fn detach(&self) -> Result<u32> {
        let mut command = self.command()?;
        let child = command.process_group(0).spawn();
        let child = child.with_context(|| format!("starting {}", command.get_program().display()));
        Ok(child?.id())
    }

    /// The last lines of its log, for an error message; empty if there is no log.
    #[must_use]
    pub fn log_end(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}

impl Process {
    /// Starts `program` and waits until `is_up` says that it answers.
    pub fn start(program: Program, is_up: impl FnMut() -> bool) -> Result<Self> {
        let child = program.spawn()?;
        let mut process = Self { program, child };
        process.wait_until_up(is_up)?;
        Ok(process)
    }

    fn wait_until_up(&mut self, mut is_up: impl FnMut() -> bool) -> Result<()> {
        let Self { program, child } = self;
        let name = program.line.first().map_or("", String::as_str);
        let late = || {
            let end = program.log_end();
            format!("{name} did not answer within {START_MAX:?}: {end}")
        };
        wait_until(START_MAX, Duration::from_millis(2), late, || {
            let up = is_up();
            match child.try_wait()? {
                Some(status) if !up => bail!("{name} ended ({status}): {}", program.log_end()),
                _ => Ok(up),
            }
        })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as a crash would (SIGKILL), starts it again, and returns the time until `is_up`.
    pub fn restart(&mut self, is_up: impl FnMut() -> bool) -> Result<Duration> {
        self.kill()?;
        let start = Instant::now();
        self.child = self.program.spawn()?;
        self.wait_until_up(is_up)?;
        Ok(start.elapsed())
    }

    /// Kills it with its children (SIGKILL), and waits until all of them are gone: what children share
    /// with their server (PostgreSQL's memory) keeps a new server from starting.
    pub fn kill(&mut self) -> Result<()> {
        let children = children(self.child.id())?;
        let ids = children.iter().map(|child| child.pid.unsigned_abs());
        let ids: Vec<u32> = ids.chain([self.child.id()]).collect();
        // The child that is not reaped yet keeps its id, so no other process can have it.
        if self.child.try_wait()?.is_none() {
            signal(&ids, "KILL")?;
            self.child.wait()?;
        }
        let late = || "killed processes do not end".to_owned();
        wait_until(END_MAX, Duration::from_millis(1), late, || {
            Ok(!children.iter().any(ProcessIdentity::is_alive))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that could not be ended now ends by itself when it misses its parent.
        let _ = self.kill();
    }
}

/// Sends the signal `name` (`TERM`, `KILL`) to processes; those that have ended are passed over.
pub fn signal(ids: &[u32], name: &str) -> Result<()> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    // The shell has `kill` built in, so no package is needed.
    Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", ids.join(" "))])
        .output()
        .with_context(|| format!("kill -{name}"))?;
    Ok(())
}

/// A process: an id alone may belong to another process after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: i32,
    /// When it started, in ticks since the machine did.
    pub started: u64,
}

impl ProcessIdentity {
    /// The process that has this id now; `None` if there is none, or if only its exit status is left.
    #[must_use]
    pub fn read(pid: u32) -> Option<Self> {
        let process = procfs::process::Process::new(i32::try_from(pid).ok()?);
        let stat = process.and_then(|process| process.stat()).ok()?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(Self {
            pid: stat.pid,
            started: stat.starttime,
        })
    }

    /// Whether the process still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Self::read(self.pid.unsigned_abs()) == Some(*self)
    }
}

/// The children of process `parent`.
fn children(parent: u32) -> Result<Vec<ProcessIdentity>> {
    let mut children = Vec::new();
    for process in procfs::process::all_processes()? {
        // A process may end meanwhile.
        let Ok(stat) = process.and_then(|process| process.stat()) else {
            continue;
        };
        if stat.ppid.unsigned_abs() == parent {
            children.push(ProcessIdentity {
                pid: stat.pid,
                started: stat.starttime,
            });
        }
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn shell(folder: &Path, script: &str) -> Program {
        let line = ["sh", "-c", script].map(str::to_owned);
        Program::new(line, folder, folder.join("log"))
    }

    #[test]
    fn a_process_is_killed_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let ready = folder.path().join("ready");
        let program = shell(folder.path(), "sleep 60 & : > ready; wait");
        let mut process = Process::start(program, || ready.exists()).expect("it starts");
        let child = children(process.id()).expect("they can be read");
        let identity = ProcessIdentity::read(process.id()).expect("it runs");
        assert_eq!(child.len(), 1);
        assert!(child[0].is_alive() && identity.is_alive());
        process.kill().expect("it ends");
        assert!(!child[0].is_alive() && !identity.is_alive());
        process.kill().expect("it has ended");
    }

    #[test]
    fn a_server_that_ends_at_once_is_an_error_with_its_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = shell(folder.path(), "echo no such setting; exit 3");
        let error = Process::start(program, || false).expect_err("it ends");
        let error = error.to_string();
        assert!(error.starts_with("sh ended (exit status: 3)"), "{error}");
        assert!(error.ends_with("no such setting"), "{error}");
    }
}
