//! Executes a planned compaction: merges the rows of its inputs into new segments.
//!
//! Only new files are written; if something fails, they are removed. Rows that tombstones cover,
//! and rows of dropped tables, are left out. A page is copied undecoded if its rows stay
//! consecutive, with no row of another input between them. Segments that only change their space
//! are not touched at all.

use super::history::CompactionProgress;
use super::plan::{CompactionKind, CompactionPlan};
use crate::error::{EngineError, Result};
use crate::layout::layout_of;
use crate::memory::{Holder, MemoryAccountant};
use crate::merge::{
    CopyRule, MergeOptions, MergeSource, MergeStream, MergedPiece, ScanMetrics, WholePage,
    columns_of,
};
use crate::view::OpenSegment;
use marigram_codec::{EncodingChoice, EncodingGoal};
use marigram_env::BlobStore;
use marigram_manifest::{ManifestEdit, Partition, SegmentId, SegmentMeta, Tombstone};
use marigram_model::{ColumnCodec, SortedRows, TableId, TableOptions, TableSchema};
use marigram_segment::{SegmentColumn, SegmentOptions, SegmentWriter, TableLayout};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rows of a batch between the merge and the writer.
const BATCH_ROWS: usize = 8192;

/// The parts of a shard that a compaction needs.
pub(crate) struct RunContext<'a> {
    pub blobs: Arc<dyn BlobStore>,
    pub options: SegmentOptions,
    pub memory: Arc<MemoryAccountant>,
    /// Schemas of the existing tables, for the layout of the output.
    pub schemas: &'a HashMap<TableId, Arc<TableSchema>>,
    /// Id and name of the next new segment.
    pub new_segment: &'a dyn Fn() -> (SegmentId, String),
    /// Asked between batches: whether to give up. May pause.
    pub stop: &'a dyn Fn() -> bool,
    /// Counters.
    pub progress: &'a CompactionProgress,
}

/// Compacts the segments `inputs` of `plan`. The edit removes them and adds the new segments;
/// `None` if the compaction was stopped. The new files and their names are durable when it returns.
///
/// # Errors
/// Damage or I/O errors; no new file is then left.
pub(crate) fn run(
    plan: &CompactionPlan,
    inputs: &[Arc<OpenSegment>],
    tombstones: &[Arc<Tombstone>],
    tables: &BTreeMap<TableId, TableOptions>,
    context: &RunContext<'_>,
) -> Result<Option<ManifestEdit>> {
    let Some(first) = inputs.first() else {
        return Ok(None);
    };
    if plan.kind == CompactionKind::Move {
        return Ok(Some(moved(plan, inputs)));
    }
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
    let mut output = CompactionOutput {
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
        page_rows: 0,
        counted_bytes: 0,
        names: Vec::new(),
        added: Vec::new(),
    };
    let written = write_all(inputs, tombstones, tables, &mut output);
    if matches!(written, Ok(true)) {
        let removed = inputs.iter().map(|input| input.meta.id).collect();
        return Ok(Some(ManifestEdit {
            removed,
            added: output.added,
            ..ManifestEdit::default()
        }));
    }
    output.remove_files();
    written.map(|_| None)
}

/// The same segments with other entries in the manifest.
fn moved(plan: &CompactionPlan, inputs: &[Arc<OpenSegment>]) -> ManifestEdit {
    let added = inputs.iter().map(|input| SegmentMeta {
        space: plan.space,
        ..input.meta.clone()
    });
    ManifestEdit {
        removed: inputs.iter().map(|input| input.meta.id).collect(),
        added: added.collect(),
        ..ManifestEdit::default()
    }
}

/// Writes the rows of all live tables; `false` if it was stopped.
fn write_all(
    inputs: &[Arc<OpenSegment>],
    tombstones: &[Arc<Tombstone>],
    tables: &BTreeMap<TableId, TableOptions>,
    output: &mut CompactionOutput<'_>,
) -> Result<bool> {
    let held: BTreeSet<TableId> = inputs
        .iter()
        .flat_map(|input| input.meta.tables.iter().copied())
        .collect();
    for table in held.into_iter().filter(|table| tables.contains_key(table)) {
        let holding = inputs
            .iter()
            .filter(|input| input.meta.tables.contains(&table));
        let sources: Vec<MergeSource> = holding
            .map(|input| MergeSource::segment(input, table, tombstones))
            .collect::<Result<_>>()?;
        if !write_table(table, sources, output)? {
            return Ok(false);
        }
    }
    output.finish()?;
    output.sync_names()?;
    Ok(true)
}

/// Writes the rows of one table; `false` if it was stopped.
fn write_table(
    table: TableId,
    sources: Vec<MergeSource>,
    output: &mut CompactionOutput<'_>,
) -> Result<bool> {
    let context = output.context;
    let mut columns = columns_of(&sources);
    if let Some(schema) = context.schemas.get(&table) {
        columns.retain(|column| !schema.is_dropped(column.id));
    }
    let metrics = Arc::new(ScanMetrics::default());
    let options = MergeOptions {
        memory: Some((context.memory.clone(), Holder::Compaction)),
        metrics: Some(metrics.clone()),
        ..MergeOptions::all(columns.clone(), BATCH_ROWS)
    };
    let layout = match context.schemas.get(&table) {
        Some(schema) => layout_of(schema, &columns, output.plan.cold),
        // Dropped a moment ago: the next compaction removes its rows.
        None => TableLayout::auto(TableOptions::PAGE_BYTES, columns.len()),
    };
    let rule = copy_rule(&layout, &output.context.options, output.plan.cold);
    let mut merge = MergeStream::new(sources, options);
    let (mut begun, mut read) = (None, 0);
    while let Some(piece) = merge.next_piece(&rule)? {
        if (context.stop)() {
            return Ok(false);
        }
        let file = output.added.len();
        output.begin(table, &columns, &layout, begun != Some(file))?;
        begun = Some(file);
        match piece {
            MergedPiece::Rows(rows) => output.append(&rows)?,
            MergedPiece::Page(page) => output.copy(&page)?,
        }
        let now = metrics.bytes_read.load(Ordering::Relaxed);
        CompactionProgress::add(&context.progress.bytes_read, now - read);
        read = now;
        output.split_if_large()?;
    }
    Ok(true)
}

