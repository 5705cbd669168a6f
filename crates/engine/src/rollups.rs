//! Tracks for each rollup which times of its source were touched since its last refresh.
//!
//! A rollup covers all times before its watermark, except touched ones. A query takes those, and
//! everything from the watermark on, from the source. Rows after the watermark, which are the most
//! common, cost their writer one comparison.
//!
//! Why nothing is missed: times are touched while the rows become visible, under the lock of the
//! shard's state, so whoever took the touched times sees those rows in any later snapshot. Touched
//! times are durable before a flush releases the log that would touch them again, and the rows of a
//! rollup are durable before its progress is. After a crash, more times may be touched, or the
//! watermark may be older, than necessary, but never the reverse.

use crate::catalog::LiveCatalog;
use crate::error::{EngineError, Result};
use marigram_model::{RollupProgress, TableId, TableSchema, TimeRange, TimeSet};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;

/// What one rollup covers, and what it does not.
#[derive(Debug)]
struct TrackedRollup {
    rollup: TableId,
    cell_ns: i64,
    cell_origin_ns: i64,
    tracker_state: Mutex<RollupTrackerState>,
}

#[derive(Debug, Default)]
struct RollupTrackerState {
    /// The durable progress.
    durable: RollupProgress,
    /// The watermark that readers see.
    through_ns: i64,
    /// Rows before this time are recorded: the watermark, or the one that the current refresh will
    /// reach.
    noted_ns: i64,
    /// Times touched since the last refresh began, or before it and not part of it.
    touched: TimeSet,
    /// The times that the current refresh has taken.
    taken: TimeSet,
    /// Changes when a refresh begins or ends.
    epoch: u64,
}

/// The state of a rollup at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollupState {
    /// What it covers, and what it does not.
    pub progress: RollupProgress,
    /// Differs if a refresh has begun or ended in between.
    pub epoch: u64,
}

/// The rollups of an engine, by source.
#[derive(Debug)]
pub(crate) struct RollupTracker {
    schemas: Arc<LiveCatalog>,
    by_source: RwLock<HashMap<TableId, Vec<Arc<TrackedRollup>>>>,
}

impl RollupTracker {
    /// The rollups in a catalog that was just opened.
    pub(crate) fn new(schemas: Arc<LiveCatalog>) -> Self {
        let rollups = Self {
            by_source: RwLock::default(),
            schemas,
        };
        for table in rollups.schemas.all().values() {
            rollups.register(table);
        }
        rollups
    }

    /// The ids of the rollups.
    pub(crate) fn ids(&self) -> Vec<TableId> {
        let by_source = self.by_source.read();
        let all = by_source.values().flatten();
        all.map(|tracked| tracked.rollup).collect()
    }

    /// Starts to track what touches a table's rollup; does nothing for other tables.
    pub(crate) fn register(&self, table: &TableSchema) {
        let Some(rollup) = &table.rollup else { return };
        let durable = self.schemas.progress(table.id);
        let tracked = TrackedRollup {
            rollup: table.id,
            cell_ns: rollup.cell_ns,
            cell_origin_ns: rollup.cell_origin_ns,
            tracker_state: Mutex::new(RollupTrackerState {
                through_ns: durable.through_ns,
                noted_ns: durable.through_ns,
                touched: durable.touched.clone(),
                durable,
                ..RollupTrackerState::default()
            }),
        };
        let mut by_source = self.by_source.write();
        let of_source = by_source.entry(rollup.source).or_default();
        if of_source.iter().all(|known| known.rollup != table.id) {
            of_source.push(Arc::new(tracked));
        }
    }

    /// Stops tracking a dropped table.
    pub(crate) fn forget(&self, table: TableId) {
        let mut by_source = self.by_source.write();
        by_source.remove(&table);
        for of_source in by_source.values_mut() {
            of_source.retain(|tracked| tracked.rollup != table);
        }
        by_source.retain(|_, of_source| !of_source.is_empty());
    }

    /// Records that rows with these times (ns) become visible in a table.
    pub(crate) fn touch_rows(&self, table: TableId, times: &[i64]) {
        let by_source = self.by_source.read();
        let Some(of_source) = by_source.get(&table) else {
            return;
        };
        let Some(first) = times.iter().min() else {
            return;
        };
        for tracked in of_source {
            let mut tracker_state = tracked.tracker_state.lock();
            if *first >= tracker_state.noted_ns {
                continue;
            }
            let noted_ns = tracker_state.noted_ns;
            let late = times.iter().filter(|time| **time < noted_ns);
            let mut cells: Vec<TimeRange> = late.map(|time| tracked.cell(*time)).collect();
            cells.sort_unstable_by_key(|cell| cell.min);
            cells.dedup();
            let cells = TimeSet::from_ranges(cells);
            tracker_state.touch(&cells);
        }
    }

    /// Records that rows in a range of time are deleted from a table.
    pub(crate) fn touch_range(&self, table: TableId, range: TimeRange) {
        let by_source = self.by_source.read();
        for tracked in by_source.get(&table).into_iter().flatten() {
            let mut tracker_state = tracked.tracker_state.lock();
            let max = range.max.min(tracker_state.noted_ns.saturating_sub(1));
            if range.min > max || tracker_state.noted_ns == i64::MIN {
                continue;
            }
            let cells = TimeRange {
                min: tracked.cell(range.min).min,
                max: tracked.cell(max).max,
            };
            tracker_state.touch(&TimeSet::from_range(cells));
        }
    }

