//! Completion of SQL keywords, Marigram's functions, and the names of tables and columns.

use super::script;
use crate::client::DataClient;
use crate::names::texts;
use arrow::array::RecordBatch;
use marigram_model::quoted;
use rustyline::completion::Candidate;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

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

/// The shell's own commands.
const COMMANDS: &[&str] = &[
    "\\!",
    "\\?",
    "\\c",
    "\\conninfo",
    "\\copy",
    "\\d",
    "\\dm",
    "\\dt",
    "\\du",
    "\\e",
    "\\echo",
    "\\format",
    "\\g",
    "\\gx",
    "\\h",
    "\\i",
    "\\ir",
    "\\l",
    "\\limit",
    "\\o",
    "\\p",
    "\\pager",
    "\\plot",
    "\\q",
    "\\r",
    "\\set",
    "\\timing",
    "\\warn",
    "\\x",
];

/// Words that a table name follows.
const BEFORE_TABLES: &[&str] = &["from", "join", "into", "table", "\\d", "\\copy", "describe"];

/// Tables whose columns are loaded.
const TABLES_MAX: usize = 200;
/// Values of a tag to offer.
const VALUES_MAX: usize = 100;
/// Longest query for one completion.
const ASK_MAX: Duration = Duration::from_millis(700);
/// Longest time for loading all names.
const LEARN_MAX: Duration = Duration::from_secs(2);

/// A column that completion can offer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CompletionColumn {
    name: String,
    is_tag: bool,
}

/// Suggests what can come next.
#[derive(Default)]
pub(super) struct Completer {
    /// The client that is asked for names and values.
    client: Option<Rc<RefCell<DataClient>>>,
    tables: BTreeMap<String, Vec<CompletionColumn>>,
}

/// A word to insert.
pub(super) struct CompletionWord(String);

impl Candidate for CompletionWord {
    fn display(&self) -> &str {
        &self.0
    }

    fn replacement(&self) -> &str {
        &self.0
    }
}

impl Completer {
    /// A completer that knows the names of a database.
    pub(super) fn new(client: Rc<RefCell<DataClient>>) -> Self {
        let mut completer = Self {
            client: Some(client),
            tables: BTreeMap::new(),
        };
        completer.learn();
        completer
    }

    /// Loads the names of tables and columns. Names that do not arrive in time are not completed.
    pub(super) fn learn(&mut self) {
        self.tables.clear();
        let begin = Instant::now();
        let tables = self.ask("SHOW TABLES");
        for table in texts(&tables, &["table_name"]) {
            let mut columns = Vec::new();
            if self.tables.len() < TABLES_MAX && begin.elapsed() < LEARN_MAX {
                let show = format!("SHOW COLUMNS FROM \"{}\"", table.replace('"', "\"\""));
                let shown = self.ask(&show);
                let names = texts(&shown, &["column_name"]);
                let roles = texts(&shown, &["role"]);
                columns.extend(
                    names
                        .into_iter()
                        .zip(roles)
                        .map(|(name, role)| CompletionColumn {
                            name,
                            is_tag: role == "tag",
                        }),
                );
            }
            self.tables.insert(table, columns);
        }
    }

    fn ask(&self, sql: &str) -> Vec<RecordBatch> {
        let client = self.client.as_ref();
        let asked = client.and_then(|client| client.try_borrow_mut().ok());
        asked.map_or_else(Vec::new, |mut client| client.query_within(sql, ASK_MAX))
    }

    /// The candidates at the end of `before`, and where they begin; `line` is the whole input.
    fn find(&self, line: &str, before: &str) -> (usize, Vec<String>) {
        if before.starts_with('\\') && !before.contains(char::is_whitespace) {
            let known = COMMANDS.iter().filter(|known| known.starts_with(before));
            return (0, known.map(|known| (*known).to_owned()).collect());
        }
        if let Some(start) = open_quote(before) {
            let values = tag_before(&before[..start - 1])
                .map(|tag| self.values(&tag, line, &before[start..].replace("''", "'")));
            return (start, values.unwrap_or_default());
        }
        let start = word_start(before);
        (
            start,
            self.candidates(line, &before[..start], &before[start..]),
        )
    }

