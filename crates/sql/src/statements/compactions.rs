//! The columns of `SHOW COMPACTIONS`, and of the result of `COMPACT TABLE`.

use arrow::array::{ArrayRef, StringArray, TimestampNanosecondArray, UInt64Array};
use marigram_engine::{CompactionInfo, TableCompaction};
use std::sync::Arc;

/// A column with its name.
type ShownColumn = (&'static str, ArrayRef);

fn counts(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Compactions that are running or ended recently, one row each.
pub(crate) fn shown(all: &[CompactionInfo]) -> Vec<ShownColumn> {
    let count = |count: fn(&CompactionInfo) -> u64| counts(all.iter().map(count));
    let text = |text: fn(&CompactionInfo) -> String| texts(all.iter().map(text));
    let started = all.iter().map(|info| info.started_ns);
    let inputs = |info: &CompactionInfo| {
        let ids = info.inputs.iter().map(ToString::to_string);
        ids.collect::<Vec<_>>().join(" ")
    };
    vec![
        ("id", count(|info| info.id)),
        ("shard", count(|info| info.shard as u64)),
        ("kind", text(|info| info.kind.to_owned())),
        ("policy", text(|info| info.policy.name().to_owned())),
        ("state", text(|info| info.state.name().to_owned())),
        ("segments", texts(all.iter().map(inputs))),
        ("input_bytes", count(|info| info.input_bytes)),
        ("bytes_read", count(|info| info.bytes_read)),
        ("bytes_written", count(|info| info.bytes_written)),
        ("bytes_copied", count(|info| info.bytes_copied)),
        ("rows", count(|info| info.rows)),
        ("percent", count(|info| u64::from(info.percent))),
        (
            "started",
            Arc::new(TimestampNanosecondArray::from_iter_values(started)),
        ),
        ("duration_ms", count(|info| info.duration_ns / 1_000_000)),
    ]
}

/// The result of a table's compaction, as one row.
pub(crate) fn done(done: &TableCompaction) -> Vec<ShownColumn> {
    let column = |name, value: u64| (name, counts(std::iter::once(value)));
    vec![
        column("partitions", done.partitions as u64),
        column("segments_read", done.segments_read as u64),
        column("segments_written", done.segments_written as u64),
        column("bytes_read", done.bytes_read),
        column("bytes_written", done.bytes_written),
        column("bytes_copied", done.bytes_copied),
        column("rows", done.rows),
    ]
}
