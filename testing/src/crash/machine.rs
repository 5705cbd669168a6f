//! A simulated machine with a data directory, and its lives.

use super::backup_checks::ExpectedBackups;
use super::checks::{check_files, check_random_read};
use super::trouble::CrashTrouble;
use super::workload::{START_NS, Workload, WorkloadAction};
use crate::oracle::{OracleHistory, ReadError, Strictness, observe};
use marigram_engine::{CompactionPolicy, Durability, Engine, EngineError, EngineOptions};
use marigram_env::{Clock as _, Env, LogStore as _, OpKind, SimClock, SimFs};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

const DIR: &str = "/data";
pub(super) const DATABASE: &str = "plant";
const TRACE_STEPS: usize = 40;

/// Counts of what happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// How often the data directory was opened.
    pub lives: u64,
    /// Number of actions.
    pub actions: u64,
    /// Number of power losses; the other lives end only with the process.
    pub crashes: u64,
    /// Number of changes that failed and were in doubt.
    pub doubts: u64,
    /// Number of acknowledged rows.
    pub rows: u64,
    /// Number of file system operations.
    pub ops: u64,
    /// Flushes and compactions that the engine counted.
    pub merges: u64,
    /// Number of backups taken.
    pub backups: u64,
    /// Number of backups restored and compared.
    pub restores: u64,
}

impl std::ops::AddAssign for RunSummary {
    fn add_assign(&mut self, other: Self) {
        self.lives += other.lives;
        self.actions += other.actions;
        self.crashes += other.crashes;
        self.doubts += other.doubts;
        self.rows += other.rows;
        self.ops += other.ops;
        self.merges += other.merges;
        self.backups += other.backups;
        self.restores += other.restores;
    }
}

/// A simulated machine with one data directory.
#[derive(Debug)]
pub struct SimMachine {
    pub(super) fs: SimFs,
    pub(super) clock: SimClock,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) work: Workload,
    pub(super) history: OracleHistory,
    pub(super) backups: ExpectedBackups,
    pub(super) options: EngineOptions,
    /// Most actions in a life.
    actions_max: u32,
    pub(super) summary: RunSummary,
    /// Number of file system operations in the last life.
    life_ops: u64,
    trace: VecDeque<String>,
    /// Most bytes of a step in the trace.
    step_bytes_max: usize,
}

pub(super) type CheckedState = Result<(), String>;

