//! A server process: on loopback, in a folder of its own, ended when dropped.

use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer for the first time.
const START_MAX: Duration = Duration::from_mins(2);

/// A port of loopback that nobody listens on.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A command as it can be run again: after a crash that the laboratory made.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub line: Vec<String>,
    /// Environment added to the laboratory's own.
    pub environment: Vec<(String, String)>,
    /// Working folder.
    pub folder: PathBuf,
    /// File that takes stdout and stderr, appended to.
    pub log: PathBuf,
    /// Cores that it may use (the first ones); `None`: all.
    pub cores: Option<usize>,
}

/// A running server.
#[derive(Debug)]
pub struct Process {
    program: Program,
    child: Child,
}

impl Program {
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

    /// Starts it apart from this process, which it outlives, and gives its process id. Ctrl-C in
    /// the terminal does not reach it.
    pub fn detach(&self) -> Result<u32> {
        let mut command = self.command()?;
        let child = command.process_group(0).spawn();
        let child = child.with_context(|| format!("starting {}", command.get_program().display()));
        Ok(child?.id())
    }
}

impl Process {
    /// Starts `program` and waits until `up` says that it answers.
    pub fn start(program: Program, up: impl FnMut() -> bool) -> Result<Self> {
        let child = program.spawn()?;
        let mut process = Self { program, child };
        process.wait_until(up)?;
        Ok(process)
    }

    fn wait_until(&mut self, mut up: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + START_MAX;
        while !up() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended ({status}): {}", self.name(), self.log_end());
            }
            ensure!(
                Instant::now() < deadline,
                "{} did not answer within {START_MAX:?}: {}",
                self.name(),
                self.log_end()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn name(&self) -> &str {
        self.program.line.first().map_or("", String::as_str)
    }

    /// The last lines of the log, for an error message.
    fn log_end(&self) -> String {
        end_of(&self.program.log)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as a crash would (SIGKILL), starts it again, and gives the time until `up`.
    pub fn restart(&mut self, up: impl FnMut() -> bool) -> Result<Duration> {
        self.child.kill()?;
        self.child.wait()?;
        let start = Instant::now();
        self.child = self.program.spawn()?;
        self.wait_until(up)?;
        Ok(start.elapsed())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last lines of the file `log`, for an error message; empty when there is no such file.
#[must_use]
pub fn end_of(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}
