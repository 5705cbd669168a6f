//! Splits a scan into parts with about equal numbers of rows, between series and never within one.
//!
//! Rows are counted from series directories, in at most [`BUCKETS`] buckets of series; if a scan
//! touches very many row groups, their rows count as evenly distributed over their series.

use crate::error::Result;
use crate::merge::{MergeSource, selected_runs};
use marigram_model::{SeriesRun, TimeRange};
use roaring::RoaringBitmap;
use std::ops::RangeInclusive;

/// Buckets of series in which rows are counted.
const BUCKETS: u64 = 4096;

/// Number of row groups up to which directories are read for counting.
const DIRECTORIES_MAX: usize = 256;

/// For each shard, the ranges of series of its parts; they tile all of u32. There are about
/// `partitions` of them over all shards, and at least one per shard.
pub(super) fn territories<'a>(
    shards: impl Iterator<Item = (&'a RoaringBitmap, &'a [MergeSource])>,
    range: TimeRange,
    partitions: usize,
) -> Result<Vec<Vec<RangeInclusive<u32>>>> {
    let shards: Vec<_> = shards.collect();
    if partitions <= shards.len() {
        return Ok(vec![vec![0..=u32::MAX]; shards.len()]);
    }
    let counted: Vec<SeriesBuckets> = shards
        .iter()
        .map(|(series, sources)| SeriesBuckets::count(series, sources, range))
        .collect::<Result<_>>()?;
    let total: u64 = counted.iter().map(SeriesBuckets::rows).sum();
    let part_rows = total.div_ceil(partitions as u64).max(1);
    Ok(counted
        .iter()
        .map(|buckets| {
            let parts = (buckets.rows() + part_rows / 2) / part_rows;
            cut(&buckets.starts, &buckets.rows, parts.max(1))
        })
        .collect())
}

/// Rows by bucket of series.
#[derive(Debug)]
struct SeriesBuckets {
    /// First series of each bucket, ascending.
    starts: Vec<u32>,
    rows: Vec<u64>,
}

impl SeriesBuckets {
    fn rows(&self) -> u64 {
        self.rows.iter().sum()
    }

    fn count(series: &RoaringBitmap, sources: &[MergeSource], range: TimeRange) -> Result<Self> {
        let count = series.len().min(BUCKETS);
        let start = |bucket: u64| series.select((bucket * series.len() / count) as u32);
        let starts: Vec<u32> = (0..count).filter_map(start).collect();
        let mut buckets = Self {
            rows: vec![0; starts.len()],
            starts,
        };
        let groups: usize = sources
            .iter()
            .map(|source| source.row_groups().count())
            .sum();
        for source in sources {
            source.count_rows(
                range,
                groups <= DIRECTORIES_MAX,
                &mut |runs, even| match even {
                    None => buckets.add_runs(runs, series),
                    Some((min, max, rows)) => buckets.add_even(min, max, rows),
                },
            )?;
        }
        Ok(buckets)
    }

    fn add_runs(&mut self, runs: &[SeriesRun], series: &RoaringBitmap) {
        let mut bucket = 0;
        for (run, _) in selected_runs(runs, Some(series)) {
            while self
                .starts
                .get(bucket + 1)
                .is_some_and(|start| *start <= run.series.0)
            {
                bucket += 1;
            }
            self.rows[bucket] += u64::from(run.rows);
        }
    }

    /// Distributes `rows` evenly over the buckets of the series `min` to `max`.
    fn add_even(&mut self, min: u32, max: u32, rows: u64) {
        let first = self
            .starts
            .partition_point(|start| *start <= min)
            .saturating_sub(1);
        let end = self
            .starts
            .partition_point(|start| *start <= max)
            .max(first + 1);
        let share = rows / (end - first) as u64;
        self.rows[first..end]
            .iter_mut()
            .for_each(|bucket| *bucket += share);
    }
}

/// Cuts buckets into `parts` ranges with about equal numbers of rows: each cut is where the rows
/// before it are closest to its share.
fn cut(starts: &[u32], rows: &[u64], parts: u64) -> Vec<RangeInclusive<u32>> {
    let total: u64 = rows.iter().sum();
    let mut cuts = Vec::new();
    let mut before = 0u64;
    for (at, start) in starts.iter().enumerate().skip(1) {
        before += rows[at - 1];
        let share = u128::from(total) * (cuts.len() as u128 + 1);
        let middle = u128::from(before) + u128::from(rows[at] / 2);
        if (cuts.len() as u64) + 1 < parts && middle * u128::from(parts) >= share {
            cuts.push(*start);
        }
    }
    let firsts = std::iter::once(0).chain(cuts.iter().copied());
    let lasts = cuts.iter().map(|cut| cut - 1).chain([u32::MAX]);
    firsts
        .zip(lasts)
        .map(|(first, last)| first..=last)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_between_series_and_tile_everything() {
        let starts = [3, 10, 20, 30];
        assert_eq!(cut(&starts, &[1, 1, 1, 1], 2), [0..=19, 20..=u32::MAX]);
        assert_eq!(cut(&starts, &[9, 1, 1, 1], 2), [0..=9, 10..=u32::MAX]);
        assert_eq!(cut(&starts, &[1, 1, 1, 9], 3), [0..=29, 30..=u32::MAX]);
        assert_eq!(cut(&starts, &[5, 5, 5, 5], 1), [0..=u32::MAX]);
        assert_eq!(cut(&[], &[], 4), [0..=u32::MAX]);
        assert_eq!(cut(&starts, &[1; 4], 9).len(), 4);
    }

    #[test]
    fn rows_without_a_directory_are_spread_over_their_series() {
        let mut buckets = SeriesBuckets {
            starts: vec![0, 10, 20, 30],
            rows: vec![0; 4],
        };
        buckets.add_even(12, 29, 100);
        assert_eq!(buckets.rows, [0, 50, 50, 0]);
        buckets.add_even(35, 36, 7);
        assert_eq!(buckets.rows, [0, 50, 50, 7]);
    }
}
