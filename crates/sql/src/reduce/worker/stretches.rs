//! Stretches of rows of one group and bucket.

use super::super::fold::Stretch;
use super::Worker;
use datafusion::common::{Result, internal_err};
use marigram_engine::{Progression, RowSpan};

impl Worker {
    /// Finds the stretches of rows of one slot each.
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

    /// As [`stretch`](Self::stretch), of times at equal distances: none of them is looked at.
    pub(super) fn stretch_steps(&mut self, spans: &[RowSpan], steps: &[Progression]) -> Result<()> {
        self.stretches.clear();
        let mut steps = steps.iter();
        // Rows `from..to` are those of `current`.
        let (mut from, mut to) = (0, 0);
        let mut current = None;
        for span in spans {
            let group = self.members.group(span.series);
            let mut row = span.start;
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
                let len = steps_before(time, current.step, self.bucket.1).min(ahead);
                let slot = self.taken.slots.slot(group, start)?;
                self.push(slot, row, row + len);
                row += len;
            }
        }
        self.mark_present();
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
            _ => self.stretches.push(Stretch { slot, start, end }),
        }
    }
}

/// How many of `times`, which are ascending, are before `end`; mostly as many as the time before.
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

/// How many times from `time` on, each `step` after the one before, are before `end`; at least one.
fn steps_before(time: i64, step: i64, end: i64) -> u32 {
    let ahead = end.saturating_sub(time).saturating_sub(1).max(0);
    let more = match step {
        ..=0 => 0,
        _ => ahead / step,
    };
    u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1)
}
