//! Reads statements, one per line, and answers each with a line: `=` and the printed statement, `!`
//! and why it cannot be parsed, or `~` and why it cannot run. `\n`, `\r`, `\t` and `\\` have the
//! same meaning as in strings.
//!
//! `testing/influxql/compare.py` compares these answers with those of a real InfluxDB.

use marigram_influxql::ast::Statement;
use marigram_influxql::time_range::TimeContext;
use marigram_influxql::validate::{analyze, check_statement};
use marigram_influxql::{UtcOnly, parse_query};
use std::io::{BufRead, Write};

const ESCAPES: [(&str, &str); 4] = [("\\\\", "\\"), ("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t")];

fn unescape(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let escape = ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape));
        let len = escape.map_or(first.len_utf8(), |(escape, _)| escape.len());
        text.push_str(escape.map_or(&rest[..len], |(_, meant)| meant));
        rest = &rest[len..];
    }
    text
}

fn escape(text: &str) -> String {
    let escape = |text: String, (escape, meant): &(&str, &str)| text.replace(meant, escape);
    ESCAPES.iter().fold(text.to_owned(), escape)
}

fn answer(text: &str) -> String {
    let query = match parse_query(text) {
        Ok(query) => query,
        Err(error) => return format!("!{error}"),
    };
    let context = TimeContext {
        now_ns: 1_600_000_000_000_000_123,
        time_zone: None,
        zones: &UtcOnly,
    };
    for statement in &query.statements {
        if let Err(error) = check_statement(statement) {
            return format!("~{error}");
        }
        let (Statement::Select(select) | Statement::Explain { select, .. }) = statement else {
            continue;
        };
        if let Err(error) = analyze(select, &context) {
            return format!("~{error}");
        }
    }
    format!("={query}")
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", escape(&answer(&unescape(&line?))))?;
    }
    Ok(())
}
