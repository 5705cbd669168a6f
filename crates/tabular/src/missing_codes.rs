//! Numbers that loggers and weather services write for a missing value, such as -9999.
//!
//! They are numbers, so nothing but the user decides that they mean none. But an average over one of them is
//! wrong and looks right, so the plan names them.

use crate::cell::{DecimalMark, read_f64};

/// Numbers that mean a missing value where other values are far from them.
const CODES: [f64; 7] = [
    -999.0, -999.9, -9999.0, -9999.9, -99_999.0, -6999.0, -7999.0,
];

/// Other negative numbers are smaller than this part of a code.
const PART: f64 = 0.2;

/// The numbers of a column that may be such codes.
#[derive(Clone, Debug, Default)]
pub struct MissingCodes {
    /// The first code, as it is written, and its value.
    first: Option<(String, f64)>,
    /// How often it occurs.
    count: u64,
    /// Other numbers.
    others: u64,
    /// The least of them, if it is negative.
    least: f64,
}

impl MissingCodes {
    /// Adds a cell that is a number.
    pub fn add(&mut self, cell: &str) {
        let number = cell.starts_with('-').then(|| {
            read_f64(cell, DecimalMark::Point).or_else(|| read_f64(cell, DecimalMark::Comma))
        });
        let Some(number) = number.flatten() else {
            self.others += 1;
            return;
        };
        let is_same = self
            .first
            .as_ref()
            .is_none_or(|(_, code)| code.to_bits() == number.to_bits());
        if is_same && CODES.contains(&number) {
            self.first.get_or_insert_with(|| (cell.to_owned(), number));
            self.count += 1;
        } else {
            self.others += 1;
            self.least = self.least.min(number);
        }
    }

    /// A number that may mean a missing value, and how often it occurs: the other values are far from it.
    pub fn found(&self) -> Option<(&str, u64)> {
        let (text, code) = self.first.as_ref()?;
        (self.others > 0 && self.least > code * PART).then_some((text.as_str(), self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_far_from_other_values() {
        let found = |cells: &[&str]| {
            let mut codes = MissingCodes::default();
            for cell in cells {
                codes.add(cell);
            }
            codes.found().map(|(text, count)| (text.to_owned(), count))
        };
        let some = |text: &str, count| Some((text.to_owned(), count));
        assert_eq!(found(&["21.5", "-9999", "-3", "-9999"]), some("-9999", 2));
        assert_eq!(found(&["21,5", "-999,9"]), some("-999,9", 1));
        assert_eq!(found(&["-9999", "-9000"]), None);
        assert_eq!(found(&["-999", "-9999", "1"]), None);
        assert_eq!(found(&["-999", "-999"]), None);
        assert_eq!(found(&["-5", "7"]), None);
    }
}
