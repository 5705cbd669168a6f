//! Rows at the end of a file that are no rows: sums and averages, as spreadsheets and reports write them.

use crate::dialect::is_time;
use crate::record::TextRecord;

/// Rows at the end that may be none.
const ROWS_MAX: usize = 10;

/// Rows without anything like a time, after which a file does not have written times.
const TIMELESS_MAX: u64 = 100;

/// Words that name a sum, an average or an extreme.
const WORDS: [&str; 48] = [
    "summe",
    "gesamt",
    "gesamtsumme",
    "tagessumme",
    "monatssumme",
    "zwischensumme",
    "total",
    "totals",
    "subtotal",
    "sum",
    "mittelwert",
    "mittel",
    "durchschnitt",
    "average",
    "avg",
    "mean",
    "median",
    "min",
    "max",
    "minimum",
    "maximum",
    "std",
    "stdev",
    "moyenne",
    "somme",
    "totale",
    "totaux",
    "media",
    "suma",
    "promedio",
    "totales",
    "somma",
    "massimo",
    "minimo",
    "máximo",
    "mínimo",
    "média",
    "soma",
    "summa",
    "medelvärde",
    "medel",
    "gjennomsnitt",
    "gemiddelde",
    "totaal",
    "som",
    "średnia",
    "итого",
    "ø",
];

/// Whether a record names a sum, an average or an extreme; the cell that does.
pub fn total_in(record: &TextRecord) -> Option<&str> {
    (0..record.len()).find_map(|at| {
        let text = record.cell(at).text.trim();
        let lower = text.to_lowercase();
        let mut words = lower.split([' ', ':', '(', ')']);
        words.any(|word| WORDS.contains(&word)).then_some(text)
    })
}

/// Holds back the last records if nothing in them is a time.
///
/// They do not decide what the columns hold. Whether they really are no rows is known only when the
/// columns of the time are.
#[derive(Debug, Default)]
pub struct HeldRecords {
    held: Vec<TextRecord>,
    /// The column in which the last time was.
    time_at: Option<usize>,
    timeless: u64,
}

impl HeldRecords {
    /// Passes a record to `take`, or holds it back; those that were held back come first.
    pub fn add(&mut self, record: &TextRecord, take: &mut dyn FnMut(&TextRecord)) {
        if self.is_timeless(record) && self.held.len() < ROWS_MAX {
            self.held.push(record.clone());
            return;
        }
        self.held.drain(..).for_each(|held| take(&held));
        take(record);
    }

    /// The records that are held back at the end of the file.
    pub fn into_held(self) -> Vec<TextRecord> {
        self.held
    }

    /// Whether nothing in a record is a time, while other records have one.
    fn is_timeless(&mut self, record: &TextRecord) -> bool {
        if self.time_at.is_none() && self.timeless > TIMELESS_MAX {
            return false;
        }
        let has_time = |at: usize| is_time(record.cell(at).text);
        if self.time_at.is_some_and(has_time) {
            return false;
        }
        match (0..record.len()).find(|at| has_time(*at)) {
            Some(at) => {
                self.time_at = Some(at);
                false
            }
            None => {
                self.timeless += 1;
                self.time_at.is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TextRecords;

    fn held(text: &str) -> (usize, Vec<Option<String>>) {
        let mut records = TextRecords::new(text.as_bytes(), b';', 0).unwrap();
        let (mut record, mut held, mut taken) = (TextRecord::default(), HeldRecords::default(), 0);
        while records.read(&mut record).unwrap() {
            held.add(&record, &mut |_| taken += 1);
        }
        let named = held.into_held().into_iter();
        let named = named.map(|record| total_in(&record).map(str::to_owned));
        (taken, named.collect())
    }

    #[test]
    fn sums_at_the_end_are_held_back() {
        let rows = "15.01.2026;00:00;1,0\n15.01.2026;00:15;2,0\n";
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            held(&format!("{rows}Summe;;3,0\n;;\n")),
            (2, vec![some("Summe"), None])
        );
        assert_eq!(
            held(&format!("{rows};Grand total:;3,0\n")),
            (2, vec![some("Grand total:")])
        );
        assert_eq!(held(&format!("{rows}Summe;;3\n{rows}")), (5, vec![]));
        assert_eq!(held("2026;1;15\n2026;1;16\n"), (2, vec![]));
    }
}
