//! Simulates thousands of flushes without a disk: how much a policy writes, and how many segments
//! it leaves.

use super::*;
use marigram_manifest::{SegmentId, SegmentMeta};
use marigram_model::{SeriesId, TableOptions, TimeRange};
use std::collections::{BTreeMap, BTreeSet};

const FLUSH_BYTES: u64 = 1 << 20;
const FLUSHES: u64 = 1000;

/// A partition that grows with every flush; every series is in every flush.
struct SimulatedPartition {
    segments: BTreeMap<SegmentId, SegmentMeta>,
    tables: BTreeMap<TableId, TableOptions>,
    next: u64,
    sequence: u64,
    flushed: u64,
    compacted: u64,
    turn: u64,
    segments_most: usize,
}

impl SimulatedPartition {
    fn new() -> Self {
        Self {
            segments: BTreeMap::new(),
            tables: [(TableId(1), TableOptions::default())].into(),
            next: 1,
            sequence: 0,
            flushed: 0,
            compacted: 0,
            turn: 0,
            segments_most: 0,
        }
    }

    fn add(&mut self, space: SegmentSpace, bytes: u64, range: TimeRange, sequence_max: u64) {
        let id = SegmentId(self.next);
        self.next += 1;
        let meta = SegmentMeta {
            id,
            space,
            partition: Partition {
                start_ns: 0,
                width_ns: i64::MAX,
            },
            range,
            rows: bytes,
            bytes,
            sequence_max,
            tables: vec![TableId(1)],
            series_min: SeriesId(0),
            series_max: SeriesId(999),
            level: 0,
            pin: None,
        };
        self.segments.insert(id, meta);
    }

    /// A flush in which this percentage of the rows is late, by up to `lateness` flushes.
    fn flush(&mut self, late_percent: u64, lateness: u64) {
        self.sequence += 1;
        let now = self.sequence as i64 * 10;
        let late = FLUSH_BYTES * late_percent / 100;
        if late < FLUSH_BYTES {
            let range = TimeRange {
                min: now,
                max: now + 9,
            };
            self.add(
                SegmentSpace::Sequence,
                FLUSH_BYTES - late,
                range,
                self.sequence,
            );
        }
        if late > 0 {
            let range = TimeRange {
                min: (now - lateness as i64 * 10).max(0),
                max: now,
            };
            self.add(SegmentSpace::Unsequence, late, range, self.sequence);
        }
        self.flushed += FLUSH_BYTES;
    }

    fn compact(&mut self, options: &PickOptions) {
        loop {
            let input = PickInput {
                segments: &self.segments,
                tombstones: &[],
                tables: &self.tables,
                unreadable: &BTreeSet::new(),
                flushed_sequence: self.sequence,
            };
            let Some(plan) = pick(&input, options, self.turn) else {
                break;
            };
            self.turn += 1;
            self.apply(&plan);
        }
        self.segments_most = self.segments_most.max(self.segments.len());
    }

    fn apply(&mut self, plan: &CompactionPlan) {
        let removed = plan.inputs.iter().filter_map(|id| self.segments.remove(id));
        let removed: Vec<SegmentMeta> = removed.collect();
        if plan.kind == crate::compaction::plan::CompactionKind::Move {
            for meta in removed {
                self.add(plan.space, meta.bytes, meta.range, meta.sequence_max);
            }
            return;
        }
        let mut bytes: u64 = removed.iter().map(|meta| meta.bytes).sum();
        let ranges = removed.iter().map(|meta| meta.range);
        let range = ranges.reduce(TimeRange::union).unwrap();
        let sequence = removed.iter().map(|meta| meta.sequence_max).max().unwrap();
        self.compacted += bytes;
        while bytes > 0 {
            let part = bytes.min(plan.segment_bytes_max);
            self.add(plan.space, part, range, sequence);
            bytes -= part;
        }
    }

    fn amplification(&self) -> f64 {
        (self.flushed + self.compacted) as f64 / self.flushed as f64
    }
}

/// The most bytes that may be written per byte: once by the flush, once by each inner compaction in
/// which a segment grows to four times its size, up to the largest size; and each late byte causes
/// `cross_ratio` others and itself to be written once.
fn bound(options: &PickOptions, late_percent: u64) -> f64 {
    let largest = options.segment_bytes_max.min(FLUSHES * FLUSH_BYTES);
    let levels = f64::from((largest / FLUSH_BYTES).ilog(options.inner_growth)) + 1.0;
    let across = (options.cross_ratio + 1) as f64;
    1.0 + levels + across * late_percent as f64 / 100.0
}

#[test]
fn what_is_written_and_left_is_bounded_under_each_policy_and_share_of_late_rows() {
    for policy in Policy::ALL {
        for late_percent in [0, 10, 50, 90, 100] {
            for lateness in [3, FLUSHES] {
                let options = PickOptions::for_policy(policy);
                let mut shard = SimulatedPartition::new();
                for _ in 0..FLUSHES {
                    shard.flush(late_percent, lateness);
                    shard.compact(&options);
                }
                let amplification = shard.amplification();
                let what = format!(
                    "{policy:?}, {late_percent} % late by {lateness} flushes: written \
                     {amplification:.2} times, {} segments at most",
                    shard.segments_most
                );
                assert!(amplification <= bound(&options, late_percent), "{what}");
                assert!(shard.segments_most <= 48, "{what}");
            }
        }
    }
}

#[test]
fn a_tenth_of_late_rows_costs_less_than_four_times_what_came() {
    // The standard set of the benchmarks: forty flushes per shard, then everything is moved to its
    // place.
    for policy in Policy::ALL {
        let mut shard = SimulatedPartition::new();
        for _ in 0..40 {
            shard.flush(10, 40);
            shard.compact(&PickOptions::for_policy(policy));
        }
        shard.compact(&PickOptions::thorough());
        let amplification = shard.amplification();
        println!("{policy:?}: {amplification:.2}");
        assert!(amplification <= 4.0, "{policy:?}: {amplification:.2}");
        assert!(
            shard
                .segments
                .values()
                .all(|meta| meta.space == SegmentSpace::Sequence)
        );
    }
}
