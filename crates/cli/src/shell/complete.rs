//! Completion: SQL's words, Marigram's functions, and the names of tables and columns.

use crate::client::Client;
use crate::script;
use arrow::array::{Array, RecordBatch};
use arrow::util::display::array_value_to_string;
use rustyline::completion::Candidate;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::collections::BTreeSet;

const WORDS: &[&str] = &[
    "ALTER TABLE",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "COPY",
    "COUNT(*)",
    "CREATE DATABASE",
    "CREATE TABLE",
    "DELETE FROM",
    "DESC",
    "DISTINCT",
    "DROP DATABASE",
    "DROP TABLE",
    "ELSE",
    "END",
    "EXISTS",
    "EXPLAIN ANALYZE",
    "FIELD",
    "FROM",
    "GROUP BY",
    "HAVING",
    "IN",
    "INSERT INTO",
    "INTERVAL",
    "IS NOT NULL",
    "IS NULL",
    "JOIN",
    "LEFT JOIN",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "SELECT",
    "SHOW COLUMNS FROM",
    "SHOW DATABASES",
    "SHOW PAGES FROM",
    "SHOW SEGMENTS",
    "SHOW SERIES FROM",
    "SHOW TABLES",
    "TAG",
    "THEN",
    "TIMESTAMP",
    "UNION ALL",
    "USE",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
    "avg(",
    "count(",
    "first(",
    "lag(",
    "last(",
    "max(",
    "median(",
    "min(",
    "now()",
    "stddev(",
    "sum(",
    "time_bucket(",
];

/// Knows what can come next.
#[derive(Default)]
pub struct Completer {
    tables: BTreeSet<String>,
    columns: BTreeSet<String>,
}

/// A word to put in.
pub struct Word(String);

impl Candidate for Word {
    fn display(&self) -> &str {
        &self.0
    }

    fn replacement(&self) -> &str {
        &self.0
    }
}

impl Completer {
    /// Asks for the names of tables and columns. What cannot be learnt is not completed.
    pub fn learn(&mut self, client: &mut Client) {
        self.tables.clear();
        self.columns.clear();
        let tables = client.query("SHOW TABLES").unwrap_or_default();
        self.tables
            .extend(texts(&tables, &["table_name", "table", "name"]));
        for table in self.tables.clone().iter().take(200) {
            let show = format!("SHOW COLUMNS FROM \"{}\"", table.replace('"', "\"\""));
            let columns = client.query(&show).unwrap_or_default();
            self.columns
                .extend(texts(&columns, &["column_name", "column", "name"]));
        }
    }

    /// What begins with `word`, names first.
    fn candidates(&self, word: &str) -> Vec<String> {
        if word.is_empty() {
            return Vec::new();
        }
        let lower = word.to_lowercase();
        let names = self.tables.iter().chain(&self.columns);
        let mut found: Vec<String> = names
            .filter(|name| name.to_lowercase().starts_with(&lower))
            .map(|name| quoted(name))
            .collect();
        found.dedup();
        let is_lower = word.chars().all(|c| !c.is_uppercase());
        for known in WORDS
            .iter()
            .filter(|known| known.to_lowercase().starts_with(&lower))
        {
            found.push(if is_lower {
                known.to_lowercase()
            } else {
                (*known).to_owned()
            });
        }
        found
    }
}

/// A name as SQL takes it: quoted where it must be.
pub fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The texts of the first column that has one of `names`; of the first column, if none has.
pub fn texts(batches: &[RecordBatch], names: &[&str]) -> Vec<String> {
    let mut texts = Vec::new();
    for batch in batches {
        let named = names.iter().find_map(|name| batch.column_by_name(name));
        let Some(column) = named.or_else(|| batch.columns().first()) else {
            continue;
        };
        let shown = (0..column.len()).filter_map(|row| array_value_to_string(column, row).ok());
        texts.extend(shown);
    }
    texts
}

impl Helper for Completer {}
impl Highlighter for Completer {}
impl Validator for Completer {
    /// Enter ends the input only where its last statement is complete; otherwise it goes on in the
    /// next line.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        if is_whole(context.input()) {
            return Ok(ValidationResult::Valid(None));
        }
        Ok(ValidationResult::Incomplete)
    }
}

/// Whether an input can be run as it stands.
fn is_whole(input: &str) -> bool {
    let trimmed = input.trim();
    trimmed.starts_with('\\')
        || leaves(trimmed)
        || script::split(input)
            .iter()
            .all(|statement| statement.complete)
}

/// Whether a line says that the user has had enough.
pub fn leaves(line: &str) -> bool {
    matches!(line, "exit" | "quit" | "exit;" | "quit;")
}

impl Hinter for Completer {
    type Hint = String;
}

impl rustyline::completion::Completer for Completer {
    type Candidate = Word;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Word>)> {
        let before = &line[..pos];
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
            .map_or(0, |at| {
                at + before[at..].chars().next().map_or(1, char::len_utf8)
            });
        let found = self.candidates(&before[start..]);
        Ok((start, found.into_iter().map(Word).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_first_and_keywords_keep_the_case_that_was_typed() {
        let completer = Completer {
            tables: BTreeSet::from(["sensors".into(), "Sensor list".into()]),
            columns: BTreeSet::from(["series".into()]),
        };
        let found = completer.candidates("se");
        assert_eq!(found, ["\"Sensor list\"", "sensors", "series", "select"]);
        assert_eq!(completer.candidates("SEL"), ["SELECT"]);
        assert!(completer.candidates("").is_empty());
    }

    #[test]
    fn enter_runs_whole_statements_and_commands() {
        for whole in [
            "SELECT 1;",
            "\\d",
            "quit",
            "",
            "-- only a comment",
            "SELECT 1; SELECT 2;",
        ] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT"] {
            assert!(!is_whole(part), "{part}");
        }
    }
}