    /// Candidates that begin with `word`: names first; columns only of tables that the line names.
    fn candidates(&self, line: &str, before: &str, word: &str) -> Vec<String> {
        let last = before.split_whitespace().next_back().unwrap_or("");
        let wants_table = BEFORE_TABLES
            .iter()
            .any(|known| known.eq_ignore_ascii_case(last));
        if word.is_empty() && !wants_table {
            return Vec::new();
        }
        let lower = word.trim_start_matches('"').to_lowercase();
        let tables = self.tables.keys().map(String::as_str);
        let columns = self.tables_of(line).flat_map(|(_, columns)| columns);
        let columns = columns.map(|column| column.name.as_str());
        let names: BTreeSet<&str> = if wants_table {
            tables.collect()
        } else {
            tables.chain(columns).collect()
        };
        let mut found: Vec<String> = names
            .into_iter()
            .filter(|name| name.to_lowercase().starts_with(&lower))
            .map(quoted)
            .collect();
        if wants_table || word.starts_with('"') {
            return found;
        }
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

    /// The tables that a line names; all tables if it names none.
    fn tables_of(&self, line: &str) -> impl Iterator<Item = (&String, &Vec<CompletionColumn>)> {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let words: BTreeSet<&str> = line.split(|c| !is_name(c)).collect();
        let is_named = move |table: &str| {
            words.contains(table) || line.contains(&quoted(table)) && quoted(table).starts_with('"')
        };
        let any = self.tables.keys().any(|table| is_named(table));
        self.tables
            .iter()
            .filter(move |(table, _)| !any || is_named(table))
    }

    /// Values of a tag that begin with `prefix`, escaped for quotes, with the closing quote.
    fn values(&self, tag: &str, line: &str, prefix: &str) -> Vec<String> {
        let mut of_tag = self.tables_of(line).filter(|(_, columns)| {
            columns
                .iter()
                .any(|column| column.is_tag && column.name == tag)
        });
        let Some((table, _)) = of_tag.next() else {
            return Vec::new();
        };
        let (table, tag) = (table.replace('"', "\"\""), tag.replace('"', "\"\""));
        let text = prefix.replace('\'', "''");
        let sql = format!(
            "SELECT DISTINCT \"{tag}\" FROM \"{table}\" WHERE starts_with(\"{tag}\"::TEXT, '{text}') \
             ORDER BY 1 LIMIT {VALUES_MAX}"
        );
        let values = texts(&self.ask(&sql), &[]);
        let values = values.into_iter().filter(|value| value.starts_with(prefix));
        values
            .map(|value| format!("{}'", value.replace('\'', "''")))
            .collect()
    }
}

/// Where the quoted text begins that is still open at the end of `before`.
fn open_quote(before: &str) -> Option<usize> {
    let mut open: Option<(char, usize)> = None;
    let mut characters = before.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match open {
            None if matches!(character, '\'' | '"') => open = Some((character, at + 1)),
            // A doubled quote is part of the text.
            Some((quote, _))
                if character == quote
                    && characters.next_if(|(_, next)| *next == quote).is_none() =>
            {
                open = None;
            }
            _ => {}
        }
    }
    open.filter(|(quote, _)| *quote == '\'').map(|(_, at)| at)
}

/// The column that the text after `before` is compared with: `site = `, `site IN (`, `site IN ('a',
/// `.
fn tag_before(before: &str) -> Option<String> {
    let mut rest = before.trim_end();
    while let Some(list) = rest.strip_suffix(',') {
        // An earlier text of the list.
        let list = list.trim_end().strip_suffix('\'')?;
        rest = list[..list.rfind('\'')?].trim_end();
    }
    let without = |text: &str, word: &str| -> Option<String> {
        let split = text.len().checked_sub(word.len())?;
        let (head, tail) = text.split_at_checked(split)?;
        tail.eq_ignore_ascii_case(word)
            .then(|| head.trim_end().to_owned())
    };
    let list = rest.strip_suffix('(').map(str::trim_end);
    let named = match list {
        Some(list) => without(list, " in").map(|head| without(&head, " not").unwrap_or(head)),
        None => ["<>", "!=", "=", " like", " ilike"]
            .iter()
            .find_map(|sign| without(rest, sign)),
    }?;
    if let Some(inner) = named.strip_suffix('"') {
        return Some(inner[inner.rfind('"')? + 1..].to_owned());
    }
    let start = word_start(&named);
    (start < named.len()).then(|| named[start..].to_owned())
}

