//! What the drivers of other databases' SQL share: which questions they take, what each column of
//! an answer is, and cells out of text.

use super::sql;
use anyhow::{Context, Result, bail};
use marigram_lab::data::{FieldKind, SECOND_NS, Table};
use marigram_lab::question::{Ask, Cell, Question, Select, What};

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// What a column of an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// Text, or a tag.
    Text,
    /// A time.
    Time,
    /// A number or a boolean.
    Number,
}

/// The columns of the answer to `select`, in order.
#[must_use]
pub fn kinds(table: &Table, select: &Select) -> Vec<CellKind> {
    let field = |index: &usize| match table.fields[*index].kind {
        FieldKind::Text => CellKind::Text,
        _ => CellKind::Number,
    };
    match &select.what {
        What::Rows(fields) | What::Last(fields) => [CellKind::Text, CellKind::Time]
            .into_iter()
            .chain(fields.iter().map(field))
            .collect(),
        What::Aggregates(aggregates) => {
            let mut all = vec![CellKind::Text; select.by.len()];
            all.extend(select.bucket_ns.map(|_| CellKind::Time));
            all.extend(aggregates.iter().map(|_| CellKind::Number));
            all
        }
    }
}

/// The question as a [`Select`]; fails for SQL of another database.
pub fn select(question: &Question) -> Result<&Select> {
    match &question.ask {
        Ask::Select(select) => Ok(select),
        Ask::Sql(_) => bail!("{}: asked in Marigram's SQL", question.name),
    }
}

/// Why no driver of another database's SQL can answer `question`.
#[must_use]
pub fn cannot(tables: &[Table], question: &Question) -> Option<String> {
    match &question.ask {
        Ask::Select(select) => sql::cannot(&tables[select.table], select),
        Ask::Sql(_) => Some("asked in Marigram's SQL".to_owned()),
    }
}

/// Whether every value of the integer tag `tag` fits 32 bits.
#[must_use]
pub fn is_i32(table: &Table, tag: usize) -> bool {
    let mut values = table
        .series
        .iter()
        .filter_map(|values| values[tag].as_ref());
    values.all(|value| value.parse::<i32>().is_ok())
}

/// Whether some device has no tag `tag`.
#[must_use]
pub fn is_optional(table: &Table, tag: usize) -> bool {
    table.series.iter().any(|values| values[tag].is_none())
}

/// A cell out of a database's text for it.
pub fn parse(text: &str, kind: CellKind) -> Result<Cell> {
    Ok(match kind {
        CellKind::Text => Cell::Text(text.to_owned()),
        CellKind::Time => Cell::Time(parse_time(text)?),
        CellKind::Number => match text {
            "true" => Cell::Number(1.0),
            "false" => Cell::Number(0.0),
            _ => Cell::Number(
                text.parse()
                    .with_context(|| format!("a number: {text:?}"))?,
            ),
        },
    })
}

/// Nanoseconds since the epoch of `2024-01-01T00:00:30.123456789Z`; the fraction and the `Z` may be
/// missing, and a space may stand for the `T`.
pub fn parse_time(text: &str) -> Result<i64> {
    read_time(text).with_context(|| format!("a time: {text:?}"))
}

fn read_time(text: &str) -> Option<i64> {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let rest = text.get(19..)?.trim_end_matches('Z');
    let fraction_ns = match rest.strip_prefix('.') {
        Some(digits) if digits.len() <= 9 => {
            digits.parse::<i64>().ok()? * 10_i64.pow(9 - digits.len() as u32)
        }
        None if rest.is_empty() => 0,
        _ => return None,
    };
    let seconds = days(year, month, day) * DAY_S + hour * 3_600 + minute * 60 + second;
    seconds.checked_mul(SECOND_NS)?.checked_add(fraction_ns)
}

/// Days since the epoch of a date of the Gregorian calendar (Howard Hinnant, *chrono-Compatible
/// Low-Level Date Algorithms*, `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_form() {
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00:00.000000001", 1),
            ("2024-02-29T23:59:59.5Z", 1_709_251_199_500_000_000),
            ("1969-12-31 23:59:59.000", -SECOND_NS),
        ] {
            assert_eq!(parse_time(text).expect(text), ns, "{text}");
        }
        for text in [
            "",
            "2024-01-01",
            "2024-01-01T00:00:00+01",
            "2024-01-01T00:00:00.x",
        ] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn booleans_are_numbers() {
        assert_eq!(
            parse("true", CellKind::Number).expect("true"),
            Cell::Number(1.0)
        );
        assert!(parse("maybe", CellKind::Number).is_err());
    }
}
