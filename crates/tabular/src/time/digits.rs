//! Dates that are written as digits without marks, and not with the year first.

/// A notation of dates in digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigitPattern {
    /// Its strftime pattern.
    pub pattern: &'static str,
    /// Its fields: their letter and number of digits.
    fields: &'static [(u8, usize)],
}

/// The notations; a file may fit several.
const PATTERNS: [DigitPattern; 9] = [
    DigitPattern {
        pattern: "%d%m%Y",
        fields: &[(b'd', 2), (b'm', 2), (b'Y', 4)],
    },
    DigitPattern {
        pattern: "%m%d%Y",
        fields: &[(b'm', 2), (b'd', 2), (b'Y', 4)],
    },
    DigitPattern {
        pattern: "%d%m%Y%H",
        fields: &[(b'd', 2), (b'm', 2), (b'Y', 4), (b'H', 2)],
    },
    DigitPattern {
        pattern: "%m%d%Y%H",
        fields: &[(b'm', 2), (b'd', 2), (b'Y', 4), (b'H', 2)],
    },
    DigitPattern {
        pattern: "%y%m%d%H%M",
        fields: &[(b'y', 2), (b'm', 2), (b'd', 2), (b'H', 2), (b'M', 2)],
    },
    DigitPattern {
        pattern: "%d%m%Y%H%M",
        fields: &[(b'd', 2), (b'm', 2), (b'Y', 4), (b'H', 2), (b'M', 2)],
    },
    DigitPattern {
        pattern: "%m%d%Y%H%M",
        fields: &[(b'm', 2), (b'd', 2), (b'Y', 4), (b'H', 2), (b'M', 2)],
    },
    DigitPattern {
        pattern: "%y%m%d%H%M%S",
        fields: &[
            (b'y', 2),
            (b'm', 2),
            (b'd', 2),
            (b'H', 2),
            (b'M', 2),
            (b'S', 2),
        ],
    },
    DigitPattern {
        pattern: "%d%m%Y%H%M%S",
        fields: &[
            (b'd', 2),
            (b'm', 2),
            (b'Y', 4),
            (b'H', 2),
            (b'M', 2),
            (b'S', 2),
        ],
    },
];

impl DigitPattern {
    /// Whether a cell is a date in this notation, between 1990 and 2079.
    fn fits(&self, cell: &str) -> bool {
        let len: usize = self.fields.iter().map(|(_, len)| len).sum();
        if cell.len() != len || !cell.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        let mut at = 0;
        self.fields.iter().all(|(letter, len)| {
            let number: u32 = cell[at..at + len].parse().unwrap_or(u32::MAX);
            at += len;
            match letter {
                b'd' => (1..=31).contains(&number),
                b'm' => (1..=12).contains(&number),
                b'Y' => (1990..2080).contains(&number),
                b'y' => !(80..90).contains(&number),
                b'H' => number <= 24,
                _ => number < 60,
            }
        })
    }
}

/// The notations that fit all cells so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct FittingPatterns(u16);

impl Default for FittingPatterns {
    fn default() -> Self {
        Self((1 << PATTERNS.len()) - 1)
    }
}

impl FittingPatterns {
    /// Takes away the notations that do not fit this cell.
    pub(super) fn add(&mut self, cell: &str) {
        if self.0 == 0 {
            return;
        }
        for (at, pattern) in PATTERNS.iter().enumerate() {
            if self.0 & (1 << at) != 0 && !pattern.fits(cell) {
                self.0 &= !(1 << at);
            }
        }
    }

    /// The notations that are left.
    pub(super) fn all(self) -> impl Iterator<Item = DigitPattern> {
        let patterns = PATTERNS.into_iter().enumerate();
        patterns.filter_map(move |(at, pattern)| (self.0 & (1 << at) != 0).then_some(pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_fit_all_cells_or_none() {
        let fitting = |cells: &[&str]| -> Vec<&str> {
            let mut fitting = FittingPatterns::default();
            for cell in cells {
                fitting.add(cell);
            }
            fitting.all().map(|pattern| pattern.pattern).collect()
        };
        assert_eq!(fitting(&["1501202600", "1601202623"]), ["%d%m%Y%H"]);
        assert_eq!(fitting(&["0501202600"]), ["%d%m%Y%H", "%m%d%Y%H"]);
        assert_eq!(fitting(&["1767225600", "1767229200"]), [""; 0]);
        assert_eq!(fitting(&["2601150930"]), ["%y%m%d%H%M"]);
    }
}