impl SimMachine {
    /// A new machine with an empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let fs = SimFs::new(rng.random());
        let dir = Path::new(DIR);
        fs.create_dir_all(dir)
            .expect("nothing is planned to fail yet");
        fs.sync_dir(Path::new("/"))
            .expect("nothing is planned to fail yet");
        let shards = if rng.random_bool(0.6) {
            1
        } else {
            rng.random_range(2..4)
        };
        // Pages are not larger than row groups, and tables choose their page size below that.
        let row_group_rows = [1, 4, 30, 200, 1 << 20][rng.random_range(0..5)];
        let options = EngineOptions {
            shards,
            durability: Durability::Fsync,
            memory_limit_bytes: 256 << 20,
            flush_bytes_max: [4 << 10, 32 << 10, 1 << 20][rng.random_range(0..3)],
            flush_age_max: rng.random_bool(0.5).then_some(Duration::from_mins(5)),
            background_threads: 0,
            compaction: CompactionPolicy::ALL[rng.random_range(0..3)],
            compaction_bytes_per_second: None,
            trash_retention: Duration::from_secs([0, 1_000, 100_000][rng.random_range(0..3)]),
            open_files_max: [1, 3, 100][rng.random_range(0..3)],
            segment: marigram_segment::SegmentOptions { row_group_rows },
        };
        let actions_max = [8, 25, 60][rng.random_range(0..3)];
        let work = Workload::new(Xoshiro256PlusPlus::seed_from_u64(rng.random()));
        Self {
            fs,
            clock: SimClock::new(START_NS),
            rng,
            work,
            history: OracleHistory::new(shards),
            backups: ExpectedBackups::default(),
            options,
            actions_max,
            summary: RunSummary::default(),
            life_ops: 0,
            trace: VecDeque::new(),
            step_bytes_max: 240,
        }
    }

    /// Draws how many lives this machine has.
    pub fn draw_lives(&mut self) -> u32 {
        self.rng.random_range(2..6)
    }

    /// The counts so far.
    #[must_use]
    pub fn summary(&self) -> RunSummary {
        RunSummary {
            ops: self.fs.ops(),
            ..self.summary
        }
    }

    /// Number of file system operations in the last life, before its end.
    #[must_use]
    pub fn life_ops(&self) -> u64 {
        self.life_ops
    }

    /// Keeps each step of the trace in full.
    #[must_use]
    pub fn verbose(mut self) -> Self {
        self.step_bytes_max = usize::MAX;
        self
    }

    /// A control: acknowledges before an fsync. The simulation must detect lost rows.
    #[must_use]
    pub fn careless(mut self) -> Self {
        self.options.durability = Durability::Os;
        self
    }

    /// A control: expects a wrong state of each backup. The simulation must detect it.
    #[must_use]
    pub fn misremembering(mut self) -> Self {
        self.backups.misremember = true;
        self
    }

    /// The last steps, one per line.
    #[must_use]
    pub fn trace(&self) -> String {
        let head = format!("the last steps of a machine with {:?}:\n", self.options);
        head + &self
            .trace
            .iter()
            .fold(String::new(), |all, step| all + "  " + step + "\n")
    }

    /// Lives one life, with a random trouble.
    ///
    /// # Errors
    /// What the engine did wrong.
    pub fn live(&mut self) -> CheckedState {
        let trouble = CrashTrouble::draw(&mut self.rng);
        let actions = self.rng.random_range(1..=self.actions_max);
        self.live_with(trouble, actions)
    }

    /// Lives one life with this trouble and this number of actions.
    ///
    /// # Errors
    /// What the engine did wrong.
    pub fn live_with(&mut self, trouble: CrashTrouble, actions: u32) -> CheckedState {
        self.note(|| format!("a life with {trouble:?}"));
        let first_op = self.fs.ops();
        trouble.plan(&self.fs);
        let engine = self.open(trouble)?;
        let lived = engine
            .as_ref()
            .map_or(Ok(()), |engine| self.work(engine, trouble, actions));
        let lived = lived.and_then(|()| match &engine {
            Some(engine) if !self.fs.is_crashed() => self.end(engine, trouble),
            _ => Ok(()),
        });
        self.life_ops = self.fs.ops() - first_op;
        let interrupted = self.fs.is_crashed();
        if self.rng.random_bool(if interrupted { 0.7 } else { 0.5 }) {
            self.note(|| format!("the power fails, in an operation: {interrupted}"));
            self.summary.crashes += 1;
            self.fs.crash();
        } else {
            self.note(|| format!("the process is killed, in an operation: {interrupted}"));
            self.fs.kill();
        }
        CrashTrouble::end(&self.fs);
        lived?;
        self.look_after_backups()
    }

    /// Opens the directory a last time without trouble, closes it properly and verifies every file.
    ///
    /// # Errors
    /// What the engine did wrong.
    pub fn finish(&mut self) -> CheckedState {
        let Some(engine) = self.open(CrashTrouble::None)? else {
            return Err("the directory does not open".to_owned());
        };
        self.compare(&engine, CrashTrouble::None, Strictness::Either)?;
        self.act("close", CrashTrouble::None, engine.close())?;
        let mut damage = Vec::new();
        let env = Env::simulated(&self.fs, &self.clock);
        let verified = Engine::verify(&env, Path::new(DIR), &mut |message| damage.push(message));
        verified.map_err(|error| format!("verify: {error}"))?;
        if !damage.is_empty() {
            return Err(format!("verify finds {damage:?}"));
        }
        self.check_all_backups()
    }

    pub(super) fn note(&mut self, step: impl FnOnce() -> String) {
        if self.trace.len() == TRACE_STEPS {
            self.trace.pop_front();
        }
        let mut step = format!("op {}: {}", self.fs.ops(), step());
        if step.len() > self.step_bytes_max {
            step.truncate(step.floor_char_boundary(self.step_bytes_max));
            step.push('…');
        }
        self.trace.push_back(step);
    }

    /// Opens the directory and resolves what is in doubt; `None` if the trouble prevents it.
    fn open(&mut self, trouble: CrashTrouble) -> Result<Option<Engine>, String> {
        self.summary.lives += 1;
        let env = Env::simulated(&self.fs, &self.clock);
        let opened = Engine::open(env, Path::new(DIR), self.options.clone())
            .and_then(|engine| engine.create_database(DATABASE, true).map(|()| engine));
        let engine = match opened {
            Ok(engine) => engine,
            Err(error) => {
                self.note(|| format!("open: {error}"));
                Self::excuse("open", trouble, &error)?;
                return Ok(None);
            }
        };
        let settled = match observe(&engine, DATABASE) {
            Ok(observed) => {
                let now_ns = self.clock.now_ns();
                let settled = self.history.settle(&observed, now_ns);
                settled.map_err(|reason| format!("after opening: {reason}"))
            }
            Err(ReadError::Wrong(reason)) => Err(format!("after opening: {reason}")),
            Err(ReadError::Engine(error)) => {
                Self::excuse("reading after opening", trouble, &error)?;
                return Ok(None);
            }
        };
        settled?;
        // Files that cannot be removed, or moved to the trash, stay for now.
        let keeps_garbage = [
            OpKind::Remove,
            OpKind::List,
            OpKind::Rename,
            OpKind::CreateDir,
        ];
        if !matches!(trouble, CrashTrouble::Error(kind, ..) if keeps_garbage.contains(&kind)) {
            check_files(&engine, &self.fs, Path::new(DIR))
                .map_err(|reason| format!("after opening: {reason}"))?;
        }
        // A repeated read must give the same result, now that pages and last values are cached.
        self.compare(&engine, trouble, Strictness::Either)?;
        Ok(Some(engine))
    }

    fn work(&mut self, engine: &Engine, trouble: CrashTrouble, actions: u32) -> CheckedState {
        for _ in 0..actions {
            if self.fs.is_crashed() || self.history.is_full() {
                break;
            }
            if matches!(trouble, CrashTrouble::Full(_) | CrashTrouble::Files(_))
                && self.rng.random_bool(0.05)
            {
                self.note(|| "the operator makes room".to_owned());
                CrashTrouble::relieve(&self.fs);
            }
            let action = self.work.draw(self.history.current());
            self.note(|| format!("{action:?}"));
            self.summary.actions += 1;
            self.do_action(engine, trouble, action)?;
        }
        Ok(())
    }

    /// The end of a life with the power still on.
    fn end(&mut self, engine: &Engine, trouble: CrashTrouble) -> CheckedState {
        CrashTrouble::end(&self.fs);
        // A segment that could not be read once may stay unreadable until it is reopened.
        let lasting = match trouble {
            CrashTrouble::Error(OpKind::Open | OpKind::Read | OpKind::Len, ..) => trouble,
            _ => CrashTrouble::None,
        };
        self.compare(engine, lasting, Strictness::Refused)?;
        if trouble.passes() {
            self.act(
                "flush after the trouble",
                CrashTrouble::None,
                engine.flush(),
            )?;
            if let Some(reason) = engine.status().read_only {
                return Err(format!("writes are refused after {trouble:?}: {reason}"));
            }
            self.compare(engine, CrashTrouble::None, Strictness::Refused)?;
        }
        let status = engine.status();
        self.summary.merges += status.flushes + status.compactions;
        if self.rng.random_bool(0.5) {
            self.note(|| "close".to_owned());
            self.act("close", trouble, engine.close())?;
        }
        Ok(())
    }

    fn do_action(
        &mut self,
        engine: &Engine,
        trouble: CrashTrouble,
        action: WorkloadAction,
    ) -> CheckedState {
        match action {
            WorkloadAction::Change(change) => self.change(engine, trouble, change),
            WorkloadAction::Flush => self.act("flush", trouble, engine.flush()),
            WorkloadAction::Compact => self.act("compact", trouble, engine.compact()),
            WorkloadAction::CompactTable(table) => {
                let done = engine.compact_table(DATABASE, &table);
                self.act("compact table", trouble, done.map(|_| ()))
            }
            WorkloadAction::Maintain => {
                self.act("maintain", trouble, engine.maintain().map(|_| ()))
            }
            WorkloadAction::Retain => self.act("retain", trouble, engine.retain()),
            WorkloadAction::Wait(ns) => {
                self.clock.advance(ns);
                Ok(())
            }
            WorkloadAction::Read => self.read(engine, trouble),
            WorkloadAction::Backup(keep) => self.back_up(engine, trouble, keep),
        }
    }

    /// Judges an action that changes no rows.
    fn act(
        &mut self,
        what: &str,
        trouble: CrashTrouble,
        done: Result<(), EngineError>,
    ) -> CheckedState {
        let Err(error) = done else { return Ok(()) };
        self.note(|| format!("{what}: {error}"));
        Self::excuse(what, trouble, &error)
    }

    /// A trouble excuses an error that it can cause.
    pub(super) fn excuse(what: &str, trouble: CrashTrouble, error: &EngineError) -> CheckedState {
        let is_bad = match error {
            EngineError::Io { .. } | EngineError::ReadOnly(_) | EngineError::Uncertain(_) => {
                trouble == CrashTrouble::None
            }
            EngineError::Busy { .. } => {
                !matches!(trouble, CrashTrouble::Full(_) | CrashTrouble::Files(_))
            }
            _ => true,
        };
        if is_bad {
            Err(format!("{what} with {trouble:?}: {error:?}"))
        } else {
            Ok(())
        }
    }

    fn read(&mut self, engine: &Engine, trouble: CrashTrouble) -> CheckedState {
        if self.history.is_unsure() {
            return self.compare(engine, trouble, Strictness::Refused);
        }
        let names: Vec<_> = self.history.current().tables.keys().cloned().collect();
        for name in names {
            let read = engine.snapshot(DATABASE, &name).map_err(ReadError::from);
            let now_ns = self.clock.now_ns();
            let read = read.and_then(|snapshot| {
                check_random_read(&snapshot, self.history.current(), &mut self.work, now_ns)
            });
            match read {
                Ok(()) => {}
                Err(ReadError::Wrong(reason)) => return Err(reason),
                Err(ReadError::Engine(error)) => self.act("read", trouble, Err(error))?,
            }
        }
        Ok(())
    }

    fn compare(
        &mut self,
        engine: &Engine,
        trouble: CrashTrouble,
        strictness: Strictness,
    ) -> CheckedState {
        match observe(engine, DATABASE) {
            Ok(observed) => self
                .history
                .check(&observed, self.clock.now_ns(), strictness),
            Err(ReadError::Wrong(reason)) => Err(reason),
            Err(ReadError::Engine(error)) => self.act("read", trouble, Err(error)),
        }
    }
}