    /// The state of a rollup.
    ///
    /// # Errors
    /// If it is not a rollup.
    pub(crate) fn state(&self, rollup: TableId) -> Result<RollupState> {
        let tracked = self.tracked(rollup)?;
        let tracker_state = tracked.tracker_state.lock();
        Ok(RollupState {
            progress: tracker_state.published(),
            epoch: tracker_state.epoch,
        })
    }

    /// Begins a refresh, after which the rollup will cover `taken` and everything up to
    /// `through_ns`. One at a time.
    ///
    /// # Errors
    /// If it is not a rollup.
    pub(crate) fn begin(&self, rollup: TableId, taken: &TimeSet, through_ns: i64) -> Result<()> {
        let tracked = self.tracked(rollup)?;
        let mut tracker_state = tracked.tracker_state.lock();
        tracker_state.give_back();
        tracker_state.taken = tracker_state.touched.intersect(taken);
        tracker_state.touched = tracker_state.touched.minus(taken);
        tracker_state.noted_ns = tracker_state.through_ns.max(through_ns);
        tracker_state.epoch += 1;
        Ok(())
    }

    /// Abandons the refresh: what it took is touched as before.
    pub(crate) fn abort(&self, rollup: TableId) {
        if let Ok(tracked) = self.tracked(rollup) {
            let mut tracker_state = tracked.tracker_state.lock();
            tracker_state.give_back();
            tracker_state.epoch += 1;
        }
    }

    /// Completes the refresh, whose rows are durable.
    ///
    /// # Errors
    /// If it is no longer a rollup, or the disk fails; the refresh then counts as failed.
    pub(crate) fn finish(&self, rollup: TableId) -> Result<()> {
        let tracked = self.tracked(rollup)?;
        let told = || {
            let tracker_state = tracked.tracker_state.lock();
            Some(published(
                tracker_state.noted_ns,
                tracker_state.touched.clone(),
            ))
        };
        let done = |durable: RollupProgress| {
            let mut tracker_state = tracked.tracker_state.lock();
            tracker_state.through_ns = durable.through_ns;
            tracker_state.durable = durable;
            tracker_state.taken = TimeSet::default();
            tracker_state.epoch += 1;
        };
        let put = self.schemas.put_progress(rollup, told, done);
        put.inspect_err(|_| self.abort(rollup))
    }

    /// Makes the touched times durable, as far as they are not yet.
    ///
    /// # Errors
    /// If the disk fails.
    pub(crate) fn persist(&self) -> Result<()> {
        let all: Vec<Arc<TrackedRollup>> =
            self.by_source.read().values().flatten().cloned().collect();
        for tracked in all {
            let changed = || {
                let tracker_state = tracked.tracker_state.lock();
                let published = tracker_state.published();
                (published != tracker_state.durable).then_some(published)
            };
            let done = |durable| tracked.tracker_state.lock().durable = durable;
            match self.schemas.put_progress(tracked.rollup, changed, done) {
                // It was dropped in the meantime.
                Err(_) if self.schemas.by_id(tracked.rollup).is_none() => {}
                put => put?,
            }
        }
        Ok(())
    }

    fn tracked(&self, rollup: TableId) -> Result<Arc<TrackedRollup>> {
        let by_source = self.by_source.read();
        let mut all = by_source.values().flatten();
        all.find(|tracked| tracked.rollup == rollup)
            .cloned()
            .ok_or_else(|| EngineError::NotFound {
                kind: "rollup",
                name: format!("number {rollup}"),
                nearest: None,
            })
    }
}

impl TrackedRollup {
    /// The cell that contains a time.
    fn cell(&self, time: i64) -> TimeRange {
        let into = (i128::from(time) - i128::from(self.cell_origin_ns))
            .rem_euclid(i128::from(self.cell_ns));
        let min = i128::from(time) - into;
        let max = min + i128::from(self.cell_ns) - 1;
        let bounded =
            |time: i128| i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX });
        TimeRange {
            min: bounded(min),
            max: bounded(max),
        }
    }
}

impl RollupTrackerState {
    fn touch(&mut self, cells: &TimeSet) {
        self.touched = self.touched.union(cells);
        self.touched.coarsen(RollupProgress::RANGES_MAX);
    }

    /// Returns the times that an abandoned refresh took to the touched ones.
    fn give_back(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.touch(&taken);
        self.noted_ns = self.through_ns;
    }

    /// The progress that readers see.
    fn published(&self) -> RollupProgress {
        published(self.through_ns, self.touched.union(&self.taken))
    }
}

/// Touched times only matter before the watermark.
fn published(through_ns: i64, touched: TimeSet) -> RollupProgress {
    let before = through_ns
        .checked_sub(1)
        .map(|max| TimeRange { min: i64::MIN, max });
    RollupProgress {
        through_ns,
        touched: before.map_or_else(TimeSet::default, |before| {
            touched.intersect(&TimeSet::from_range(before))
        }),
    }
}
