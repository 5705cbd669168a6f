//! Answers in one form, and their comparison.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// Numbers are equal if they differ by less than this fraction of the greater one: neither single
/// precision nor the order of summation makes an answer wrong.
const TOLERANCE: f64 = 1e-5;

/// A value of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cell {
    /// No value.
    Null,
    /// Text; also every tag, whatever its type.
    Text(String),
    /// A number; true is 1.
    Number(f64),
    /// A time, nanoseconds since the Unix epoch.
    Time(i64),
}

impl Cell {
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Text(_) => 1,
            Self::Number(_) => 2,
            Self::Time(_) => 3,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Time(a), Self::Time(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => {
                (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-9)
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Time(ns) => write!(f, "@{ns}"),
        }
    }
}

/// The rows of an answer, with the columns of [`super::Select`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Rows of cells.
    pub rows: Vec<Vec<Cell>>,
}

/// Where two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(pub String);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn order(a: &[Cell], b: &[Cell]) -> Ordering {
    // Texts and times first: they are exact, so they match rows before rounded numbers are
    // compared.
    let exact = |cell: &&Cell| matches!(cell, Cell::Text(_) | Cell::Time(_));
    let keys = a.iter().filter(exact).zip(b.iter().filter(exact));
    let all = a.iter().zip(b);
    keys.chain(all)
        .map(|(a, b)| a.order(b))
        .find(|order| order.is_ne())
        .unwrap_or(a.len().cmp(&b.len()))
}

/// The identity of a row: its texts and times up to a cell, as ` (a, b)`; empty if it has none.
fn about(row: &[Cell], until: usize) -> String {
    let exact = |cell: &&Cell| matches!(cell, Cell::Text(_) | Cell::Time(_));
    let keys: Vec<String> = row[..until]
        .iter()
        .filter(exact)
        .map(Cell::to_string)
        .collect();
    if keys.is_empty() {
        String::new()
    } else {
        format!(" ({})", keys.join(", "))
    }
}

impl Answer {
    /// The rows in a fixed order, so that answers without `ORDER BY` can be compared.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.rows.sort_by(|a, b| order(a, b));
        self
    }

    /// Compares `self`, the answer of a target, with the `expected` one; both are
    /// [`Answer::sorted`]. Numbers may differ by a relative 1e-5. Fails with the first difference.
    pub fn compare(&self, expected: &Self) -> Result<(), Difference> {
        if self.rows.len() != expected.rows.len() {
            return Err(Difference(format!(
                "{} rows instead of {}",
                self.rows.len(),
                expected.rows.len()
            )));
        }
        for (row, (ours, theirs)) in self.rows.iter().zip(&expected.rows).enumerate() {
            if ours.len() != theirs.len() {
                let (has, wants) = (ours.len(), theirs.len());
                let difference = format!("row {row} has {has} cells instead of {wants}");
                return Err(Difference(difference));
            }
            let differing = (0..ours.len()).find(|at| !ours[*at].agrees(&theirs[*at]));
            if let Some(at) = differing {
                return Err(Difference(format!(
                    "row {row}{}, cell {at}: {} instead of {}",
                    about(ours, at),
                    ours[at],
                    theirs[at]
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_row_and_the_first_cell_that_differs() {
        let row = |value: f64| {
            let cells = [Cell::Text("a".into()), Cell::Time(5), Cell::Number(value)];
            Answer {
                rows: vec![cells.to_vec()],
            }
        };
        assert!(row(1.0).compare(&row(1.000_001)).is_ok());
        let difference = row(1.0).compare(&row(2.0)).unwrap_err().to_string();
        assert_eq!(difference, "row 0 (a, @5), cell 2: 1 instead of 2");
        let mut short = row(1.0);
        short.rows[0].pop();
        let difference = short.compare(&row(1.0)).unwrap_err().to_string();
        assert_eq!(difference, "row 0 has 2 cells instead of 3");
        let none = Answer::default();
        let difference = none.compare(&row(1.0)).unwrap_err().to_string();
        assert_eq!(difference, "0 rows instead of 1");
    }
}
