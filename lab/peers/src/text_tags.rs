//! Devices chosen by tags, for databases whose tags are text only and matched by regular
//! expressions.

use marigram_lab::data::Table;
use marigram_lab::question::Devices;
use std::collections::BTreeSet;

/// A value that no tag has; it chooses no device.
const NOBODY: &str = "nobody";

/// The tag (an index) that chooses the devices, and the values that it may have, at least one; `None`
/// for all devices. Values below a number are looked up among the table's series, as a client that
/// knows its devices would do.
pub(crate) fn chosen(table: &Table, devices: &Devices) -> Option<(usize, Vec<String>)> {
    let (tag, mut values) = match devices {
        Devices::All => return None,
        Devices::In(tag, values) => (*tag, values.clone()),
        Devices::Below(tag, limit) => {
            let all: BTreeSet<&String> = table.series.iter().flat_map(|of| &of[*tag]).collect();
            let below = |value: &&String| value.parse::<i64>().is_ok_and(|value| value < *limit);
            (*tag, all.into_iter().filter(below).cloned().collect())
        }
    };
    if values.is_empty() {
        values.push(NOBODY.to_owned());
    }
    Some((tag, values))
}

/// A regular expression (RE2's syntax) for any of `values`, without anchors.
pub(crate) fn any_of(values: &[String]) -> String {
    let mut out = String::new();
    for value in values {
        if !out.is_empty() {
            out.push('|');
        }
        for character in value.chars() {
            if r"\.+*?()|[]{}^$/".contains(character) {
                out.push('\\');
            }
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_lab::data::TagKind;

    #[test]
    fn integers_below_a_limit_are_looked_up() {
        let series = ["9", "10", "9", "x"].map(|value| vec![Some(value.to_owned())]);
        let series = series.into_iter().chain([vec![None]]).collect();
        let table = Table::new("t", &[("id", TagKind::Integer)], 0, &[], series);
        assert_eq!(chosen(&table, &Devices::All), None);
        let below = |limit| {
            chosen(&table, &Devices::Below(0, limit))
                .expect("a choice")
                .1
        };
        assert_eq!(below(10), ["9"]);
        assert_eq!(below(11), ["10", "9"]);
        assert_eq!(below(0), [NOBODY]);
        let none = chosen(&table, &Devices::In(0, Vec::new())).expect("a choice");
        assert_eq!(none.1, [NOBODY]);
    }

    #[test]
    fn values_are_taken_literally() {
        let values = ["a.b".to_owned(), "c/d".to_owned()];
        assert_eq!(any_of(&values), r"a\.b|c\/d");
    }
}
