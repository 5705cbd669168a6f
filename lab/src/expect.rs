//! The right answers, computed from the rows alone, without a database.
//!
//! The rows that were written are generated again, and every question reads each of them.
//! Conditions and groups by device are evaluated once per series, before the first row.
//!
//! Databases could differ in some points. These rules say what is right: Aggregates ignore nulls;
//! an aggregate over no values is null, and `Count` is 0. A group exists if a row matches, even if
//! all its values are null. Without groups, there is always one row. `above` never holds for nulls
//! and text. Text has no sum, mean, minimum, maximum or spread: they are null.

mod evaluation;
mod seen;

use crate::data::Source;
use crate::question::{Answer, Select};
use evaluation::Evaluation;
use seen::WrittenTimes;

/// The part of a source that was written into one set of tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WrittenRows {
    /// Number of clients that shared the source.
    pub clients: usize,
    /// Rows a batch.
    pub batch_rows: usize,
    /// Number of batches that each client wrote, from its first on.
    pub batches: Vec<usize>,
}

/// The answers, [`Answer::sorted`], to `selects` after `written` was written into the tables. Reads
/// the rows once for any number of questions.
///
/// The tables, tags and fields of `selects` are the source's.
#[must_use]
pub fn answers(source: &dyn Source, written: &WrittenRows, selects: &[&Select]) -> Vec<Answer> {
    let tables = source.tables();
    let mut evaluations: Vec<Evaluation<'_>> = selects
        .iter()
        .map(|select| Evaluation::new(select, &tables[select.table]))
        .collect();
    let mut seen = source.repeats().then(|| WrittenTimes::new(tables));
    for client in 0..written.clients {
        let batches = written.batches.get(client).copied().unwrap_or(0);
        let stream = source.stream(client, written.clients, written.batch_rows);
        for batch in stream.take(batches) {
            let first_seen: Vec<usize> = match &mut seen {
                Some(seen) => (0..batch.len())
                    .filter(|row| seen.insert(&batch, *row))
                    .collect(),
                None => (0..batch.len()).collect(),
            };
            for evaluation in &mut evaluations {
                evaluation.take(&batch, &first_seen);
            }
        }
    }
    evaluations
        .into_iter()
        .map(|evaluation| evaluation.answer().sorted())
        .collect()
}

#[cfg(test)]
mod tests;