/// The range of rows for no page.
const NO_ROWS: RangeInclusive<u32> = 0..=0;

/// Which pages are copied. Half-full pages are, so that a page is not re-encoded each time that a
/// compaction changes its neighbour. In a cold result, which stays, only full pages are copied, and
/// none if the result must be smaller than the inputs. Pages must have the encodings and
/// compressors that the table's settings name.
fn copy_rule(layout: &TableLayout, options: &SegmentOptions, cold: bool) -> CopyRule {
    let most = u32::try_from(options.row_group_rows).unwrap_or(u32::MAX);
    let full = (layout.page_bytes / 8).min(most).max(1);
    let least = if cold { full } else { full.div_ceil(2) };
    let anew = layout.time.goal == EncodingGoal::Small;
    let codec = |choice: &EncodingChoice| ColumnCodec {
        encoding: choice.encoding,
        compressor: choice.compressor,
    };
    CopyRule {
        rows: if anew { NO_ROWS } else { least..=full },
        // Text is encoded to a fraction of its size.
        bytes_min: layout.page_bytes.max(1),
        codecs: layout.columns.iter().map(codec).collect(),
    }
}

/// The segments that are being written.
struct CompactionOutput<'a> {
    context: &'a RunContext<'a>,
    plan: &'a CompactionPlan,
    partition: Partition,
    sequence_max: u64,
    level: u32,
    writer: Option<(SegmentId, SegmentWriter)>,
    /// Rows in a full page of the current table.
    page_rows: usize,
    /// Bytes of the current segment that have been counted.
    counted_bytes: u64,
    names: Vec<String>,
    added: Vec<SegmentMeta>,
}

impl CompactionOutput<'_> {
    /// Starts a segment if there is none, and starts the table in it if `begin` says so.
    fn begin(
        &mut self,
        table: TableId,
        columns: &[SegmentColumn],
        layout: &TableLayout,
        begin: bool,
    ) -> Result<()> {
        self.page_rows = layout.page_bytes as usize / 8;
        if self.writer.is_none() {
            let (id, name) = (self.context.new_segment)();
            self.names.push(name.clone());
            let (blobs, options) = (&*self.context.blobs, self.context.options.clone());
            let writer = SegmentWriter::create(blobs, &name, options)?;
            self.writer = Some((id, writer));
            self.counted_bytes = 0;
        }
        if begin {
            self.writer().table(table, columns, layout)?;
        }
        Ok(())
    }

    fn writer(&mut self) -> &mut SegmentWriter {
        let (_, writer) = self
            .writer
            .as_mut()
            .expect("a segment must begin before anything is written");
        writer
    }

    fn append(&mut self, rows: &SortedRows) -> Result<()> {
        self.writer().append(rows)?;
        CompactionProgress::add(&self.context.progress.rows, rows.len() as u64);
        self.count_written();
        Ok(())
    }

    /// Copies a page. For a cold result, its rows are decoded instead if a page of the same series
    /// would otherwise end less than half full.
    fn copy(&mut self, page: &WholePage) -> Result<()> {
        let progress = self.context.progress;
        let half = self.page_rows / 2;
        let first = page.runs.first().map(|run| run.series);
        let cuts = |(series, rows)| Some(series) == first && rows < half;
        if self.plan.cold && self.writer().pending().is_some_and(cuts) {
            let (rows, bytes) = page.read()?;
            CompactionProgress::add(&progress.bytes_read, bytes);
            return self.append(&rows);
        }
        let copied = self.writer().copy_page(page.source(), &page.runs)?;
        CompactionProgress::add(&progress.rows, u64::from(page.rows()));
        CompactionProgress::add(&progress.bytes_read, copied);
        CompactionProgress::add(&progress.bytes_copied, copied);
        self.count_written();
        Ok(())
    }

    /// Counts what the writer has written since the last call.
    fn count_written(&mut self) {
        let bytes = self.writer().bytes();
        let more = bytes - self.counted_bytes;
        self.counted_bytes = bytes;
        CompactionProgress::add(&self.context.progress.bytes_written, more);
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
        let rest = summary.bytes.saturating_sub(self.counted_bytes);
        CompactionProgress::add(&self.context.progress.bytes_written, rest);
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
            pin: Some(summary.pin),
        });
        Ok(())
    }

    /// Makes the names of the new files durable.
    fn sync_names(&self) -> Result<()> {
        let prefix = |name| str::rsplit_once(name, '/').map_or("", |(prefix, _)| prefix);
        let prefixes: BTreeSet<&str> = self.names.iter().map(|name| prefix(name)).collect();
        let blobs = &self.context.blobs;
        for prefix in prefixes {
            blobs
                .sync_names(prefix)
                .map_err(|error| EngineError::io(&blobs.location(prefix), error))?;
        }
        Ok(())
    }

    /// Removes the new files. Recovery removes those that cannot be removed now.
    fn remove_files(&mut self) {
        self.writer = None;
        for name in &self.names {
            if let Err(error) = self.context.blobs.delete(name) {
                tracing::debug!(name, %error, "a segment of a failed compaction stays");
            }
        }
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
