//! Does a planned compaction: merges the rows of its inputs into new segments.
//!
//! Nothing but new files is touched; when something fails they are removed. Rows that tombstones
//! cover and rows of dropped tables do not come along.

use super::plan::Plan;
use crate::error::{EngineError, Result};
use crate::layout::layout_of;
use crate::memory::{Holder, MemoryAccountant};
use crate::merge::{Merge, MergeOptions, Source, columns_of};
use crate::view::OpenSegment;
use marigram_env::FileSystem;
use marigram_manifest::{Edit, Partition, SegmentId, SegmentMeta, Tombstone};
use marigram_model::{TableId, TableOptions, TableSchema};
use marigram_segment::{SegmentOptions, SegmentWriter, TableLayout};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a batch on their way from the merge to the writer.
const BATCH_ROWS: usize = 8192;

/// What a compaction needs from its shard.
pub(crate) struct RunContext<'a> {
    pub fs: Arc<dyn FileSystem>,
    pub options: SegmentOptions,
    pub memory: Arc<MemoryAccountant>,
    /// Schemas of the tables that exist, for the layout of what is written.
    pub schemas: &'a HashMap<TableId, Arc<TableSchema>>,
    /// Whether the rows have gone cold: tables that ask for it store them as small as can be.
    pub cold: bool,
    /// Id and path of the next new segment.
    pub new_file: &'a dyn Fn() -> (SegmentId, PathBuf),
    /// Asked between batches: whether to give up.
    pub stop: &'a dyn Fn() -> bool,
}

/// Compacts the segments `inputs` of `plan`. The edit removes them and adds what was written;
/// `None` where it was stopped. The new files and their names are durable when it returns.
///
/// # Errors
/// Damage or I/O errors; then nothing was written.
pub(crate) fn run(
    plan: &Plan,
    inputs: &[Arc<OpenSegment>],
    tombstones: &[Arc<Tombstone>],
    tables: &BTreeMap<TableId, TableOptions>,
    context: &RunContext<'_>,
) -> Result<Option<Edit>> {
    let Some(first) = inputs.first() else {
        return Ok(None);
    };
    let newest = inputs
        .iter()
        .map(|input| input.meta.sequence_max)
        .max()
        .unwrap_or(0);
    let applied = tombstones
        .iter()
        .map(|tombstone| tombstone.sequence)
        .max()
        .unwrap_or(0);
    let mut output = Output {
        context,
        plan,
        partition: first.meta.partition,
        sequence_max: newest.max(applied.min(plan.spends_up_to)),
        level: inputs
            .iter()
            .map(|input| input.meta.level)
            .max()
            .unwrap_or(0)
            .saturating_add(1),
        writer: None,
        paths: Vec::new(),
        added: Vec::new(),
    };
    let written = write_all(inputs, tombstones, tables, &mut output);
    if matches!(written, Ok(true)) {
        let removed = inputs.iter().map(|input| input.meta.id).collect();
        return Ok(Some(Edit {
            removed,
            added: output.added,
            ..Edit::default()
        }));
    }
    output.remove_files();
    written.map(|_| None)
}

/// Writes the rows of all live tables; `false` where it was stopped.
fn write_all(
    inputs: &[Arc<OpenSegment>],
    tombstones: &[Arc<Tombstone>],
    tables: &BTreeMap<TableId, TableOptions>,
    output: &mut Output<'_>,
) -> Result<bool> {
    let held: BTreeSet<TableId> = inputs
        .iter()
        .flat_map(|input| input.meta.tables.iter().copied())
        .collect();
    for table in held.into_iter().filter(|table| tables.contains_key(table)) {
        let holding = inputs
            .iter()
            .filter(|input| input.meta.tables.contains(&table));
        let sources: Vec<Source> = holding
            .map(|input| Source::segment(input, table, tombstones))
            .collect::<Result<_>>()?;
        let columns = columns_of(&sources);
        let options = MergeOptions {
            memory: Some((output.context.memory.clone(), Holder::Compaction)),
            ..MergeOptions::all(columns.clone(), BATCH_ROWS)
        };
        let layout = match output.context.schemas.get(&table) {
            Some(schema) => layout_of(schema, &columns, output.context.cold),
            // Dropped a moment ago: its rows go with the next compaction.
            None => TableLayout::auto(TableOptions::PAGE_BYTES, columns.len()),
        };
        let mut rows = Merge::new(sources, options);
        let mut begun = None;
        while let Some(rows) = rows.next_rows()? {
            if (output.context.stop)() {
                return Ok(false);
            }
            let file = output.added.len();
            let writer = output.writer()?;
            if begun != Some(file) {
                writer.table(table, &columns, &layout)?;
                begun = Some(file);
            }
            writer.append(&rows)?;
            output.split_if_large()?;
        }
    }
    output.finish()?;
    output.sync_names()?;
    Ok(true)
}

/// The segments being written.
struct Output<'a> {
    context: &'a RunContext<'a>,
    plan: &'a Plan,
    partition: Partition,
    sequence_max: u64,
    level: u32,
    writer: Option<(SegmentId, SegmentWriter)>,
    paths: Vec<PathBuf>,
    added: Vec<SegmentMeta>,
}

impl Output<'_> {
    /// The writer of the current segment, a new one if need be.
    fn writer(&mut self) -> Result<&mut SegmentWriter> {
        if self.writer.is_none() {
            let (id, path) = (self.context.new_file)();
            self.paths.push(path.clone());
            let fs = self.context.fs.clone();
            let writer = SegmentWriter::create(fs, &path, self.context.options.clone())?;
            self.writer = Some((id, writer));
        }
        let (_, writer) = self.writer.as_mut().expect("made above");
        Ok(writer)
    }

    fn split_if_large(&mut self) -> Result<()> {
        let large = |writer: &SegmentWriter| writer.bytes() >= self.plan.segment_bytes_max;
        if self
            .writer
            .as_ref()
            .is_some_and(|(_, writer)| large(writer))
        {
            self.finish()?;
        }
        Ok(())
    }

    /// Completes the current segment, if there is one.
    fn finish(&mut self) -> Result<()> {
        let Some((id, writer)) = self.writer.take() else {
            return Ok(());
        };
        let summary = writer.finish()?;
        self.added.push(SegmentMeta {
            id,
            space: self.plan.space,
            partition: self.partition,
            range: summary.range,
            rows: summary.rows,
            bytes: summary.bytes,
            sequence_max: self.sequence_max,
            tables: summary.tables,
            series_min: summary.series_min,
            series_max: summary.series_max,
            level: self.level,
        });
        Ok(())
    }

    /// Makes the new names durable.
    fn sync_names(&self) -> Result<()> {
        let dirs: BTreeSet<&Path> = self.paths.iter().filter_map(|path| path.parent()).collect();
        for dir in dirs {
            self.context
                .fs
                .sync_dir(dir)
                .map_err(|error| EngineError::io(dir, error))?;
        }
        Ok(())
    }

    /// Removes what was written. What cannot be removed now is garbage that recovery removes.
    fn remove_files(&mut self) {
        self.writer = None;
        for path in &self.paths {
            if let Err(error) = self.context.fs.remove(path) {
                tracing::debug!(path = %path.display(), %error, "a file of a failed compaction stays");
            }
        }
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
