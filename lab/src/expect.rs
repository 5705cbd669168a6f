//! The right answers, worked out from the rows alone, with no database.
//!
//! The rows that were written are made once more, and every question looks at each of them. What a
//! question asks of a device (is it meant, which group is it in) is settled once a series, before
//! the first row.
//!
//! Where databases could differ, this is what counts as right. Aggregates pass over nulls; one over
//! no values is null, `Count` is 0. A group exists when a row matches, even if all its values are
//! null. Without groups there is always one row. `above` never holds for a null or a text. Text has
//! no sum, mean, least, greatest or spread: they are null.

mod evaluation;
mod seen;

use crate::data::Source;
use crate::question::{Answer, Select};
use evaluation::Evaluation;
use seen::Seen;

/// What was written of a source into one set of tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    /// Clients that shared the source.
    pub clients: usize,
    /// Rows a batch.
    pub batch_rows: usize,
    /// Batches that each client wrote, from its first on.
    pub batches: Vec<usize>,
}

/// The answers, [`Answer::sorted`], to `selects` after `written` went into the tables. Reads the
/// rows once, whatever the number of questions.
///
/// The tables, tags and fields of `selects` are the source's.
#[must_use]
pub fn answers(source: &dyn Source, written: &Written, selects: &[&Select]) -> Vec<Answer> {
    let tables = source.tables();
    let mut evaluations: Vec<Evaluation<'_>> = selects
        .iter()
        .map(|select| Evaluation::new(select, &tables[select.table]))
        .collect();
    let mut seen = source.repeats().then(|| Seen::new(tables));
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
