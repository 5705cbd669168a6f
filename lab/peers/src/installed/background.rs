//! Servers that outlive the command that started them: found again by a file with their process id
//! and start time, since an id alone may belong to somebody else after a while.

use super::Running;
use anyhow::{Context, Result, ensure};
use marigram_lab_drivers::process::Program;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a server may take to end, for each way of telling it to.
const END_MAX: Duration = Duration::from_secs(15);

fn file(home: &Path) -> PathBuf {
    home.join("pid")
}

/// When process `pid` started (in ticks since the machine did); `None` when there is none, or only
/// its exit status is left.
fn started(pid: u32) -> Option<u64> {
    let stat = procfs::process::Process::new(i32::try_from(pid).ok()?)
        .ok()?
        .stat()
        .ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
}

/// The living instance of the peer in `home`.
pub(super) fn running(home: &Path) -> Option<Running> {
    let text = std::fs::read_to_string(file(home)).ok()?;
    let mut words = text.split_whitespace();
    let pid = words.next()?.parse().ok()?;
    let start: u64 = words.next()?.parse().ok()?;
    let address = words.next()?.to_owned();
    (started(pid)? == start).then_some(Running {
        pid: Some(pid),
        address,
    })
}

/// Starts `program`, which will listen on `address`, apart from this process.
pub(super) fn start(home: &Path, program: &Program, address: &str) -> Result<Running> {
    let pid = program.detach()?;
    let start = started(pid).with_context(|| {
        let end = marigram_lab_drivers::process::end_of(&program.log);
        format!(
            "it ended at once; the end of {}: {end}",
            program.log.display()
        )
    })?;
    std::fs::write(file(home), format!("{pid} {start} {address}\n"))
        .context("keeping its process id")?;
    Ok(Running {
        pid: Some(pid),
        address: address.to_owned(),
    })
}

/// Ends the living instance of the peer in `home`, if there is one.
pub(super) fn stop(home: &Path) -> Result<bool> {
    let Some(Running { pid: Some(pid), .. }) = running(home) else {
        return Ok(false);
    };
    // Told to end, PostgreSQL waits for its clients; interrupted, it does not.
    for name in ["-TERM", "-INT", "-KILL"] {
        signal(pid, name)?;
        let deadline = Instant::now() + END_MAX;
        while running(home).is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        if running(home).is_none() {
            break;
        }
    }
    std::fs::remove_file(file(home)).context("forgetting its process id")?;
    Ok(true)
}

fn signal(pid: u32, signal: &str) -> Result<()> {
    let status = Command::new("kill")
        .arg(signal)
        .arg(pid.to_string())
        .status();
    let status = status.context("running kill")?;
    // It may have ended meanwhile.
    ensure!(
        status.success() || started(pid).is_none(),
        "process {pid} cannot be ended: {status}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_process_is_found_again_and_ended_once() {
        let home = tempfile::tempdir().expect("a folder");
        let program = Program {
            line: vec!["sleep".to_owned(), "60".to_owned()],
            environment: Vec::new(),
            folder: home.path().to_path_buf(),
            log: home.path().join("log"),
            cores: None,
        };
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
