//! Servers that outlive the command that started them. A file with their process id and start time
//! finds them again; the id alone may belong to another process after a while.

use super::Running;
use anyhow::{Context, Result};
use marigram_lab_drivers::process::{ProcessIdentity, Program, signal};
use marigram_lab_drivers::wait::wait_until;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a server may take to end after each signal.
const END_MAX: Duration = Duration::from_secs(15);

fn file(home: &Path) -> PathBuf {
    home.join("pid")
}

/// The running instance of the peer in `home`.
pub(super) fn running(home: &Path) -> Option<Running> {
    let text = std::fs::read_to_string(file(home)).ok()?;
    let mut words = text.split_whitespace();
    let pid = words.next()?.parse().ok()?;
    let started: u64 = words.next()?.parse().ok()?;
    let address = words.next()?.to_owned();
    (ProcessIdentity::read(pid)?.started == started).then_some(Running {
        pid: Some(pid),
        address,
    })
}

/// Starts `program`, which will listen on `address`, detached from this process.
pub(super) fn start(home: &Path, program: &Program, address: &str) -> Result<Running> {
    let pid = program.detach()?;
    let identity = ProcessIdentity::read(pid).with_context(|| {
        let (log, end) = (program.log.display(), program.log_end());
        format!("it ended at once; the end of {log}: {end}")
    })?;
    let line = format!("{pid} {} {address}\n", identity.started);
    std::fs::write(file(home), line).context("writing its process id")?;
    Ok(Running {
        pid: Some(pid),
        address: address.to_owned(),
    })
}

/// Stops the running instance of the peer in `home`. Returns whether there was one.
pub(super) fn stop(home: &Path) -> Result<bool> {
    let Some(Running { pid: Some(pid), .. }) = running(home) else {
        return Ok(false);
    };
    // On SIGTERM, PostgreSQL waits for its clients; on SIGINT, it does not.
    let late = || format!("process {pid} cannot be ended");
    let mut ended = Ok(());
    for name in ["TERM", "INT", "KILL"] {
        signal(&[pid], name)?;
        ended = wait_until(END_MAX, Duration::from_millis(20), late, || {
            Ok(running(home).is_none())
        });
        if ended.is_ok() {
            break;
        }
    }
    ended?;
    std::fs::remove_file(file(home)).context("removing its process id")?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_process_is_found_again_and_ended_once() {
        let home = tempfile::tempdir().expect("a folder");
        let line = ["sleep", "60"].map(str::to_owned);
        let program = Program::new(line, home.path(), home.path().join("log"));
        assert_eq!(running(home.path()), None);
        let begun = start(home.path(), &program, "127.0.0.1:1").expect("sleep starts");
        assert_eq!(running(home.path()), Some(begun));
        assert!(stop(home.path()).expect("it ends"));
        assert!(!stop(home.path()).expect("it has ended"));
    }

    #[test]
    fn a_process_of_somebody_else_is_not_ours() {
        let home = tempfile::tempdir().expect("a folder");
        let own = std::process::id();
        std::fs::write(home.path().join("pid"), format!("{own} 1 127.0.0.1:1\n")).expect("a file");
        assert_eq!(running(home.path()), None);
    }
}
