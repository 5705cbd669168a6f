//! Matches the column names of a file with those of a table, ignoring case unless that is
//! ambiguous.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Names of time columns, the preferred ones first.
const TIME_NAMES: [&str; 45] = [
    "time",
    "timestamp",
    "ts",
    "_time",
    "datetime",
    "date_time",
    "date/time",
    "date time",
    "zeitstempel",
    "zeitpunkt",
    "datum/zeit",
    "datum/uhrzeit",
    "datum und uhrzeit",
    "horodatage",
    "horodate",
    "date/heure",
    "date et heure",
    "fecha/hora",
    "fecha y hora",
    "fecha_hora",
    "data/ora",
    "data_hora",
    "tidpunkt",
    "tidsstämpel",
    "tidsstempel",
    "tijdstip",
    "zeit",
    "tid",
    "tijd",
    "czas",
    "date",
    "datum",
    "fecha",
    "dato",
    "utc",
    "created_at",
    "uhrzeit",
    "heure",
    "hora",
    "klockslag",
    "ora",
    "godzina",
    "дата",
    "время",
    "дата и время",
];

/// The rank of the last name that means a time and nothing else.
pub const SURE_NAMES: usize = 26;

/// Words that make a longer name the name of a time: `Time [UTC]`, `event_time`, `TimeString`.
const TIME_WORDS: [&str; 24] = [
    "time",
    "timestamp",
    "datetime",
    "date",
    "zeit",
    "zeitstempel",
    "zeitpunkt",
    "messzeit",
    "datum",
    "uhrzeit",
    "heure",
    "horodatage",
    "fecha",
    "hora",
    "tid",
    "tidpunkt",
    "tijd",
    "at",
    "changed",
    "updated",
    "recorded",
    "observed",
    "utc",
    "when",
];

/// Single letters that may be a time, or a temperature.
const TIME_LETTERS: [&str; 2] = ["t", "d"];

/// How clearly a name is that of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeNameStrength {
    /// Not at all.
    None,
    /// A letter that has other meanings.
    Letter,
    /// One of its words is.
    Word,
    /// The whole name is.
    Whole,
}

/// How clearly a name is that of a time column; and among whole names, its rank from 0.
pub fn time_name_strength(name: &str) -> (TimeNameStrength, usize) {
    let lower = name.trim().to_lowercase();
    if let Some(rank) = TIME_NAMES.iter().position(|known| *known == lower) {
        return (TimeNameStrength::Whole, rank);
    }
    let rank = TIME_NAMES.len();
    if words_of(name).any(|word| TIME_WORDS.contains(&word.as_str())) {
        return (TimeNameStrength::Word, rank);
    }
    if TIME_LETTERS.contains(&lower.as_str()) {
        return (TimeNameStrength::Letter, rank);
    }
    (TimeNameStrength::None, rank)
}

/// The words of a name in lower case: `Time [UTC]`, `event_time` and `TimeString` have two each.
fn words_of(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        if !char.is_alphanumeric() || (was_lower && char.is_uppercase()) {
            words.push(String::new());
        }
        was_lower = char.is_lowercase();
        if char.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(char.to_lowercase());
        }
    }
    words.into_iter().filter(|word| !word.is_empty())
}

/// The zone that a column's name ends in: `Date Time, GMT+01:00`, `Time [UTC]`, `time (Europe/Berlin)`.
pub fn zone_in_name(name: &str) -> Option<&str> {
    let name = name.trim().trim_end_matches([')', ']']);
    let begin = name.rfind([' ', '(', '[', ',', '_'])?;
    let zone = name[begin + 1..].trim();
    (zone.len() > 2 && crate::time::is_zone(zone)).then_some(zone)
}

/// Why names cannot be matched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Two columns of the file, or two of the table, differ only in case.
    #[error(
        "column '{name}' could be '{one}' or '{other}'; write the name exactly as in the table"
    )]
    Ambiguous {
        /// The name in the file.
        name: String,
        /// A column that it could be.
        one: String,
        /// Another one.
        other: String,
    },
}

