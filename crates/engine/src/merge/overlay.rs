//! Merges rows that several sources have: for each field, the newest value that is not null wins.

use super::assemble::BatchAssembler;
use super::block::DecodedBlock;
use super::cursor::SourceCursor;
use super::key::RowKey;
use super::scope::MergeScope;
use crate::error::Result;
use arrow_array::Array;
use marigram_model::SeriesRun;
use std::sync::Arc;

/// Takes the rows that `holders` (numbers of cursors, newest first) have in common at their heads:
/// at least one, and as many as follow equally in all of them and before `bound`. Returns how many
/// rows were replaced.
pub(super) fn take_equal(
    cursors: &mut [SourceCursor],
    holders: &[u32],
    bound: RowKey,
    scope: &MergeScope,
    assembler: &mut BatchAssembler,
) -> Result<u64> {
    let mut blocks: Vec<(Arc<DecodedBlock>, usize)> = Vec::with_capacity(holders.len());
    for at in holders {
        let cursor = &mut cursors[*at as usize];
        let block = cursor.block(scope)?;
        blocks.push((block, cursor.ahead().1));
    }
    let rows = common_rows(cursors, holders, bound, assembler.batch_rows());
    let (series, _, _) = cursors[holders[0] as usize].ahead();
    let (newest, start) = &blocks[0];
    let carries_all = newest
        .columns
        .iter()
        .all(|column| column.as_ref().is_some_and(|c| c.null_count() == 0));
    if carries_all {
        let run = SeriesRun {
            series,
            rows: rows as u32,
        };
        assembler.push_slice(newest, *start, rows, &[run]);
    } else {
        for ahead in 0..rows {
            assembler.push_merged(SeriesRun { series, rows: 1 }, |column| {
                let Some(column) = column else {
                    return Some((newest, start + ahead));
                };
                let carries = |(block, first): &&(Arc<DecodedBlock>, usize)| {
                    let array = block.columns[column].as_ref();
                    array.is_some_and(|array| !array.is_null(first + ahead))
                };
                blocks
                    .iter()
                    .find(carries)
                    .map(|(block, first)| (block, first + ahead))
            });
        }
    }
    for at in holders {
        cursors[*at as usize].skip(rows);
    }
    Ok((rows * (holders.len() - 1)) as u64)
}

/// How many rows ahead have the same (series, time) in all of `holders`, and are before `bound`.
fn common_rows(cursors: &[SourceCursor], holders: &[u32], bound: RowKey, rows_max: usize) -> usize {
    let (series, _, mut times) = cursors[holders[0] as usize].ahead();
    times = &times[..times.len().min(rows_max)];
    if bound.series() == Some(series) {
        times = &times[..times.partition_point(|time| *time < bound.time())];
    }
    for at in &holders[1..] {
        let (_, _, others) = cursors[*at as usize].ahead();
        let same = times.iter().zip(others).take_while(|(a, b)| a == b).count();
        times = &times[..same];
    }
    // The heads are equal, so there is at least one; a bound at the heads would have been a holder.
    times.len().max(1)
}
