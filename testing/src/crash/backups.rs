//! Backups of the simulated machine: what each must contain, and what an interrupted one may leave.
//!
//! An acknowledged backup stays listed until it is pruned, and restores exactly the state of the
//! model at that moment. One that failed or was interrupted is not listed, or, if only its last
//! step was in doubt, is as good as any other.

use super::backup_checks::BackupMoment;
use super::machine::{CheckedState, DATABASE, SimMachine};
use super::trouble::CrashTrouble;
use crate::oracle::{OracleHistory, Strictness, observe};
use marigram_engine::backup::{self, BackupOptions};
use marigram_engine::{Engine, EngineError, EngineOptions};
use marigram_env::{Clock as _, Env, LogStore as _};
use rand::RngExt as _;
use std::collections::BTreeSet;
use std::path::Path;

const FOLDER: &str = "/backups";
const RESTORED: &str = "/restored";

impl SimMachine {
    /// Takes a backup.
    pub(super) fn back_up(
        &mut self,
        engine: &Engine,
        trouble: CrashTrouble,
        keep: Option<usize>,
    ) -> CheckedState {
        // Two failures in a row could leave either state under the same number.
        if self.backups.failed || self.history.has_refused() {
            return Ok(());
        }
        let number = self.next_number();
        let taken = engine.backup(Path::new(FOLDER), BackupOptions { keep });
        let mut state = self.history.current().clone();
        if self.backups.misremember {
            state.apply(&crate::oracle::OracleChange::DropDatabase);
        }
        let report = match taken {
            Ok(report) => report,
            Err(error) => {
                self.note(|| format!("backup: {error}"));
                self.backups.failed = true;
                if !self.history.has_doubts() {
                    let is_sure = false;
                    self.backups
                        .moments
                        .insert(number, BackupMoment { state, is_sure });
                }
                return Self::excuse("backup", trouble, &error);
            }
        };
        if self.history.has_doubts() {
            return Err("a backup was taken while the content of the disk is unknown".to_owned());
        }
        if report.info.number != number {
            return Err(format!("backup {} instead of {number}", report.info.number));
        }
        let is_clean = report.warnings.is_empty() && !self.fs.is_crashed();
        if !is_clean && trouble == CrashTrouble::None {
            return Err(format!("backup: {:?}", report.warnings));
        }
        self.summary.backups += 1;
        let moments = &mut self.backups.moments;
        let was_sure = moments.values().all(|moment| moment.is_sure);
        let is_sure = true;
        moments.insert(number, BackupMoment { state, is_sure });
        let kept = keep.unwrap_or(usize::MAX).min(moments.len());
        let pruned: Vec<u64> = moments.keys().take(moments.len() - kept).copied().collect();
        if !is_clean {
            for number in pruned {
                if let Some(moment) = moments.get_mut(&number) {
                    moment.is_sure = false;
                }
            }
            return Ok(());
        }
        if was_sure && pruned != report.pruned {
            return Err(format!(
                "backups {:?} pruned, not {pruned:?}",
                report.pruned
            ));
        }
        moments.retain(|number, _| !report.pruned.contains(number));
        // Several records became durable together, including those in doubt.
        if !was_sure && let Ok(listed) = self.listed() {
            let moments = &mut self.backups.moments;
            moments.retain(|number, moment| moment.is_sure || listed.contains(number));
            for moment in moments.values_mut() {
                moment.is_sure = true;
            }
        }
        Ok(())
    }

    /// Between two lives: compares the list of backups, and restores some of them.
    pub(super) fn look_after_backups(&mut self) -> CheckedState {
        self.backups.failed = false;
        self.settle_backups()?;
        let numbers: Vec<u64> = self.backups.moments.keys().copied().collect();
        if numbers.is_empty() || self.rng.random_bool(0.5) {
            return Ok(());
        }
        let number = numbers[self.rng.random_range(0..numbers.len())];
        if self.rng.random_bool(0.6) {
            self.interrupt_restore(number)?;
            // A power loss may have removed a backup whose last step was in doubt.
            self.settle_backups()?;
            if !self.backups.moments.contains_key(&number) {
                return Ok(());
            }
        }
        self.check_backup(number)
    }

    /// Restores and compares every backup, and verifies the folder.
    pub(super) fn check_all_backups(&mut self) -> CheckedState {
        self.settle_backups()?;
        if self.backups.moments.is_empty() {
            return Ok(());
        }
        let mut damage = Vec::new();
        let folder = Path::new(FOLDER);
        Engine::verify(&self.env(), folder, &mut |place| damage.push(place))
            .map_err(|error| format!("verify of the backups: {error}"))?;
        if !damage.is_empty() {
            return Err(format!("verify of the backups finds {damage:?}"));
        }
        let numbers: Vec<u64> = self.backups.moments.keys().copied().collect();
        numbers
            .into_iter()
            .try_for_each(|number| self.check_backup(number))
    }

