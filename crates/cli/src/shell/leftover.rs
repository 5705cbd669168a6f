//! What a statement leaves behind that Ctrl-C stopped.

use crate::client::DataClient;
use crate::interrupt;
use marigram_pgtext::StatementLexer;
use std::time::Duration;

/// How often to look for the table of a stopped CREATE TABLE AS, and how long to wait between.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// What is left after a statement that was stopped; `None` if only a general answer is possible.
pub(super) fn after(client: &mut DataClient, statement: &str) -> Option<String> {
    let table = created_from_query(statement)?;
    interrupt::clear();
    let question = format!("SELECT 1 FROM {table} LIMIT 0");
    // Whoever runs the statement drops the table as soon as it notices the end.
    for _ in 0..LOOKS {
        match client.query(&question) {
            Ok(_) => std::thread::sleep(PAUSE),
            Err(failure) => {
                interrupt::raise_again();
                let is_gone = failure.message.contains("does not exist");
                return is_gone.then(|| format!("cancelled; there is no table {table}"));
            }
        }
    }
    interrupt::raise_again();
    Some(format!(
        "cancelled; the table {table} is still there, perhaps with some of the rows: DROP TABLE {table} removes it"
    ))
}

/// The name of the table that a CREATE TABLE AS creates, as it is written.
fn created_from_query(statement: &str) -> Option<&str> {
    let mut lexer = StatementLexer::new(statement);
    let mut word = || {
        let place = lexer.next_token_range()?;
        Some((statement[place.clone()].to_ascii_uppercase(), place))
    };
    if word()?.0 != "CREATE" || word()?.0 != "TABLE" {
        return None;
    }
    let (mut text, mut place) = word()?;
    if text == "IF" {
        for expected in ["NOT", "EXISTS"] {
            if word()?.0 != expected {
                return None;
            }
        }
        (text, place) = word()?;
    }
    let begin = place.start;
    let mut end = place.end;
    while text != "AS" {
        (text, place) = word()?;
        match text.as_str() {
            "." => end = word()?.1.end,
            // Columns of its own.
            "(" if place.start == end || statement[end..place.start].trim().is_empty() => {
                return None;
            }
            _ => {}
        }
    }
    Some(&statement[begin..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_a_query_is_found() {
        for (statement, table) in [
            ("CREATE TABLE x AS SELECT 1", Some("x")),
            (
                "create table if not exists d.\"X y\" WITH (tags = 'a') as SELECT 1",
                Some("d.\"X y\""),
            ),
            ("CREATE TABLE x (time TIMESTAMP)", None),
            ("SELECT 1 AS x", None),
            ("CREATE VIEW x AS SELECT 1", None),
        ] {
            assert_eq!(created_from_query(statement), table, "{statement}");
        }
    }
}
