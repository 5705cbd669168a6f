//! The order in which rows arrive: some rows are late by a batch or two, and some whole batches are
//! late (TSBS's `simulator.go`).
//!
//! Late rows wait in a queue, and late batches in another. Every batch is filled from new rows and,
//! while rows wait, with probability ½ from the queue; also with probability ½, a waiting batch is
//! sent instead of a new one. What still waits at the end is sent at the end.

use super::client::SentRow;
use super::faults::{BATCH, BATCH_LATE, CATCH_UP, ROW_LATE};
use super::random::{Random, RandomPurpose};
use std::collections::VecDeque;

/// Rows of one client in the order of their arrival.
pub(super) struct Arrival<I> {
    rows: I,
    random: Random,
    /// Rows that are sent next.
    ready: VecDeque<SentRow>,
    late_rows: VecDeque<SentRow>,
    late_batches: VecDeque<VecDeque<SentRow>>,
}

impl<I: Iterator<Item = SentRow>> Arrival<I> {
    /// `rows`, which are in the order of time, in the order in which they arrive.
    pub(super) fn new(rows: I, seed: u64, client: usize) -> Self {
        Self {
            rows,
            random: Random::new(seed, RandomPurpose::Arrival, client as u64, 0),
            ready: VecDeque::with_capacity(BATCH),
            late_rows: VecDeque::new(),
            late_batches: VecDeque::new(),
        }
    }

    /// A batch; `None` if there are no new rows.
    fn fill(&mut self) -> Option<VecDeque<SentRow>> {
        let mut batch = VecDeque::with_capacity(BATCH);
        let mut waiting = self.late_rows.len();
        let mut looked_at = 0;
        while batch.len() < BATCH {
            let may_be_late = looked_at < BATCH;
            looked_at += 1;
            let catch_up = may_be_late && waiting > 0 && self.random.chance(CATCH_UP);
            let row = if catch_up {
                waiting -= 1;
                self.late_rows.pop_front()
            } else {
                self.rows.next()
            };
            let Some(row) = row else {
                return (!batch.is_empty()).then_some(batch);
            };
            if may_be_late && self.random.chance(ROW_LATE) {
                self.late_rows.push_back(row);
            } else {
                batch.push_back(row);
            }
        }
        Some(batch)
    }

    /// Puts the next batch into `ready`; false at the end.
    fn refill(&mut self) -> bool {
        loop {
            let catch_up = !self.late_batches.is_empty() && self.random.chance(CATCH_UP);
            let batch = if catch_up { None } else { self.fill() };
            match batch {
                Some(batch) if self.random.chance(BATCH_LATE) => self.late_batches.push_back(batch),
                Some(batch) => {
                    self.ready = batch;
                    return true;
                }
                None => {
                    // It is the turn of a waiting batch, or no new rows are left.
                    self.ready = match self.late_batches.pop_front() {
                        Some(batch) => batch,
                        None => std::mem::take(&mut self.late_rows),
                    };
                    return !self.ready.is_empty();
                }
            }
        }
    }
}

impl<I: Iterator<Item = SentRow>> Iterator for Arrival<I> {
    type Item = SentRow;

    fn next(&mut self) -> Option<SentRow> {
        if self.ready.is_empty() && !self.refill() {
            return None;
        }
        self.ready.pop_front()
    }
}
