//! Statements and what becomes of them, as data: `statements/*.txt`.
//!
//! A statement stands on a line of its own, its answer on the next one, after two blanks: `=` and the
//! statement as it is printed (nothing if it is printed as it is written), `!` and why it cannot be
//! read, or `~` and why it cannot run. `\n`, `\r`, `\t`, `\\` and `\s` (a blank at the end) stand for
//! what they do elsewhere. `#` begins a comment.
//!
//! The answers, but for those in `own.txt`, are those of InfluxDB 1.8; `testing/influxql/compare.py` asks a running InfluxDB for
//! them again.

use marigram_influxql::ast::{InfluxQlQuery, Statement};
use marigram_influxql::time_range::TimeContext;
use marigram_influxql::validate::{analyze, check_statement};
use marigram_influxql::{UtcOnly, parse_query};

const TABLES: [(&str, &str); 8] = [
    ("admin", include_str!("statements/admin.txt")),
    ("compile", include_str!("statements/compile.txt")),
    ("errors", include_str!("statements/errors.txt")),
    ("own", include_str!("statements/own.txt")),
    ("select", include_str!("statements/select.txt")),
    ("show", include_str!("statements/show.txt")),
    ("whole", include_str!("statements/whole.txt")),
    ("where", include_str!("statements/where.txt")),
];

fn unescape(line: &str) -> String {
    let mut text = String::new();
    let mut chars = line.chars();
    while let Some(ch) = chars.next() {
        text.push(match ch {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('s') => ' ',
                other => other.unwrap_or('\\'),
            },
            ch => ch,
        });
    }
    text
}

/// The statements of a table with their answers.
fn rows(table: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut statement = None;
    for line in table.lines() {
        if let Some(answer) = line.strip_prefix("  ") {
            let statement: String = statement.take().expect("a statement before each answer");
            let answer = match answer {
                "=" => format!("={statement}"),
                answer => unescape(answer),
            };
            rows.push((statement, answer));
        } else if !line.is_empty() && !line.starts_with('#') {
            assert_eq!(statement, None, "a statement without an answer");
            statement = Some(unescape(line));
        }
    }
    rows
}

fn refusal(query: &InfluxQlQuery) -> Option<String> {
    let context = TimeContext {
        now_ns: 1_600_000_000_000_000_123,
        time_zone: None,
        zones: &UtcOnly,
    };
    let refusals = query.statements.iter().map(|statement| {
        check_statement(statement)?;
        match statement {
            Statement::Select(select) | Statement::Explain { select, .. } => {
                analyze(select, &context).map(drop)
            }
            _ => Ok(()),
        }
    });
    refusals
        .filter_map(Result::err)
        .map(|error| error.to_string())
        .next()
}

#[test]
fn statements_get_influxdbs_answers() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, table) in TABLES {
        for (statement, expected) in rows(table) {
            let answer = match parse_query(&statement) {
                Err(error) => format!("!{error}"),
                Ok(query) => match refusal(&query) {
                    Some(error) => format!("~{error}"),
                    None => format!("={query}"),
                },
            };
            count += 1;
            if answer != expected {
                wrong.push(format!("{name}: {statement}\n  {expected}\n  {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 900, "{count} statements");
}

#[test]
fn what_is_printed_reads_back_as_the_same() {
    for (_, table) in TABLES {
        for (statement, _) in rows(table) {
            let Ok(query) = parse_query(&statement) else {
                continue;
            };
            let printed = query.to_string();
            // Passwords are not printed, InfluxDB forgets quotes in two places, and it cannot read
            // every number and duration that it prints.
            let lossy = [
                "[REDACTED]",
                "DISTINCT a b",
                "ON my db",
                "0.123",
                "e-05",
                "e+06",
                "25s",
            ];
            if lossy.iter().any(|text| printed.contains(text)) {
                continue;
            }
            let again = parse_query(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
            assert_eq!(again.to_string(), printed, "{statement}");
        }
    }
}

#[test]
fn spans_are_where_statements_and_columns_stand() {
    let text = "  SELECT a ,\n /b/ AS c, f(d)\tFROM m -- end\n; ;SHOW USERS ";
    let query = parse_query(text).expect("a query");
    let parts: Vec<&str> = query
        .spans
        .iter()
        .map(|span| &text[span.start..span.end])
        .collect();
    assert_eq!(
        parts,
        ["SELECT a ,\n /b/ AS c, f(d)\tFROM m -- end", "SHOW USERS"]
    );
    let Statement::Select(select) = &query.statements[0] else {
        panic!("not a SELECT");
    };
    let columns = select
        .fields
        .iter()
        .map(|field| &text[field.span.start..field.span.end]);
    assert_eq!(columns.collect::<Vec<_>>(), ["a", "/b/ AS c", "f(d)"]);
}

#[test]
fn errors_say_where_they_are() {
    let error = parse_query("SELECT a\nFROM b\r\nLIMIT é").expect_err("no number");
    let position = error.position().expect("a place");
    assert_eq!((position.line, position.char, position.byte), (3, 7, 23));
    assert_eq!(
        error.to_wire(),
        "error parsing query: found é, expected integer at line 3, char 7"
    );
}
