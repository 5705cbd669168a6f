//! A server on the database of a test, and what commands say while it runs.

use super::{MARIGRAM, weather};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// `marigram serve` on `data`; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    /// Starts it on ports that are free, and waits until it says where it is.
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = Command::new(MARIGRAM)
            .args(["serve", "--data", "data", "--http", "127.0.0.1:0"])
            .args(["--postgres", "off", "--log", "error"])
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let out = child.stdout.take().expect("it has an output");
        let mut url = None;
        for line in BufReader::new(out).lines() {
            let line = line.expect("it says something");
            if let Some(at) = line.find("http://").filter(|_| line.contains("HTTP ")) {
                url = Some(line[at..].trim().to_owned());
            }
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        let url = url.expect("it says its address");
        Self { child, url }
    }

    /// Asks for a clean end.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill is there").success());
        self.child.wait().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn commands_on_a_directory_that_a_server_has_open_say_its_url() {
    let dir = weather();
    let server = Server::start(dir.path());
    let commands: [&[&str]; 4] = [
        &["sql", "--data", "data", "-c", "SELECT 1"],
        &["import", "--data", "data", "weather.csv"],
        &["export", "--data", "data", "--table", "weather", "-"],
        &["backup", "backups", "--data", "data"],
    ];
    for arguments in commands {
        let mut arguments = arguments.to_vec();
        if arguments[0] == "export" {
            arguments.extend(["--format", "csv"]);
        }
        let output = Command::new(MARIGRAM)
            .args(&arguments)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        let advice = format!("--url {}", server.url);
        assert!(said.contains(&advice), "{arguments:?}: {said}");
    }
    // Once it has ended, what it said of itself is not believed.
    assert!(server.terminate().success());
    super::run(dir.path(), &["sql", "--data", "data", "-c", "SELECT 1"]);
}
