//! The instance behind a driver: a process that the laboratory starts, or an instance that somebody
//! else runs.

use crate::process::{Process, Program};
use anyhow::{Result, ensure};
use marigram_lab::monitor;
use marigram_lab::target::Settings;
use std::path::Path;
use std::time::Duration;

/// An instance of a database.
pub struct Instance {
    settings: Settings,
    process: Option<Process>,
}

impl Instance {
    /// An instance that is not started yet.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            process: None,
        }
    }

    /// How it is to be run.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The address of an instance that somebody else runs.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.settings.url.as_deref()
    }

    /// Starts `program` on the cores of the settings, and waits until `is_up`.
    pub fn start(&mut self, mut program: Program, is_up: impl FnMut() -> bool) -> Result<()> {
        program.cores = self.settings.cores;
        self.process = Some(Process::start(program, is_up)?);
        Ok(())
    }

    /// Its process, if the laboratory started it.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.process.iter().map(Process::id).collect()
    }

    /// Kills it, starts it again, and returns the time until `is_back(now, before)` holds for what
    /// `state` reads; `None` for an instance that somebody else runs. Fails if `state` cannot be read
    /// before.
    pub fn restart<S>(
        &mut self,
        state: impl Fn() -> Result<S>,
        is_back: impl Fn(&S, &S) -> bool,
    ) -> Result<Option<Duration>> {
        let Some(process) = &mut self.process else {
            return Ok(None);
        };
        let before = state()?;
        let is_up = || state().is_ok_and(|now| is_back(&now, &before));
        process.restart(is_up).map(Some)
    }

    /// Bytes of all files under `folder`. Fails for an instance that somebody else runs.
    pub fn folder_bytes(&self, folder: &Path) -> Result<u64> {
        ensure!(
            self.settings.url.is_none(),
            "the files of somebody else's instance cannot be seen"
        );
        monitor::folder_bytes(folder)
    }

    /// Stops it, if the laboratory started it.
    pub fn stop(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.kill(),
            None => Ok(()),
        }
    }
}

/// Whether no value is less than it was `before`: rows that were there are there again.
#[must_use]
#[expect(
    clippy::ptr_arg,
    reason = "it compares states of Instance::restart, which are vectors"
)]
pub fn no_less<V: PartialOrd>(now: &Vec<V>, before: &Vec<V>) -> bool {
    now.iter().zip(before).all(|(now, before)| now >= before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_started_restarted_and_stopped() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = ["sh", "-c", "echo $$ > rows; sleep 60"].map(str::to_owned);
        let program = Program::new(line, folder.path(), folder.path().join("log"));
        let rows = folder.path().join("rows");
        let read = || -> Result<u32> { Ok(std::fs::read_to_string(&rows)?.trim().parse()?) };
        let mut instance = Instance::new(&Settings::default());
        instance
            .start(program, || read().is_ok())
            .expect("it starts");
        let first = instance.processes();
        // What is read before the kill is what the first process wrote.
        let restarted = instance.restart(read, |now, before| now != before);
        restarted.expect("it starts again").expect("a process");
        assert_eq!(instance.processes(), [read().expect("a number")]);
        assert_ne!(instance.processes(), first);
        assert!(instance.folder_bytes(folder.path()).expect("a size") > 0);
        instance.stop().expect("it stops");
        assert!(instance.processes().is_empty());
    }

    #[test]
    fn rows_are_back_when_no_table_has_fewer() {
        assert!(no_less(&vec![3, 5], &vec![3, 4]));
        assert!(!no_less(&vec![3, 3], &vec![3, 4]));
        assert!(!no_less(&vec![false], &vec![true]));
    }

    #[test]
    fn somebody_elses_instance_is_not_restarted_and_has_no_files() {
        let mut instance = Instance::new(&Settings {
            url: Some("http://127.0.0.1:1".to_owned()),
            ..Settings::default()
        });
        let restarted = instance.restart(|| Ok(()), |(), ()| true);
        assert_eq!(restarted.expect("nothing to do"), None);
        let error = instance.folder_bytes(Path::new("/")).expect_err("no files");
        assert!(error.to_string().contains("somebody else"), "{error}");
    }
}
