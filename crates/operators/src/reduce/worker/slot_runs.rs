//! Runs of rows that belong to one group and one bucket.

use super::super::fold::SlotRun;
use super::super::groups::{GroupMembers, GroupSlots};
use super::AggregateWorker;
use datafusion::common::{Result, exec_err, internal_err};
use marigram_engine::{GridPart, NumberGrids, Progression, RegularIntegers, RowSpan};
use marigram_model::cut_ascending;

/// The number of pages whose runs are cached: a device's first pages and its last one have
/// different rows.
const OUTLINES_MAX: usize = 4;

/// The runs of a page, by what determines them.
#[derive(Debug)]
pub(super) struct CachedSlotRuns {
    rows: Vec<(u32, u32)>,
    steps: Vec<Progression>,
    stretches: Vec<SlotRun>,
}

impl CachedSlotRuns {
    fn is_of(&self, spans: &[RowSpan], steps: &[Progression]) -> bool {
        self.steps == steps && self.rows.iter().copied().eq(rows_of(spans))
    }
}

/// Consecutive buckets of one width whose slots are consecutive.
#[derive(Clone, Copy)]
struct EvenBuckets {
    /// The slots of the first and the last bucket.
    slot: u32,
    last_slot: u32,
    /// The end of the first bucket, ns.
    end: i64,
    /// The width of each bucket, ns.
    width: i64,
}

fn rows_of(spans: &[RowSpan]) -> impl Iterator<Item = (u32, u32)> {
    spans.iter().map(|span| (span.start, span.end))
}

impl AggregateWorker {
    /// Finds the runs of rows that belong to one slot each.
    pub(super) fn stretch(&mut self, spans: &[RowSpan], times: &[i64], start: i64) -> Result<()> {
        self.stretches.clear();
        let in_one = self.buckets.is_none() || times.is_empty();
        for span in spans {
            let group = self.members.group(span.series);
            if in_one {
                let slot = self.taken.slots.slot(group, start)?;
                self.push(slot, span.start, span.end);
                continue;
            }
            if self.cut_times(group, *span, times)? {
                continue;
            }
            let (mut row, mut last_len) = (span.start, 0);
            while row < span.end {
                let start = self.bucket_of(times[row as usize])?;
                let ahead = &times[row as usize..span.end as usize];
                let len = rows_before(ahead, self.bucket.1, last_len).max(1);
                let slot = self.taken.slots.slot(group, start)?;
                self.push(slot, row, row + len as u32);
                row += len as u32;
                last_len = len;
            }
        }
        self.mark_present();
        Ok(())
    }

    /// Divides the times of a span into buckets of one width; returns `false` if the buckets have
    /// different widths.
    fn cut_times(&mut self, group: u32, span: RowSpan, times: &[i64]) -> Result<bool> {
        let own = &times[span.start as usize..span.end as usize];
        let (Some(first), Some(last)) = (own.first(), own.last()) else {
            return Ok(true);
        };
        let Some(even) = self.even_buckets(group, *first, *last)? else {
            return Ok(false);
        };
        let mut in_order = true;
        cut_ascending(own, even.end, even.width, |cuts, rows| {
            let slot = even.slot.saturating_add(cuts);
            if slot <= even.last_slot {
                let (from, to) = (rows.start as u32, rows.end as u32);
                self.push(slot, span.start + from, span.start + to);
            } else {
                in_order = false;
            }
        });
        if !in_order {
            return exec_err!("times of a page are not in order");
        }
        Ok(true)
    }

    /// Like [`stretch`](Self::stretch), for times that are known without reading each of them.
    pub(super) fn stretch_regular(
        &mut self,
        spans: &[RowSpan],
        times: &RegularIntegers,
    ) -> Result<()> {
        match times {
            RegularIntegers::Progressions(steps) => self.stretch_steps(spans, steps),
            RegularIntegers::Grids(grids) => self.stretch_grids(spans, grids),
        }
    }

    /// For times at equal distances. The pages of devices that report together have the same runs
    /// if they all belong to one group.
    fn stretch_steps(&mut self, spans: &[RowSpan], steps: &[Progression]) -> Result<()> {
        if !matches!(self.members, GroupMembers::One) {
            return self.follow_steps(spans, steps);
        }
        if let Some(known) = self.outlines.iter().find(|known| known.is_of(spans, steps)) {
            self.stretches.clone_from(&known.stretches);
            return Ok(());
        }
        self.follow_steps(spans, steps)?;
        if self.outlines.len() == OUTLINES_MAX {
            self.outlines.remove(0);
        }
        self.outlines.push(CachedSlotRuns {
            rows: rows_of(spans).collect(),
            steps: steps.to_vec(),
            stretches: self.stretches.clone(),
        });
        Ok(())
    }

