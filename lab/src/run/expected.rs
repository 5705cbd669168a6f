//! A cache of the right answers of a setup for all its targets and repetitions, because they are
//! costly.

use crate::data::Source;
use crate::expect::WrittenRows;
use crate::question::{Answer, Select};
use anyhow::{Context, Result, ensure};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Computes answers, like [`crate::expect::answers`].
pub(super) type Expect = dyn Fn(&dyn Source, &WrittenRows, &[&Select]) -> Vec<Answer> + Send + Sync;

/// The largest number of cached cells; beyond it, the cache is emptied.
const CELLS_MAX: usize = 20_000_000;

/// Right answers for one source.
pub(super) struct Expected {
    work: Arc<Expect>,
    /// By what was written, and the question as JSON (floats have no hash).
    known: HashMap<(WrittenRows, String), Arc<Answer>>,
    cells: usize,
}

impl Expected {
    pub(super) fn new(work: Arc<Expect>) -> Self {
        Self {
            work,
            known: HashMap::new(),
            cells: 0,
        }
    }

    /// The answers to `selects` after `written`. Missing answers are computed together with those
    /// to `later`, the questions that will follow, so that the rows are read only once.
    pub(super) fn answers(
        &mut self,
        source: &dyn Source,
        written: &WrittenRows,
        selects: &[&Select],
        later: &[&Select],
    ) -> Result<Vec<Arc<Answer>>> {
        let key = |select: &Select| -> Result<_> {
            Ok((written.clone(), serde_json::to_string(select)?))
        };
        let keys: Vec<_> = selects.iter().map(|s| key(s)).collect::<Result<_>>()?;
        if keys.iter().any(|key| !self.known.contains_key(key)) {
            if self.cells > CELLS_MAX {
                self.known.clear();
                self.cells = 0;
            }
            let mut missing: Vec<(_, &Select)> = Vec::new();
            let mut seen = HashSet::new();
            for select in selects.iter().chain(later) {
                let key = key(select)?;
                if !self.known.contains_key(&key) && seen.insert(key.clone()) {
                    missing.push((key, select));
                }
            }
            let asked: Vec<&Select> = missing.iter().map(|(_, select)| *select).collect();
            let answers = (self.work)(source, written, &asked);
            ensure!(
                answers.len() == asked.len(),
                "{} right answers to {} questions",
                answers.len(),
                asked.len()
            );
            for ((key, _), answer) in missing.into_iter().zip(answers) {
                self.cells += answer.rows.iter().map(Vec::len).sum::<usize>();
                self.known.insert(key, Arc::new(answer));
            }
        }
        keys.iter()
            .map(|key| self.known.get(key).cloned().context("an answer just made"))
            .collect()
    }
}
