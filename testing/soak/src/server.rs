//! The server under test.

use crate::SoakPlan;
use crate::client::SoakClient;
use crate::group::ControlGroup;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Moves itself into the group before it executes the server, so that every page is charged there.
const ENTER: &str = r#"echo $$ > "$0" && exec "$@""#;

/// A running `marigram serve`; killed when dropped.
#[derive(Debug)]
pub(crate) struct SoakServer {
    child: Mutex<Child>,
    pub pid: u32,
    pub port: u16,
}

impl SoakServer {
    /// Starts it and waits until it answers.
    pub(crate) fn start(plan: &SoakPlan, group: Option<&ControlGroup>) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = match group {
            Some(group) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", ENTER]).arg(group.entrance());
                shell.arg(&plan.binary);
                shell
            }
            None => Command::new(&plan.binary),
        };
        let log = File::create(plan.data.with_extension("log"))?;
        let child = command
            .arg("serve")
            .args(["--http", &format!("127.0.0.1:{port}")])
            .args(["--postgres", "off"])
            .args(["--memory-limit", &plan.limit_bytes.to_string()])
            .arg("--data")
            .arg(&plan.data)
            .args(&plan.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("the binary does not start")?;
        let server = Self {
            pid: child.id(),
            child: Mutex::new(child),
            port,
        };
        let (client, begun) = (SoakClient::new(port), Instant::now());
        while !client.is_healthy() {
            if let Some(status) = server.ended() {
                bail!("the server ended with {status} instead of starting");
            }
            if begun.elapsed() > Duration::from_mins(1) {
                bail!("the server did not answer within a minute");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// Its exit status; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock().ok()?;
        child.try_wait().ok().flatten()
    }

    /// Stops it, and kills it if that takes too long.
    pub(crate) fn stop(&mut self) {
        // It may have ended already, which is fine.
        let _ = Command::new("kill").arg(self.pid.to_string()).status();
        let begun = Instant::now();
        while self.ended().is_none() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for SoakServer {
    fn drop(&mut self) {
        if let Ok(child) = self.child.get_mut() {
            // It may have ended already, which is fine.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