/// For each of the file's `names`, the matching column of `known`: the same name, or the only one
/// that differs only in case. Other names stay unchanged.
///
/// # Errors
/// If a name could be two columns, or two names would match the same one.
pub fn matched(names: &[String], known: &[String]) -> Result<Vec<String>, NameError> {
    let exact: HashSet<&String> = known.iter().collect();
    let own: HashSet<&String> = names.iter().collect();
    let mut folded: HashMap<String, Vec<&String>> = HashMap::new();
    for column in known {
        folded
            .entry(column.to_lowercase())
            .or_default()
            .push(column);
    }
    let mut taken: HashMap<String, &String> = HashMap::new();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let alike = folded.get(&name.to_lowercase()).map(Vec::as_slice);
        let column = match alike {
            _ if exact.contains(name) => name.clone(),
            Some([one, other, ..]) => {
                let (name, one, other) = (name.clone(), (*one).clone(), (*other).clone());
                return Err(NameError::Ambiguous { name, one, other });
            }
            // A column with exactly this name takes precedence.
            Some([one]) if !own.contains(one) => (*one).clone(),
            _ => name.clone(),
        };
        if let Some(other) = taken.insert(column.clone(), name) {
            let (one, other) = (other.clone(), name.clone());
            return Err(NameError::Ambiguous {
                name: column,
                one,
                other,
            });
        }
        found.push(column);
    }
    Ok(found)
}

/// Whether a column with this name holds times, as far as names tell.
pub fn is_time_name(name: &str) -> bool {
    time_name_strength(name).0 >= TimeNameStrength::Letter
}

/// The name in a cell of a header, on one line: spreadsheets break long names in their cells.
pub fn header_name(cell: &str) -> Cow<'_, str> {
    let cell = cell.trim();
    if !cell.contains(char::is_control) {
        return Cow::Borrowed(cell);
    }
    let words = cell.split(|char: char| char.is_control() || char == ' ');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join(" "))
}

/// Names for the columns of a header: trimmed, `columnN` if empty, and with a number appended to
/// duplicates.
pub fn names_from_header<'a>(header: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    // The next number of each name: a header may have thousands of columns, all named alike.
    let mut numbers: HashMap<String, u64> = HashMap::new();
    for (at, name) in header.enumerate() {
        let name = match &*header_name(name) {
            "" => format!("column{}", at + 1),
            name => name.to_owned(),
        };
        let mut free = name.clone();
        while !taken.insert(free.clone()) {
            let number = numbers.entry(name.clone()).or_insert(1);
            *number += 1;
            free = format!("{name}_{number}");
        }
        names.push(free);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn case_is_no_difference_unless_it_must_be() {
        let known = owned(&["ts", "dev", "V", "v"]);
        let found = matched(&owned(&["TS", "DEV", "v", "new"]), &known).unwrap();
        assert_eq!(found, owned(&["ts", "dev", "v", "new"]));
        let known = owned(&["ts", "Temp", "temp"]);
        assert!(matched(&owned(&["TEMP"]), &known).is_err());
        assert!(matched(&owned(&["TS", "Ts"]), &known).is_err());
        let kept = matched(&owned(&["TS", "ts"]), &known).unwrap();
        assert_eq!(kept, owned(&["TS", "ts"]));
    }

    #[test]
    fn names_of_times_are_strong_or_weak() {
        use TimeNameStrength::{Letter, None, Whole, Word};
        for (name, strength) in [
            ("Zeit", Whole),
            ("Timestamp", Whole),
            ("Tidpunkt", Whole),
            ("Horodatage", Whole),
            ("Ora", Whole),
            ("Время", Whole),
            ("TimeString", Word),
            ("Tid (UTC)", Word),
            ("last_changed", Word),
            ("T", Letter),
            ("uptime", None),
            ("Betriebszeit", None),
            ("Temp", None),
        ] {
            assert_eq!(time_name_strength(name).0, strength, "{name}");
        }
        let zone = zone_in_name("Date Time, GMT+01:00");
        assert_eq!(zone, Some("GMT+01:00"));
        assert_eq!(zone_in_name("Zeit [Europe/Berlin]"), Some("Europe/Berlin"));
        assert_eq!(zone_in_name("Tid (UTC)"), Some("UTC"));
        assert_eq!(zone_in_name("event time"), Option::None);
    }

    #[test]
    fn every_column_gets_a_name_of_its_own() {
        let names = names_from_header([" a", "", "a", "b "].into_iter());
        assert_eq!(names, owned(&["a", "column2", "a_2", "b"]));
        let names = names_from_header(["Temp\n[°C]", " a \r\n b", "\n"].into_iter());
        assert_eq!(names, owned(&["Temp [°C]", "a b", "column3"]));
    }

    #[test]
    fn thousands_of_columns_are_named_in_time() {
        let names = names_from_header(std::iter::repeat_n("x", 50_000));
        assert_eq!(names[49_999], "x_50000");
        let distinct: HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        let known: Vec<String> = names.iter().map(|name| name.to_uppercase()).collect();
        assert_eq!(matched(&names, &known).unwrap(), known);
        let names = names_from_header(["x", "x_2", "x", "x"].into_iter());
        assert_eq!(names, owned(&["x", "x_2", "x_3", "x_4"]));
    }
}
