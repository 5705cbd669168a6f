//! Compares the rows that were read with the expected ones.

use super::{OracleRow, OracleRows};
use marigram_model::TableOptions;

/// Allowed differences: rows past their table's ttl disappear at some later time, partition by
/// partition, so each of them may be present, be gone, or have lost some of its fields.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Times before this one (ns) are past the ttl.
    pub expired_before: i64,
}

impl Tolerance {
    /// Allows no difference.
    pub const NONE: Self = Self {
        expired_before: i64::MIN,
    };

    /// For a table with these settings, at `now_ns`.
    #[must_use]
    pub fn for_options(options: &TableOptions, now_ns: i64) -> Self {
        let expired = options.ttl_ns.map(|ttl_ns| now_ns.saturating_sub(ttl_ns));
        Self {
            expired_before: expired.unwrap_or(i64::MIN),
        }
    }

    /// Whether rows with this time are past the ttl.
    #[must_use]
    pub fn is_expired(self, time: i64) -> bool {
        time < self.expired_before
    }
}

/// Compares the rows that were read with the expected ones.
///
/// # Errors
/// A description of the first difference.
pub fn compare(
    expected: &OracleRows,
    found: &OracleRows,
    tolerance: Tolerance,
) -> Result<(), String> {
    for (tags, rows) in found {
        for (time, row) in rows {
            let Some(wanted) = expected.get(tags).and_then(|rows| rows.get(time)) else {
                return Err(format!(
                    "{tags:?} at {time}: a row that should not be there: {row:?}"
                ));
            };
            if !rows_agree(wanted, row, tolerance.is_expired(*time)) {
                return Err(format!("{tags:?} at {time}: {row:?} instead of {wanted:?}"));
            }
        }
    }
    for (tags, rows) in expected {
        let missing = rows.iter().find(|(time, _)| {
            !tolerance.is_expired(**time)
                && !found.get(tags).is_some_and(|rows| rows.contains_key(time))
        });
        if let Some((time, row)) = missing {
            return Err(format!("{tags:?} at {time}: the row {row:?} is missing"));
        }
    }
    Ok(())
}

fn rows_agree(wanted: &OracleRow, found: &OracleRow, expired: bool) -> bool {
    if expired {
        return found
            .iter()
            .all(|(name, value)| wanted.get(name) == Some(value));
    }
    wanted == found
}

#[cfg(test)]
mod tests {
    use super::super::OracleTags;
    use super::*;
    use marigram_model::FieldValue;
    use std::collections::BTreeMap;

    #[test]
    fn missing_additional_and_different_rows_are_found() {
        let row = |value| OracleRow::from([("x".to_owned(), FieldValue::I64(value))]);
        let rows = |rows: &[(i64, i64)]| {
            let rows: BTreeMap<_, _> = rows
                .iter()
                .map(|(time, value)| (*time, row(*value)))
                .collect();
            OracleRows::from([(OracleTags::new(), rows)])
        };
        let expected = rows(&[(1, 1), (9, 9)]);
        let check = |found: &OracleRows, before| {
            compare(
                &expected,
                found,
                Tolerance {
                    expired_before: before,
                },
            )
            .is_ok()
        };
        assert!(check(&expected, i64::MIN));
        for found in [
            rows(&[(9, 9)]),
            rows(&[(1, 2), (9, 9)]),
            rows(&[(1, 1), (5, 5), (9, 9)]),
        ] {
            assert!(!check(&found, i64::MIN));
        }
        assert!(check(&rows(&[(9, 9)]), 5));
        assert!(!check(&rows(&[(1, 1)]), 5));
        assert!(!check(&rows(&[(1, 2), (9, 9)]), 5));
    }
}
