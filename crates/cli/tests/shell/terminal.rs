//! A terminal that runs the shell, driven as a person would drive it.

use super::MARIGRAM;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A bound against hangs; no test depends on how long anything takes.
const WAIT_MAX: Duration = Duration::from_mins(2);

/// A terminal in which `marigram sql` runs; killed when dropped.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    /// How much has been seen, in characters of the screen.
    seen: usize,
}

impl Terminal {
    /// Starts `marigram sql` with these arguments in `dir`, and waits for its prompt.
    pub(crate) fn start(dir: &Path, arguments: &str, environment: &[(&str, &str)]) -> Self {
        let command = format!("stty rows 24 cols 80; exec '{MARIGRAM}' sql {arguments}");
        let mut child = Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .current_dir(dir)
            .env_remove("MARIGRAM_DATA")
            .env_remove("MARIGRAM_URL")
            .env_remove("VISUAL")
            .env("XDG_STATE_HOME", dir.join("state"))
            .env("PAGER", "")
            .env("NO_COLOR", "1")
            .env("TERM", "xterm")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script (of util-linux) is there");
        let keys = child.stdin.take().expect("keys");
        let mut out = child.stdout.take().expect("a screen");
        let screen = Arc::<Mutex<Vec<u8>>>::default();
        let shown = Arc::clone(&screen);
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(len) = out.read(&mut part) {
                if len == 0 {
                    return;
                }
                shown
                    .lock()
                    .expect("no panic")
                    .extend_from_slice(&part[..len]);
            }
        });
        let mut terminal = Self {
            child,
            keys,
            screen,
            reader: Some(reader),
            seen: 0,
        };
        terminal.wait_for("> ");
        terminal
    }

    /// The text that the screen received, without the commands that move its cursor.
    fn text(&self) -> String {
        let bytes = self.screen.lock().expect("no panic").clone();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut plain = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\u{1b}' => {
                    if characters.next() == Some('[') {
                        for end in characters.by_ref() {
                            if end.is_ascii_alphabetic() {
                                break;
                            }
                        }
                    }
                }
                '\r' => {}
                other => plain.push(other),
            }
        }
        plain
    }

    /// Waits until `wanted` appears after the text seen so far; returns the text up to its end.
    pub(crate) fn wait_for(&mut self, wanted: &str) -> String {
        let begin = Instant::now();
        loop {
            let text = self.text();
            let new = text.get(self.seen..).unwrap_or("");
            if let Some(at) = new.find(wanted) {
                let end = at + wanted.len();
                self.seen += end;
                return new[..end].to_owned();
            }
            assert!(
                begin.elapsed() < WAIT_MAX,
                "'{wanted}' was not shown but: {new}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys
            .write_all(keys.as_bytes())
            .expect("they are taken");
        self.keys.flush().expect("they are taken");
    }

    /// Types a line; returns the text from its end to `wanted` and the next prompt.
    pub(crate) fn ask(&mut self, line: &str, wanted: &str) -> String {
        self.keys(line);
        self.keys("\r");
        // The line is redrawn with each key; a line break follows its last appearance.
        let answer = self.wait_for(wanted);
        self.wait_for("> ");
        answer
    }

    /// Leaves the shell; returns everything that was shown.
    pub(crate) fn leave(mut self) -> String {
        self.keys("\\q\r");
        let begin = Instant::now();
        while self.child.try_wait().expect("it can be asked").is_none() {
            assert!(
                begin.elapsed() < WAIT_MAX,
                "the shell does not end: {}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(reader) = self.reader.take() {
            reader.join().expect("it read all");
        }
        self.text()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
