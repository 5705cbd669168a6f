//! Matches the column names of a file with those of a table, ignoring case unless that is
//! ambiguous.

use std::collections::HashMap;

/// Names of time columns, the preferred ones first.
pub const TIME_NAMES: [&str; 15] = [
    "time",
    "timestamp",
    "ts",
    "_time",
    "datetime",
    "date_time",
    "date",
    "utc",
    "created_at",
    "t",
    "zeitstempel",
    "zeit",
    "datum",
    "datum/zeit",
    "date/time",
];

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
    let mut taken: HashMap<String, &String> = HashMap::new();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let column = if known.contains(name) {
            name.clone()
        } else {
            let folded = name.to_lowercase();
            let mut alike = known
                .iter()
                .filter(|column| column.to_lowercase() == folded);
            match (alike.next(), alike.next()) {
                (Some(one), Some(other)) => {
                    let (name, one, other) = (name.clone(), one.clone(), other.clone());
                    return Err(NameError::Ambiguous { name, one, other });
                }
                // A column with exactly this name takes precedence.
                (Some(one), None) if !names.contains(one) => one.clone(),
                _ => name.clone(),
            }
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
    let name = name.trim().to_lowercase();
    TIME_NAMES.contains(&name.as_str())
}

/// Names for the columns of a header: trimmed, `columnN` if empty, and with a number appended to
/// duplicates.
pub fn names_from_header<'a>(header: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, name) in header.enumerate() {
        let name = match name.trim() {
            "" => format!("column{}", at + 1),
            name => name.to_owned(),
        };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !names.contains(name));
        names.extend(free);
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
    fn every_column_gets_a_name_of_its_own() {
        let names = names_from_header([" a", "", "a", "b "].into_iter());
        assert_eq!(names, owned(&["a", "column2", "a_2", "b"]));
    }
}