/// Where the last word of a text begins, including its quotation mark.
fn word_start(text: &str) -> usize {
    let start = text
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        });
    start - usize::from(text[..start].ends_with('"'))
}

impl Helper for Completer {}
impl Highlighter for Completer {}
impl Validator for Completer {
    /// Enter ends the input only if its last statement is complete; otherwise it starts a new line.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        if is_whole(context.input()) {
            return Ok(ValidationResult::Valid(None));
        }
        Ok(ValidationResult::Incomplete)
    }
}

/// Whether an input can be run.
pub(super) fn is_whole(input: &str) -> bool {
    leaves(input.trim()) || script::is_whole(input)
}

/// Whether a line asks to leave the shell.
pub(super) fn leaves(line: &str) -> bool {
    matches!(line, "exit" | "quit" | "exit;" | "quit;")
}

impl Hinter for Completer {
    type Hint = String;
}

impl rustyline::completion::Completer for Completer {
    type Candidate = CompletionWord;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<CompletionWord>)> {
        let (start, found) = self.find(line, &line[..pos]);
        Ok((start, found.into_iter().map(CompletionWord).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completer() -> Completer {
        let column = |name: &str, is_tag| CompletionColumn {
            name: name.to_owned(),
            is_tag,
        };
        Completer {
            client: None,
            tables: BTreeMap::from([
                (
                    "sensors".into(),
                    vec![column("series", true), column("site", true)],
                ),
                ("Sensor list".into(), vec![column("serial", false)]),
            ]),
        }
    }

    #[test]
    fn names_come_first_and_keywords_keep_the_case_that_was_typed() {
        let completer = completer();
        let found = |line: &str| completer.find(line, line).1;
        assert_eq!(
            found("se"),
            ["\"Sensor list\"", "sensors", "serial", "series", "select"]
        );
        assert_eq!(found("SEL"), ["SELECT"]);
        assert!(found("").is_empty());
        assert_eq!(found("\\pl"), ["\\plot"]);
    }

    #[test]
    fn columns_are_those_of_the_tables_that_the_line_names() {
        let completer = completer();
        let line = "SELECT ser FROM sensors";
        assert_eq!(
            completer.find(line, "SELECT ser"),
            (7, vec!["series".to_owned()])
        );
        let found = |line: &str| completer.find(line, line).1;
        assert_eq!(found("SELECT * FROM "), ["\"Sensor list\"", "sensors"]);
        assert_eq!(
            completer
                .find("SELECT * FROM \"Sen", "SELECT * FROM \"Sen")
                .0,
            14
        );
        assert_eq!(found("SELECT * FROM \"Sensor list\" WHERE ser"), ["serial"]);
    }

    #[test]
    fn texts_are_values_of_the_column_before_them() {
        for (before, tag) in [
            ("SELECT * FROM t WHERE site = ", Some("site")),
            ("WHERE site<>", Some("site")),
            ("WHERE t.site IN (", Some("site")),
            ("WHERE site not in ('a', 'b' , ", Some("site")),
            ("WHERE \"My site\" LIKE ", Some("My site")),
            ("INTERVAL ", None),
            ("concat(", None),
        ] {
            assert_eq!(tag_before(before).as_deref(), tag, "{before}");
        }
        assert_eq!(open_quote("a = 'no"), Some(5));
        assert_eq!(open_quote("a = 'no' AND \"x"), None);
        assert_eq!(open_quote("a = 'it''s"), Some(5));
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