    /// Checks which backups exist, and forgets missing ones that may be missing.
    fn settle_backups(&mut self) -> CheckedState {
        let listed = self.listed()?;
        let moments = &mut self.backups.moments;
        moments.retain(|number, moment| moment.is_sure || listed.contains(number));
        let known: BTreeSet<u64> = moments.keys().copied().collect();
        if known == listed {
            return Ok(());
        }
        Err(format!("backups {listed:?} are listed, not {known:?}"))
    }

    /// The numbers of the backups, all of which must be readable.
    fn listed(&self) -> Result<BTreeSet<u64>, String> {
        let (env, folder) = (self.env(), Path::new(FOLDER));
        let failed = |error: EngineError| format!("list of backups: {error}");
        if !backup::is_backup(&env, folder).map_err(failed)? {
            return Ok(BTreeSet::new());
        }
        let numbers = backup::list(&env, folder).map_err(failed)?.into_iter();
        numbers
            .map(|(number, info)| info.map(|_| number).map_err(failed))
            .collect()
    }

    /// The number of the next backup.
    fn next_number(&self) -> u64 {
        let last = self.backups.moments.last_key_value();
        last.map_or(1, |(number, _)| number + 1)
    }

    /// Lets the power or the disk fail while a backup is restored. The result must be complete, or
    /// not a data directory.
    fn interrupt_restore(&mut self, number: u64) -> CheckedState {
        self.clear_restored()?;
        let (env, into) = (self.env(), Path::new(RESTORED));
        let is_full = self.rng.random_bool(0.2);
        if is_full {
            self.fs.set_space(Some(self.rng.random_range(0..4_000)));
        } else {
            self.fs
                .crash_at(self.fs.ops() + self.rng.random_range(0..120));
        }
        let restored = backup::restore(&env, Path::new(FOLDER), Some(number), into);
        let crashed = self.fs.is_crashed();
        self.note(|| format!("restore of {number}, interrupted: {crashed}, full: {is_full}"));
        CrashTrouble::end(&self.fs);
        if crashed {
            self.summary.crashes += 1;
            self.fs.crash();
        } else if let Err(error) = &restored
            && !is_full
        {
            return Err(format!("restore of backup {number}: {error}"));
        }
        let exists = |name: &str| self.fs.exists(&into.join(name)).unwrap_or(false);
        if exists("RESTORING") {
            let opened = Engine::open(env, into, self.restored_options());
            return match opened {
                Err(EngineError::Invalid(_)) => Ok(()),
                other => Err(format!("backup {number} half restored: {other:?}")),
            };
        }
        if exists("MARIGRAM") {
            return self.compare_restored(number);
        }
        if exists("CATALOG") {
            return Err(format!("backup {number} left files that nothing marks"));
        }
        Ok(())
    }

    /// Restores a backup, over the remains of an interrupted restore, and compares it.
    fn check_backup(&mut self, number: u64) -> CheckedState {
        let into = Path::new(RESTORED);
        let exists = |name: &str| self.fs.exists(&into.join(name)).unwrap_or(false);
        if exists("MARIGRAM") && !exists("RESTORING") {
            self.clear_restored()?;
        }
        // Two directories never have the same time of creation.
        self.clock.advance(1);
        self.note(|| format!("restore of {number}"));
        backup::restore(&self.env(), Path::new(FOLDER), Some(number), into)
            .map_err(|error| format!("restore of backup {number}: {error}"))?;
        self.compare_restored(number)
    }

    fn compare_restored(&mut self, number: u64) -> CheckedState {
        let wrong = |reason: String| format!("backup {number} restored: {reason}");
        let options = self.restored_options();
        let engine = Engine::open(self.env(), Path::new(RESTORED), options)
            .map_err(|error| wrong(error.to_string()))?;
        let observed = observe(&engine, DATABASE).map_err(|error| wrong(error.to_string()))?;
        let state = self.backups.moments[&number].state.clone();
        let history = OracleHistory::from_state(state, self.options.shards);
        self.summary.restores += 1;
        history
            .check(&observed, self.clock.now_ns(), Strictness::Either)
            .map_err(wrong)?;
        engine.close().map_err(|error| wrong(error.to_string()))
    }

    fn clear_restored(&self) -> CheckedState {
        let into = Path::new(RESTORED);
        if self.fs.exists(into).unwrap_or(false) {
            // Make it durable: a power loss must not bring parts of an older one back.
            self.fs
                .remove_dir_all(into)
                .and_then(|()| self.fs.sync_dir(Path::new("/")))
                .map_err(|error| format!("{RESTORED}: {error}"))?;
        }
        Ok(())
    }

    /// A restored directory keeps its shards, whatever the settings say.
    fn restored_options(&self) -> EngineOptions {
        EngineOptions {
            shards: 1,
            ..self.options.clone()
        }
    }

    fn env(&self) -> Env {
        Env::simulated(&self.fs, &self.clock)
    }
}