    fn follow_steps(&mut self, spans: &[RowSpan], steps: &[Progression]) -> Result<()> {
        self.stretches.clear();
        let mut steps = steps.iter();
        // The rows `from..to` belong to `current`.
        let (mut from, mut to) = (0, 0);
        let mut current = None;
        for span in spans {
            let group = self.members.group(span.series);
            let (mut row, mut last_len) = (span.start, 0);
            while row < span.end {
                while to <= row {
                    current = steps.next();
                    let Some(next) = current else {
                        return internal_err!("there are fewer times than rows");
                    };
                    (from, to) = (to, to + next.len);
                }
                let Some(current) = current else { break };
                let time = current.get(row - from);
                let start = self.bucket_of(time)?;
                let ahead = to.min(span.end) - row;
                last_len = steps_before(time, current.step, self.bucket.1, last_len);
                let len = last_len.min(ahead);
                let slot = self.taken.slots.slot(group, start)?;
                self.push(slot, row, row + len);
                row += len;
            }
        }
        self.mark_present();
        Ok(())
    }

    fn stretch_grids(&mut self, spans: &[RowSpan], grids: &NumberGrids) -> Result<()> {
        self.stretches.clear();
        for span in spans {
            let group = self.members.group(span.series);
            for part in grids.parts(span.start, span.end) {
                let rows = part.rows();
                let (first, last) = (part.get(rows.start), part.get(rows.end - 1));
                match self.even_buckets(group, first, last)? {
                    Some(even) if even.width % grids.step() == 0 => {
                        part.cut(even.end, even.width, |cuts, rows| {
                            self.push(even.slot + cuts, rows.start, rows.end);
                        });
                    }
                    _ => self.follow_grid(group, &part)?,
                }
            }
        }
        self.mark_present();
        Ok(())
    }

    /// The buckets of the times from `first` to `last`, if they have one width and consecutive
    /// slots.
    fn even_buckets(&mut self, group: u32, first: i64, last: i64) -> Result<Option<EvenBuckets>> {
        let GroupSlots::LaidOut { width, .. } = self.taken.slots else {
            return Ok(None);
        };
        // If the last bucket has a slot and an end, all buckets do.
        let last = self.bucket_of(last)?;
        let last_slot = self.taken.slots.slot(group, last)?;
        let is_whole = self.bucket.1.checked_sub(last) == Some(width);
        let start = self.bucket_of(first)?;
        let slot = self.taken.slots.slot(group, start)?;
        Ok(is_whole.then_some(EvenBuckets {
            slot,
            last_slot,
            end: self.bucket.1,
            width,
        }))
    }

    fn follow_grid(&mut self, group: u32, part: &GridPart<'_>) -> Result<()> {
        let rows = part.rows();
        let mut row = rows.start;
        while row < rows.end {
            let start = self.bucket_of(part.get(row))?;
            let slot = self.taken.slots.slot(group, start)?;
            let end = part.row_at(self.bucket.1).max(row + 1);
            self.push(slot, row, end);
            row = end;
        }
        Ok(())
    }

    fn mark_present(&mut self) {
        self.taken.grow();
        for stretch in &self.stretches {
            self.taken.present[stretch.slot as usize] = true;
        }
    }

    fn push(&mut self, slot: u32, start: u32, end: u32) {
        match self.stretches.last_mut() {
            Some(last) if self.joins && last.slot == slot && last.end == start => last.end = end,
            _ => self.stretches.push(SlotRun { slot, start, end }),
        }
    }
}

/// The number of `times`, which are ascending, before `end`; usually as many as the last time.
fn rows_before(times: &[i64], end: i64, guess: usize) -> usize {
    if guess > 0
        && times.get(guess - 1).is_some_and(|time| *time < end)
        && times.get(guess).is_none_or(|time| *time >= end)
    {
        return guess;
    }
    let mut step = 1;
    while times.get(step - 1).is_some_and(|time| *time < end) {
        step *= 2;
    }
    let from = step / 2;
    let until = times.len().min(step);
    from + times[from..until].partition_point(|time| *time < end)
}

/// The number of times before `end`, from `time` on at distances of `step`, at least one; usually
/// as many as the last time, `guess`.
fn steps_before(time: i64, step: i64, end: i64, guess: u32) -> u32 {
    let ahead = end.saturating_sub(time);
    if step <= 0 {
        return 1;
    }
    let reach = step.checked_mul(i64::from(guess)).filter(|_| guess > 0);
    if reach.is_some_and(|reach| reach >= ahead && reach - step < ahead) {
        return guess;
    }
    let more = ahead.saturating_sub(1).max(0) / step;
    u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_bucket_are_counted_with_and_without_a_guess() {
        let times: Vec<i64> = (0..50).map(|at| 7 + at * 3).collect();
        for end in 8..160 {
            let expected = times.iter().filter(|time| **time < end).count();
            for guess in 0..60 {
                assert_eq!(rows_before(&times, end, guess), expected, "{end} {guess}");
                if end <= times[49] {
                    let steps = steps_before(7, 3, end, guess as u32);
                    assert_eq!(steps as usize, expected, "{end} {guess}");
                }
            }
        }
        assert_eq!(steps_before(i64::MAX - 5, i64::MAX, i64::MAX, 0), 1);
        assert_eq!(steps_before(i64::MIN, 1, i64::MAX, 0), u32::MAX);
        assert_eq!(steps_before(0, i64::MAX / 2, i64::MAX - 9, 5), 2);
        assert_eq!(steps_before(5, 0, 9, 3), 1);
    }
}
