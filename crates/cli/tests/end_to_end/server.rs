//! A server process on a directory of its own, and a small HTTP client for it.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// The binary under test.
pub(crate) const MARIGRAM: &str = env!("CARGO_BIN_EXE_marigram");

/// A running `marigram serve`; killed when dropped.
pub(crate) struct ServeProcess {
    child: Child,
    data: PathBuf,
    pub http_port: u16,
    pub postgres_port: u16,
    arguments: Vec<String>,
    /// Where its log goes; to that of the tests if absent.
    log: Option<PathBuf>,
}

/// The server's answer.
pub(crate) struct ServerResponse {
    pub status: u16,
    pub body: String,
}

impl ServerResponse {
    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.body))
    }
}

/// A port on which nothing listens. It is below the range that the system assigns to outgoing
/// connections, so it stays free while a server is down.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 100) as u16 * 100;
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed) % 2_000);
    ports
        .take(2_000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a port is free")
}

impl ServeProcess {
    /// Starts on `data` with further arguments and waits until it answers.
    pub(crate) fn start(data: &Path, arguments: &[&str]) -> Self {
        Self::start_with(data, arguments, None)
    }

    /// The same, with its log in a file.
    pub(crate) fn start_logged(data: &Path, arguments: &[&str], log: &Path) -> Self {
        Self::start_with(data, arguments, Some(log.to_owned()))
    }

    fn start_with(data: &Path, arguments: &[&str], log: Option<PathBuf>) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let (http_port, postgres_port) = (free_port(), free_port());
        let child = spawn(data, http_port, postgres_port, &arguments, log.as_deref());
        let mut server = Self {
            child,
            data: data.to_owned(),
            http_port,
            postgres_port,
            arguments,
            log,
        };
        server.wait_until_up();
        server
    }

    fn wait_until_up(&mut self) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while self.try_request("GET", "/health", &[], b"").is_err() {
            if let Some(status) = self.child.try_wait().expect("the child can be asked") {
                panic!("the server ended with {status} instead of starting");
            }
            assert!(
                Instant::now() < deadline,
                "the server did not answer within a minute"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the process as `kill -9` does, and starts a new one on the same ports.
    pub(crate) fn kill_and_restart(&mut self) {
        self.child.kill().expect("the server runs");
        self.child.wait().expect("it ends");
        self.child = spawn(
            &self.data,
            self.http_port,
            self.postgres_port,
            &self.arguments,
            self.log.as_deref(),
        );
        self.wait_until_up();
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Stops the server cleanly with SIGTERM.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        self.signal("-TERM");
        self.child.wait().expect("it ends")
    }

    /// Sends a signal, such as `-HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Sends one request; any answer of the server is `Ok`.
    pub(crate) fn try_request(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<ServerResponse, ureq::Error> {
        request(self.http_port, method, target, headers, body)
    }

    /// Sends one request to a server that is up.
    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> ServerResponse {
        self.try_request(method, target, headers, body)
            .expect("the server answers")
    }

    /// Writes line protocol to database `db`.
    pub(crate) fn write(&self, lines: &str) -> ServerResponse {
        self.request("POST", "/api/v2/write?bucket=db", &[], lines.as_bytes())
    }

    /// Runs SQL in database `db` and returns the answer as CSV.
    pub(crate) fn csv(&self, sql: &str) -> String {
        let answer = self.sql(sql, "text/csv");
        assert_eq!(answer.status, 200, "{sql}: {}", answer.body);
        answer.body.replace("\r\n", "\n")
    }

    /// Runs SQL in database `db`.
    pub(crate) fn sql(&self, sql: &str, accept: &str) -> ServerResponse {
        self.request(
            "POST",
            "/api/v1/sql?db=db",
            &[("Accept", accept)],
            sql.as_bytes(),
        )
    }
}

/// Sends one request to loopback; any answer of the server is `Ok`.
pub(crate) fn request(
    port: u16,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<ServerResponse, ureq::Error> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_mins(1)))
        .build()
        .into();
    let mut request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("http://127.0.0.1:{port}{target}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = agent.run(request.body(body).expect("the request is well formed"))?;
    let status = answer.status().as_u16();
    let bytes = answer
        .body_mut()
        .with_config()
        .limit(1 << 30)
        .read_to_vec()?;
    Ok(ServerResponse {
        status,
        body: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(data: &Path, http: u16, postgres: u16, arguments: &[String], log: Option<&Path>) -> Child {
    let log = log.map_or_else(Stdio::inherit, |path| {
        let file = File::options().create(true).append(true).open(path);
        file.expect("a file for the log").into()
    });
    Command::new(MARIGRAM)
        .arg("serve")
        .arg("--data")
        .arg(data)
        .args(["--http", &format!("127.0.0.1:{http}")])
        .args(["--postgres", &format!("127.0.0.1:{postgres}")])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("the binary starts")
}
